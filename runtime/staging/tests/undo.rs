//! Commits are taken back, as long as nobody else has changed the files.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test may end in a panic, and uses a part of `common`"
)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use common::{Op, Pair, operations};
use proptest::prelude::*;
use tempfile::TempDir;
use toolcrib_staging::{History, HistoryLimits, Record, RecordHeader, Recorded, StagedCall, Stages, Undo, Withhold};

/// Variables of a child process: the stages, the history, the name of the stage, and the step before which it waits.
const COMMITTED: [&str; 4] =
    ["TOOLCRIB_TEST_STAGES", "TOOLCRIB_TEST_HISTORY", "TOOLCRIB_TEST_STAGE", "TOOLCRIB_TEST_LAST_STEP"];
const LIMITS: HistoryLimits = HistoryLimits { bytes: 1 << 30, file: 1 << 26, age: Duration::from_secs(3600) };

fn begin(history: &History) -> Arc<Record> {
    history.begin(RecordHeader { command: "commit".to_owned(), ..RecordHeader::default() })
}

/// Commits the stage of a pair with a record, and returns the record's name.
fn commit(pair: &mut Pair, history: &History) -> Option<String> {
    let (stage, record) = (pair.stage.clone(), begin(history));
    pair.close();
    stage.commit(false, Some(&record), &mut |_, _| {}).unwrap();
    assert_eq!(record.problem(), None);
    record.id()
}

/// Takes a record back, and returns the name of the record of that.
fn undo(history: &History, stages: &TempDir, id: &str) -> (Option<String>, usize) {
    let undo = plan(history, stages, id);
    let record = begin(history);
    undo.stage.commit(false, Some(&record), &mut |_, _| {}).unwrap();
    (record.id(), undo.refused.len())
}

