//! Keys and bundles that several tests share.

pub(crate) mod authority;
#[path = "../../../../../tests/certificates.rs"]
pub(crate) mod certificates;
pub(crate) mod log;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use toolcrib_signature::{
    Digest, Policy,
    key::{Algorithm, PublicKey, Signer},
};

pub(crate) const ALGORITHMS: [Algorithm; 2] = [Algorithm::EcdsaP256, Algorithm::Ed25519];

pub(crate) fn digest() -> Digest {
    Digest::of(b"an OCI manifest")
}

/// Fixed secret keys, so that failures repeat.
pub(crate) fn signer(algorithm: Algorithm) -> Signer {
    let pem = match algorithm {
        Algorithm::EcdsaP256 => &include_bytes!("../data/openssl/p256.pem")[..],
        _ => &include_bytes!("../data/openssl/ed25519.pem")[..],
    };
    Signer::from_pem(pem, None).unwrap()
}

pub(crate) fn trusting(key: PublicKey) -> Policy {
    Policy::new().trust_key(key).unwrap()
}

pub(crate) fn bundle(algorithm: Algorithm) -> Vec<u8> {
    signer(algorithm).sign_digest(&digest()).unwrap()
}

/// Parses a bundle, lets `change` edit it, and writes it again.
pub(crate) fn edited(bundle: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(bundle).unwrap();
    change(&mut value);
    serde_json::to_vec(&value).unwrap()
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> Value {
    STANDARD.encode(bytes).into()
}

pub(crate) fn decode(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}
