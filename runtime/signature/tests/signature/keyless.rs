//! Keyless bundles of the Sigstore projects: identity, trust root, tampering.

use crate::support::{edited, signer};
use serde_json::{Value, json};
use toolcrib_signature::{
    Digest, Error, Identity, Policy, SignedBy,
    key::Algorithm,
    keyless::TrustRoot,
    provenance::{Assurance, Provenance},
    verify,
};

const BUNDLE: &[u8] = include_bytes!("data/keyless/provenance-staging.json");
const NAME: &str = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main";
const ISSUER: &str = "https://token.actions.githubusercontent.com";

fn digest() -> Digest {
    "sha256:a0cfc71271d6e278e57cd332ff957c3f7043fdda354c4cbb190a30d56efa01bf".parse().unwrap()
}

fn staging() -> TrustRoot {
    TrustRoot::from_json(include_bytes!("data/keyless/trusted_root-staging.json")).unwrap()
}

fn production() -> TrustRoot {
    TrustRoot::from_json(include_bytes!("data/keyless/trusted_root.json")).unwrap()
}

fn policy(root: TrustRoot) -> Policy {
    Policy::new().trust_identity(Identity::new(NAME, ISSUER).unwrap()).unwrap().trust_root(root)
}

fn read(bundle: &[u8], policy: &Policy) -> Result<Provenance, Error> {
    Provenance::verify(bundle, &digest(), policy)
}

#[test]
fn a_keyless_bundle_names_identity_issuer_and_time() {
    let provenance = read(BUNDLE, &policy(staging())).unwrap();
    let Assurance::Signed(verified) = provenance.assurance else { panic!("{:?}", provenance.assurance) };
    assert_eq!(verified.signed_by, SignedBy::Identity(Identity::new(NAME, ISSUER).unwrap()));
    assert!(verified.time.is_some(), "a timestamp authority proves the time");
    assert_eq!(provenance.builder_id, "https://github.com/sigstore-conformance/rekor2-dsse-hashedrekord-regen");
}

#[test]
fn another_identity_or_issuer_is_refused_and_both_are_named() {
    for (name, issuer) in [
        ("https://github.com/evil/repo", ISSUER),
        (NAME, "https://issuer.example"),
        (&NAME[..NAME.len() - 1], ISSUER),
        (&NAME.to_uppercase(), ISSUER),
        (".*", ".*"),
    ] {
        let policy = Policy::new().trust_identity(Identity::new(name, issuer).unwrap()).unwrap().trust_root(staging());
        let error = read(BUNDLE, &policy).unwrap_err();
        assert!(matches!(error, Error::NoTrustedIdentity { .. }), "{error}");
        assert!(error.to_string().contains(issuer) && error.to_string().contains(&NAME[..60]), "{error}");
    }
}

#[test]
fn a_policy_without_trust_root_or_identity_refuses() {
    let without_root = Policy::new().trust_identity(Identity::new(NAME, ISSUER).unwrap()).unwrap();
    assert!(matches!(read(BUNDLE, &without_root), Err(Error::Policy { missing: "trust root", .. })));
    let without_identity = Policy::new().trust_root(staging());
    assert!(matches!(read(BUNDLE, &without_identity), Err(Error::Policy { missing: "trusted identity", .. })));
    let only_a_key = Policy::new().trust_key(signer(Algorithm::EcdsaP256).public_key()).unwrap();
    assert!(read(BUNDLE, &only_a_key).is_err());
}

#[test]
fn the_trust_root_of_another_deployment_is_refused() {
    assert!(matches!(read(BUNDLE, &policy(production())), Err(Error::Keyless(_))));
}

