//! Commits: conflicts with others, kills within, folders that are gone, and limits.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test may end in a panic, and uses a part of `common`"
)]

mod common;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use common::{Op, Pair, attach, commit, dump};
use tempfile::TempDir;
use toolcrib_staging::{ChangeKind, CommitError, Conflict, Limits, Stages};

/// Variable that names the stage which a process of this test commits.
const COMMITTED: &str = "TOOLCRIB_TEST_COMMITTED_STAGE";
/// Variable that names the step before which that process waits.
const LAST_STEP: &str = "TOOLCRIB_TEST_LAST_STEP";

/// Returns the conflict at a path, as the list of changes and as the commit has it.
fn conflict(pair: &Pair, path: &str) -> Option<Conflict> {
    let at = pair.folder.path().canonicalize().unwrap().join(path);
    let changes = pair.stage.changes().unwrap();
    let listed = changes.iter().find(|change| change.path == at).and_then(|change| change.conflict);
    let before = dump(pair.folder.path());
    match commit(&pair.stage) {
        Err(CommitError::Conflict(conflicting, conflict)) => {
            assert_eq!((conflicting, Some(conflict)), (at, listed));
        }
        other => assert!(listed.is_none(), "{other:?}"),
    }
    if listed.is_some() {
        assert_eq!(dump(pair.folder.path()), before, "nothing was changed");
    }
    listed
}

#[test]
fn what_others_have_changed_is_a_conflict_and_stays() {
    type Case = (Op, &'static str, fn(&Path), Conflict);
    let written = |path: &str| Op::Write(path.into(), "new".into());
    let cases: [Case; 9] = [
        (written("x"), "x", |folder| fs::write(folder.join("x"), "others").unwrap(), Conflict::Changed),
        (written("x"), "x", |folder| fs::remove_file(folder.join("x")).unwrap(), Conflict::Gone),
        (Op::Remove("x".into()), "x", |folder| fs::write(folder.join("x"), "others").unwrap(), Conflict::Changed),
        (
            Op::Rename("x".into(), "z".into()),
            "z",
            |folder| fs::write(folder.join("z"), "").unwrap(),
            Conflict::Occupied,
        ),
        (
            Op::Rename("x".into(), "z".into()),
            "z",
            |folder| fs::write(folder.join("x"), "others").unwrap(),
            Conflict::Changed,
        ),
        (written("new"), "new", |folder| fs::create_dir(folder.join("new")).unwrap(), Conflict::Occupied),
        (written("empty/new"), "empty/new", |folder| fs::remove_dir(folder.join("empty")).unwrap(), Conflict::Gone),
        (
            Op::RemoveFolder("empty".into()),
            "empty",
            |folder| fs::write(folder.join("empty/y"), "").unwrap(),
            Conflict::NotEmpty,
        ),
        // Another file under the same name, with the same size, time and content.
        (
            written("x"),
            "x",
            |folder| {
                let (path, other) = (folder.join("x"), folder.join("other"));
                let times = fs::FileTimes::new().set_modified(fs::metadata(&path).unwrap().modified().unwrap());
                fs::write(&other, "x").unwrap();
                File::options().write(true).open(&other).unwrap().set_times(times).unwrap();
                fs::rename(&other, &path).unwrap();
            },
            Conflict::Changed,
        ),
    ];
    for (number, (op, path, change, expected)) in cases.into_iter().enumerate() {
        let mut pair = Pair::new();
        pair.apply(number, &op);
        change(pair.folder.path());
        assert_eq!(conflict(&pair, path), Some(expected), "{number}");
    }
}

#[test]
fn a_content_whose_time_was_set_back_is_a_conflict() {
    let mut pair = Pair::new();
    pair.apply(0, &Op::Write("x".into(), "new".into()));
    let path = pair.folder.path().join("x");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "y").unwrap();
    let times = fs::FileTimes::new().set_modified(modified);
    File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    assert_eq!(conflict(&pair, "x"), Some(Conflict::Changed));
}

#[test]
fn a_change_beside_is_no_conflict_and_stays() {
    let mut pair = Pair::new();
    pair.apply(0, &Op::Write("x".into(), "new".into()));
    pair.apply(1, &Op::Rename("a".into(), "moved".into()));
    fs::write(pair.folder.path().join("a/added"), "others").unwrap();
    fs::write(pair.folder.path().join("a/b/x"), "others").unwrap();
    assert_eq!(conflict(&pair, "x"), None);
    for path in ["moved/added", "moved/b/x"] {
        assert_eq!(fs::read_to_string(pair.folder.path().join(path)).unwrap(), "others");
    }
}

