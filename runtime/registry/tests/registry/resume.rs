//! Partial files: continued, restarted, locked, and never taken for the whole.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use toolcrib_registry::Error;

use crate::honest::{self, Features};
use crate::server::{Body, Reply, Server};
use crate::{blob, client, content, repository};

struct Paths {
    _folder: tempfile::TempDir,
    partial: std::path::PathBuf,
    target: std::path::PathBuf,
}

fn paths(earlier: Option<&[u8]>) -> Paths {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths { partial: folder.path().join("partial"), target: folder.path().join("target"), _folder: folder };
    if let Some(earlier) = earlier {
        std::fs::write(&paths.partial, earlier).unwrap();
    }
    paths
}

async fn fetch(server: &Server, bytes: &[u8], paths: &Paths) -> Result<(), Error> {
    client().pull_blob_to_file(&repository(server), &blob(bytes), &paths.partial, &paths.target, None).await
}

#[tokio::test]
async fn a_partial_file_is_continued() {
    let (server, registry) = honest::start(Features::default()).await;
    let bytes = content(200_000);
    registry.lock().unwrap().put_blob(&bytes);
    let paths = paths(Some(&bytes[..150_000]));
    fetch(&server, &bytes, &paths).await.unwrap();
    assert!(std::fs::read(&paths.target).unwrap() == bytes);
    assert!(!paths.partial.exists());
    assert_eq!(server.requests()[0].header("range"), Some("bytes=150000-"));
}

