//! Folders that are swapped for links while a stage is written or committed: nothing outside changes, and the rest is done later.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test may end in a panic, and uses a part of `common`"
)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use common::{Op, Pair, commit, dump};
use tempfile::TempDir;
use toolcrib_staging::{Conflict, Stages};

/// Maximum rounds of a race until it has ended in each way: on one free core, a commit may run between two swaps.
const ROUNDS: usize = 3_000;

/// Swaps a folder for a link and back, until it is dropped.
struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Swapping {
    fn start(folder: PathBuf, target: &Path) -> Self {
        let (away, link) = (folder.with_file_name("away"), folder.with_file_name("link-out"));
        symlink(target, &link).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            while !stopped.load(Relaxed) {
                fs::rename(&folder, &away).unwrap();
                fs::rename(&link, &folder).unwrap();
                thread::yield_now();
                fs::rename(&folder, &link).unwrap();
                fs::rename(&away, &folder).unwrap();
                thread::yield_now();
            }
            fs::remove_file(&link).unwrap();
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

/// Changes of all kinds below the folder `c`.
fn changes(pair: &mut Pair) {
    let operations = [
        Op::Write("c/x".into(), "new".into()),
        Op::Write("c/made".into(), "made".into()),
        Op::MakeFolder("c/folder".into()),
        Op::Write("c/folder/made".into(), "made".into()),
        Op::Link("c/link".into(), "x".into()),
        Op::Rename("a/x".into(), "c/moved".into()),
        Op::Remove("c/a/b".into()),
        Op::Name("a/b/x".into(), "c/name".into()),
    ];
    for (number, op) in operations.iter().enumerate() {
        pair.apply(number, op);
    }
}

/// A folder outside with the same names as the folder of a pair.
fn outside() -> TempDir {
    let outside = TempDir::new().unwrap();
    fs::create_dir_all(outside.path().join("c/a")).unwrap();
    for name in ["x", "a/b"] {
        fs::write(outside.path().join("c").join(name), "canary").unwrap();
    }
    outside
}

/// Commits while a folder is swapped for a link, until it was stopped and was not.
fn race(swapped: impl Fn(&Pair) -> PathBuf, target: &str) {
    let outside = outside();
    let before = dump(outside.path());
    let (mut done, mut stopped) = (false, false);
    for _ in 0..ROUNDS {
        let mut pair = Pair::new();
        changes(&mut pair);
        let shown = dump(pair.copy.path());
        pair.close();
        let swapping = Swapping::start(swapped(&pair), &outside.path().join(target));
        let stage = Stages::new(pair.stages.path()).take("one").unwrap();
        let committed = commit(&stage);
        drop(swapping);
        assert_eq!(dump(outside.path()), before, "{committed:?}");
        drop(stage);
        match committed {
            Ok(_) => done = true,
            Err(_) => {
                stopped = true;
                // Nothing was done that the next one could not go on with.
                commit(&Stages::new(pair.stages.path()).take("one").unwrap()).unwrap();
            }
        }
        assert_eq!(dump(pair.folder.path()), shown);
        if done && stopped {
            return;
        }
    }
    panic!("done: {done}, stopped: {stopped}, in {ROUNDS} rounds");
}

#[test]
fn a_folder_that_is_swapped_for_a_link_during_a_commit_leads_nowhere() {
    race(|pair| pair.folder.path().canonicalize().unwrap().join("c"), "c");
}

#[test]
fn a_granted_folder_that_is_swapped_for_a_link_during_a_commit_leads_nowhere() {
    // The granted folder is `inner`: only its own folder can be renamed in.
    let outside = outside();
    let before = dump(outside.path());
    for _ in 0..200 {
        let above = TempDir::new().unwrap();
        let folder = above.path().canonicalize().unwrap().join("inner");
        fs::create_dir(&folder).unwrap();
        let mut pair = Pair::in_folder(folder.clone());
        changes(&mut pair);
        let shown = dump(pair.copy.path());
        pair.close();
        let swapping = Swapping::start(folder.clone(), outside.path());
        // Whatever is at the path at that moment, it is the granted folder or nothing is committed.
        let stage = Stages::new(pair.stages.path()).take("one").unwrap();
        let committed = commit(&stage);
        drop((swapping, stage));
        assert_eq!(dump(outside.path()), before, "{committed:?}");
        if committed.is_err() {
            commit(&Stages::new(pair.stages.path()).take("one").unwrap()).unwrap();
        }
        assert_eq!(dump(&folder), shown);
    }
}

#[test]
fn a_link_in_the_place_of_a_granted_folder_is_not_committed_into() {
    let (outside, above) = (outside(), TempDir::new().unwrap());
    let before = dump(outside.path());
    let folder = above.path().canonicalize().unwrap().join("inner");
    fs::create_dir(&folder).unwrap();
    let mut pair = Pair::in_folder(folder.clone());
    changes(&mut pair);
    pair.close();
    fs::rename(&folder, above.path().join("away")).unwrap();
    let untouched = dump(&above.path().join("away"));
    // To the folder of another, and to the granted one itself, which is the granted one still.
    symlink(outside.path(), &folder).unwrap();
    let stage = Stages::new(pair.stages.path()).take("one").unwrap();
    assert_eq!(stage.lost().len(), 1);
    let refused = commit(&stage);
    assert!(matches!(refused, Err(toolcrib_staging::CommitError::Conflict(_, Conflict::Gone))), "{refused:?}");
    assert_eq!(dump(outside.path()), before);
    assert_eq!(dump(&above.path().join("away")), untouched);
}
