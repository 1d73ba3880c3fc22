//! Key-signed bundles with an entry in a transparency log that the test runs itself.

use crate::support::{
    bundle, digest, edited, encode,
    log::{Log, TIME},
    signer, trusting,
};
use serde_json::{Value, json};
use toolcrib_signature::{Digest, Error, Policy, Verified, key::Algorithm, verify};

fn key_pem(algorithm: Algorithm) -> String {
    signer(algorithm).public_key().to_pem().unwrap()
}

fn policy(log: &Log) -> Policy {
    trusting(signer(Algorithm::EcdsaP256).public_key()).trust_root(log.trust_root())
}

fn check(bundle: &[u8], log: &Log) -> Result<Verified, Error> {
    verify(bundle, &digest(), &policy(log))
}

#[test]
fn a_log_entry_proves_the_time() {
    for algorithm in crate::support::ALGORITHMS {
        let log = Log::new(1);
        let logged = log.record(&bundle(algorithm), &key_pem(algorithm), TIME);
        let policy = trusting(signer(algorithm).public_key()).trust_root(log.trust_root());
        let verified = verify(&logged, &digest(), &policy).unwrap();
        assert_eq!(verified.time.unwrap().as_second(), TIME, "{algorithm}");
    }
}

#[test]
fn a_bundle_without_an_entry_is_accepted_and_proves_no_time() {
    assert_eq!(check(&bundle(Algorithm::EcdsaP256), &Log::new(1)).unwrap().time, None);
}

#[test]
fn an_entry_of_an_unknown_log_is_refused() {
    let logged = Log::new(2).record(&bundle(Algorithm::EcdsaP256), &key_pem(Algorithm::EcdsaP256), TIME);
    assert!(matches!(check(&logged, &Log::new(1)), Err(Error::Keyless(_))));
}

#[test]
fn an_entry_from_the_future_is_refused() {
    let log = Log::new(1);
    let logged = log.record(&bundle(Algorithm::EcdsaP256), &key_pem(Algorithm::EcdsaP256), 32_503_680_000);
    assert!(matches!(check(&logged, &log), Err(Error::Keyless(_))));
}

#[test]
fn an_entry_about_another_signature_or_another_key_is_refused() {
    let log = Log::new(1);
    let other = signer(Algorithm::EcdsaP256).sign_digest(&Digest::of(b"other")).unwrap();
    let elsewhere: Value = serde_json::from_slice(&log.record(&other, &key_pem(Algorithm::EcdsaP256), TIME)).unwrap();
    let swapped = edited(&bundle(Algorithm::EcdsaP256), |b| {
        b["verificationMaterial"]["tlogEntries"] = elsewhere["verificationMaterial"]["tlogEntries"].clone();
    });
    assert!(matches!(check(&swapped, &log), Err(Error::Keyless(_))));
    let foreign = log.record(&bundle(Algorithm::EcdsaP256), &key_pem(Algorithm::Ed25519), TIME);
    assert!(matches!(check(&foreign, &log), Err(Error::Keyless(_))));
}

#[test]
fn each_tampered_part_of_an_entry_is_refused() {
    let log = Log::new(1);
    let logged = log.record(&bundle(Algorithm::EcdsaP256), &key_pem(Algorithm::EcdsaP256), TIME);
    check(&logged, &log).unwrap();
    for (pointer, value) in [
        ("/integratedTime", json!((TIME - 1).to_string())),
        ("/logIndex", json!("1")),
        ("/logId/keyId", encode(Log::new(2).id())),
        ("/kindVersion/kind", json!("hashedrekord")),
        ("/kindVersion/version", json!("0.0.2")),
        ("/canonicalizedBody", encode("{}")),
        ("/inclusionPromise/signedEntryTimestamp", encode([0; 70])),
        ("/inclusionProof/logIndex", json!("1")),
        ("/inclusionProof/treeSize", json!("2")),
        ("/inclusionProof/rootHash", encode([0; 32])),
        ("/inclusionProof/hashes", json!([encode([0; 32])])),
        ("/inclusionProof/checkpoint/envelope", json!("log.example\n1\n\n")),
        ("/inclusionProof/checkpoint", json!({})),
    ] {
        let tampered = edited(&logged, |b| {
            *b["verificationMaterial"]["tlogEntries"][0].pointer_mut(pointer).unwrap() = value.clone();
        });
        assert!(check(&tampered, &log).is_err(), "{pointer}");
    }
    for key in ["logId", "kindVersion", "inclusionProof", "canonicalizedBody"] {
        let tampered = edited(&logged, |b| {
            drop(b["verificationMaterial"]["tlogEntries"][0].as_object_mut().unwrap().remove(key));
        });
        assert!(check(&tampered, &log).is_err(), "{key}");
    }
}

/// A time counts only when the log signed it.
#[test]
fn an_entry_without_a_promise_proves_no_time() {
    let log = Log::new(1);
    let logged = log.record(&bundle(Algorithm::EcdsaP256), &key_pem(Algorithm::EcdsaP256), TIME);
    let without = edited(&logged, |b| {
        drop(b["verificationMaterial"]["tlogEntries"][0].as_object_mut().unwrap().remove("inclusionPromise"));
    });
    assert_eq!(check(&without, &log).unwrap().time, None);
}