#[test]
fn a_dropped_conflict_lets_the_rest_be_committed() {
    let mut pair = Pair::new();
    pair.apply(0, &Op::Write("x".into(), "new".into()));
    pair.apply(1, &Op::Write("a/x".into(), "new".into()));
    fs::write(pair.folder.path().join("x"), "others").unwrap();
    let conflicting: Vec<_> =
        pair.stage.changes().unwrap().into_iter().filter(|change| change.conflict.is_some()).collect();
    assert_eq!(pair.stage.withdraw(&conflicting).unwrap(), []);
    commit(&pair.stage).unwrap();
    let read = |path: &str| fs::read_to_string(pair.folder.path().join(path)).unwrap();
    assert_eq!((read("x"), read("a/x")), ("others".to_owned(), "new".to_owned()));
}

#[test]
fn a_commit_keeps_rights_names_and_times() {
    let mut pair = Pair::new();
    let at = |path: &str| pair.folder.path().join(path);
    fs::set_permissions(at("a/x"), fs::Permissions::from_mode(0o751)).unwrap();
    let linked = fs::metadata(at("c/x")).unwrap().nlink();
    let old = SystemTime::now() - Duration::from_secs(86_400);
    File::options().write(true).open(at("c/a/b")).unwrap().set_times(fs::FileTimes::new().set_modified(old)).unwrap();
    pair.apply(0, &Op::Write("a/x".into(), "new".into()));
    pair.apply(1, &Op::Write("c/x".into(), "new".into()));
    pair.apply(2, &Op::Rename("c/a/b".into(), "b2".into()));
    commit(&pair.stage).unwrap();
    let at = |path: &str| fs::metadata(pair.folder.path().join(path)).unwrap();
    assert_eq!(at("a/x").mode() & 0o7777, 0o751);
    assert_eq!((at("c/x").nlink(), at("c/x").ino()), (linked, at("a/c").ino()));
    assert_eq!(at("b2").modified().unwrap(), old);
}

#[test]
fn a_file_keeps_its_rights_under_another_name() {
    for is_changed in [false, true] {
        let mut pair = Pair::new();
        for folder in [pair.folder.path(), pair.copy.path()] {
            fs::set_permissions(folder.join("x"), fs::Permissions::from_mode(0o600)).unwrap();
        }
        pair.apply(0, &Op::Name("x".into(), "name".into()));
        pair.apply(1, &Op::Remove("x".into()));
        pair.apply(2, &Op::Name("name".into(), "a/third".into()));
        pair.apply(3, &Op::Rename("name".into(), "moved".into()));
        if is_changed {
            pair.apply(4, &Op::Append("moved".into(), "more".into()));
        }
        commit(&pair.stage).unwrap();
        assert_eq!(dump(pair.folder.path()), dump(pair.copy.path()));
        for name in ["moved", "a/third"] {
            assert_eq!(fs::metadata(pair.folder.path().join(name)).unwrap().mode() & 0o7777, 0o600, "{name}");
        }
    }
}

#[test]
fn a_folder_that_was_replaced_is_not_written() {
    let pair = {
        let mut pair = Pair::new();
        pair.apply(0, &Op::Write("x".into(), "new".into()));
        pair.close();
        pair
    };
    let Pair { stages, folder, stage, .. } = pair;
    drop(stage);
    let (path, elsewhere) = (folder.path().to_owned(), TempDir::new().unwrap());
    fs::rename(&path, elsewhere.path().join("moved")).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("x"), "x").unwrap();
    let stage = Stages::new(stages.path()).take("one").unwrap();
    assert_eq!(stage.lost().len(), 1);
    assert!(matches!(commit(&stage), Err(CommitError::Conflict(_, Conflict::Gone))));
    assert_eq!(fs::read_to_string(path.join("x")).unwrap(), "x");
}

#[test]
fn a_link_in_place_of_a_folder_is_not_followed() {
    let mut pair = Pair::new();
    pair.apply(0, &Op::Write("c/new".into(), "new".into()));
    let (at, outside) = (pair.folder.path(), TempDir::new().unwrap());
    fs::rename(at.join("c"), at.join("c2")).unwrap();
    symlink(outside.path(), at.join("c")).unwrap();
    assert!(commit(&pair.stage).is_err());
    assert!(fs::read_dir(outside.path()).unwrap().next().is_none());
}

#[test]
fn two_stages_over_one_folder_know_nothing_of_each_other() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("x"), "x").unwrap();
    let stages = TempDir::new().unwrap();
    let open = |name: &str| Stages::new(stages.path()).open(name, Limits::default()).unwrap();
    let (one, other) = (open("one"), open("other"));
    for (stage, name) in [(&one, "first"), (&other, "second")] {
        let root = attach(stage, folder.path());
        assert!(root.about(if name == "first" { "second" } else { "first" }, true).is_err());
        common::write(&root, "x", name);
        common::write(&root, name, name);
    }
    commit(&one).unwrap();
    let changes = other.changes().unwrap();
    let conflicts: Vec<_> = changes.iter().map(|change| (change.kind, change.conflict)).collect();
    assert_eq!(conflicts, [(ChangeKind::Added, None), (ChangeKind::Modified, Some(Conflict::Changed))]);
    assert!(commit(&other).is_err());
    assert_eq!(fs::read_to_string(folder.path().join("x")).unwrap(), "first");
}

