//! Pushing: the round trip, both ways of uploading, and registries that misdirect an upload.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolcrib_registry::{
    BlobSource, Content, Descriptor, Digest, Error, OCI_INDEX, PushedBlob, UploadMode, limits::MAX_CHUNK_BYTES,
};

use crate::honest::{self, Features};
use crate::server::{Body, Reply, Server};
use crate::{blob, builder, client, content, impatient, manifest, quick, reference, repository};

#[tokio::test]
async fn content_that_was_pushed_is_pulled_unchanged() {
    let (server, _) = honest::start(Features::default()).await;
    let (client, repository) = (client(), repository(&server));
    let bytes = content(300_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layer");
    std::fs::write(&path, &bytes).unwrap();
    let layer = blob(&bytes);
    let steps = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&steps);
    let on_progress: toolcrib_registry::OnProgress = Arc::new(move |step| log.lock().unwrap().push(step.done));
    let pushed =
        client.push_blob(&repository, &layer, &BlobSource::File(path), UploadMode::Auto, Some(on_progress)).await;
    assert_eq!(pushed.unwrap(), PushedBlob::Uploaded);
    assert_eq!(steps.lock().unwrap().last(), Some(&300_000));
    let config = BlobSource::Bytes("{}".into());
    client.push_blob(&repository, &blob(b"{}"), &config, UploadMode::Auto, None).await.unwrap();
    let manifest = manifest(json!({ "layers": [layer] }));
    let tag = "v1".parse().unwrap();
    let pushed = client.push_manifest(&repository, &manifest, Some(&tag)).await.unwrap();
    assert_eq!((&pushed.descriptor.digest, pushed.listed), (&manifest.descriptor.digest, None));

    let tagged = reference(&server, ":v1");
    let resolved = client.resolve(&tagged).await.unwrap();
    assert_eq!(resolved, manifest.descriptor);
    let pulled = client.pull_manifest(&tagged.with_digest(resolved.digest)).await.unwrap();
    assert_eq!(pulled.bytes, manifest.bytes);
    let Content::Image(image) = pulled.parse().unwrap() else { panic!("not an image") };
    let mut copy = Vec::new();
    client.pull_blob(&repository, &image.layers[0], &mut copy, None).await.unwrap();
    assert!(copy == bytes);
}

#[tokio::test]
async fn a_part_of_a_file_is_pushed_at_once_and_in_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive");
    let bytes = content(200_000);
    std::fs::write(&path, &bytes).unwrap();
    for mode in [UploadMode::Monolithic, UploadMode::Chunked] {
        let (server, registry) = honest::start(Features::default()).await;
        let mut limits = quick();
        limits.chunk_bytes = 70_000;
        let client = builder().limits(limits).build().unwrap();
        let part = |offset, size| BlobSource::FilePart { path: path.clone(), offset, size };
        let middle = &bytes[1000..150_000];
        client.push_blob(&repository(&server), &blob(middle), &part(1000, 149_000), mode, None).await.unwrap();
        assert!(registry.lock().unwrap().blobs[&Digest::of(middle).to_string()] == middle);
        for (offset, size) in [(1000, 148_999), (1000, 149_001), (1001, 149_000), (199_000, 149_000), (u64::MAX, 1)] {
            let pushed = client.push_blob(&repository(&server), &blob(middle), &part(offset, size), mode, None).await;
            assert!(pushed.is_err(), "{offset} {size}");
        }
    }
}

#[tokio::test]
async fn a_blob_that_the_registry_has_is_not_sent_again() {
    let (server, registry) = honest::start(Features::default()).await;
    registry.lock().unwrap().put_blob(b"known");
    let source = BlobSource::Bytes("known".into());
    let pushed = client().push_blob(&repository(&server), &blob(b"known"), &source, UploadMode::Auto, None).await;
    assert_eq!(pushed.unwrap(), PushedBlob::Existing);
    assert_eq!(server.count("POST"), 0);
}

#[tokio::test]
async fn chunks_are_used_on_request_and_where_the_whole_is_refused() {
    for (mode, monolithic) in [(UploadMode::Chunked, true), (UploadMode::Auto, false)] {
        let (server, registry) = honest::start(Features { monolithic, ..Features::default() }).await;
        let mut limits = quick();
        limits.chunk_bytes = 1000;
        let client = builder().limits(limits).build().unwrap();
        let bytes = content(3500);
        let source = BlobSource::Bytes(bytes.clone().into());
        client.push_blob(&repository(&server), &blob(&bytes), &source, mode, None).await.unwrap();
        assert_eq!(server.count("PATCH"), 4);
        assert!(registry.lock().unwrap().blobs[&Digest::of(&bytes).to_string()] == bytes);
    }
}

#[tokio::test]
async fn a_registry_without_chunks_gets_the_whole() {
    let (server, registry) = honest::start(Features { chunked: false, ..Features::default() }).await;
    for bytes in [&b"whole"[..], b""] {
        let source = BlobSource::Bytes(bytes.to_vec().into());
        client().push_blob(&repository(&server), &blob(bytes), &source, UploadMode::Auto, None).await.unwrap();
    }
    assert_eq!((server.count("PATCH"), registry.lock().unwrap().blobs.len()), (0, 2));
}

