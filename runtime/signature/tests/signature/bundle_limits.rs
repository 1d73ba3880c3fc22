//! Limits of Sigstore bundles and policies: each test exceeds one.

use crate::support::{bundle, digest, edited, encode, signer, trusting};
use serde_json::{Value, json};
use toolcrib_signature::{
    Error, Identity, Policy,
    key::Algorithm,
    keyless::TrustRoot,
    limits::{
        MAX_CHAIN_CERTIFICATES, MAX_ENTRIES, MAX_EVIDENCE, MAX_FIELD_BYTES, MAX_HINT_BYTES, MAX_JSON_BYTES,
        MAX_JSON_DEPTH, MAX_LOG_BODY_BYTES, MAX_PART_BYTES, MAX_PAYLOAD_BYTES, MAX_TEXT_BYTES,
    },
    verify,
};

/// Edits a valid bundle and expects the limit `max`.
#[track_caller]
fn exceeds(max: usize, change: impl FnOnce(&mut Value)) {
    let forged = edited(&bundle(Algorithm::EcdsaP256), change);
    let policy = trusting(signer(Algorithm::EcdsaP256).public_key());
    match verify(&forged, &digest(), &policy) {
        Err(Error::Limit { max: limit, found, .. }) => {
            assert_eq!(limit, max as u64);
            assert!(found > limit);
        }
        other => panic!("expected the limit {max}, found {other:?}"),
    }
}

fn log_entry() -> Value {
    json!({
        "logId": { "keyId": "" },
        "kindVersion": { "kind": "dsse", "version": "0.0.1" },
        "inclusionProof": { "rootHash": "", "checkpoint": { "envelope": "" } },
        "canonicalizedBody": "",
    })
}

#[test]
fn a_bundle_over_the_size_limit_is_refused() {
    let mut bundle = bundle(Algorithm::EcdsaP256);
    let policy = trusting(signer(Algorithm::EcdsaP256).public_key());
    bundle.resize(MAX_JSON_BYTES, b' ');
    verify(&bundle, &digest(), &policy).unwrap();
    bundle.push(b' ');
    assert!(matches!(verify(&bundle, &digest(), &policy), Err(Error::Limit { .. })));
}

#[test]
fn a_bundle_over_the_depth_limit_is_refused() {
    let nested = (0..MAX_JSON_DEPTH).fold(json!({}), |inner, _| json!([inner]));
    let forged = edited(&bundle(Algorithm::EcdsaP256), |b| b["extra"] = nested);
    let policy = trusting(signer(Algorithm::EcdsaP256).public_key());
    assert!(matches!(verify(&forged, &digest(), &policy), Err(Error::Json { .. })));
}

#[test]
fn long_fields_are_refused() {
    exceeds(MAX_PAYLOAD_BYTES, |b| b["dsseEnvelope"]["payload"] = encode(vec![0; MAX_PAYLOAD_BYTES + 1]));
    exceeds(MAX_FIELD_BYTES, |b| {
        b["dsseEnvelope"]["signatures"][0]["sig"] = encode(vec![0; MAX_FIELD_BYTES + 1]);
    });
    exceeds(MAX_HINT_BYTES, |b| {
        b["verificationMaterial"]["publicKey"]["hint"] = "h".repeat(MAX_HINT_BYTES + 1).into();
    });
    exceeds(MAX_HINT_BYTES, |b| {
        b["dsseEnvelope"]["signatures"][0]["keyid"] = "k".repeat(MAX_HINT_BYTES + 1).into();
    });
    exceeds(MAX_TEXT_BYTES, |b| b["mediaType"] = "m".repeat(MAX_TEXT_BYTES + 1).into());
}

#[test]
fn large_certificates_are_refused() {
    exceeds(MAX_PART_BYTES, |b| {
        b["verificationMaterial"] = json!({ "certificate": { "rawBytes": encode(vec![0; MAX_PART_BYTES + 1]) } });
    });
}

