//! Signatures in a registry: attached in the layout of cosign, listed by the registry or under the fallback tag.

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

use super::registry::{MANIFEST, Registry, SIGNATURE};
use super::{NOT_VERIFIED, crib, statuses, verify};

fn sign(crib: &Crib, reference: &str) -> Value {
    let ran = crib.run(&["sign", reference, "--key", "a.key", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_reference_is_signed_and_verified_with_the_referrers_api_and_without() {
    for has_referrers in [true, false] {
        let (crib, digest) = crib();
        let registry = Registry::start(has_referrers);
        registry.publish(&crib.path("tools.tar"));
        let reference = registry.reference("1");
        assert_eq!(verify(&crib, &reference, "a.key.pub").0.code, NOT_VERIFIED);
        let made = sign(&crib, &reference);
        assert_eq!(made["digest"], digest.as_str());
        for reference in [reference.clone(), registry.reference(&format!("@{digest}"))] {
            let (ran, report) = verify(&crib, &reference, "a.key.pub");
            assert_eq!((ran.code, statuses(&report)), (Some(0), vec!["valid"]), "{ran:?}");
        }
        // The same signature again is the same manifest.
        assert_eq!(sign(&crib, &registry.reference(&format!("@{digest}")))["signature"], made["signature"]);
        assert_eq!(verify(&crib, &reference, "a.key.pub").1["signatures"].as_array().unwrap().len(), 1);
        let tag = digest.replace(':', "-");
        assert_eq!(registry.content.lock().unwrap().manifests.contains_key(&tag), !has_referrers);
    }
}

#[test]
fn the_manifest_of_a_signature_has_the_layout_of_cosign() {
    let (crib, digest) = crib();
    let registry = Registry::start(true);
    let subject = registry.publish(&crib.path("tools.tar"));
    let made = sign(&crib, &registry.reference("1"));
    let (_, attached) = made["signature"].as_str().unwrap().split_once('@').unwrap();
    let content = registry.content.lock().unwrap();
    let manifest: Value = serde_json::from_slice(&content.manifests[attached].1).unwrap();
    let layer = &manifest["layers"][0];
    let blob = &content.blobs[layer["digest"].as_str().unwrap()];
    let empty = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(
        manifest,
        json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": SIGNATURE,
            "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": empty, "size": 2, "artifactType": SIGNATURE },
            "layers": [{ "mediaType": SIGNATURE, "digest": layer["digest"], "size": blob.len() }],
            "subject": subject,
            "annotations": {
                "dev.sigstore.bundle.content": "dsse-envelope",
                "dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1",
            },
        })
    );
    assert_eq!(content.blobs[empty], b"{}");
    let bundle: Value = serde_json::from_slice(blob).unwrap();
    assert_eq!(bundle["mediaType"], SIGNATURE);
    assert_eq!(subject["digest"], digest.as_str());
}

#[test]
fn a_signature_of_a_reference_can_be_written_to_a_file() {
    let page = Page::new();
    let (crib, _) = crib();
    let registry = Registry::start(true);
    registry.publish(&crib.path("tools.tar"));
    page.run(&crib, &["sign", &registry.reference("1"), "--key", "a.key", "-o", "tools.tar.sigstore.json"]);
    assert_eq!(
        verify(&crib, "tools.tar", "a.key.pub").0.code,
        Some(0),
        "the digest of the tar is that of the reference"
    );
    assert_eq!(verify(&crib, &registry.reference("1"), "a.key.pub").0.code, NOT_VERIFIED);
    page.matches("sign/written");
}

#[test]
fn provenance_is_a_claim_until_a_trusted_key_signed_it() {
    use toolcrib_signature::key::{Signer, read_key_file};
    let (crib, digest) = crib();
    let registry = Registry::start(true);
    let subject = registry.publish(&crib.path("tools.tar"));
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "name": "tools", "digest": { "sha256": digest.split_once(':').unwrap().1 } }],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://build.example/v1",
                "resolvedDependencies": [{
                    "uri": "git+https://git.example/tools",
                    "digest": { "gitCommit": "0123456789abcdef0123456789abcdef01234567" },
                }],
            },
            "runDetails": {
                "builder": { "id": "https://builder.example" },
                "metadata": { "startedOn": "2026-01-31T12:00:00Z" },
            },
        },
    });
    let statement = statement.to_string();
    registry.attach(&subject, "application/vnd.in-toto+json", statement.as_bytes());
    let text = |key: &str| crib.run(&["verify", &registry.reference("1"), "--key", key]);
    let ran = text("a.key.pub");
    assert_eq!(ran.code, NOT_VERIFIED);
    for words in [
        "(claim: no trusted signer)",
        "Builder: https://builder.example",
        "Source: git+https://git.example/tools at 0123456789abcdef0123456789abcdef01234567",
        "Started: 2026-01-31T12:00:00Z",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
    let key = read_key_file(&crib.path("a.key")).unwrap();
    let signed = Signer::from_pem(key.as_bytes(), None).unwrap().sign_statement(statement.as_bytes()).unwrap();
    registry.attach(&subject, SIGNATURE, &signed);
    let ran = text("a.key.pub");
    assert_eq!(ran.code, NOT_VERIFIED, "provenance approves nothing: {ran:?}");
    assert!(ran.stdout.contains("(signed by key `"), "{ran:?}");
}
