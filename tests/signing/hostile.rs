//! Hostile referrers: thousands of them, for another bundle, of other types, garbage, too large, and lies about them.

use serde_json::{Value, json};
use toolcrib_bundle::Digest;

use crate::crib::Crib;

use super::registry::{MANIFEST, Registry, SIGNATURE};
use super::{NOT_VERIFIED, crib, statuses, verify};

/// Crib and registry with a published bundle, and the descriptor of its manifest.
fn published() -> (Crib, Registry, Value) {
    let (crib, _) = crib();
    let registry = Registry::start(true);
    let subject = registry.publish(&crib.path("tools.tar"));
    (crib, registry, subject)
}

/// Entry of a list of referrers.
fn entry(digest: &str, size: usize) -> Value {
    json!({ "mediaType": MANIFEST, "digest": digest, "size": size, "artifactType": SIGNATURE })
}

fn sign(crib: &Crib, registry: &Registry) {
    let ran = crib.run(&["sign", &registry.reference("1"), "--key", "a.key"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn one_valid_signature_counts_among_garbage() {
    let (crib, registry, subject) = published();
    let mut other = subject.clone();
    other["digest"] = Digest::of(b"other").to_string().into();
    let elsewhere = registry.attach(&other, SIGNATURE, b"{}");
    for (media_type, layer) in [
        (SIGNATURE, &b"garbage"[..]),
        (SIGNATURE, b""),
        (SIGNATURE, b"{\"mediaType\":\"\\u001b[2J\"}"),
        (SIGNATURE, &vec![b'['; 1 << 20]),
        (SIGNATURE, &vec![b' '; (1 << 20) + 1]),
        ("application/vnd.in-toto+json", b"{}"),
        ("application/vnd.cyclonedx+json", b"{}"),
        ("application/vnd.dev.cosign.simplesigning.v1+json", b"{}"),
    ] {
        registry.attach(&subject, media_type, layer);
    }
    {
        let mut content = registry.content.lock().unwrap();
        let size = content.manifests[&elsewhere].1.len();
        content.listed = vec![
            entry(&elsewhere, size),
            entry(&Digest::of(b"absent").to_string(), 10),
            entry(&elsewhere, 1),
            entry(&subject["digest"].as_str().unwrap().replace("sha256:", "sha512:"), 10),
        ];
    }
    // An invalid digest in the list makes the list unreadable.
    let (ran, _) = verify(&crib, &registry.reference("1"), "a.key.pub");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    registry.content.lock().unwrap().listed.pop();
    let (ran, report) = verify(&crib, &registry.reference("1"), "a.key.pub");
    assert_eq!(ran.code, NOT_VERIFIED, "{ran:?}");
    assert!(statuses(&report).iter().all(|status| *status == "invalid"), "{report}");
    assert_eq!(statuses(&report).len(), 8, "other types are no signatures: {report}");
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'));
    sign(&crib, &registry);
    let (ran, report) = verify(&crib, &registry.reference("1"), "a.key.pub");
    assert_eq!((ran.code, statuses(&report).len()), (Some(0), 9), "{ran:?}");
}

#[test]
fn thousands_of_referrers_are_counted_and_not_fetched() {
    let (crib, registry, _) = published();
    sign(&crib, &registry);
    let absent = |number: usize| entry(&Digest::of(&number.to_le_bytes()).to_string(), 500);
    registry.content.lock().unwrap().listed = (0..5000).map(absent).collect();
    let before = registry.content.lock().unwrap().requests;
    let (ran, report) = verify(&crib, &registry.reference("1"), "a.key.pub");
    // The valid one is behind the limit: nothing is assumed about it.
    assert_eq!((ran.code, statuses(&report).len()), (NOT_VERIFIED, 64), "{ran:?}");
    assert_eq!(report["not_examined"], 4937);
    let made = registry.content.lock().unwrap().requests - before;
    assert!(made < 100, "{made} requests");
    registry.content.lock().unwrap().listed = (0..10_001).map(absent).collect();
    let (ran, _) = verify(&crib, &registry.reference("1"), "a.key.pub");
    assert_eq!(ran.code, Some(1), "a list over the limit of the client is an error: {ran:?}");
}

#[test]
fn one_referrer_listed_often_is_examined_once() {
    let (crib, registry, subject) = published();
    sign(&crib, &registry);
    let attached = registry.attach(&subject, SIGNATURE, b"garbage");
    {
        let mut content = registry.content.lock().unwrap();
        let size = content.manifests[&attached].1.len();
        content.listed = vec![entry(&attached, size); 200];
    }
    let (ran, report) = verify(&crib, &registry.reference("1"), "a.key.pub");
    assert_eq!((ran.code, statuses(&report).len()), (Some(0), 2), "{ran:?}");
}

#[test]
fn a_large_manifest_is_not_fetched() {
    let (crib, registry, subject) = published();
    let layer = json!({ "mediaType": SIGNATURE, "digest": Digest::of(b"{}"), "size": 2 });
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": SIGNATURE, "config": layer, "layers": [layer],
        "subject": subject, "annotations": { "x": "x".repeat(64 << 10) },
    });
    registry.put("large", manifest.to_string().as_bytes());
    let several = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": SIGNATURE, "config": layer, "layers": [layer, layer],
        "subject": subject,
    });
    registry.put("several", several.to_string().as_bytes());
    let (ran, report) = verify(&crib, &registry.reference("1"), "a.key.pub");
    assert_eq!(ran.code, NOT_VERIFIED, "{ran:?}");
    let mut reasons: Vec<_> =
        report["signatures"].as_array().unwrap().iter().map(|it| it["reason"].to_string()).collect();
    reasons.sort();
    assert!(
        reasons[0].contains("expected 1 layer, found 2") && reasons[1].contains("the limit is 65536"),
        "{reasons:?}"
    );
}