fn plan(history: &History, stages: &TempDir, id: &str) -> Undo {
    let chosen = [Recorded { record: id.to_owned(), call: None }];
    history.undo(&chosen, &Stages::new(stages.path()), false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_undo_restores_what_was_there_and_its_undo_what_was_committed(operations in operations(40)) {
        let mut pair = Pair::new();
        let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let history = History::new(folder.path(), LIMITS);
        let before = pair.base();
        for (number, op) in operations.iter().enumerate() {
            pair.apply(number, op);
        }
        let shown = pair.real();
        let id = commit(&mut pair, &history);
        prop_assert_eq!(pair.base(), shown.clone());
        let Some(id) = id else {
            prop_assert_eq!(shown, before);
            return Ok(());
        };
        let planned = plan(&history, &stages, &id);
        prop_assert!(planned.refused.is_empty(), "{:?} of {:?}", planned.refused, fs::read_to_string(folder.path().join(&id).join("journal")));
        drop(planned);
        let (undone, _) = undo(&history, &stages, &id);
        prop_assert_eq!(pair.base(), before.clone());
        if let Some(undone) = undone {
            let (_, refused) = undo(&history, &stages, &undone);
            prop_assert_eq!((refused, pair.base()), (0, shown));
        }
    }

    #[test]
    fn commits_are_taken_back_one_after_another(parts in prop::collection::vec(operations(12), 1..4)) {
        let mut pair = Pair::new();
        let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let history = History::new(folder.path(), LIMITS);
        let mut done = Vec::new();
        for operations in &parts {
            let before = pair.base();
            pair.reopen();
            for (number, op) in operations.iter().enumerate() {
                pair.apply(number, op);
            }
            done.extend(commit(&mut pair, &history).map(|id| (id, before)));
        }
        for (id, before) in done.into_iter().rev() {
            let (_, refused) = undo(&history, &stages, &id);
            // A file that got another name since counts as changed.
            if refused > 0 && parts.iter().flatten().any(|op| matches!(op, Op::Name(..))) {
                return Ok(());
            }
            prop_assert_eq!((refused, pair.base()), (0, before));
        }
    }
}

/// A pair with a few committed changes, and the record of them.
fn committed() -> (Pair, TempDir, TempDir, History, String) {
    let mut pair = Pair::new();
    let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let history = History::new(folder.path(), LIMITS);
    let operations = [
        Op::Write("a/x".into(), "new".into()),
        Op::Write("made".into(), "made".into()),
        Op::Remove("x".into()),
        Op::Rename("a/b".into(), "moved".into()),
        Op::MakeFolder("folder".into()),
    ];
    operations.iter().enumerate().for_each(|(number, op)| pair.apply(number, op));
    let id = commit(&mut pair, &history).unwrap();
    (pair, folder, stages, history, id)
}

#[test]
fn contents_modes_and_times_are_those_before() {
    let mut pair = Pair::new();
    let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let history = History::new(folder.path(), LIMITS);
    let at = |name: &str| pair.folder.path().join(name);
    fs::set_permissions(at("x"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(at("empty"), fs::Permissions::from_mode(0o700)).unwrap();
    let facts = |pair: &Pair| {
        ["x", "a/x", "empty"].map(|name| {
            let found = fs::metadata(pair.folder.path().join(name)).unwrap();
            (found.mode(), if found.is_file() { found.mtime_nsec() } else { 0 })
        })
    };
    let before = facts(&pair);
    pair.apply(0, &Op::Remove("x".into()));
    pair.apply(1, &Op::Write("a/x".into(), "new".into()));
    pair.apply(2, &Op::RemoveFolder("empty".into()));
    let id = commit(&mut pair, &history).unwrap();
    assert_eq!(undo(&history, &stages, &id).1, 0);
    assert_eq!(facts(&pair), before);
}

#[test]
fn what_others_changed_since_stays_and_the_rest_is_taken_back() {
    let (pair, _folder, stages, history, id) = committed();
    let at = |name: &str| pair.folder.path().join(name);
    fs::write(at("a/x"), "others").unwrap();
    fs::write(at("x"), "others").unwrap();
    fs::write(at("folder/theirs"), "others").unwrap();
    let undo = plan(&history, &stages, &id);
    let mut refused: Vec<_> = undo
        .refused
        .iter()
        .map(|one| (one.path.strip_prefix(pair.folder.path()).unwrap().to_str().unwrap(), one.reason))
        .collect();
    refused.sort_unstable();
    assert_eq!(
        refused,
        [
            ("a/x", "it has changed since"),
            ("folder", "it contains entries that stay"),
            ("x", "another entry is at its place")
        ]
    );
    undo.stage.clone().commit(false, None, &mut |_, _| {}).unwrap();
    assert_eq!(fs::read_to_string(at("a/x")).unwrap(), "others");
    assert_eq!(fs::read_to_string(at("x")).unwrap(), "others");
    assert!(!at("made").exists() && at("a/b/x").exists() && !at("moved").exists() && at("folder/theirs").exists());
}

#[test]
fn a_folder_that_others_replaced_is_not_touched() {
    let (pair, _folder, stages, history, id) = committed();
    let path = pair.folder.path().to_owned();
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    fs::create_dir(&path).unwrap();
    let undo = plan(&history, &stages, &id);
    assert!(undo.stage.changes().unwrap().is_empty());
    assert!(!undo.refused.is_empty());
    assert!(undo.refused.iter().all(|one| one.reason == "its folder is gone, or is another one by now"));
    fs::remove_dir(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
}

#[test]
fn what_was_too_large_to_be_kept_is_refused_with_its_reason() {
    let mut pair = Pair::new();
    let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let history = History::new(folder.path(), HistoryLimits { file: 10, ..LIMITS });
    fs::write(pair.folder.path().join("x"), "more than ten bytes").unwrap();
    fs::write(pair.copy.path().join("x"), "more than ten bytes").unwrap();
    pair.apply(0, &Op::Remove("x".into()));
    pair.apply(1, &Op::Remove("a/x".into()));
    let id = commit(&mut pair, &history).unwrap();
    let undo = plan(&history, &stages, &id);
    let [refused] = undo.refused.as_slice() else { panic!("{:?}", undo.refused) };
    assert_eq!(refused.reason, "its content before was not kept: it is larger than `history.file`");
    assert_eq!(undo.stage.changes().unwrap().len(), 1);
}

#[test]
fn old_records_make_room_and_none_holds_more_than_the_limit() {
    let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let history = History::new(folder.path(), HistoryLimits { bytes: 250_000, ..LIMITS });
    let mut pair = Pair::new();
    for root in [pair.folder.path(), pair.copy.path()] {
        (0..6).for_each(|number| fs::write(root.join(format!("f{number}")), [b'x'; 100_000]).unwrap());
    }
    let mut ids = Vec::new();
    for number in 0..3 {
        pair.reopen();
        pair.apply(number, &Op::Remove(format!("f{number}")));
        ids.extend(commit(&mut pair, &history));
    }
    let kept: Vec<_> = history.records().unwrap().into_iter().map(|record| record.id).collect();
    assert_eq!(kept, ids[1..], "the oldest made room");
    pair.reopen();
    (3..6).for_each(|number| pair.apply(number, &Op::Remove(format!("f{number}"))));
    let id = commit(&mut pair, &history).unwrap();
    let undo = plan(&history, &stages, &id);
    // One record takes half of the room.
    let reasons: Vec<_> = undo.refused.iter().map(|one| one.reason).collect();
    assert_eq!(reasons, ["its content before was not kept: the history or the disk was full"; 2]);
    // Records that are too old go with the next change.
    drop(undo);
    let aged = History::new(folder.path(), HistoryLimits { age: Duration::ZERO, ..LIMITS });
    std::thread::sleep(Duration::from_millis(20));
    pair.reopen();
    pair.apply(9, &Op::Remove("a/x".into()));
    let last = commit(&mut pair, &aged).unwrap();
    assert_eq!(aged.records().unwrap().into_iter().map(|record| record.id).collect::<Vec<_>>(), [last]);
}

#[test]
fn with_no_bytes_nothing_is_kept() {
    let folder = TempDir::new().unwrap();
    let history = History::new(folder.path().join("history"), HistoryLimits { bytes: 0, ..LIMITS });
    let mut pair = Pair::new();
    pair.apply(0, &Op::Remove("x".into()));
    assert_eq!(commit(&mut pair, &history), None);
    assert!(!folder.path().join("history").exists());
}

/// Commits a stage in a process that is killed: before a step if `waits`, else within one, as it happens. Then another commit goes on.
/// Returns `true` if the first one was interrupted.
fn commit_twice(stages: &Path, history: &Path, name: &str, steps: u64, waits: bool) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .envs(waits.then(|| (COMMITTED[3], steps.to_string())))
        .args(["--exact", "kills_amid_a_commit_and_amid_its_undo_lose_no_file"])
        .env(COMMITTED[0], stages)
        .env(COMMITTED[1], history)
        .env(COMMITTED[2], name)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let done = stages.join(name).join("done");
    while child.try_wait().unwrap().is_none() && fs::metadata(&done).map_or(0, |found| found.len()) < steps {
        std::thread::yield_now();
    }
    let _ = child.kill();
    child.wait().unwrap();
    let Ok(stage) = Stages::new(stages).take(name) else { return false };
    let is_interrupted = stage.is_committing();
    let record = begin(&History::new(history, LIMITS));
    stage.commit(false, Some(&record), &mut |_, _| {}).unwrap();
    is_interrupted
}

#[test]
fn kills_amid_a_commit_and_amid_its_undo_lose_no_file() {
    if let [Some(stages), Some(history), Some(name)] = [COMMITTED[0], COMMITTED[1], COMMITTED[2]].map(std::env::var_os)
    {
        let stage = Stages::new(stages).take(name.to_str().unwrap()).unwrap();
        let last: Option<usize> = std::env::var(COMMITTED[3]).ok().map(|last| last.parse().unwrap());
        let record = begin(&History::new(history, LIMITS));
        let committed = stage.commit(false, Some(&record), &mut |done, _| {
            while last == Some(done) {
                std::thread::park();
            }
        });
        committed.unwrap();
        return;
    }
    let mut interrupted = [0, 0];
    for attempt in 0..100_u64 {
        let mut pair = Pair::new();
        let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let history = History::new(folder.path(), LIMITS);
        let before = pair.base();
        let mut operations: Vec<Op> =
            (0..6).map(|number| Op::Write(format!("new-{number}"), "n".repeat(20_000))).collect();
        operations.extend([
            Op::Write("x".into(), "changed".repeat(9000)),
            Op::Write("a/x".into(), "changed".into()),
            Op::Remove("c/a/b".into()),
            Op::Rename("a".into(), "moved".into()),
            Op::Rename("c".into(), "a".into()),
            Op::Rename("moved".into(), "c".into()),
            Op::RemoveFolder("empty".into()),
            Op::Remove("b".into()),
        ]);
        operations.iter().enumerate().for_each(|(number, op)| pair.apply(number, op));
        let after = pair.real();
        pair.close();
        let (steps, waits) = (attempt % 18, attempt % 2 == 0);
        interrupted[0] += u32::from(commit_twice(pair.stages.path(), folder.path(), "one", steps, waits));
        assert_eq!(pair.base(), after, "{attempt}");
        let [record] = &history.records().unwrap()[..] else { panic!("{attempt}: not one record") };
        let undo = plan(&history, &stages, &record.id);
        assert!(undo.refused.is_empty(), "{attempt}: {:?}", undo.refused);
        let name = undo.stage.name().to_owned();
        drop(undo);
        interrupted[1] += u32::from(commit_twice(stages.path(), folder.path(), &name, steps, waits));
        assert_eq!(pair.base(), before, "{attempt}");
        assert!(history.records().unwrap().iter().all(|record| !record.is_cut_off), "{attempt}");
    }
    assert!(interrupted.iter().all(|times| *times > 25), "{interrupted:?} of 100 commits were interrupted");
}

#[test]
fn a_record_with_a_change_that_could_not_be_noted_is_marked() {
    use std::os::unix::ffi::OsStrExt;
    let folder = TempDir::new().unwrap();
    let history = History::new(folder.path(), LIMITS);
    for is_first in [true, false] {
        let record = begin(&history);
        let call = record.call(StagedCall { id: "one".to_owned(), tool: "t".to_owned() }, None);
        let bad = Path::new(std::ffi::OsStr::from_bytes(b"/folder/\xff"));
        if is_first {
            let _ = call.making(bad);
        }
        let _ = call.making(Path::new("/folder/a"));
        if !is_first {
            let _ = call.making(bad);
        }
        assert_eq!(record.problem(), Some("a path is not Unicode text"));
    }
    let records = history.records().unwrap();
    assert!(records.len() == 2 && records.iter().all(|record| record.is_incomplete), "{records:?}");
}

#[test]
fn at_most_a_thousand_records_stay() {
    let folder = TempDir::new().unwrap();
    let history = History::new(folder.path(), LIMITS);
    for number in 0..1_100_u64 {
        let begun = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let id = format!("{:011x}{number:05x}", begun - 10_000);
        fs::create_dir_all(folder.path().join(&id).join("contents")).unwrap();
        fs::write(folder.path().join(id).join("journal"), "").unwrap();
    }
    let mut pair = Pair::new();
    pair.apply(0, &Op::Remove("x".into()));
    let id = commit(&mut pair, &history).unwrap();
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!((left.len(), left.last()), (1_000, Some(&id)));
    assert!(left[0].ends_with("00065"), "the oldest are gone: {}", left[0]);
}

#[test]
fn undos_wait_for_each_other_and_one_that_was_not_begun_is_removed() {
    let (_pair, folder, stages, history, id) = committed();
    let lock = history.lock_undo().unwrap();
    let other = History::new(folder.path(), LIMITS);
    assert_eq!(other.lock_undo().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(lock);
    assert!(other.lock_undo().is_ok());
    let all = Stages::new(stages.path());
    let [first, second] = [0, 1].map(|_| {
        let undo = plan(&history, &stages, &id);
        undo.stage.name().to_owned()
    });
    fs::write(stages.path().join(&second).join("steps"), r#"{"aside":"a","steps":[]}"#).unwrap();
    assert_eq!(history.sweep(&all).unwrap(), Some(second.clone()));
    assert!(!stages.path().join(first).exists() && stages.path().join(second).exists());
}

#[test]
fn a_content_that_is_withheld_is_not_kept() {
    let (folder, work) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let history = History::new(folder.path(), LIMITS);
    fs::write(work.path().join("a"), "secret").unwrap();
    fs::write(work.path().join("b"), "public").unwrap();
    let record = begin(&history);
    let withhold = Withhold::new(|file: &mut fs::File| std::io::read_to_string(file).unwrap().contains("secret"));
    let call = record.call(StagedCall { id: "one".to_owned(), tool: "t".to_owned() }, Some(withhold));
    for name in ["a", "b"] {
        let dir = fs::File::open(work.path()).unwrap();
        let _ = call.removing(&dir, name, &work.path().join(name), None);
    }
    assert_eq!(record.lost(), 1);
    let contents = folder.path().join(record.id().unwrap()).join("contents");
    let kept: Vec<_> = fs::read_dir(contents).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    assert_eq!(kept, [b"public"]);
}
