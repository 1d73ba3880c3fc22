//! Repetition: repeated failures, the number of attempts, and the pauses that a registry may ask for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use toolcrib_registry::{Error, OCI_INDEX};

use crate::server::{Reply, Server};
use crate::{blob, builder, client, quick, reference, repository};

/// Server that fails `failures` times and then has the manifest.
async fn failing(failures: usize, reply: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    let count = AtomicUsize::new(0);
    Server::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        number if number < failures => reply(),
        _ => Reply::new(200).header("Content-Type", OCI_INDEX).bytes(r#"{"schemaVersion":2,"manifests":[]}"#),
    })
    .await
}

#[tokio::test]
async fn a_passing_failure_is_repeated() {
    for status in [408, 429, 500, 502, 503, 504] {
        let server = failing(1, move || Reply::new(status)).await;
        client().pull_manifest(&reference(&server, ":v1")).await.unwrap();
        assert_eq!(server.count("GET"), 2);
    }
}

#[tokio::test]
async fn a_lasting_failure_is_reported_at_once() {
    for status in [400, 404, 405, 410, 501] {
        let server = failing(1, move || Reply::new(status)).await;
        assert!(client().pull_manifest(&reference(&server, ":v1")).await.is_err());
        assert_eq!(server.count("GET"), 1);
    }
}

#[tokio::test]
async fn the_attempts_are_bounded() {
    let server = failing(usize::MAX, || Reply::new(503)).await;
    let refused = client().pull_manifest(&reference(&server, ":v1")).await;
    assert!(matches!(refused, Err(Error::Status { status: 503, .. })), "{refused:?}");
    assert_eq!(server.count("GET"), 2);
    let refused = client().pull_blob(&repository(&server), &blob(b"x"), &mut Vec::new(), None).await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn the_pause_that_a_registry_asks_for_is_kept() {
    let server = failing(1, || Reply::new(429).header("Retry-After", 1)).await;
    let start = Instant::now();
    client().pull_manifest(&reference(&server, ":v1")).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn an_absurd_pause_ends_the_call_and_a_senseless_one_is_ignored() {
    for value in ["61", "999999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let server = failing(1, move || Reply::new(429).header("Retry-After", value)).await;
        let start = Instant::now();
        let refused = client().pull_manifest(&reference(&server, ":v1")).await;
        assert!(matches!(refused, Err(Error::RetryLater { .. })), "{refused:?}");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
    for value in ["-1", "soon", "Sun, 06 Nov 1994 08:49:37 GMT"] {
        let server = failing(1, move || Reply::new(503).header("Retry-After", value)).await;
        client().pull_manifest(&reference(&server, ":v1")).await.unwrap();
    }
}

#[tokio::test]
async fn the_deadline_covers_pauses() {
    let mut limits = quick();
    limits.deadline = Duration::from_millis(300);
    let server = failing(1, || Reply::new(429).header("Retry-After", 30)).await;
    let refused = builder().limits(limits).build().unwrap().pull_manifest(&reference(&server, ":v1")).await;
    assert!(matches!(refused, Err(Error::Deadline { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_registry_that_is_down_is_reported_as_such() {
    let server = Server::start(|_| Reply::new(200)).await;
    let reference = reference(&server, ":v1");
    drop(server);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let refused = client().pull_manifest(&reference).await;
    assert!(matches!(refused, Err(Error::Connection { .. })), "{refused:?}");
}
