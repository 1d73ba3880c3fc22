//! Changes of guests in real folders are noted, and taken back.

use std::fs::{self, File};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;
use toolcrib_staging::{History, HistoryLimits, Record, RecordHeader, Recorded, StagedCall, Stages, Undo};

use super::staged_tests::{Op, Side, fill, names, operations};

const LIMITS: HistoryLimits = HistoryLimits { bytes: 1 << 30, file: 1 << 26, age: Duration::from_secs(3600) };

/// Performs operations as one call.
fn call(side: &mut Side, record: &Arc<Record>, id: &str, operations: &[Op]) {
    let notes = record.call(StagedCall { id: id.to_owned(), tool: "t".to_owned() }, None);
    notes.allow(Arc::new(File::open(side.folder.path()).unwrap()));
    side.files.guard.notes = Some(notes.clone());
    operations.iter().for_each(|op| drop(side.apply(op)));
    notes.end();
}

fn plan(history: &History, stages: &TempDir, call: Option<&str>) -> Undo {
    let record = history.records().unwrap().pop().unwrap().id;
    let chosen = [Recorded { record, call: call.map(str::to_owned) }];
    history.undo(&chosen, &Stages::new(stages.path()), false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_are_taken_back_together(calls in prop::collection::vec(operations(), 1..4)) {
        let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let history = History::new(folder.path(), LIMITS);
        let record = history.begin(RecordHeader::default());
        let (mut side, untouched) = (Side::new(false), Side::new(false));
        for (number, operations) in calls.iter().enumerate() {
            call(&mut side, &record, &number.to_string(), operations);
        }
        prop_assert_eq!(record.problem(), None);
        if record.id().is_none() {
            prop_assert_eq!(names(side.folder.path()), names(untouched.folder.path()));
            return Ok(());
        }
        side.files.guard.notes = None;
        drop(record);
        let undo = plan(&history, &stages, None);
        // A file that another call gave a name counts as changed, and one that was removed has lost its other names.
        let has_names = calls.len() > 1 && calls.iter().flatten().any(|op| matches!(op, Op::Name(..)));
        if undo.refused.iter().any(|one| has_names || one.reason.contains("other names")) {
            return Ok(());
        }
        prop_assert!(undo.refused.is_empty(), "{:?}", undo.refused);
        undo.stage.commit(false, None, &mut |_, _| {}).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        prop_assert_eq!(names(side.folder.path()), names(untouched.folder.path()));
    }
}

#[test]
fn a_call_is_taken_back_alone_unless_a_later_one_changed_the_same() {
    let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let history = History::new(folder.path(), LIMITS);
    let record = history.begin(RecordHeader::default());
    let mut side = Side::new(false);
    let write = |path: &str| Op::Open(path.to_owned(), 0b01_1001, false);
    call(&mut side, &record, "first", &[write("x"), write("a/new"), write("c/x")]);
    call(&mut side, &record, "second", &[write("a/x"), Op::RemoveFile("c/x".to_owned())]);
    let text = |path: &str| fs::read_to_string(side.folder.path().join(path)).unwrap();
    assert_eq!((text("x"), text("a/x")), ("more".to_owned(), "more".to_owned()));
    let undo = plan(&history, &stages, Some("first"));
    let refused: Vec<_> = undo.refused.iter().map(|one| one.reason).collect();
    assert_eq!(refused, ["it is gone, or was moved since"]);
    undo.stage.commit(false, None, &mut |_, _| {}).unwrap();
    assert_eq!((text("x"), text("a/x")), ("x".to_owned(), "more".to_owned()));
    assert!(!side.folder.path().join("a/new").exists());
    let undo = plan(&history, &stages, Some("second"));
    assert!(undo.refused.is_empty(), "{:?}", undo.refused);
    undo.stage.commit(false, None, &mut |_, _| {}).unwrap();
    assert_eq!((text("a/x"), text("c/x")), ("a/x".to_owned(), "more".to_owned()));
}

#[test]
fn edits_in_a_folder_that_the_call_has_moved_stay() {
    let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let history = History::new(folder.path(), LIMITS);
    let record = history.begin(RecordHeader::default());
    let mut side = Side::new(false);
    let write = |path: &str| Op::Open(path.to_owned(), 0b01_1001, false);
    let operations = [
        Op::MakeFolder("unpacked".to_owned()),
        write("unpacked/main"),
        write("unpacked/other"),
        write("empty/x"),
        Op::Move("unpacked".to_owned(), "project".to_owned()),
        Op::Move("empty".to_owned(), "moved".to_owned()),
    ];
    fs::write(side.folder.path().join("empty/x"), "x").unwrap();
    call(&mut side, &record, "one", &operations);
    let at = |path: &str| side.folder.path().join(path);
    for path in ["project/main", "moved/x"] {
        fs::write(at(path), "by a person").unwrap();
    }
    let undo = plan(&history, &stages, None);
    let refused: Vec<_> = undo.refused.iter().map(|one| one.path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(refused, ["x", "unpacked", "main"], "{:?}", undo.refused);
    undo.stage.commit(false, None, &mut |_, _| {}).unwrap();
    let kept = ["unpacked/main", "empty/x"].map(|path| fs::read_to_string(at(path)).unwrap());
    assert_eq!(kept, ["by a person", "by a person"]);
    assert!(!at("unpacked/other").exists() && !at("project").exists());
}

#[test]
fn a_call_that_was_killed_is_taken_back_only_if_that_is_asked_for() {
    let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let history = History::new(folder.path(), LIMITS);
    let record = history.begin(RecordHeader::default());
    let mut side = Side::new(false);
    let write = |path: &str| Op::Open(path.to_owned(), 0b01_1001, false);
    call(&mut side, &record, "killed", &[write("x")]);
    side.files.guard.notes = None;
    drop(record);
    // The line that a killed process does not write.
    let id = history.records().unwrap().pop().unwrap().id;
    let journal = folder.path().join(id).join("journal");
    let text = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("[{\"end\"")).collect();
    fs::write(&journal, format!("{}\n", lines.join("\n"))).unwrap();
    assert!(history.records().unwrap()[0].is_cut_off);
    let undo = plan(&history, &stages, None);
    assert_eq!(undo.refused.len(), 1);
    assert!(undo.stage.changes().unwrap().is_empty());
    drop(undo);
    let record = history.records().unwrap().pop().unwrap().id;
    let undo = history.undo(&[Recorded { record, call: None }], &Stages::new(stages.path()), true).unwrap();
    assert!(undo.refused.is_empty());
    undo.stage.commit(false, None, &mut |_, _| {}).unwrap();
    assert_eq!(fs::read_to_string(side.folder.path().join("x")).unwrap(), "x");
    let untouched = TempDir::new().unwrap();
    fill(untouched.path());
    assert_eq!(names(side.folder.path()), names(untouched.path()));
}

#[test]
fn a_folder_at_the_place_of_a_moved_one_has_entries_of_the_same_names() {
    let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let history = History::new(folder.path(), LIMITS);
    let record = history.begin(RecordHeader::default());
    let (mut side, untouched) = (Side::new(false), Side::new(false));
    let operations = [
        Op::Open("c/c".to_owned(), 0b01_1001, false),
        Op::Move("c".to_owned(), "empty".to_owned()),
        Op::MakeFolder("c".to_owned()),
        Op::Link("c/c".to_owned(), "a".to_owned()),
    ];
    call(&mut side, &record, "one", &operations);
    let undo = plan(&history, &stages, None);
    assert!(undo.refused.is_empty(), "{:?}", undo.refused);
    undo.stage.commit(false, None, &mut |_, _| {}).unwrap();
    assert_eq!(names(side.folder.path()), names(untouched.folder.path()));
}
