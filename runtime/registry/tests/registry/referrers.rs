//! Referrers, with the API of the registry and with the fallback tag.

use serde_json::json;
use toolcrib_registry::{Digest, Error, Manifest, OCI_INDEX, ReferrersList};

use crate::honest::{self, Features};
use crate::server::{Reply, Server};
use crate::{client, manifest, reference, repository};

const SIGNATURE: &str = "application/vnd.test.signature";
const BILL: &str = "application/vnd.test.bill";

fn referrer(subject: &Manifest, artifact_type: &str, number: u32) -> Manifest {
    manifest(json!({
        "artifactType": artifact_type,
        "subject": subject.descriptor,
        "annotations": { "number": number.to_string() },
    }))
}

#[tokio::test]
async fn referrers_are_listed_and_filtered_with_the_api_and_without() {
    for (referrers, list) in [(true, ReferrersList::Api), (false, ReferrersList::Tag)] {
        let (server, registry) = honest::start(Features { referrers, ..Features::default() }).await;
        let (client, repository) = (client(), repository(&server));
        let subject = manifest(json!({}));
        client.push_manifest(&repository, &subject, None).await.unwrap();
        for (artifact_type, number) in [(SIGNATURE, 1), (BILL, 2), (SIGNATURE, 3), (SIGNATURE, 3)] {
            let referrer = referrer(&subject, artifact_type, number);
            let pushed = client.push_manifest(&repository, &referrer, None).await.unwrap();
            assert_eq!(pushed.listed, Some(list));
        }
        let digest = &subject.descriptor.digest;
        assert_eq!(client.referrers(&repository, digest, None).await.unwrap().len(), 3);
        let signatures = client.referrers(&repository, digest, Some(SIGNATURE)).await.unwrap();
        assert_eq!(signatures.len(), 2);
        assert!(signatures.iter().all(|entry| entry.artifact_type.as_deref() == Some(SIGNATURE)));
        let tag = format!("sha256-{}", digest.hex());
        assert_eq!(registry.lock().unwrap().manifests.contains_key(&tag), !referrers);
        let pulled = client.pull_manifest(&reference(&server, &format!("@{}", signatures[0].digest))).await.unwrap();
        assert_eq!(pulled.parse().unwrap().subject().unwrap().digest, *digest);
        assert!(client.referrers(&repository, &Digest::of(b"unknown"), None).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn the_fallback_index_keeps_what_it_does_not_know() {
    let (server, registry) = honest::start(Features { referrers: false, ..Features::default() }).await;
    let subject = manifest(json!({}));
    let tag = format!("sha256-{}", subject.descriptor.digest.hex());
    let index =
        json!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [], "annotations": { "a": "b" }, "x": 1 });
    registry.lock().unwrap().put_manifest(&tag, OCI_INDEX, index.to_string().as_bytes());
    client().push_manifest(&repository(&server), &referrer(&subject, BILL, 1), None).await.unwrap();
    let (_, bytes) = registry.lock().unwrap().manifests[&tag].clone();
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((&value["x"], &value["annotations"]["a"]), (&json!(1), &json!("b")));
    assert_eq!(value["manifests"][0]["artifactType"], BILL);
    assert_eq!(value["manifests"][0]["annotations"]["number"], "1");
}

#[tokio::test]
async fn a_fallback_tag_that_is_taken_by_something_else_is_not_replaced() {
    let (server, registry) = honest::start(Features { referrers: false, ..Features::default() }).await;
    let subject = manifest(json!({}));
    let tag = format!("sha256-{}", subject.descriptor.digest.hex());
    let image = manifest(json!({}));
    registry.lock().unwrap().put_manifest(&tag, &image.descriptor.media_type, &image.bytes);
    let refused = client().push_manifest(&repository(&server), &referrer(&subject, BILL, 1), None).await;
    assert!(matches!(refused, Err(Error::MediaType { .. })), "{refused:?}");
    assert_eq!(registry.lock().unwrap().manifests[&tag].1, image.bytes);
    let refused = client().referrers(&repository(&server), &subject.descriptor.digest, None).await;
    assert!(matches!(refused, Err(Error::MediaType { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_index_that_loses_the_entry_is_noticed() {
    let server = Server::start(|request| match (request.method.as_str(), request.path.contains("manifests/sha256-")) {
        ("PUT", _) => Reply::new(201),
        ("GET", true) => {
            Reply::new(200).header("Content-Type", OCI_INDEX).bytes(r#"{"schemaVersion":2,"manifests":[]}"#)
        }
        _ => Reply::new(404),
    })
    .await;
    let refused = client().push_manifest(&repository(&server), &referrer(&manifest(json!({})), BILL, 1), None).await;
    assert!(matches!(refused, Err(Error::Malformed { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_list_of_another_type_is_refused_and_a_filter_that_is_ignored_is_applied() {
    let page = Server::start(|_| Reply::new(200).header("Content-Type", "text/html").bytes("<html>")).await;
    let refused = client().referrers(&repository(&page), &Digest::of(b""), None).await;
    assert!(matches!(refused, Err(Error::MediaType { .. })), "{refused:?}");

    let entry = |artifact_type: &str| json!({ "mediaType": "a/b", "digest": Digest::of(b""), "size": 0, "artifactType": artifact_type });
    let body = json!({ "schemaVersion": 2, "manifests": [entry(BILL), entry(SIGNATURE)] }).to_string();
    let careless = Server::start(move |_| Reply::new(200).header("Content-Type", OCI_INDEX).bytes(body.clone())).await;
    let found = client().referrers(&repository(&careless), &Digest::of(b""), Some(BILL)).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(careless.requests()[0].parameter("artifactType").as_deref(), Some(BILL));
}