#[tokio::test]
async fn content_that_is_not_the_one_described_is_never_sent() {
    let (server, _) = honest::start(Features::default()).await;
    let (client, repository) = (client(), repository(&server));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, "other").unwrap();
    for source in [BlobSource::Bytes("other".into()), BlobSource::File(path)] {
        let refused = client.push_blob(&repository, &blob(b"these"), &source, UploadMode::Auto, None).await;
        assert!(matches!(refused, Err(Error::DigestMismatch { .. })), "{refused:?}");
        let refused = client.push_blob(&repository, &blob(b"longer"), &source, UploadMode::Auto, None).await;
        assert!(matches!(refused, Err(Error::Size { .. })), "{refused:?}");
    }
    let folder = BlobSource::File(folder.path().to_owned());
    let refused = client.push_blob(&repository, &blob(b"x"), &folder, UploadMode::Auto, None).await;
    assert!(matches!(refused, Err(Error::File { .. })), "{refused:?}");
    let huge = Descriptor::new("a/b", Digest::of(b""), (1 << 30) + 1);
    let refused = client.push_blob(&repository, &huge, &BlobSource::Bytes("".into()), UploadMode::Auto, None).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn an_upload_never_leaves_the_registry() {
    let other = Server::start(|_| Reply::new(201)).await;
    let foreign = other.url("/upload");
    let port = foreign.rsplit_once(':').unwrap().1.to_owned();
    for location in [
        foreign.clone(),
        format!("//127.0.0.1:{port}"),
        "https://evil.example/upload".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://user:pass@{self}/upload".to_owned(),
        "https://{self}/upload".to_owned(),
    ] {
        let server = Server::start(move |request| match request.method.as_str() {
            "POST" => {
                let own = request.header("host").unwrap_or_default();
                Reply::new(202).header("Location", location.replace("{self}", own))
            }
            _ => Reply::new(404),
        })
        .await;
        let source = BlobSource::Bytes("x".into());
        let refused = client().push_blob(&repository(&server), &blob(b"x"), &source, UploadMode::Auto, None).await;
        assert!(matches!(refused, Err(Error::UploadLocation { .. })), "{refused:?}");
        assert_eq!(server.count("PUT"), 0);
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn an_upload_without_a_usable_address_is_refused() {
    let long = format!("/{}", "x".repeat(9000));
    for location in [None, Some("http://[".to_owned()), Some(long)] {
        let server = Server::start(move |request| match (request.method.as_str(), &location) {
            ("POST", Some(location)) => Reply::new(202).header("Location", location),
            ("POST", None) => Reply::new(202),
            _ => Reply::new(404),
        })
        .await;
        let source = BlobSource::Bytes("x".into());
        let refused = client().push_blob(&repository(&server), &blob(b"x"), &source, UploadMode::Auto, None).await;
        assert!(matches!(refused, Err(Error::Malformed { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn a_redirected_upload_and_absurd_chunks_are_refused() {
    let redirect = Server::start(|request| match request.method.as_str() {
        "POST" => Reply::new(307).header("Location", "/elsewhere"),
        _ => Reply::new(404),
    })
    .await;
    let source = BlobSource::Bytes("x".into());
    let refused = client().push_blob(&repository(&redirect), &blob(b"x"), &source, UploadMode::Auto, None).await;
    assert!(matches!(refused, Err(Error::Redirect { .. })), "{refused:?}");

    let absurd = Server::start(|request| match request.method.as_str() {
        "POST" => Reply::new(202).header("Location", "/u").header("OCI-Chunk-Min-Length", MAX_CHUNK_BYTES + 1),
        _ => Reply::new(404),
    })
    .await;
    let refused = client().push_blob(&repository(&absurd), &blob(b"x"), &source, UploadMode::Chunked, None).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");

    let forgetful = Server::start(|request| match request.method.as_str() {
        "POST" => Reply::new(202).header("Location", "/u"),
        "PATCH" => Reply::new(202).header("Location", "/u").header("Range", "0-1"),
        _ => Reply::new(404),
    })
    .await;
    let source = BlobSource::Bytes("xyz".into());
    let refused = client().push_blob(&repository(&forgetful), &blob(b"xyz"), &source, UploadMode::Chunked, None).await;
    assert!(matches!(refused, Err(Error::Malformed { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_upload_that_nobody_reads_stalls() {
    let server = Server::start(|request| match request.method.as_str() {
        "POST" => Reply::new(202).header("Location", "/u"),
        "PUT" => Reply::new(200).body(Body::Silence),
        _ => Reply::new(404),
    })
    .await;
    let source = BlobSource::Bytes("x".into());
    let refused = impatient().push_blob(&repository(&server), &blob(b"x"), &source, UploadMode::Monolithic, None).await;
    assert!(matches!(refused, Err(Error::Stalled { .. })), "{refused:?}");
    assert_eq!(server.count("PUT"), 2);
}

#[tokio::test]
async fn a_registry_that_stores_another_manifest_is_caught() {
    let server = Server::start(|_| Reply::new(201).header("Docker-Content-Digest", Digest::of(b"other"))).await;
    let refused = client().push_manifest(&repository(&server), &manifest(json!({})), None).await;
    assert!(matches!(refused, Err(Error::DigestMismatch { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_further_tag_names_the_same_bytes_and_tags_are_listed() {
    let (server, registry) = honest::start(Features::default()).await;
    registry.lock().unwrap().put_manifest("v1", OCI_INDEX, br#"{"schemaVersion":2,"manifests":[]}"#);
    let client = client();
    for tag in ["v2", "v3", "stable"] {
        client.tag(&reference(&server, ":v1"), &tag.parse().unwrap()).await.unwrap();
    }
    let manifests = registry.lock().unwrap().manifests.clone();
    assert_eq!(manifests["v1"], manifests["stable"]);
    let tags = client.tags(&repository(&server)).await.unwrap();
    let tags: Vec<&str> = tags.iter().map(|tag| tag.as_str()).collect();
    assert_eq!(tags, ["stable", "v1", "v2", "v3"]);
    assert_eq!(server.requests().iter().filter(|request| request.path.ends_with("/tags/list")).count(), 2);
}
