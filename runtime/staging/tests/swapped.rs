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

/// Commits that a swap must have stopped, and maximum rounds until then: on one free core, a commit may run between two swaps.
const STOPPED: usize = 3;
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

/// Changes of all kinds below the folder `c`. Of a file with two names, the second one could be found while it is away.
fn changes(pair: &mut Pair) {
    let operations = [
        Op::Write("c/a/b".into(), "new".into()),
        Op::Write("c/made".into(), "made".into()),
        Op::MakeFolder("c/folder".into()),
        Op::Write("c/folder/made".into(), "made".into()),
        Op::Link("c/link".into(), "b".into()),
        Op::Rename("a/x".into(), "c/moved".into()),
        Op::Remove("c/x".into()),
        Op::Name("a/b/x".into(), "c/name".into()),
    ];
    for (number, op) in operations.iter().enumerate() {
        pair.apply(number, op);
    }
}

/// A folder outside.
fn outside() -> TempDir {
    let outside = TempDir::new().unwrap();
    make_like(outside.path());
    outside
}

/// Fills a folder that a link leads to with the names of the folder `c` of a pair.
fn make_like(folder: &Path) {
    fs::create_dir_all(folder.join("c/a")).unwrap();
    for name in ["x", "a/b"] {
        fs::write(folder.join("c").join(name), "canary").unwrap();
    }
}

/// Commits the rest: nothing was done that the next commit could not go on with.
fn go_on(pair: &Pair) {
    commit(&Stages::new(pair.stages.path()).take("one").unwrap()).unwrap();
}

/// Commits while the folder `c` is swapped for a link to this folder, until commits were stopped.
fn race(outside: &Path, target: &Path) {
    let before = dump(outside);
    let mut stopped = 0;
    for _ in 0..ROUNDS {
        let mut pair = Pair::new();
        // Another folder of the same grant.
        for folder in [pair.folder.path(), pair.copy.path()] {
            make_like(&folder.join("other"));
        }
        changes(&mut pair);
        let shown = dump(pair.copy.path());
        pair.close();
        let swapping = Swapping::start(pair.folder.path().canonicalize().unwrap().join("c"), target);
        let stage = Stages::new(pair.stages.path()).take("one").unwrap();
        let committed = commit(&stage);
        drop(swapping);
        assert_eq!(dump(outside), before, "{committed:?}");
        drop(stage);
        if committed.is_err() {
            stopped += 1;
            go_on(&pair);
        }
        assert_eq!(dump(pair.folder.path()), shown);
        if stopped == STOPPED {
            return;
        }
    }
    panic!("{stopped} of {ROUNDS} commits were stopped");
}

#[test]
fn a_folder_that_is_swapped_for_a_link_during_a_commit_leads_nowhere() {
    let outside = outside();
    race(outside.path(), &outside.path().join("c"));
    race(outside.path(), Path::new("other/c"));
}

#[test]
fn a_granted_folder_that_is_swapped_for_a_link_during_a_commit_leads_nowhere() {
    // The granted folder is `inner`: only its own folder can be renamed in.
    let outside = outside();
    let before = dump(outside.path());
    for _ in 0..30 {
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
            go_on(&pair);
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
