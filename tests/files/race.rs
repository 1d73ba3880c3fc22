//! Links and files that are swapped while a guest opens them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::tool::Limits;
use toolcrib::{Policy, Runtime, ToolCall};

use super::crib;
use crate::crib::{Crib, nesting, staged_calls, target};

const TIMES: usize = 10_000;
/// Maximum calls of a race until it has ended in each way: a machine with one free core may run one call between two
/// swaps.
const ROUNDS: usize = 50;

/// Repeats an action until it is dropped.
pub(crate) struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Swapping {
    pub(crate) fn start(mut swap: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            while !stopped.load(Relaxed) {
                swap();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// Lets a guest open `work/spot` in a runtime with few blocking threads, while the file is swapped repeatedly, until
/// all results have been seen. Each answer must pass the assertions of `seen`.
fn opened_while<const N: usize>(
    crib: &Crib,
    writes: bool,
    swap: impl FnMut() + Send + 'static,
    seen: impl Fn(&Value) -> [bool; N],
) {
    let runtime = |stage| {
        let builder = nesting::builder(toolcrib::Audit::off())
            .trusted_source(crib.path("tools.json"))
            .compile_cache(target().join("test-cache"))
            .policy(Policy::default().allow(Permission::Write(crib.path("work"))))
            .limits(Limits::with_deadline(Duration::from_secs(120)));
        let builder = if let Some(stage) = stage { builder.stage(stage) } else { builder };
        builder.build().unwrap()
    };
    let mut tokio = tokio::runtime::Builder::new_multi_thread();
    let tokio = tokio.worker_threads(2).max_blocking_threads(2).enable_all().build().unwrap();
    let call = |runtime: &Runtime, arguments: Value| {
        let call = ToolCall::new("", "open_often", arguments.to_string());
        tokio.block_on(nesting::call(runtime, call)).content().into_owned()
    };
    let swapping = Swapping::start(swap);
    let mut all = [false; N];
    let mut present = runtime(staged_calls::stage(crib.dir.path()));
    for _ in 0..ROUNDS {
        let answer = call(&present, json!({"path": "spot", "times": TIMES, "writes": writes}));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        for (all, now) in std::iter::zip(&mut all, seen(&answer)) {
            *all |= now;
        }
        if all == [true; N] {
            break;
        }
        // What was written is of the stage from then on: each call gets another one.
        if let Some(stage) = staged_calls::stage(crib.dir.path()) {
            present = runtime(Some(stage));
        }
    }
    assert_eq!(all, [true; N], "not seen in {ROUNDS} times {TIMES} attempts");
    drop(swapping);
    // Every thread is free again.
    for _ in 0..3 {
        assert!(call(&present, json!({"path": "note", "times": 1})).contains("text"));
    }
    if staged_calls::is_on() {
        let files = fs::read_dir(crib.path("work")).unwrap().map(|entry| entry.unwrap());
        for file in files.filter(|file| file.file_type().unwrap().is_file()) {
            assert_ne!(fs::read_to_string(file.path()).unwrap(), "open_often", "a call in a stage has written it");
        }
    }
    tokio.shutdown_timeout(Duration::from_secs(1));
}

/// Moves one of two names to `spot` without a moment in which nothing is there.
fn put(name: &Path, spot: &Path, next: &Path) {
    fs::hard_link(name, next).unwrap();
    fs::rename(next, spot).unwrap();
}

fn count(answer: &Value, kind: &str, key: &str) -> u64 {
    answer[kind][key].as_u64().unwrap_or_default()
}

#[test]
fn a_link_that_is_swapped_while_it_is_opened_never_leads_out() {
    let crib = crib(&["open_often"]);
    let at = |name: &str| crib.path("work").join(name);
    let (spot, next): (PathBuf, PathBuf) = (at("spot"), at("next"));
    symlink("note", &spot).unwrap();
    let swap = move || {
        for target in ["../secret", "note"] {
            symlink(target, &next).unwrap();
            fs::rename(&next, &spot).unwrap();
        }
    };
    opened_while(&crib, false, swap, |answer| {
        assert!(answer["read"].as_object().unwrap().keys().all(|read| read == "text"), "{answer}");
        [count(answer, "read", "text") > 0, count(answer, "errors", "not-permitted") > 0]
    });
}

#[test]
fn a_file_that_is_swapped_for_a_link_is_not_written_through_it() {
    let crib = crib(&["open_often"]);
    let at = |name: &str| crib.path("work").join(name);
    let (spot, next, own) = (at("spot"), at("next"), at("own"));
    fs::write(&own, "").unwrap();
    fs::write(&spot, "").unwrap();
    let swap = move || {
        symlink("../secret", &next).unwrap();
        fs::rename(&next, &spot).unwrap();
        put(&own, &spot, &next);
    };
    opened_while(&crib, true, swap, |answer| {
        [count(answer, "read", "open_often") > 0, count(answer, "errors", "not-permitted") > 0]
    });
    assert_eq!(fs::read_to_string(crib.path("secret")).unwrap(), "canary");
}

#[test]
fn a_file_that_is_swapped_for_a_link_to_settings_is_not_written_through_it() {
    let crib = crib(&["open_often"]);
    let at = |name: &str| crib.path("work").join(name);
    let (spot, next, own) = (at("spot"), at("next"), at("own"));
    fs::create_dir(at(".git")).unwrap();
    fs::write(at(".git/config"), "before").unwrap();
    fs::write(&own, "").unwrap();
    fs::write(&spot, "").unwrap();
    let swap = move || {
        for target in [".git/config", ".envrc"] {
            symlink(target, &next).unwrap();
            fs::rename(&next, &spot).unwrap();
            put(&own, &spot, &next);
        }
    };
    opened_while(&crib, true, swap, |answer| {
        [count(answer, "read", "open_often") > 0, count(answer, "errors", "not-permitted") > 0]
    });
    assert_eq!(fs::read_to_string(at(".git/config")).unwrap(), "before");
    assert!(!at(".envrc").exists());
}

#[test]
fn a_folder_on_the_way_that_is_swapped_for_a_link_never_leads_out() {
    let crib = crib(&["open_often"]);
    let at = |name: &str| crib.path("work").join(name);
    fs::write(at("folder/secret"), "inside").unwrap();
    symlink("folder/secret", at("spot")).unwrap();
    let (folder, away, link) = (at("folder"), at("away"), at("link"));
    symlink("..", &link).unwrap();
    let swap = move || {
        fs::rename(&folder, &away).unwrap();
        fs::rename(&link, &folder).unwrap();
        fs::rename(&folder, &link).unwrap();
        fs::rename(&away, &folder).unwrap();
    };
    opened_while(&crib, false, swap, |answer| {
        assert!(answer["read"].as_object().unwrap().keys().all(|read| read == "inside"), "{answer}");
        let refused = count(answer, "errors", "not-permitted") + count(answer, "errors", "no-entry");
        [count(answer, "read", "inside") > 0, refused > 0]
    });
}

#[test]
fn a_file_that_is_swapped_for_a_fifo_keeps_no_thread_waiting() {
    for writes in [false, true] {
        let crib = crib(&["open_often"]);
        let at = |name: &str| crib.path("work").join(name);
        let (spot, next, fifo, own) = (at("spot"), at("next"), at("fifo"), at("own"));
        if !Command::new("mkfifo").arg(&fifo).status().is_ok_and(|made| made.success()) {
            eprintln!("skipped: no mkfifo here");
            return;
        }
        fs::write(&own, "own").unwrap();
        put(&own, &spot, &next);
        let swap = move || {
            put(&fifo, &spot, &next);
            put(&own, &spot, &next);
        };
        opened_while(&crib, writes, swap, |answer| {
            let read: u64 = answer["read"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
            let refused = count(answer, "errors", "not-permitted");
            // A stage copies no other file than the one that it has judged.
            let busy = if staged_calls::is_on() { count(answer, "errors", "busy") } else { 0 };
            assert_eq!(read + refused + busy, TIMES as u64, "{answer}");
            [read > 0, refused > 0]
        });
    }
}
