//! Secret keys: generation, PKCS#8 with and without a passphrase, signing.
//!
//! Secret keys are erased from memory when they are dropped. Neither `Debug` nor an error shows key material.

use std::fmt;

use ed25519_dalek::{Signer as _, SigningKey as Ed25519Secret, pkcs8::KeypairBytes};
use p256::{SecretKey as P256Secret, ecdsa::DerSignature};
use pkcs8::{
    DecodePrivateKey as _, EncodePrivateKey as _, EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef, SecretDocument,
    der::{Encode as _, asn1::OctetString, pem::LineEnding},
    pkcs5::{self, pbes2},
};
use zeroize::Zeroizing;

use super::{Algorithm, PublicKey, cosign};
use crate::error::{Error, excerpt};
use crate::limits::{MAX_FIELD_BYTES, MAX_PART_BYTES, MAX_PBKDF2_ROUNDS, MAX_SCRYPT_MEMORY, MAX_SCRYPT_PARALLELISM};

/// Secret key that signs.
pub struct Signer(Inner);

enum Inner {
    P256(P256Secret),
    Ed25519(Ed25519Secret),
}

impl Signer {
    /// Generates a key from the random numbers of the system.
    ///
    /// # Errors
    /// [`Error::Random`] when the system has none.
    pub fn generate(algorithm: Algorithm) -> Result<Self, Error> {
        loop {
            let mut seed = Zeroizing::new([0; 32]);
            getrandom::fill(&mut *seed).map_err(Error::Random)?;
            match algorithm {
                Algorithm::Ed25519 => return Ok(Self(Inner::Ed25519(Ed25519Secret::from_bytes(&seed)))),
                // A scalar outside the group order is as good as never drawn (probability 2^-32): draw again.
                Algorithm::EcdsaP256 => {
                    if let Ok(key) = P256Secret::from_slice(&*seed) {
                        return Ok(Self(Inner::P256(key)));
                    }
                }
            }
        }
    }

    /// Reads a secret key in PEM: `PRIVATE KEY`, `ENCRYPTED PRIVATE KEY` (PKCS#8 with PBES2), or cosign's
    /// `ENCRYPTED SIGSTORE PRIVATE KEY` and `ENCRYPTED COSIGN PRIVATE KEY`.
    ///
    /// `passphrase` is ignored when the key is not encrypted.
    ///
    /// # Errors
    /// [`Error::Limit`] over [`MAX_PART_BYTES`] or the limits of key derivation, [`Error::PassphraseRequired`],
    /// [`Error::Passphrase`] for a wrong passphrase, [`Error::Key`] for everything else.
    pub fn from_pem(pem: &[u8], passphrase: Option<&[u8]>) -> Result<Self, Error> {
        Error::limit("secret key, bytes", pem.len(), MAX_PART_BYTES)?;
        let text = std::str::from_utf8(pem).map_err(|_| malformed("bytes that are not text"))?;
        match super::pem_label(text) {
            Some("PRIVATE KEY") => Self::from_pkcs8(document(text)?.as_bytes()),
            Some("ENCRYPTED PRIVATE KEY") => {
                let passphrase = required(passphrase)?;
                let document = document(text)?;
                let encrypted = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes())
                    .map_err(|error| malformed(error.to_string()))?;
                check_cost(&encrypted.encryption_algorithm)?;
                let key = encrypted.decrypt(passphrase).map_err(|_| Error::Passphrase)?;
                Self::from_pkcs8(key.as_bytes())
            }
            Some(cosign::LABEL | cosign::OLD_LABEL) => Self::from_pkcs8(&cosign::decrypt(text, required(passphrase)?)?),
            Some(other) => Err(malformed(format!("the label `{}`", excerpt(other)))),
            None => Err(malformed("no PEM header at the first byte")),
        }
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, Error> {
        // Errors of the decoder describe structure, never content.
        let info = PrivateKeyInfoRef::try_from(der).map_err(|error| malformed(error.to_string()))?;
        let key = match super::algorithm(WHAT, info.algorithm)? {
            Algorithm::EcdsaP256 => P256Secret::from_pkcs8_der(der).map(Inner::P256),
            Algorithm::Ed25519 => Ed25519Secret::from_pkcs8_der(der).map(Inner::Ed25519),
        };
        key.map(Self).map_err(|error| malformed(error.to_string()))
    }

