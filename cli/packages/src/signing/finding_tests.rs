//! Tests for the judgement of signatures: valid, not trusted, invalid and not checked.

use std::io::Write;

use toolcrib_signature::key::{Algorithm, Signer as Key};

use super::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn digest() -> Digest {
    Digest::of(b"manifest")
}

fn key() -> Key {
    Key::generate(Algorithm::EcdsaP256).expect("a key")
}

fn trusting(key: &Key) -> TrustedSigners {
    let mut trusted = TrustedSigners::default();
    trusted.add_key(key.public_key().to_pem().expect("PEM").as_bytes()).expect("a key");
    trusted
}

fn judged(bytes: &[u8], trusted: &TrustedSigners) -> Finding {
    Finding::of_bundle("here".to_owned(), bytes, &digest(), trusted)
}

/// Statement about the test manifest with provenance by a builder.
fn provenance(builder: &str) -> Vec<u8> {
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "name": "tools", "digest": { "sha256": digest().hex() } }],
        "predicateType": PROVENANCE_PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": "https://build.example/v1",
                "resolvedDependencies": [{ "uri": "git+https://git.example/tools", "digest": { "gitCommit": COMMIT } }],
            },
            "runDetails": { "builder": { "id": builder }, "metadata": { "startedOn": "2026-01-31T12:00:00Z" } },
        },
    });
    statement.to_string().into_bytes()
}

#[test]
fn a_signature_is_valid_for_its_signer_and_its_bundle_alone() {
    let (ours, other) = (key(), key());
    let bundle = ours.sign_digest(&digest()).expect("a signature");
    let finding = judged(&bundle, &trusting(&ours));
    let signer = finding.signer().expect("a signer");
    assert_eq!(signer.id, format!("key:{}", ours.public_key().id().expect("an id")));
    assert_eq!(signer.public_key, ours.public_key().to_pem().ok());
    assert!(matches!(judged(&bundle, &trusting(&other)).verdict, Verdict::NotTrusted(_)));
    assert!(matches!(judged(&bundle, &TrustedSigners::default()).verdict, Verdict::NotTrusted(_)));
    let moved = ours.sign_digest(&Digest::of(b"other")).expect("a signature");
    assert!(matches!(judged(&moved, &trusting(&ours)).verdict, Verdict::Invalid(_)));
    assert!(matches!(judged(b"garbage", &trusting(&ours)).verdict, Verdict::Invalid(_)));
}

#[test]
fn a_changed_signature_that_names_a_trusted_key_is_invalid() {
    let ours = key();
    let bundle = ours.sign_digest(&digest()).expect("a signature");
    let mut value: Value = serde_json::from_slice(&bundle).expect("JSON");
    let other = key().sign_digest(&digest()).expect("a signature");
    let other: Value = serde_json::from_slice(&other).expect("JSON");
    value["dsseEnvelope"] = other["dsseEnvelope"].clone();
    let finding = judged(value.to_string().as_bytes(), &trusting(&ours));
    assert!(
        matches!(&finding.verdict, Verdict::Invalid(reason) if reason.contains("changed or forged")),
        "{finding:?}"
    );
}

#[test]
fn provenance_is_shown_and_never_counts_as_a_signature() {
    let ours = key();
    let bundle = ours.sign_statement(&provenance("https://builder.example")).expect("a signature");
    let finding = judged(&bundle, &trusting(&ours));
    assert!(matches!(finding.verdict, Verdict::Valid(_)) && finding.signer().is_none(), "{finding:?}");
    assert!(matches!(finding.provenance.expect("provenance").assurance, Assurance::Signed(_)));
    let finding = judged(&bundle, &trusting(&key()));
    assert!(matches!(finding.verdict, Verdict::NotTrusted(_)));
    assert_eq!(finding.provenance.expect("provenance").assurance, Assurance::Claim);
    let finding = Finding::of_statement("here".to_owned(), &provenance("https://builder.example"), &digest());
    assert_eq!(finding.provenance.expect("provenance").assurance, Assurance::Claim);
    let finding = Finding::of_statement("here".to_owned(), &provenance("\u{1b}[2J"), &digest());
    assert!(matches!(finding.verdict, Verdict::Invalid(_)) && finding.provenance.is_none());
}

#[test]
fn a_statement_of_another_type_is_named_and_not_checked() {
    let ours = key();
    let text = String::from_utf8(provenance("https://builder.example")).expect("text");
    let text = text.replace(PROVENANCE_PREDICATE, "https://x.example/\\u001b[2J");
    let bundle = ours.sign_statement(text.as_bytes()).expect("a signature");
    let finding = judged(&bundle, &trusting(&ours));
    assert!(matches!(&finding.verdict, Verdict::NotChecked(reason) if reason.contains(r"\u{1b}")), "{finding:?}");
    assert!(finding.signer().is_none());
}

#[test]
fn a_minisign_signature_is_valid_for_its_key_and_file_alone() {
    let (ours, other) = (minisign::SecretKey::generate(), minisign::SecretKey::generate());
    let (ours, other) = (ours.expect("a key"), other.expect("a key"));
    let signature = minisign::sign(&b"content"[..], &ours, "comment").expect("a signature");
    let trusting = |keys: &[&minisign::SecretKey]| {
        let mut trusted = TrustedSigners::default();
        for key in keys {
            trusted.add_key(key.public_key().expect("a key").to_file().as_bytes()).expect("a key");
        }
        trusted
    };
    let judged = |content: &[u8], trusted: &TrustedSigners| {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("content");
        Finding::of_minisign("here".to_owned(), signature.as_bytes(), &mut file, trusted)
    };
    let finding = judged(b"content", &trusting(&[&other, &ours]));
    let id = format!("minisign:{}", ours.public_key().expect("a key").to_base64());
    assert_eq!(finding.signer().map(|signer| signer.id.clone()), Some(id));
    assert!(matches!(judged(b"changed", &trusting(&[&ours])).verdict, Verdict::Invalid(_)));
    assert!(matches!(judged(b"content", &trusting(&[&other])).verdict, Verdict::NotTrusted(_)));
    assert!(matches!(judged(b"content", &trusting(&[])).verdict, Verdict::NotTrusted(_)));
}
