//! Stages after kills, over folders that are gone, beside FIFOs and names that collide, and at their limits.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test may end in a panic, and uses a part of `common`"
)]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use common::{attach, commit};
use tempfile::TempDir;
use toolcrib_staging::{ChangeKind, CommitError, Conflict, Limits, Stage, Stages};

/// A folder, and the stages of a test.
fn fresh() -> (TempDir, TempDir) {
    (TempDir::new().unwrap(), TempDir::new().unwrap())
}

fn open(stages: &TempDir) -> Arc<Stage> {
    Stages::new(stages.path()).open("one", Limits::default()).unwrap()
}

#[test]
fn a_folder_between_two_granted_ones_is_like_any_other() {
    for inner_first in [true, false] {
        let (folder, stages) = fresh();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/x"), "x").unwrap();
        let stage = open(&stages);
        let (inner, outer) = match inner_first {
            true => {
                let inner = attach(&stage, &folder.path().join("a/b"));
                (inner, attach(&stage, folder.path()))
            }
            false => {
                let outer = attach(&stage, folder.path());
                (attach(&stage, &folder.path().join("a/b")), outer)
            }
        };
        common::write(&inner, "x", "new");
        common::rename(&outer, "a", "moved").unwrap();
        assert!(outer.about("a", false).is_err() && outer.about("moved/b/x", false).is_ok());
        let changes: Vec<_> = stage.changes().unwrap().into_iter().map(|change| change.kind).collect();
        assert_eq!(changes, [ChangeKind::Moved, ChangeKind::Modified]);
        drop((inner, outer));
        commit(&stage).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("moved/b/x")).unwrap(), "new");
    }
}

#[test]
fn files_that_a_killed_process_left_in_a_stage_are_no_part_of_it() {
    let (folder, stages) = fresh();
    let stage = open(&stages);
    let root = attach(&stage, folder.path());
    for name in ["a", "b", "c"] {
        common::write(&root, name, name);
    }
    fs::write(stages.path().join("one/done"), "..").unwrap();
    drop(root);
    commit(&stage).unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), name);
    }
    drop(stage);
    // A content that is a name of another file, under the number that the next file gets.
    let stage = open(&stages);
    let root = attach(&stage, folder.path());
    common::write(&root, "first", "first");
    let contents = stages.path().join("one/contents");
    let used = fs::read_dir(&contents).unwrap().map(|entry| entry.unwrap().file_name()).next().unwrap();
    let number: u64 = used.to_str().unwrap().parse().unwrap();
    for next in 1..5 {
        fs::hard_link(contents.join(&used), contents.join((number + next).to_string())).unwrap();
    }
    common::write(&root, "second", "2");
    drop(root);
    commit(&stage).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("first")).unwrap(), "first");
}