#[test]
fn many_log_entries_and_long_parts_of_them_are_refused() {
    exceeds(MAX_EVIDENCE, |b| {
        b["verificationMaterial"]["tlogEntries"] = vec![log_entry(); MAX_EVIDENCE + 1].into();
    });
    let one = |change: fn(&mut Value)| {
        move |b: &mut Value| {
            let mut entry = log_entry();
            change(&mut entry);
            b["verificationMaterial"]["tlogEntries"] = json!([entry]);
        }
    };
    exceeds(MAX_LOG_BODY_BYTES, one(|e| e["canonicalizedBody"] = encode(vec![0; MAX_LOG_BODY_BYTES + 1])));
    exceeds(MAX_ENTRIES, one(|e| e["inclusionProof"]["hashes"] = vec![""; MAX_ENTRIES + 1].into()));
    exceeds(
        MAX_PART_BYTES,
        one(|e| {
            let envelope = "c".repeat(MAX_PART_BYTES + 1);
            e["inclusionProof"]["checkpoint"]["envelope"] = envelope.into();
        }),
    );
    exceeds(
        MAX_FIELD_BYTES,
        one(|e| e["inclusionPromise"] = json!({ "signedEntryTimestamp": encode(vec![0; MAX_FIELD_BYTES + 1]) })),
    );
}

#[test]
fn many_and_long_timestamps_are_refused() {
    let with = |stamps: Value| {
        move |b: &mut Value| {
            b["verificationMaterial"]["timestampVerificationData"] = json!({ "rfc3161Timestamps": stamps });
        }
    };
    exceeds(MAX_EVIDENCE, with(vec![json!({ "signedTimestamp": "" }); MAX_EVIDENCE + 1].into()));
    exceeds(MAX_PART_BYTES, with(json!([{ "signedTimestamp": encode(vec![0; MAX_PART_BYTES + 1]) }])));
}

#[test]
fn evidence_without_a_trust_root_is_refused_unless_the_policy_ignores_it() {
    let logged = edited(&bundle(Algorithm::EcdsaP256), |b| {
        b["verificationMaterial"]["tlogEntries"] = json!([log_entry()]);
    });
    let key = signer(Algorithm::EcdsaP256).public_key();
    let error = verify(&logged, &digest(), &trusting(key.clone())).unwrap_err();
    assert_eq!(error.to_string(), "the policy has no trust root, but the bundle has 1 log entries and 0 timestamps");
    let verified = verify(&logged, &digest(), &trusting(key).ignore_unchecked_evidence()).unwrap();
    assert_eq!(verified.time, None, "evidence that nobody checked proves no time");
}

#[test]
fn policies_have_limits() {
    let key = signer(Algorithm::Ed25519).public_key();
    let full = (0..MAX_ENTRIES).fold(Policy::new(), |policy, _| policy.trust_key(key.clone()).unwrap());
    assert!(matches!(full.trust_key(key), Err(Error::Limit { .. })));

    let identity = Identity::new("a@example.com", "https://issuer.example").unwrap();
    let full = (0..MAX_ENTRIES).fold(Policy::new(), |policy, _| policy.trust_identity(identity.clone()).unwrap());
    assert!(matches!(full.trust_identity(identity), Err(Error::Limit { .. })));

    assert!(matches!(Identity::new("a".repeat(MAX_TEXT_BYTES + 1), "i"), Err(Error::Limit { .. })));
    assert!(Identity::new("", "https://issuer.example").is_err(), "an empty identity would match a missing one");
    assert!(Identity::new("a@example.com", "").is_err(), "an empty issuer would match a missing one");
}

#[test]
fn trust_roots_have_limits() {
    let root = |key: &str, value: Value| TrustRoot::from_json(&serde_json::to_vec(&json!({ key: value })).unwrap());
    for key in ["tlogs", "ctlogs", "certificateAuthorities", "timestampAuthorities"] {
        let many = root(key, vec![json!({ "certChain": {} }); MAX_ENTRIES + 1].into());
        assert!(matches!(many, Err(Error::Limit { .. })), "{key}");
    }
    for key in ["certificateAuthorities", "timestampAuthorities"] {
        let chain = |certificates: Value| json!([{ "certChain": { "certificates": certificates } }]);
        let long = vec![json!({ "rawBytes": "" }); MAX_CHAIN_CERTIFICATES + 1];
        assert!(matches!(root(key, chain(long.into())), Err(Error::Limit { .. })), "{key}");
        let large = json!([{ "rawBytes": encode(vec![0; MAX_PART_BYTES + 1]) }]);
        assert!(matches!(root(key, chain(large)), Err(Error::Limit { .. })), "{key}");
    }
    assert!(matches!(TrustRoot::from_json(&vec![b' '; MAX_JSON_BYTES + 1]), Err(Error::Limit { .. })));
}
