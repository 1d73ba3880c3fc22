//! Cryptography for `sigstore-verify`, by `ring`.
//!
//! `sigstore-verify` finds its provider in a variable of the process. The provider below is installed before the first
//! use; a provider that the process installed earlier stays in place.

use std::sync::Once;

use p256::ecdsa::{DerSignature, VerifyingKey, signature::hazmat::PrehashVerifier as _};
use ring::{digest, signature as ring_signature};
use sigstore_verify::{
    crypto::{CryptoProvider, Error, HashContext, Result, SigningScheme, install_default_provider},
    types::HashAlgorithm,
};

/// Installs the provider once.
pub(crate) fn install() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        // An error only says that the process chose another provider before.
        let _ = install_default_provider(&Ring);
    });
}

/// Provider without signing: this crate signs with its own keys only.
#[derive(Debug)]
struct Ring;

struct Hash(digest::Context);

impl HashContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

impl CryptoProvider for Ring {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>> {
        let algorithm = match algorithm {
            HashAlgorithm::Sha2256 => &digest::SHA256,
            HashAlgorithm::Sha2384 => &digest::SHA384,
            HashAlgorithm::Sha2512 => &digest::SHA512,
            other => return Err(Error::UnsupportedAlgorithm(format!("no implementation of the hash {other}"))),
        };
        Ok(Box::new(Hash(digest::Context::new(algorithm))))
    }

    fn verify_raw(&self, scheme: SigningScheme, key: &[u8], data: &[u8], signature: &[u8]) -> Result<()> {
        let algorithm: &'static dyn ring_signature::VerificationAlgorithm = match scheme {
            SigningScheme::EcdsaP256Sha256 => &ring_signature::ECDSA_P256_SHA256_ASN1,
            SigningScheme::EcdsaP256Sha384 => &ring_signature::ECDSA_P256_SHA384_ASN1,
            SigningScheme::EcdsaP384Sha256 => &ring_signature::ECDSA_P384_SHA256_ASN1,
            SigningScheme::EcdsaP384Sha384 => &ring_signature::ECDSA_P384_SHA384_ASN1,
            SigningScheme::Ed25519 => &ring_signature::ED25519,
            SigningScheme::RsaPssSha256 => &ring_signature::RSA_PSS_2048_8192_SHA256,
            SigningScheme::RsaPssSha384 => &ring_signature::RSA_PSS_2048_8192_SHA384,
            SigningScheme::RsaPssSha512 => &ring_signature::RSA_PSS_2048_8192_SHA512,
            SigningScheme::RsaPkcs1Sha256 => &ring_signature::RSA_PKCS1_2048_8192_SHA256,
            SigningScheme::RsaPkcs1Sha384 => &ring_signature::RSA_PKCS1_2048_8192_SHA384,
            SigningScheme::RsaPkcs1Sha512 => &ring_signature::RSA_PKCS1_2048_8192_SHA512,
            other => return Err(unsupported(other)),
        };
        ring_signature::UnparsedPublicKey::new(algorithm, key).verify(data, signature).map_err(|_| invalid(scheme))
    }

    /// Verifies over a digest, which `ring` cannot. Only P-256 occurs for the statements of this crate.
    fn verify_prehashed(&self, scheme: SigningScheme, key: &[u8], digest: &[u8], signature: &[u8]) -> Result<()> {
        match scheme {
            SigningScheme::EcdsaP256Sha256 => {
                let key = VerifyingKey::from_sec1_bytes(key).map_err(|_| invalid(scheme))?;
                let signature = DerSignature::from_bytes(signature).map_err(|_| invalid(scheme))?;
                key.verify_prehash(digest, &signature).map_err(|_| invalid(scheme))
            }
            other => Err(unsupported(other)),
        }
    }
}

fn invalid(scheme: SigningScheme) -> Error {
    Error::Verification(format!("{} signature is not valid", scheme.name()))
}

fn unsupported(scheme: SigningScheme) -> Error {
    Error::UnsupportedAlgorithm(format!("no implementation of the signature scheme {}", scheme.name()))
}