#[test]
fn a_fifo_is_neither_moved_nor_opened_and_blocks_nothing() {
    let (folder, stages) = fresh();
    let stage = open(&stages);
    rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("p"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    fs::write(folder.path().join("x"), "x").unwrap();
    let root = attach(&stage, folder.path());
    assert!(common::rename(&root, "p", "q").is_err() && common::try_write(&root, "p", "").is_err());
    common::write(&root, "x", "new");
    fs::remove_file(folder.path().join("x")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("x"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let changes = stage.changes().unwrap();
    assert_eq!(changes[0].conflict, Some(Conflict::Changed));
    assert!(stage.before(&changes[0]).is_err());
}

#[test]
fn a_stage_whose_folder_is_gone_is_listed_and_removed() {
    let (folder, stages) = fresh();
    let stage = open(&stages);
    let root = attach(&stage, folder.path());
    common::write(&root, "x", "x");
    drop((root, stage));
    let path = folder.path().to_owned();
    drop(folder);
    let stage = Stages::new(stages.path()).take("one").unwrap();
    assert_eq!(stage.changes().unwrap()[0].conflict, Some(Conflict::Gone));
    fs::create_dir(&path).unwrap();
    assert!(stage.attach(&path, File::open(&path).unwrap(), None).is_err());
    fs::remove_dir(&path).unwrap();
    stage.remove().unwrap();
    assert!(Stages::new(stages.path()).names().unwrap().is_empty());
}

#[test]
fn a_commit_gives_nothing_the_rights_of_its_owner() {
    let (folder, stages) = fresh();
    let path = folder.path().join("x");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    let stage = open(&stages);
    let root = attach(&stage, folder.path());
    common::write(&root, "x", "new");
    drop(root);
    commit(&stage).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
}

/// Leaves a stage whose commit was killed before its one step, and returns the name under which that step works.
fn interrupted(folder: &TempDir, stages: &TempDir) -> &'static str {
    const ASIDE: &str = ".toolcrib-stage-0-";
    let path = folder.path().canonicalize().unwrap().join("x");
    fs::write(&path, "old").unwrap();
    let stage = open(stages);
    let root = attach(&stage, folder.path());
    common::write(&root, "x", "new");
    let contents = fs::read_dir(stages.path().join("one/contents")).unwrap();
    let content: u64 =
        contents.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).next().unwrap();
    let found = fs::metadata(&path).unwrap();
    let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let over = serde_json::json!({
        "kind": "file", "device": found.dev(), "inode": found.ino(), "size": found.size(),
        "modified": nanoseconds(found.mtime(), found.mtime_nsec()) as i64,
        "changed": nanoseconds(found.ctime(), found.ctime_nsec()) as i64,
        "mode": found.mode() & 0o7777, "owner": [found.uid(), found.gid()], "names": found.nlink(),
    });
    let step = serde_json::json!({ "write": { "path": path, "content": content, "over": over } });
    let steps = serde_json::json!({ "aside": ASIDE, "steps": [step] });
    fs::write(stages.path().join("one/steps"), steps.to_string()).unwrap();
    ASIDE
}

#[test]
fn a_commit_goes_on_from_each_state_that_a_kill_leaves() {
    for state in 0..4 {
        let (folder, stages) = fresh();
        let (aside, target) = (folder.path().join(interrupted(&folder, &stages)), folder.path().join("x"));
        let note = |path: &Path| {
            let made = fs::metadata(path).unwrap();
            fs::write(stages.path().join("one/made"), format!("[{},{}]", made.dev(), made.ino())).unwrap();
        };
        match state {
            // Made, not noted.
            1 => fs::write(&aside, "ne").unwrap(),
            // Noted, not exchanged.
            2 => {
                fs::write(&aside, "new").unwrap();
                note(&aside);
            }
            // Exchanged, and the old one not removed.
            3 => {
                fs::rename(&target, &aside).unwrap();
                fs::write(&target, "new").unwrap();
                note(&target);
            }
            _ => {}
        }
        commit(&Stages::new(stages.path()).take("one").unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new", "{state}");
        assert!(!aside.exists(), "{state}");
    }
}

#[test]
fn what_others_saved_during_a_commit_that_was_killed_is_kept() {
    let (folder, stages) = fresh();
    let aside = folder.path().join(interrupted(&folder, &stages));
    // As after an exchange with a file that others had just put there.
    fs::write(&aside, "others").unwrap();
    fs::write(folder.path().join("x"), "new").unwrap();
    let made = fs::metadata(folder.path().join("x")).unwrap();
    fs::write(stages.path().join("one/made"), format!("[{},{}]", made.dev(), made.ino())).unwrap();
    let stage = Stages::new(stages.path()).take("one").unwrap();
    assert!(matches!(commit(&stage), Err(CommitError::Conflict(_, Conflict::Changed))));
    assert_eq!(fs::read_to_string(folder.path().join("x")).unwrap(), "others");
    assert!(!aside.exists());
    drop(stage);
    let stage = Stages::new(stages.path()).take("one").unwrap();
    let left_out = stage.commit(true, None, &mut |_, _| {}).unwrap();
    assert_eq!((left_out.steps, left_out.skipped.len()), (0, 1));
    assert_eq!(fs::read_to_string(folder.path().join("x")).unwrap(), "others");
}

#[test]
fn no_tool_takes_a_name_under_which_a_commit_works() {
    let (folder, stages) = fresh();
    let stage = open(&stages);
    let root = attach(&stage, folder.path());
    let refused = common::try_write(&root, ".toolcrib-stage-one-", "").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::PERM.raw_os_error()));
}

#[test]
fn what_makes_room_is_done_also_at_the_limit() {
    let (folder, stages) = fresh();
    let limits = Limits { entries: 6, ..Limits::default() };
    let stage = Stages::new(stages.path()).open("one", limits).unwrap();
    let root = attach(&stage, folder.path());
    let written = (0..20).take_while(|number| common::try_write(&root, &format!("file-{number}"), "").is_ok()).count();
    assert!(common::try_write(&root, "more", "").is_err());
    common::remove(&root, "file-0").unwrap();
    common::write(&root, "more", "");
    assert_eq!(stage.changes().unwrap().len(), written);
}

