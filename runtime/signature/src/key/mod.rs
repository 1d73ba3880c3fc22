//! Keys: algorithms, public keys, secret keys and their files.

mod cosign;
mod file;
mod public;
mod secret;

use std::fmt;

pub use file::{KeyFile, read_key_file, write_key_file};
pub use public::{KeyId, PublicKey};
pub use secret::Signer;

/// Signature algorithm of a key. The key decides the algorithm, never the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA on curve P-256 with SHA-256; signatures are ASN.1 DER and deterministic (RFC 6979).
    #[default]
    EcdsaP256,
    /// Ed25519 over the whole message (RFC 8032, not prehashed); signatures have 64 bytes.
    Ed25519,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EcdsaP256 => "ECDSA P-256",
            Self::Ed25519 => "Ed25519",
        })
    }
}

/// Object identifier of Ed25519 keys (RFC 8410).
const ED25519: pkcs8::ObjectIdentifier = pkcs8::ObjectIdentifier::new_unwrap("1.3.101.112");
/// Object identifier of keys on elliptic curves (RFC 5480).
const ELLIPTIC_CURVE: pkcs8::ObjectIdentifier = pkcs8::ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// Object identifier of the curve P-256 (RFC 5480).
const P256: pkcs8::ObjectIdentifier = pkcs8::ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");

/// Names the algorithm of a key by its algorithm identifier.
fn algorithm(
    what: &'static str,
    identifier: pkcs8::spki::AlgorithmIdentifierRef<'_>,
) -> Result<Algorithm, crate::Error> {
    let expected = "ECDSA P-256 or Ed25519";
    if identifier.oid == ED25519 {
        return Ok(Algorithm::Ed25519);
    }
    if identifier.oid == ELLIPTIC_CURVE {
        let curve = identifier.parameters_oid();
        return match curve {
            Ok(P256) => Ok(Algorithm::EcdsaP256),
            Ok(other) => Err(crate::Error::key(what, expected, format!("the elliptic curve `{other}`"))),
            Err(_) => Err(crate::Error::key(what, expected, "an elliptic curve without a name")),
        };
    }
    Err(crate::Error::key(what, expected, format!("the algorithm `{}`", identifier.oid)))
}

/// Reads the label of a PEM document that starts at its first byte.
fn pem_label(pem: &str) -> Option<&str> {
    let (label, _) = pem.strip_prefix("-----BEGIN ")?.split_once("-----")?;
    Some(label)
}
