//! Public keys: reading, writing, identifiers and verification of one signature.

use std::fmt;

use ed25519_dalek::VerifyingKey as Ed25519Key;
use p256::ecdsa::{DerSignature, VerifyingKey as P256Key, signature::Verifier as _};
use pkcs8::{
    DecodePublicKey as _, EncodePublicKey as _,
    der::pem::LineEnding,
    spki::{self, SubjectPublicKeyInfoRef},
};

use super::Algorithm;
use crate::{
    Digest,
    error::{Error, excerpt},
    limits::MAX_TEXT_BYTES,
};

/// Stable identifier of a key: SHA-256 of its SubjectPublicKeyInfo in DER, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// Returns the 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Public key that verifies signatures.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(Inner);

#[derive(Clone, PartialEq, Eq)]
enum Inner {
    P256(P256Key),
    Ed25519(Ed25519Key),
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo in PEM (`-----BEGIN PUBLIC KEY-----`).
    ///
    /// # Errors
    /// [`Error::Limit`] over [`MAX_TEXT_BYTES`]; [`Error::Key`] for another label, malformed PEM or DER, trailing
    /// data, another algorithm, or a point of small order.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        Error::limit("public key, bytes", pem.len(), MAX_TEXT_BYTES)?;
        let text = std::str::from_utf8(pem).map_err(|_| malformed("bytes that are not text"))?;
        match super::pem_label(text) {
            Some("PUBLIC KEY") => {}
            Some(other) => return Err(malformed(format!("the label `{}`", excerpt(other)))),
            None => return Err(malformed("no PEM header at the first byte")),
        }
        let (_, document) = spki::Document::from_pem(text).map_err(|error| malformed(error.to_string()))?;
        Self::from_der(document.as_bytes())
    }

    /// Reads a SubjectPublicKeyInfo in DER.
    ///
    /// # Errors
    /// As [`Self::from_pem`].
    pub fn from_der(der: &[u8]) -> Result<Self, Error> {
        Error::limit("public key, bytes", der.len(), MAX_TEXT_BYTES)?;
        let info = SubjectPublicKeyInfoRef::try_from(der).map_err(|error| malformed(error.to_string()))?;
        match super::algorithm(WHAT, info.algorithm)? {
            Algorithm::EcdsaP256 => P256Key::from_public_key_der(der)
                .map(|key| Self(Inner::P256(key)))
                .map_err(|error| malformed(error.to_string())),
            Algorithm::Ed25519 => {
                let key = Ed25519Key::from_public_key_der(der).map_err(|error| malformed(error.to_string()))?;
                if key.is_weak() {
                    return Err(malformed("a point of small order"));
                }
                Ok(Self(Inner::Ed25519(key)))
            }
        }
    }

    /// Returns the SubjectPublicKeyInfo in PEM with a final newline.
    ///
    /// # Errors
    /// [`Error::Key`] when the key cannot be encoded.
    pub fn to_pem(&self) -> Result<String, Error> {
        let pem = match &self.0 {
            Inner::P256(key) => key.to_public_key_pem(LineEnding::LF),
            Inner::Ed25519(key) => key.to_public_key_pem(LineEnding::LF),
        };
        pem.map_err(|error| malformed(error.to_string()))
    }

    /// Returns the SubjectPublicKeyInfo in DER.
    ///
    /// # Errors
    /// [`Error::Key`] when the key cannot be encoded.
    pub fn to_der(&self) -> Result<Vec<u8>, Error> {
        let der = match &self.0 {
            Inner::P256(key) => key.to_public_key_der(),
            Inner::Ed25519(key) => key.to_public_key_der(),
        };
        der.map(spki::Document::into_vec).map_err(|error| malformed(error.to_string()))
    }

    /// Returns the identifier of the key.
    ///
    /// # Errors
    /// [`Error::Key`] when the key cannot be encoded.
    pub fn id(&self) -> Result<KeyId, Error> {
        Ok(KeyId(*Digest::of(&self.to_der()?).as_bytes()))
    }

    /// Returns the algorithm of the key.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            Inner::P256(_) => Algorithm::EcdsaP256,
            Inner::Ed25519(_) => Algorithm::Ed25519,
        }
    }

    /// Returns `true` if `signature` is a signature of `message` by this key.
    ///
    /// ECDSA signatures are strict DER. Both values of S are accepted, as in Go, OpenSSL and ring: the bytes of a
    /// signature are therefore not an identifier. Ed25519 follows the strict rules of RFC 8032.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            Inner::P256(key) => {
                DerSignature::from_bytes(signature).is_ok_and(|signature| key.verify(message, &signature).is_ok())
            }
            Inner::Ed25519(key) => ed25519_dalek::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_strict(message, &signature).is_ok()),
        }
    }

    pub(super) fn p256(key: P256Key) -> Self {
        Self(Inner::P256(key))
    }

    pub(super) fn ed25519(key: Ed25519Key) -> Self {
        Self(Inner::Ed25519(key))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id().map(|id| id.to_string()).unwrap_or_default();
        f.debug_struct("PublicKey").field("algorithm", &self.algorithm()).field("id", &id).finish()
    }
}

const WHAT: &str = "public key";

fn malformed(found: impl Into<String>) -> Error {
    Error::key(WHAT, "a PEM document `PUBLIC KEY` of ECDSA P-256 or Ed25519", found)
}