#[test]
fn a_trust_root_without_one_kind_of_authority_is_refused() {
    for key in ["tlogs", "ctlogs", "certificateAuthorities", "timestampAuthorities"] {
        let root = edited(include_bytes!("data/keyless/trusted_root-staging.json"), |root| root[key] = json!([]));
        let root = TrustRoot::from_json(&root).unwrap();
        assert!(matches!(read(BUNDLE, &policy(root)), Err(Error::Keyless(_))), "{key}");
    }
    for text in ["{}", "[]", "", "{\"tlogs\":[{}]}", "{\"certificateAuthorities\":[{}]}"] {
        assert!(TrustRoot::from_json(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn another_digest_is_refused() {
    assert!(Provenance::verify(BUNDLE, &Digest::of(b"other"), &policy(staging())).is_err());
}

#[test]
fn provenance_of_a_trusted_identity_is_not_a_signature() {
    let error = verify(BUNDLE, &digest(), &policy(staging())).unwrap_err();
    assert!(error.to_string().contains("predicateType"), "{error}");
}

/// A production bundle with an entry of the older transparency log: the evidence holds, the predicate is another.
#[test]
fn a_valid_bundle_with_another_predicate_is_refused_for_its_predicate() {
    let name = "https://github.com/prefix-dev/sigstore-example/.github/workflows/action.yaml@refs/heads/main";
    let policy = Policy::new().trust_identity(Identity::new(name, ISSUER).unwrap()).unwrap().trust_root(production());
    let digest = "sha256:54303491a8418fbed24344b513546182c29b43bf282ceb433af65e2299f9271f".parse().unwrap();
    let error = verify(include_bytes!("data/keyless/other-predicate.json"), &digest, &policy).unwrap_err();
    assert!(error.to_string().contains("attestations-publish-1"), "{error}");
}

#[test]
fn missing_evidence_is_refused() {
    let policy = policy(staging());
    let remove = |pointer: &str, key: &str| {
        edited(BUNDLE, |b| drop(b.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key)))
    };
    for (pointer, key) in [
        ("/verificationMaterial", "tlogEntries"),
        ("/verificationMaterial", "timestampVerificationData"),
        ("/verificationMaterial", "certificate"),
        ("/verificationMaterial/tlogEntries/0", "inclusionProof"),
        ("/verificationMaterial/tlogEntries/0", "canonicalizedBody"),
        ("/verificationMaterial/tlogEntries/0/inclusionProof", "checkpoint"),
        ("/verificationMaterial/tlogEntries/0/inclusionProof", "rootHash"),
    ] {
        assert!(read(&remove(pointer, key), &policy).is_err(), "{pointer}/{key}");
    }
}

#[test]
fn a_log_entry_of_another_bundle_is_refused() {
    let other: Value = serde_json::from_slice(include_bytes!("data/keyless/other-predicate.json")).unwrap();
    let swapped = edited(BUNDLE, |b| {
        b["verificationMaterial"]["tlogEntries"] = other["verificationMaterial"]["tlogEntries"].clone();
    });
    assert!(read(&swapped, &policy(staging())).is_err());
}

/// Flips one bit of each byte. A flip may pass, with the same facts, where no checked signature covers the byte: in the
/// identifier of the log and the proof's copies of its checkpoint, signatures of witnesses, the frame of the timestamp.
#[test]
fn no_bit_flip_changes_what_is_proven() {
    let (policy, compact) = (policy(staging()), edited(BUNDLE, |_| {}));
    let original = read(&compact, &policy).unwrap();
    let text = std::str::from_utf8(&compact).unwrap();
    let uncovered =
        [("\"tlogEntries\":[{", "\"canonicalizedBody\""), ("\"signedTimestamp\":\"", "\"")].map(|(start, end)| {
            let start = text.find(start).unwrap() + start.len();
            start..start + text[start..].find(end).unwrap()
        });
    for position in 0..compact.len() {
        let mut flipped = compact.clone();
        flipped[position] ^= 1 << (position % 7);
        if let Ok(provenance) = read(&flipped, &policy) {
            assert!(uncovered.iter().any(|field| field.contains(&position)), "byte {position}");
            assert_eq!(provenance, original, "byte {position}");
        }
    }
}