#[test]
fn bytes_that_are_written_again_are_no_more_bytes() {
    let (folder, stages) = fresh();
    let limits = Limits { bytes: 1000, ..Limits::default() };
    let stage = Stages::new(stages.path()).open("one", limits).unwrap();
    let root = attach(&stage, folder.path());
    for _ in 0..5 {
        common::write(&root, "x", &"x".repeat(600));
        stage.count_written(600);
    }
    common::write(&root, "y", &"y".repeat(300));
    stage.count_written(300);
    common::write(&root, "z", &"z".repeat(200));
    stage.count_written(200);
    assert!(common::try_write(&root, "more", "").is_err(), "1,100 bytes are held");
}

#[test]
fn a_search_for_other_names_ends_and_says_which_are_left() {
    for (searched, left) in [(10, 0), (1, 1)] {
        let (folder, stages) = fresh();
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("inner/x"), "old").unwrap();
        fs::hard_link(folder.path().join("inner/x"), folder.path().join("inner/y")).unwrap();
        let limits = Limits { searched, ..Limits::default() };
        let stage = Stages::new(stages.path()).open("one", limits).unwrap();
        let root = attach(&stage, folder.path());
        common::write(&root, "inner/x", "new");
        let changes = stage.changes().unwrap();
        assert_eq!(changes[0].other_names, left);
        drop(root);
        commit(&stage).unwrap();
        let other = fs::read_to_string(folder.path().join("inner/y")).unwrap();
        assert_eq!(other, if left == 0 { "new" } else { "old" });
    }
}

#[test]
fn what_is_left_out_of_a_commit_leaves_nothing_behind_and_is_named_after_a_kill_too() {
    let (folder, stages) = fresh();
    let path = folder.path().canonicalize().unwrap();
    let stage = open(&stages);
    let root = attach(&stage, folder.path());
    common::write(&root, "written", "new");
    drop((root, stage));
    for name in ["a", "b", "c"] {
        fs::write(path.join(name), "others").unwrap();
    }
    let link = |name: &str| serde_json::json!({ "makeLink": { "path": path.join(name), "target": "t", "over": null } });
    let steps =
        serde_json::json!({ "aside": ".toolcrib-stage-0-", "steps": [link("a"), link("b"), link("c"), link("d")] });
    fs::write(stages.path().join("one/steps"), steps.to_string()).unwrap();
    // The first was left out before a kill.
    fs::write(stages.path().join("one/done"), "o").unwrap();
    let stage = Stages::new(stages.path()).take("one").unwrap();
    assert!(commit(&stage).is_err());
    let committed = stage.commit(true, None, &mut |_, _| {}).unwrap();
    let left_out: Vec<_> =
        committed.skipped.iter().map(|(path, conflict)| (path.file_name().unwrap(), *conflict)).collect();
    assert_eq!(left_out, ["a", "b", "c"].map(|name| (name.as_ref(), Conflict::Occupied)));
    let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a", "b", "c", "d"]);
}

#[test]
fn names_and_chains_of_links_that_are_too_long_are_refused_as_the_system_does() {
    let (folder, stages) = fresh();
    let stage = open(&stages);
    let root = attach(&stage, folder.path());
    let error = |path: &str| common::try_write(&root, path, "").unwrap_err().raw_os_error().unwrap();
    assert_eq!(error(&"n".repeat(256)), rustix::io::Errno::NAMETOOLONG.raw_os_error());
    common::write(&root, &"n".repeat(255), "");
    common::link(&root, "link-0", "end");
    for number in 1..=40 {
        common::link(&root, &format!("link-{number}"), &format!("link-{}", number - 1));
    }
    common::write(&root, "end", "");
    assert!(root.about("link-39", true).is_ok());
    let refused = root.about("link-40", true).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()));
}

#[test]
fn folders_that_nobody_holds_open_make_room_for_others() {
    let (folder, stages) = fresh();
    for number in 0..50 {
        fs::create_dir(folder.path().join(number.to_string())).unwrap();
    }
    let limits = Limits { entries: 20, ..Limits::default() };
    let stage = Stages::new(stages.path()).open("one", limits).unwrap();
    let root = attach(&stage, folder.path());
    for number in 0..50 {
        assert!(root.about(&number.to_string(), true).is_ok(), "{number}");
    }
    let held: Vec<_> = (0..50).map_while(|number| common::folder(&root, &number.to_string()).ok()).collect();
    assert!((1..20).contains(&held.len()), "{}", held.len());
}
