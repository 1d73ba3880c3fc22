//! Pulls that are killed, and pulls of several processes at once: a bundle is stored whole or not at all.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::server::{Body, Reply, Request};
use super::{cached, command, json, opened, published, run};

/// Size of the bundle beside its program.
const BYTES: usize = 2 << 20;
/// Number of pulls that are killed.
const KILLS: u64 = 40;

fn is_data(request: &Request, bytes: &[u8]) -> bool {
    request.method == "GET" && request.path.contains("/blobs/") && bytes.len() > 100_000
}

/// Sends large blobs in parts of a size, so that a pull takes some time.
fn slow(part: usize, pause: Duration) -> impl Fn(&Request, Reply) -> Reply + Send + Sync + 'static {
    move |request, reply| match &reply.body {
        Body::Bytes(bytes) if is_data(request, bytes) => {
            let bytes = bytes.clone();
            reply.body(Body::Slow(bytes, part, pause))
        }
        _ => reply,
    }
}

#[test]
fn a_pull_that_was_killed_continues() {
    let (crib, registry, digest) = published(BYTES);
    let reference = registry.reference("echo:1");
    registry.twist(slow(64 << 10, Duration::from_millis(60)));
    let mut child = command(&crib, &["pull", &reference]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let half = |crib: &crate::crib::Crib| {
        let files = fs::read_dir(crib.path("cache/bundles")).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).max().unwrap_or_default()
    };
    while half(&crib) < 300_000 {
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(cached(&crib).contains(&"download".to_owned()));
    assert!(!cached(&crib).contains(&"bundle".to_owned()));
    registry.twist(|_, reply| reply);
    registry.requests();
    assert_eq!(json(&crib, &["pull", &reference])["digest"], digest);
    let ranges: Vec<_> =
        registry.requests().into_iter().filter_map(|request| request.headers.get("range").cloned()).collect();
    assert_eq!(ranges.len(), 1, "{ranges:?}");
    assert_eq!(cached(&crib), ["bundle"], "downloads are removed");
}

#[test]
fn kills_at_any_moment_leave_no_half_bundle() {
    let (crib, registry, digest) = published(BYTES);
    let reference = registry.reference("echo:1");
    registry.twist(slow(256 << 10, Duration::from_millis(4)));
    let mut stored = 0;
    for round in 0..KILLS {
        let mut child =
            command(&crib, &["pull", &reference]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(2 + round * 7));
        let _ = child.kill();
        child.wait().unwrap();
        for entry in json(&crib, &["cache", "list"]).as_array().unwrap() {
            if entry["kind"] == "bundle" {
                assert_eq!(opened(&crib.path("cache").join(entry["file"].as_str().unwrap())), digest, "round {round}");
                stored += 1;
                assert_eq!(run(&crib, &["cache", "clear"]).code, Some(0));
            }
        }
    }
    println!("{stored} of {KILLS} pulls had ended when they were killed");
    assert_eq!(json(&crib, &["pull", &reference])["digest"], digest);
    assert_eq!(cached(&crib), ["bundle"]);
}

#[test]
fn processes_that_pull_and_prune_at_once_agree() {
    let (crib, registry, digest) = published(BYTES);
    let reference = registry.reference("echo:1");
    registry.twist(slow(256 << 10, Duration::from_millis(10)));
    thread::scope(|scope| {
        for number in 0..4 {
            let (crib, reference, digest) = (&crib, &reference, &digest);
            scope.spawn(move || {
                for round in 0..3 {
                    let output = crib.path(format!("copy-{number}.tar"));
                    let ran = json(crib, &["pull", reference, "-o", output.to_str().unwrap()]);
                    assert_eq!((&ran["digest"], &opened(&output)), (&serde_json::json!(digest), digest));
                    if number == round {
                        assert_eq!(run(crib, &["cache", "clear"]).code, Some(0));
                    }
                }
            });
        }
    });
    json(&crib, &["pull", &reference]);
    assert_eq!(cached(&crib), ["bundle"]);
}
