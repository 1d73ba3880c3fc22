//! Random and mutated input: every reader answers with a value or an error, never with a panic.

use crate::support::{bundle, digest, edited, signer, trusting};
use proptest::{collection::vec, prelude::*};
use toolcrib_signature::{
    Identity, Policy,
    key::{Algorithm, PublicKey, Signer},
    keyless::TrustRoot,
    minisign,
    provenance::Provenance,
    verify,
};

const KEYLESS: &[u8] = include_bytes!("data/keyless/provenance-staging.json");
const TRUST_ROOT: &[u8] = include_bytes!("data/keyless/trusted_root-staging.json");
const MINISIG: &[u8] = include_bytes!("data/minisign/plain.minisig");

/// Replaces bytes of a document at places that are fractions of its length.
fn mutated(document: &[u8], changes: &[(f64, u8)]) -> Vec<u8> {
    let mut bytes = document.to_vec();
    for (place, byte) in changes {
        let position = (place * bytes.len() as f64) as usize;
        bytes[position] = *byte;
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(f64, u8)>> {
    vec((0.0..1.0, prop_oneof![any::<u8>(), Just(b'"'), Just(b'{'), Just(b'A'), Just(b'0')]), 1..6)
}

fn keyless_policy() -> Policy {
    let identity = Identity::new("https://example.com", "https://issuer.example").unwrap();
    Policy::new().trust_identity(identity).unwrap().trust_root(TrustRoot::from_json(TRUST_ROOT).unwrap())
}

fn read_everything(bytes: &[u8]) {
    let policy = trusting(signer(Algorithm::EcdsaP256).public_key());
    assert!(verify(bytes, &digest(), &policy).is_err());
    assert!(Provenance::read_claim(bytes, &digest()).is_err());
    let _ = TrustRoot::from_json(bytes);
    let _ = PublicKey::from_pem(bytes);
    let _ = PublicKey::from_der(bytes);
    let _ = Signer::from_pem(bytes, None);
    let _ = minisign::MinisignKey::parse(bytes);
    let _ = minisign::SecretKey::parse(bytes, None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_refused_by_every_reader(bytes in vec(any::<u8>(), 0..512)) {
        read_everything(&bytes);
    }

    #[test]
    fn random_text_is_refused_by_every_reader(text in "(-----BEGIN [A-Z ]{0,20}-----\n)?[ -~\n]{0,300}") {
        read_everything(text.as_bytes());
    }

    #[test]
    fn a_mutated_bundle_never_verifies_another_digest(changes in changes()) {
        let policy = trusting(signer(Algorithm::EcdsaP256).public_key());
        let bytes = mutated(&bundle(Algorithm::EcdsaP256), &changes);
        let other = toolcrib_signature::Digest::of(b"another");
        prop_assert!(verify(&bytes, &other, &policy).is_err());
    }

    #[test]
    fn a_mutated_keyless_bundle_never_gains_an_identity(changes in changes()) {
        let bytes = mutated(&edited(KEYLESS, |_| {}), &changes);
        let digest = "sha256:a0cfc71271d6e278e57cd332ff957c3f7043fdda354c4cbb190a30d56efa01bf".parse().unwrap();
        prop_assert!(Provenance::verify(&bytes, &digest, &keyless_policy()).is_err());
    }

    #[test]
    fn a_mutated_trust_root_is_read_or_refused(changes in changes()) {
        let _ = TrustRoot::from_json(&mutated(&edited(TRUST_ROOT, |_| {}), &changes));
    }

    #[test]
    fn mutated_keys_are_read_or_refused(changes in changes()) {
        let key = signer(Algorithm::EcdsaP256);
        let _ = Signer::from_pem(&mutated(key.to_pem().unwrap().as_bytes(), &changes), None);
        let _ = PublicKey::from_pem(&mutated(key.public_key().to_pem().unwrap().as_bytes(), &changes));
        let _ = PublicKey::from_der(&mutated(&key.public_key().to_der().unwrap(), &changes));
        let _ = minisign::SecretKey::parse(&mutated(include_bytes!("data/minisign/plain.key"), &changes), None);
    }

    #[test]
    fn a_mutated_minisign_signature_never_verifies_other_data(changes in changes()) {
        let key = minisign::MinisignKey::parse(include_bytes!("data/minisign/plain.pub")).unwrap();
        prop_assert!(minisign::verify(&b"other data"[..], &mutated(MINISIG, &changes), &key).is_err());
    }
}