#[test]
fn a_stage_is_open_once_and_can_be_read_meanwhile() {
    let mut pair = Pair::new();
    pair.apply(0, &Op::Write("x".into(), "new".into()));
    let stages = Stages::new(pair.stages.path());
    assert_eq!(stages.open("one", Limits::default()).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(stages.take("one").unwrap_err().kind(), ErrorKind::WouldBlock);
    let reader = stages.read("one").unwrap();
    assert_eq!(reader.changes().unwrap().len(), 1);
    assert!(reader.remove().is_err() && commit(&reader).is_err());
    for name in ["", "..", "A", "a/b", "-x", &"a".repeat(65)] {
        assert_eq!(stages.open(name, Limits::default()).unwrap_err().kind(), ErrorKind::InvalidInput, "{name:?}");
    }
}

#[test]
fn limits_of_bytes_and_entries_hold_and_what_was_written_stays() {
    let stages = TempDir::new().unwrap();
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("large"), [0; 1000]).unwrap();
    let limits = Limits { bytes: 1500, entries: 8, ..Limits::default() };
    let stage = Stages::new(stages.path()).open("small", limits).unwrap();
    let root = attach(&stage, folder.path());
    common::write(&root, "one", &"x".repeat(600));
    stage.count_written(600);
    // Its copy would be too large together with the first.
    let refused = common::try_write(&root, "large", "").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::DQUOT.raw_os_error()));
    assert_eq!(fs::metadata(folder.path().join("large")).unwrap().len(), 1000);
    let written = (0..20).take_while(|number| common::try_write(&root, &format!("file-{number}"), "").is_ok()).count();
    assert!((1..8).contains(&written), "{written}");
    assert_eq!(stage.changes().unwrap().len(), 1 + written);
}

#[test]
fn a_kill_at_any_moment_of_a_commit_loses_no_file() {
    if let Some(stages) = std::env::var_os(COMMITTED) {
        let stage = Stages::new(stages).take("one").unwrap();
        let last: Option<usize> = std::env::var(LAST_STEP).ok().map(|last| last.parse().unwrap());
        let committed = stage.commit(false, None, &mut |done, _| {
            while last == Some(done) {
                std::thread::park();
            }
        });
        committed.unwrap();
        return;
    }
    let mut interrupted = 0;
    for attempt in 0..200_u32 {
        let mut pair = Pair::new();
        for number in 0..12 {
            pair.apply(number, &Op::Write(format!("new-{number}"), "n".repeat(20_000)));
        }
        pair.apply(12, &Op::Write("x".into(), "changed".repeat(9000)));
        pair.apply(13, &Op::Write("a/x".into(), "changed".into()));
        pair.apply(14, &Op::Remove("c/a/b".into()));
        pair.apply(15, &Op::Rename("a".into(), "moved".into()));
        pair.apply(16, &Op::Rename("c".into(), "a".into()));
        pair.apply(17, &Op::Rename("moved".into(), "c".into()));
        pair.apply(18, &Op::RemoveFolder("empty".into()));
        pair.apply(19, &Op::Write("c/x".into(), "again".into()));
        let (before, after) = (dump(pair.folder.path()), dump(pair.copy.path()));
        pair.close();
        // Every other one waits for its kill between two steps; the rest are killed within them, as it happens.
        let steps = u64::from(attempt % 24);
        let waits = attempt % 2 == 0;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .envs(waits.then(|| (LAST_STEP, steps.to_string())))
            .args(["--exact", "a_kill_at_any_moment_of_a_commit_loses_no_file"])
            .env(COMMITTED, pair.stages.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let done = pair.stages.path().join("one/done");
        while child.try_wait().unwrap().is_none() && fs::metadata(&done).map_or(0, |found| found.len()) < steps {
            std::thread::yield_now();
        }
        let _ = child.kill();
        child.wait().unwrap();
        // Each file is what it was or what it becomes, under the names of before or after.
        let contents = |dump: &common::Dump| dump.values().map(|(_, bytes, _)| bytes.clone()).collect::<Vec<_>>();
        let known: Vec<_> = [contents(&before), contents(&after)].concat();
        for (path, (_, bytes, _)) in dump(pair.folder.path()) {
            let is_unfinished = path.contains(".toolcrib-stage-");
            assert!(known.contains(&bytes) || is_unfinished, "{attempt}: {path}");
        }
        match Stages::new(pair.stages.path()).take("one") {
            Ok(stage) => {
                interrupted += u32::from(stage.is_committing());
                commit(&stage).unwrap();
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
        }
        assert_eq!(dump(pair.folder.path()), after, "{attempt}");
    }
    assert!(interrupted > 50, "{interrupted} of 200 commits were interrupted");
}