#[tokio::test]
async fn a_complete_partial_file_needs_no_request() {
    let server = Server::start(|_| Reply::new(500)).await;
    for bytes in [&b"all"[..], b""] {
        let paths = paths(Some(bytes));
        fetch(&server, bytes, &paths).await.unwrap();
        assert_eq!(std::fs::read(&paths.target).unwrap(), bytes);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_transfer_starts_again_where_the_range_is_ignored_or_not_satisfiable() {
    let (server, registry) = honest::start(Features { ranges: false, ..Features::default() }).await;
    registry.lock().unwrap().put_blob(b"hello");
    let ignored = paths(Some(b"WRO"));
    fetch(&server, b"hello", &ignored).await.unwrap();
    assert_eq!(std::fs::read(&ignored.target).unwrap(), b"hello");
    assert_eq!(server.count("GET"), 1);

    let picky = Server::start(|request| match request.header("range") {
        Some(_) => Reply::new(416),
        None => Reply::new(200).bytes("hello"),
    })
    .await;
    let refused = paths(Some(b"hel"));
    fetch(&picky, b"hello", &refused).await.unwrap();
    assert_eq!(std::fs::read(&refused.target).unwrap(), b"hello");
}

#[tokio::test]
async fn a_damaged_partial_file_is_fetched_again_once() {
    let (server, registry) = honest::start(Features::default()).await;
    registry.lock().unwrap().put_blob(b"hello");
    for earlier in [&b"WRO"[..], b"WRONG", b"far too long"] {
        let paths = paths(Some(earlier));
        fetch(&server, b"hello", &paths).await.unwrap();
        assert_eq!(std::fs::read(&paths.target).unwrap(), b"hello");
    }
    let liar = Server::start(|_| Reply::new(200).bytes("hellO")).await;
    let paths = paths(Some(b"hel"));
    let refused = fetch(&liar, b"hello", &paths).await;
    assert!(matches!(refused, Err(Error::DigestMismatch { .. })), "{refused:?}");
    assert!(!paths.target.exists());
    assert_eq!(std::fs::read(&paths.partial).unwrap(), b"");
}

#[tokio::test]
async fn a_range_that_was_not_asked_for_is_refused() {
    for range in ["bytes 0-4/5", "bytes 3-4/6", "bytes 3-5/5", "bytes 3-4", "lines 3-4/5", "bytes */5", ""] {
        let server = Server::start(move |_| Reply::new(206).header("Content-Range", range).bytes("lo")).await;
        let paths = paths(Some(b"hel"));
        let refused = fetch(&server, b"hello", &paths).await;
        assert!(matches!(refused, Err(Error::Malformed { .. })), "{range}: {refused:?}");
        assert!(!paths.target.exists());
    }
    let unasked = Server::start(|_| Reply::new(206).header("Content-Range", "bytes 0-4/5").bytes("hello")).await;
    let refused = fetch(&unasked, b"hello", &paths(None)).await;
    assert!(matches!(refused, Err(Error::Status { status: 206, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_broken_transfer_continues_within_one_call() {
    for ranges in [true, false] {
        let attempts = AtomicUsize::new(0);
        let server = Server::start(move |request| match (attempts.fetch_add(1, Ordering::SeqCst), ranges) {
            (0, _) => Reply::new(200).header("Content-Length", 5).bytes("hel"),
            (_, true) => {
                assert_eq!(request.header("range"), Some("bytes=3-"));
                Reply::new(206).header("Content-Range", "bytes 3-4/5").bytes("lo")
            }
            (_, false) => Reply::new(200).bytes("hello"),
        })
        .await;
        let mut copy = Vec::new();
        client().pull_blob(&repository(&server), &blob(b"hello"), &mut copy, None).await.unwrap();
        assert_eq!(copy, b"hello", "a writer receives each byte once");
    }
}

#[tokio::test]
async fn a_cancelled_transfer_leaves_only_the_partial_file() {
    let server = Server::start(|_| Reply::new(200).body(Body::ThenSilence(b"hel".to_vec()))).await;
    let paths = paths(None);
    let arrived = async {
        while std::fs::metadata(&paths.partial).map_or(0, |file| file.len()) < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        result = fetch(&server, b"hello", &paths) => panic!("{result:?}"),
        () = arrived => {}
    }
    assert!(!paths.target.exists());
    let left: Vec<_> = std::fs::read_dir(paths.partial.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[tokio::test]
async fn a_partial_file_in_use_and_a_link_are_refused() {
    let (server, registry) = honest::start(Features::default()).await;
    registry.lock().unwrap().put_blob(b"hello");
    let locked = paths(Some(b"hel"));
    let other = std::fs::File::open(&locked.partial).unwrap();
    other.lock().unwrap();
    let refused = fetch(&server, b"hello", &locked).await;
    assert!(matches!(refused, Err(Error::PartialInUse { .. })), "{refused:?}");
    drop(other);
    fetch(&server, b"hello", &locked).await.unwrap();

    let folder = paths(None);
    std::fs::create_dir(&folder.partial).unwrap();
    let refused = fetch(&server, b"hello", &folder).await;
    assert!(matches!(refused, Err(Error::File { .. })), "{refused:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_partial_file_is_private_and_never_a_link_or_pipe() {
    use std::os::unix::fs::PermissionsExt as _;

    use toolcrib_registry::Digest;

    let (server, registry) = honest::start(Features::default()).await;
    registry.lock().unwrap().put_blob(b"hello");
    let link = paths(None);
    let victim = link.partial.with_file_name("victim");
    std::fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, &link.partial).unwrap();
    let refused = fetch(&server, b"hello", &link).await;
    assert!(matches!(refused, Err(Error::File { .. })), "{refused:?}");
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");

    let pipe = paths(None);
    assert!(std::process::Command::new("mkfifo").arg(&pipe.partial).status().unwrap().success());
    let refused = fetch(&server, b"hello", &pipe).await;
    assert!(matches!(refused, Err(Error::File { .. })), "{refused:?}");

    let plain = paths(None);
    fetch(&server, b"hello", &plain).await.unwrap();
    assert_eq!(std::fs::metadata(&plain.target).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Digest::of(&std::fs::read(&plain.target).unwrap()), Digest::of(b"hello"));
}
