//! Commits: conflicts with others, kills within, folders that are gone, and limits.

#![cfg(target_os = "linux")]

mod common;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use common::{Op, Pair, attach, dump};
use tempfile::TempDir;
use toolcrib_staging::{ChangeKind, CommitError, Committed, Conflict, Limits, Stage, Stages};

/// Variable that names the stage which a process of this test commits.
const COMMITTED: &str = "TOOLCRIB_TEST_COMMITTED_STAGE";

fn commit(stage: &Arc<Stage>) -> Result<Committed, CommitError> {
    stage.clone().commit(false, &mut |_, _| {})
}

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
    let limits = Limits { bytes: 1500, entries: 8 };
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
        commit(&stage).unwrap();
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
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_kill_at_any_moment_of_a_commit_loses_no_file"])
            .env(COMMITTED, pair.stages.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Once it has begun, after so many steps.
        let done = pair.stages.path().join("one/done");
        let steps = u64::from(attempt % 24);
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
    assert!(stage.attach(&path, File::open(&path).unwrap()).is_err());
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
    let left_out = stage.commit(true, &mut |_, _| {}).unwrap();
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
    assert!(common::try_write(&root, "more", "").is_err() && stage.begin_call("1", "tool").is_ok());
    common::remove(&root, "file-0").unwrap();
    common::write(&root, "more", "");
    assert_eq!(stage.changes().unwrap().len(), written);
}
