//! Public keys of an issuer (RFC 7517): those for signatures, each with the algorithms that it can have.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde_json::Value;

use super::signature::ALGORITHMS;

/// Maximum number of keys for one issuer.
pub(super) const MAX_KEYS: usize = 64;
/// Members of a private key.
const PRIVATE: [&str; 2] = ["d", "k"];

/// Keys of an issuer.
#[derive(Debug)]
pub(super) struct KeySet(Vec<SigningKey>);

#[derive(Debug)]
struct SigningKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl KeySet {
    /// Reads a document with keys. Keys for other purposes, of unknown kinds, and private ones are left out.
    pub(super) fn parse(document: &Value) -> Result<Self, String> {
        let keys = document["keys"].as_array().ok_or("the document has no array `keys`")?;
        if keys.len() > MAX_KEYS {
            return Err(format!("the document has {} keys, more than {MAX_KEYS}", keys.len()));
        }
        let keys: Vec<_> = keys.iter().filter_map(SigningKey::parse).collect();
        if keys.is_empty() { Err("the document has no public key for signatures".to_owned()) } else { Ok(Self(keys)) }
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Finds the only key with this identifier for an algorithm, or the only key for it if a token names none.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let is_meant = |key: &&SigningKey| {
            key.algorithms.contains(&algorithm) && id.is_none_or(|id| key.id.as_deref() == Some(id))
        };
        let mut meant = self.0.iter().filter(is_meant);
        let key = meant.next()?;
        meant.next().is_none().then_some(&key.key)
    }
}

impl SigningKey {
    fn parse(value: &Value) -> Option<Self> {
        // Everybody who reads a private key could sign with it.
        if PRIVATE.iter().any(|member| value.get(member).is_some()) {
            return None;
        }
        let Jwk { common, algorithm } = serde_json::from_value(value.clone()).ok()?;
        let signs = common.public_key_use.is_none_or(|of| of == PublicKeyUse::Signature)
            && common.key_operations.is_none_or(|all| all.contains(&KeyOperations::Verify));
        let stated = common.key_algorithm.map(Algorithm::try_from).transpose().ok()?;
        let fits = |one: Algorithm| match &algorithm {
            AlgorithmParameters::RSA(_) => one.family() == AlgorithmFamily::Rsa,
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => one == Algorithm::ES256,
                EllipticCurve::P384 => one == Algorithm::ES384,
                _ => false,
            },
            AlgorithmParameters::OctetKeyPair(key) => key.curve == EllipticCurve::Ed25519 && one == Algorithm::EdDSA,
            _ => false,
        };
        let is_possible = |one: &Algorithm| fits(*one) && stated.is_none_or(|stated| stated == *one);
        let algorithms: Vec<_> = ALGORITHMS.into_iter().filter(is_possible).collect();
        if !signs || algorithms.is_empty() {
            return None;
        }
        let key = match &algorithm {
            AlgorithmParameters::RSA(key) => DecodingKey::from_rsa_components(&key.n, &key.e),
            AlgorithmParameters::EllipticCurve(key) => DecodingKey::from_ec_components(&key.x, &key.y),
            AlgorithmParameters::OctetKeyPair(key) => DecodingKey::from_ed_components(&key.x),
            _ => return None,
        };
        Some(Self { id: common.key_id, algorithms, key: key.ok()? })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ed(id: &str) -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": id})
    }

    fn with(mut key: Value, member: &str, value: Value) -> Value {
        key[member] = value;
        key
    }

    fn set(keys: &[Value]) -> Result<KeySet, String> {
        KeySet::parse(&json!({ "keys": keys }))
    }

    #[test]
    fn a_key_is_found_by_its_identifier_and_algorithm_and_only_if_it_is_the_only_one() {
        let keys = set(&[ed("a"), ed("b")]).unwrap();
        assert!(keys.find(Some("a"), Algorithm::EdDSA).is_some());
        assert!(keys.find(Some("a"), Algorithm::ES256).is_none() && keys.find(Some("c"), Algorithm::EdDSA).is_none());
        assert!(keys.find(None, Algorithm::EdDSA).is_none(), "two are possible");
        assert!(set(&[ed("a")]).unwrap().find(None, Algorithm::EdDSA).is_some());
        assert!(set(&[ed("a"), ed("a")]).unwrap().find(Some("a"), Algorithm::EdDSA).is_none());
    }

    #[test]
    fn keys_for_other_purposes_private_and_symmetric_ones_are_left_out() {
        for other in [
            with(ed("a"), "use", json!("enc")),
            with(ed("a"), "key_ops", json!(["sign"])),
            with(ed("a"), "alg", json!("RS256")),
            with(ed("a"), "alg", json!("HS256")),
            with(ed("a"), "alg", json!("RSA-OAEP")),
            with(ed("a"), "crv", json!("Ed448")),
            with(ed("a"), "x", json!("?")),
            with(ed("a"), "d", json!("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")),
            json!({"kty": "oct", "k": "c2VjcmV0", "kid": "a", "alg": "HS256"}),
            json!({"kty": "unknown"}),
            json!(1),
        ] {
            assert!(set(std::slice::from_ref(&other)).is_err(), "{other}");
            assert!(set(&[other, ed("b")]).unwrap().find(Some("b"), Algorithm::EdDSA).is_some());
        }
        for allowed in [with(ed("a"), "use", json!("sig")), with(ed("a"), "key_ops", json!(["verify"]))] {
            assert!(set(&[with(allowed, "alg", json!("EdDSA"))]).is_ok());
        }
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let keys: Vec<_> = (0..=MAX_KEYS).map(|number| ed(&number.to_string())).collect();
        assert!(set(&keys[1..]).is_ok());
        assert!(set(&keys).is_err_and(|error| error.contains("more than 64")));
        assert!(KeySet::parse(&json!({})).is_err());
    }
}