    /// Returns the key as PKCS#8 in PEM, not encrypted.
    ///
    /// # Errors
    /// [`Error::Key`] when the key cannot be encoded.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, Error> {
        self.to_pkcs8()?.to_pem("PRIVATE KEY", LineEnding::LF).map_err(|error| malformed(error.to_string()))
    }

    /// Returns the key as PKCS#8 in PEM, encrypted with PBES2: scrypt (N = 2^14, r = 8, p = 5) and AES-256-CBC.
    ///
    /// OpenSSL refuses scrypt with more than 32 MiB of memory; these parameters use 16 MiB and five times the work.
    ///
    /// # Errors
    /// [`Error::Key`] for an empty passphrase, [`Error::Limit`] over [`MAX_FIELD_BYTES`], [`Error::Random`].
    pub fn to_encrypted_pem(&self, passphrase: &[u8]) -> Result<Zeroizing<String>, Error> {
        let passphrase = required(Some(passphrase))?;
        if passphrase.is_empty() {
            return Err(Error::key("passphrase", "at least one byte", "an empty passphrase"));
        }
        let (mut salt, mut iv) = ([0; 16], [0; 16]);
        getrandom::fill(&mut salt).and_then(|()| getrandom::fill(&mut iv)).map_err(Error::Random)?;
        let encode = || -> Result<Zeroizing<String>, pkcs8::Error> {
            let cost = scrypt::Params::new(14, 8, 5).map_err(|_| pkcs8::Error::ParametersMalformed)?;
            let scheme = pbes2::Parameters::generate_scrypt_aes256cbc(cost, &salt, iv)?;
            let encrypted_data = scheme.encrypt(passphrase, self.to_pkcs8_inner()?.as_bytes())?;
            let info = pkcs8::EncryptedPrivateKeyInfoOwned {
                encryption_algorithm: scheme.into(),
                encrypted_data: OctetString::new(encrypted_data)?,
            };
            Ok(SecretDocument::try_from(info.to_der()?)?.to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF)?)
        };
        encode().map_err(|error| malformed(error.to_string()))
    }

    fn to_pkcs8(&self) -> Result<SecretDocument, Error> {
        self.to_pkcs8_inner().map_err(|error| malformed(error.to_string()))
    }

    fn to_pkcs8_inner(&self) -> Result<SecretDocument, pkcs8::Error> {
        match &self.0 {
            Inner::P256(key) => key.to_pkcs8_der(),
            // Without the public key, which OpenSSL does not expect in a PKCS#8 document.
            Inner::Ed25519(key) => KeypairBytes { secret_key: key.to_bytes(), public_key: None }.to_pkcs8_der(),
        }
    }

    /// Returns the public key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        match &self.0 {
            Inner::P256(key) => PublicKey::p256(key.public_key().into()),
            Inner::Ed25519(key) => PublicKey::ed25519(key.verifying_key()),
        }
    }

    /// Signs a message; the same key and message always give the same signature.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        match &self.0 {
            Inner::P256(key) => {
                let signature: DerSignature = p256::ecdsa::SigningKey::from(key).sign(message);
                signature.as_bytes().to_vec()
            }
            Inner::Ed25519(key) => key.sign(message).to_bytes().to_vec(),
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("public_key", &self.public_key()).finish_non_exhaustive()
    }
}

const WHAT: &str = "secret key";

fn malformed(found: impl Into<String>) -> Error {
    Error::key(WHAT, "a PEM document `PRIVATE KEY` or `ENCRYPTED PRIVATE KEY` of ECDSA P-256 or Ed25519", found)
}

fn document(pem: &str) -> Result<SecretDocument, Error> {
    SecretDocument::from_pem(pem).map(|(_, document)| document).map_err(|error| malformed(error.to_string()))
}

fn required(passphrase: Option<&[u8]>) -> Result<&[u8], Error> {
    let passphrase = passphrase.ok_or(Error::PassphraseRequired)?;
    Error::limit("passphrase, bytes", passphrase.len(), MAX_FIELD_BYTES)?;
    Ok(passphrase)
}

/// Refuses key derivation that would use too much memory or time.
fn check_cost(scheme: &pkcs5::EncryptionScheme) -> Result<(), Error> {
    let Some(parameters) = scheme.pbes2() else {
        return Err(malformed("an encryption scheme other than PBES2"));
    };
    match &parameters.kdf {
        pbes2::Kdf::Scrypt(scrypt) => scrypt_cost(
            scrypt.cost_parameter,
            scrypt.block_size.into(),
            scrypt.parallelization.into(),
            MAX_SCRYPT_MEMORY,
        ),
        pbes2::Kdf::Pbkdf2(pbkdf2) => {
            Error::limit("PBKDF2 rounds", pbkdf2.iteration_count as usize, MAX_PBKDF2_ROUNDS as usize)
        }
        _ => Err(malformed("a key derivation other than scrypt and PBKDF2")),
    }
}

/// Refuses scrypt parameters over `max_memory` bytes or [`MAX_SCRYPT_PARALLELISM`].
pub(crate) fn scrypt_cost(n: u64, r: u64, p: u64, max_memory: u64) -> Result<(), Error> {
    let memory = n.saturating_mul(r).saturating_mul(128);
    if memory > max_memory {
        return Err(Error::Limit { what: "scrypt memory, bytes".into(), found: memory, max: max_memory });
    }
    if p > MAX_SCRYPT_PARALLELISM {
        return Err(Error::Limit { what: "scrypt parallelism".into(), found: p, max: MAX_SCRYPT_PARALLELISM });
    }
    Ok(())
}
