//! SLSA provenance: summary, claims, limits.

use crate::support::{digest, signer, trusting};
use serde_json::{Value, json};
use toolcrib_signature::{
    Digest, Error, SignedBy,
    key::Algorithm,
    limits::{MAX_DEPENDENCIES, MAX_FIELD_BYTES, MAX_SUBJECTS},
    provenance::{Assurance, Provenance},
};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn statement() -> Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "name": "tool", "digest": { "sha256": digest().hex() } }],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://builder.example/workflow/v1",
                "externalParameters": { "workflow": { "ref": "refs/heads/main" } },
                "resolvedDependencies": [
                    { "uri": "git+https://git.example/tools@refs/heads/main", "digest": { "gitCommit": COMMIT } },
                    { "uri": "pkg:oci/compiler", "digest": { "sha256": "00" } },
                ],
            },
            "runDetails": {
                "builder": { "id": "https://builder.example/runner" },
                "metadata": {
                    "invocationId": "https://builder.example/runs/7",
                    "startedOn": "2026-11-20T10:00:00Z",
                    "finishedOn": "2026-11-20T12:05:30+02:00",
                },
            },
        },
    })
}

fn read(statement: &Value) -> Result<Provenance, Error> {
    Provenance::read_claim(&serde_json::to_vec(statement).unwrap(), &digest())
}

fn with(pointer: &str, value: Value) -> Result<Provenance, Error> {
    let mut statement = statement();
    *statement.pointer_mut(pointer).unwrap() = value;
    read(&statement)
}

#[test]
fn an_unsigned_provenance_is_a_claim() {
    let provenance = read(&statement()).unwrap();
    assert_eq!(provenance.assurance, Assurance::Claim);
    assert_eq!(provenance.assurance.to_string(), "claim, not signed");
    assert_eq!(provenance.builder_id, "https://builder.example/runner");
    assert_eq!(provenance.build_type, "https://builder.example/workflow/v1");
    assert_eq!(provenance.sources.len(), 1, "only dependencies with a commit are sources");
    assert_eq!(provenance.sources[0].repository, "git+https://git.example/tools@refs/heads/main");
    assert_eq!(provenance.sources[0].revision, COMMIT);
    assert_eq!(provenance.invocation_id.as_deref(), Some("https://builder.example/runs/7"));
    assert_eq!(provenance.started.unwrap().to_string(), "2026-11-20T10:00:00Z");
    assert_eq!(provenance.finished.unwrap().to_string(), "2026-11-20T10:05:30Z");
}

#[test]
fn a_signed_provenance_names_its_signer() {
    for algorithm in crate::support::ALGORITHMS {
        let signer = signer(algorithm);
        let bundle = signer.sign_statement(&serde_json::to_vec(&statement()).unwrap()).unwrap();
        let provenance = Provenance::verify(&bundle, &digest(), &trusting(signer.public_key())).unwrap();
        let Assurance::Signed(verified) = provenance.assurance else { panic!("{:?}", provenance.assurance) };
        assert_eq!(verified.signed_by, SignedBy::Key(signer.public_key().id().unwrap()));
    }
}

#[test]
fn a_signature_is_not_provenance() {
    let signer = signer(Algorithm::EcdsaP256);
    let bundle = signer.sign_digest(&digest()).unwrap();
    let error = Provenance::verify(&bundle, &digest(), &trusting(signer.public_key())).unwrap_err();
    assert!(error.to_string().contains("predicateType"), "{error}");
}

#[test]
fn provenance_of_another_artifact_is_refused() {
    let bytes = serde_json::to_vec(&statement()).unwrap();
    let error = Provenance::read_claim(&bytes, &Digest::of(b"other")).unwrap_err();
    assert!(matches!(error, Error::OtherArtifact { .. }), "{error}");
}

#[test]
fn optional_parts_may_be_missing() {
    let mut statement = statement();
    statement["predicate"]["buildDefinition"].as_object_mut().unwrap().remove("resolvedDependencies");
    statement["predicate"]["runDetails"].as_object_mut().unwrap().remove("metadata");
    let provenance = read(&statement).unwrap();
    assert!(provenance.sources.is_empty() && provenance.started.is_none() && provenance.invocation_id.is_none());
}

#[test]
fn missing_and_malformed_parts_are_refused_by_name() {
    for (pointer, value, field) in [
        ("/predicate", json!({}), "predicate.buildDefinition"),
        ("/predicate/runDetails", json!({}), "predicate.runDetails.builder"),
        ("/predicate/runDetails/builder/id", json!(""), "predicate.runDetails.builder.id"),
        ("/predicate/runDetails/builder/id", json!("a\u{1b}[2J"), "predicate.runDetails.builder.id"),
        ("/predicate/buildDefinition/buildType", json!(null), "predicate.buildDefinition.buildType"),
        ("/predicate/runDetails/metadata/startedOn", json!("yesterday"), "metadata.startedOn"),
        ("/predicate/runDetails/metadata/startedOn", json!(7), "metadata.startedOn"),
        ("/predicate/buildDefinition/resolvedDependencies/0/digest/gitCommit", json!("main"), "digest.gitCommit"),
        ("/predicate/buildDefinition/resolvedDependencies/0/uri", json!(null), "resolvedDependencies[0].uri"),
        ("/predicateType", json!("https://slsa.dev/provenance/v0.2"), "predicateType"),
    ] {
        let message = with(pointer, value).unwrap_err().to_string();
        assert!(message.contains(field), "{pointer}: {message}");
        assert!(!message.contains('\u{1b}'), "{message}");
    }
}

#[test]
fn limits_of_the_summary_are_enforced() {
    let limited = |result: Result<Provenance, Error>| assert!(matches!(result, Err(Error::Limit { .. })), "{result:?}");
    limited(with("/predicate/runDetails/builder/id", "b".repeat(MAX_FIELD_BYTES + 1).into()));
    let dependencies = "/predicate/buildDefinition/resolvedDependencies";
    limited(with(dependencies, vec![json!({}); MAX_DEPENDENCIES + 1].into()));
    with(dependencies, vec![json!({}); MAX_DEPENDENCIES].into()).unwrap();
    let source = json!({ "uri": "git+https://git.example/a", "digest": { "gitCommit": COMMIT } });
    limited(with(dependencies, vec![source.clone(); MAX_SUBJECTS + 1].into()));
    with(dependencies, vec![source; MAX_SUBJECTS].into()).unwrap();
}
