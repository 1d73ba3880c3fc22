//! Pulling from registries that lie about content, sizes, types, headers and lists.

use std::time::Duration;

use serde_json::json;
use toolcrib_registry::limits::MAX_DOCUMENT_BYTES;
use toolcrib_registry::{Client, DOCKER_INDEX, Descriptor, Digest, Error, OCI_INDEX, OCI_MANIFEST};

use crate::honest::{self, Features};
use crate::server::{Body, Reply, Server};
use crate::{blob, builder, client, impatient, quick, reference, repository};

async fn manifest_from(reply: impl Fn() -> Reply + Send + Sync + 'static, version: &str) -> Result<(), Error> {
    let server = Server::start(move |_| reply()).await;
    client().pull_manifest(&reference(&server, version)).await.map(|_| ())
}

async fn blob_from(client: &Client, blob: &Descriptor, reply: impl Fn() -> Reply + Send + Sync + 'static) -> Error {
    let server = Server::start(move |_| reply()).await;
    let mut copy = Vec::new();
    let error = client.pull_blob(&repository(&server), blob, &mut copy, None).await.unwrap_err();
    assert!(copy.len() as u64 <= blob.size, "no byte beyond the described size is handed on");
    error
}

fn index() -> Reply {
    Reply::new(200).header("Content-Type", OCI_INDEX).bytes(r#"{"schemaVersion":2,"manifests":[]}"#)
}

#[tokio::test]
async fn a_manifest_with_another_digest_is_refused() {
    let other = Digest::of(b"other");
    let refused = manifest_from(index, &format!(":v1@{other}")).await;
    assert!(matches!(refused, Err(Error::DigestMismatch { .. })), "{refused:?}");
    let announced = other.clone();
    let refused = manifest_from(move || index().header("Docker-Content-Digest", &announced), ":v1").await;
    assert!(matches!(refused, Err(Error::DigestMismatch { .. })), "{refused:?}");
    let refused = manifest_from(|| index().header("Docker-Content-Digest", "sha256:12"), ":v1").await;
    assert!(matches!(refused, Err(Error::Malformed { .. })), "{refused:?}");
    assert!(manifest_from(index, ":v1").await.is_ok());
}

#[tokio::test]
async fn an_index_of_docker_is_left_to_the_caller_to_select_from() {
    let entry = json!({ "mediaType": OCI_MANIFEST, "digest": Digest::of(b""), "size": 0, "platform": { "architecture": "wasm", "os": "wasip2" } });
    let text = json!({ "schemaVersion": 2, "mediaType": DOCKER_INDEX, "manifests": [entry, entry] }).to_string();
    let server = Server::start(move |_| Reply::new(200).header("Content-Type", DOCKER_INDEX).bytes(text.clone())).await;
    let manifest = client().pull_manifest(&reference(&server, ":v1")).await.unwrap();
    let toolcrib_registry::Content::Index(index) = manifest.parse().unwrap() else { panic!("not an index") };
    assert_eq!(index.manifests.len(), 2);
    assert_eq!(index.manifests[0].platform.as_ref().unwrap().architecture, "wasm");
    assert!(server.requests()[0].header("accept").unwrap().contains(DOCKER_INDEX));
}

#[tokio::test]
async fn media_types_that_do_not_match_are_refused() {
    for reply in [
        || index().header("Content-Type", OCI_INDEX),
        || Reply::new(200).bytes(r#"{"schemaVersion":2,"manifests":[]}"#),
        || Reply::new(200).header("Content-Type", "text/html").bytes("<html>"),
        || {
            let text = json!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [] }).to_string();
            Reply::new(200).header("Content-Type", OCI_MANIFEST).bytes(text)
        },
    ] {
        let refused = manifest_from(reply, ":v1").await;
        assert!(matches!(refused, Err(Error::MediaType { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn a_manifest_over_the_limit_is_refused_early() {
    let reply = || Reply::new(200).header("Content-Type", OCI_INDEX);
    let announced = manifest_from(move || reply().header("Content-Length", MAX_DOCUMENT_BYTES + 1), ":v1").await;
    assert!(matches!(announced, Err(Error::TooLarge { .. })), "{announced:?}");
    let endless = manifest_from(move || reply().body(Body::Endless), ":v1").await;
    assert!(matches!(endless, Err(Error::TooLarge { .. })), "{endless:?}");
    let server = Server::start(move |_| {
        reply().header("Docker-Content-Digest", Digest::of(b"")).header("Content-Length", MAX_DOCUMENT_BYTES + 1)
    })
    .await;
    let resolved = client().resolve(&reference(&server, ":v1")).await;
    assert!(matches!(resolved, Err(Error::TooLarge { .. })), "{resolved:?}");
}

#[tokio::test]
async fn resolving_checks_the_announced_digest_or_fetches_the_manifest() {
    let server = Server::start(|_| index().header("Docker-Content-Digest", Digest::of(b"other"))).await;
    let refused = client().resolve(&reference(&server, &format!("@{}", Digest::of(b"mine")))).await;
    assert!(matches!(refused, Err(Error::DigestMismatch { .. })), "{refused:?}");
    let silent = Server::start(|_| index()).await;
    let resolved = client().resolve(&reference(&silent, ":v1")).await.unwrap();
    assert_eq!(resolved.digest, Digest::of(br#"{"schemaVersion":2,"manifests":[]}"#));
    assert_eq!((silent.count("HEAD"), silent.count("GET")), (1, 1));
    let refused = client().resolve(&reference(&silent, "")).await;
    assert!(matches!(refused, Err(Error::Reference(_))), "{refused:?}");
}

#[tokio::test]
async fn a_blob_of_another_size_or_digest_is_refused() {
    let (client, wanted) = (client(), blob(b"hello"));
    let error = blob_from(&client, &wanted, || Reply::new(200).bytes("hellO")).await;
    assert!(matches!(error, Error::DigestMismatch { .. }), "{error:?}");
    for text in ["hello!", "hell"] {
        let error = blob_from(&client, &wanted, move || Reply::new(200).bytes(text)).await;
        assert!(matches!(error, Error::Size { .. }), "{error:?}");
    }
    let error = blob_from(&client, &wanted, || Reply::new(200).header("Content-Length", u64::MAX)).await;
    assert!(matches!(error, Error::Size { .. } | Error::Connection { .. }), "{error:?}");
    let announced = || Reply::new(200).header("Docker-Content-Digest", Digest::of(b"x")).bytes("hello");
    let error = blob_from(&client, &wanted, announced).await;
    assert!(matches!(error, Error::DigestMismatch { .. }), "{error:?}");
}

#[tokio::test]
async fn a_blob_without_an_announced_size_is_cut_and_counted() {
    let (client, wanted) = (client(), blob(b"hello"));
    let error = blob_from(&client, &wanted, || Reply::new(200).body(Body::Endless)).await;
    assert!(matches!(error, Error::Size { .. }), "{error:?}");
    let error = blob_from(&client, &wanted, || Reply::new(200).body(Body::Unannounced(b"hel".to_vec()))).await;
    assert!(matches!(error, Error::Truncated { .. }), "{error:?}");
    let lying = || Reply::new(200).header("Content-Length", 5).bytes("hel");
    let error = blob_from(&client, &wanted, lying).await;
    assert!(matches!(error, Error::Connection { .. }), "{error:?}");
    let error = blob_from(&client, &wanted, || Reply::new(200).header("Content-Encoding", "gzip").bytes("hello")).await;
    assert!(matches!(error, Error::Malformed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_blob_over_the_limit_is_not_asked_for() {
    let server = Server::start(|_| Reply::new(200)).await;
    let huge = Descriptor::new("a/b", Digest::of(b""), quick().blob_bytes + 1);
    let refused = client().pull_blob(&repository(&server), &huge, &mut Vec::new(), None).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn silence_and_trickling_end_at_their_limits() {
    let wanted = blob(&[b'x'; 1000]);
    let error = blob_from(&impatient(), &wanted, || Reply::new(200).body(Body::Silence)).await;
    assert!(matches!(error, Error::Stalled { .. }), "{error:?}");
    let error = blob_from(&impatient(), &wanted, || Reply::new(200).body(Body::ThenSilence(b"xx".to_vec()))).await;
    assert!(matches!(error, Error::Stalled { .. }), "{error:?}");
    let mut limits = quick();
    limits.deadline = Duration::from_millis(600);
    let hurried = builder().limits(limits).build().unwrap();
    let trickle = || Reply::new(200).body(Body::Trickle(Duration::from_millis(50)));
    let error = blob_from(&hurried, &wanted, trickle).await;
    assert!(matches!(error, Error::Deadline { .. }), "{error:?}");
    let mut limits = quick();
    limits.exchange = Duration::from_millis(200);
    let server = Server::start(move |_| trickle().header("Content-Type", OCI_INDEX)).await;
    let refused = builder().limits(limits).build().unwrap().pull_manifest(&reference(&server, ":v1")).await;
    assert!(matches!(refused, Err(Error::Slow { .. })), "{refused:?}");
}

#[tokio::test]
async fn huge_headers_are_refused() {
    for (count, length) in [(1, 40_000), (200, 10), (1, 2_000_000)] {
        let reply = move || {
            let headers = (0..count).fold(index(), |reply, n| reply.header(&format!("X-{n}"), "x".repeat(length)));
            headers.header("X", 1)
        };
        let refused = manifest_from(reply, ":v1").await;
        assert!(matches!(refused, Err(Error::TooLarge { .. } | Error::Connection { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn endless_lists_and_bad_tags_are_refused() {
    let endless = Server::start(|request| {
        let page: usize = request.parameter("p").map_or(0, |page| page.parse().unwrap());
        let next = format!("<{}?p={}>; rel=\"next\"", request.path, page + 1);
        let body = json!({ "tags": ["a"], "schemaVersion": 2, "manifests": [] }).to_string();
        Reply::new(200).header("Content-Type", OCI_INDEX).header("Link", next).bytes(body)
    })
    .await;
    let refused = client().tags(&repository(&endless)).await;
    assert!(matches!(refused, Err(Error::TooMany { .. })), "{refused:?}");
    assert_eq!(endless.count("GET"), quick().pages);
    let refused = client().referrers(&repository(&endless), &Digest::of(b""), None).await;
    assert!(matches!(refused, Err(Error::TooMany { .. })), "{refused:?}");

    let mut limits = quick();
    limits.entries = 3;
    let many = Server::start(|_| Reply::new(200).bytes(r#"{"tags":["a","b","c","d"]}"#)).await;
    let refused = builder().limits(limits).build().unwrap().tags(&repository(&many)).await;
    assert!(matches!(refused, Err(Error::TooMany { .. })), "{refused:?}");

    for tags in [r#"["../x"]"#, r#"["a\n"]"#, "[1]", r#""a""#] {
        let server = Server::start(move |_| Reply::new(200).bytes(format!("{{\"tags\":{tags}}}"))).await;
        let refused = client().tags(&repository(&server)).await;
        assert!(matches!(refused, Err(Error::Malformed { .. })), "{refused:?}");
    }
    let huge = Server::start(|_| Reply::new(200).header("Content-Length", MAX_DOCUMENT_BYTES + 1)).await;
    let refused = client().tags(&repository(&huge)).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_next_page_elsewhere_is_refused() {
    let other = Server::start(|_| Reply::new(200).bytes(r#"{"tags":[]}"#)).await;
    for target in [other.url("/v2/team/tool/tags/list"), "/v2/other/tags/list".to_owned(), "http://[".to_owned()] {
        let server = Server::start(move |_| {
            Reply::new(200).header("Link", format!("<{target}>; rel=\"next\"")).bytes(r#"{"tags":[]}"#)
        })
        .await;
        let refused = client().tags(&repository(&server)).await;
        assert!(matches!(refused, Err(Error::Malformed { .. })), "{refused:?}");
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn missing_content_is_told_apart_from_refused_access() {
    let (server, _) = honest::start(Features::default()).await;
    let client = client();
    let missing = client.pull_manifest(&reference(&server, ":none")).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    assert!(!client.has_blob(&repository(&server), &blob(b"none")).await.unwrap());
    let missing = client.pull_blob(&repository(&server), &blob(b"none"), &mut Vec::new(), None).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    let forbidden = manifest_from(|| Reply::new(403), ":v1").await;
    assert!(matches!(forbidden, Err(Error::Unauthorized { status: 403, .. })), "{forbidden:?}");
}

#[tokio::test]
async fn an_error_repeats_no_text_of_the_registry() {
    let body = r#"{"errors":[{"code":"DENIED","message":"canary \u001b[31m"}]}"#;
    let refused = manifest_from(move || Reply::new(418).bytes(body), ":v1").await.unwrap_err();
    assert_eq!(refused.to_string(), "unexpected status 418 for the manifest (`DENIED`)");
    assert!(!format!("{refused:?}").contains("canary"));
    let endless = manifest_from(|| Reply::new(418).body(Body::Endless), ":v1").await;
    assert!(matches!(endless, Err(Error::Status { status: 418, code: None, .. })), "{endless:?}");
}
