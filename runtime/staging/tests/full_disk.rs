//! Stages, commits and undos whose disk is full: an error says so, each file is old or new, and the rest is done once there is room.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    dead_code,
    reason = "a test may end in a panic, says what it skips, and uses a part of `common`"
)]

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use common::{Dump, Op, Pair, commit, dump};
use tempfile::TempDir;
use toolcrib_staging::{
    CommitError, Committed, History, HistoryLimits, Record, RecordHeader, Recorded, Stage, Stages, Undo,
};

/// Variable of a process that has a small disk: its folder.
const DISK: &str = "TOOLCRIB_TEST_DISK";
/// Bytes of the small disk.
const SIZE: u64 = 1 << 20;
/// Bytes of changed files, so that the commit needs room, or its undo.
const LARGER: usize = 70_000;
const SMALLER: usize = 100;
/// Bytes that a small disk gives out at once.
const PAGE: u64 = 4096;
const LIMITS: HistoryLimits = HistoryLimits { bytes: 1 << 30, file: 1 << 26, age: Duration::from_secs(3600) };

/// Runs a test with the folder of a small disk, in a process with mounts of its own.
fn on_a_small_disk(name: &str, test: impl FnOnce(&Disk)) {
    if let Some(disk) = std::env::var_os(DISK) {
        return test(&Disk(disk.into()));
    }
    let folder = TempDir::new().unwrap();
    let script = format!(r#"mount -t tmpfs -o size={SIZE} none "$0" || exit 77; exec "$@""#);
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", &script]).arg(folder.path()).arg(std::env::current_exe().unwrap());
    let ran = command.args(["--exact", name, "--nocapture"]).env(DISK, folder.path()).output();
    match ran {
        Ok(ran) if ran.status.code() != Some(77) && !ran.stderr.starts_with(b"unshare") => {
            let said = [ran.stdout, ran.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(ran.status.success() && said.contains("1 passed"), "{said}");
        }
        _ => eprintln!("skipped: no right to mount here"),
    }
}

/// Small disk.
struct Disk(PathBuf);

impl Disk {
    /// Fills the disk but for so many bytes.
    fn fill(&self, free: u64) {
        self.make_room();
        let mut file = File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; PAGE as usize]).is_ok() {}
        let len = file.metadata().unwrap().len();
        file.set_len((len / PAGE * PAGE).saturating_sub(free)).unwrap();
    }

    fn make_room(&self) {
        let _ = fs::remove_file(self.0.join("filler"));
    }
}

/// Returns `true` if a commit was stopped by a full disk.
fn is_full<T>(result: &Result<T, CommitError>) -> bool {
    matches!(result, Err(CommitError::System(_, error)) if error.kind() == ErrorKind::StorageFull)
}

/// Asserts that each file is what it was or what it becomes, and that nothing unfinished is beside them.
#[track_caller]
fn assert_old_or_new(now: &Dump, old: &Dump, new: &Dump) {
    for (path, (kind, bytes, _)) in now {
        assert!(!path.contains(".toolcrib-stage-"), "{path} was left");
        let known = [old, new].map(|dump| dump.values().any(|(other, known, _)| (other, known) == (kind, bytes)));
        assert!(known.contains(&true), "{path} is neither old nor new: {} bytes", bytes.len());
    }
    for (path, (_, bytes, _)) in old {
        let stays = |dump: &Dump| dump.values().any(|(_, other, _)| other == bytes);
        assert!(!stays(new) || stays(now), "the content of {path} is lost");
    }
}

/// Dump without what fills the disk.
fn shown(folder: &Path) -> Dump {
    dump(folder).into_iter().filter(|(path, _)| path != "/filler").collect()
}

/// Number and size of the files in which a stage keeps contents.
fn contents(stage: &Stage) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(stage.path().join("contents")).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())).collect()
}

#[test]
fn changes_that_do_not_fit_into_a_stage_are_refused_and_those_before_stay() {
    on_a_small_disk("changes_that_do_not_fit_into_a_stage_are_refused_and_those_before_stay", |disk| {
        let mut pair = Pair::with_stages(TempDir::new_in(&disk.0).unwrap());
        let before = pair.base();
        for number in 0..5 {
            pair.apply(number, &Op::Write(format!("new-{number}"), "n".repeat(20_000)));
            pair.apply(number, &Op::Rename(format!("new-{number}"), format!("a/new-{number}")));
        }
        disk.fill(0);
        type Change = fn(String) -> Op;
        let changes: [Change; 7] = [
            Op::MakeFolder,
            Op::Create,
            |name| Op::Link(name, "x".into()),
            |name| Op::Name("a/new-0".into(), name),
            |name| Op::Write(name, "n".repeat(100)),
            |_| Op::Append("c/x".into(), "more".into()),
            |name| Op::Rename("a/new-1".into(), name),
        ];
        for (kind, change) in changes.into_iter().enumerate() {
            let mut refused = 0;
            for number in 0..200 {
                let (seen, kept) = (pair.staged(), contents(&pair.stage));
                let op = change(format!("full-{kind}-{number}"));
                match pair.apply_staged(&op) {
                    // The last page that the journal has still has room.
                    Ok(_) => {
                        pair.apply_real(&op).unwrap();
                        // What is moved has the next name.
                        let (from, to) = ("a/new-1", format!("full-{kind}-{number}"));
                        if matches!(op, Op::Rename(..)) {
                            pair.apply(number, &Op::Rename(to, from.into()));
                        }
                        continue;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::StorageFull, "{op:?}"),
                }
                refused += 1;
                // A file that was made before its content did not fit is there, and empty.
                if let Op::Write(name, _) = &op
                    && pair.staged().contains_key(&format!("/{name}"))
                {
                    pair.apply_real(&Op::Create(name.clone())).unwrap();
                } else {
                    assert_eq!(pair.staged(), seen, "{op:?}");
                    assert_eq!(contents(&pair.stage), kept, "{op:?} leaves nothing");
                }
                if refused == 3 {
                    break;
                }
            }
            assert!(refused > 0, "{kind}");
            disk.make_room();
            pair.apply(kind, &Op::MakeFolder(format!("room-{kind}")));
            disk.fill(0);
            pair.reopen();
            assert_eq!(pair.staged(), pair.real(), "{kind}");
        }
        assert_eq!(pair.base(), before, "the folder has changed");
        disk.make_room();
        let shown = pair.real();
        commit(&pair.stage).unwrap();
        assert_eq!(pair.base(), shown);
    });
}

#[test]
fn a_copy_that_does_not_fit_into_a_stage_takes_no_room() {
    on_a_small_disk("a_copy_that_does_not_fit_into_a_stage_takes_no_room", |disk| {
        let mut pair = Pair::with_stages(TempDir::new_in(&disk.0).unwrap());
        for (name, other) in [("large", None), ("named", Some("other-name"))] {
            for folder in [pair.folder.path(), pair.copy.path()] {
                fs::write(folder.join(name), vec![b'l'; 600_000]).unwrap();
                other.iter().for_each(|other| fs::hard_link(folder.join(name), folder.join(other)).unwrap());
            }
            disk.fill(300_000);
            let kept = contents(&pair.stage);
            let error = pair.apply_staged(&Op::Append(name.into(), "more".into())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            assert_eq!(contents(&pair.stage), kept, "{name}");
            // The room is there for others.
            pair.apply(0, &Op::Write(format!("small-{name}"), "s".repeat(100_000)));
            pair.reopen();
            assert_eq!(pair.staged(), pair.real());
            disk.make_room();
            pair.apply(1, &Op::Append(name.into(), "more".into()));
            assert_eq!(pair.staged(), pair.real());
            pair.apply(2, &Op::Remove(name.into()));
        }
    });
}

#[test]
fn a_copy_that_cannot_be_noted_takes_no_room() {
    on_a_small_disk("a_copy_that_cannot_be_noted_takes_no_room", |disk| {
        let mut pair = Pair::with_stages(TempDir::new_in(&disk.0).unwrap());
        let mut refused = 0;
        for number in 0..60 {
            let (name, moved) = (format!("small-{number}"), format!("a/small-{number}"));
            for folder in [pair.folder.path(), pair.copy.path()] {
                fs::write(folder.join(&name), "small").unwrap();
            }
            disk.make_room();
            pair.apply(number, &Op::Rename(name, moved.clone()));
            // Room for the copy, and none for the next page of the journal.
            disk.fill(PAGE);
            let (kept, op) = (contents(&pair.stage), Op::Append(moved, "more".into()));
            match pair.apply_staged(&op) {
                Ok(_) => drop(pair.apply_real(&op).unwrap()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::StorageFull);
                    assert_eq!(contents(&pair.stage), kept, "{number}");
                    refused += 1;
                }
            }
        }
        assert!((1..60).contains(&refused), "{refused}");
        assert_eq!(pair.staged(), pair.real());
    });
}

/// A pair whose folder holds files of 60 KB, with staged changes of all kinds: files of another size, new ones, moves and
/// removals.
fn changed(mut pair: Pair, size: usize) -> (Pair, Dump, Dump) {
    for folder in [pair.folder.path(), pair.copy.path()] {
        (0..4).for_each(|number| fs::write(folder.join(format!("old-{number}")), [b'0' + number; 60_000]).unwrap());
    }
    pair.apply(0, &Op::MakeFolder("made".into()));
    for number in 0..4 {
        pair.apply(number, &Op::Write(format!("old-{number}"), "w".repeat(size + number)));
        pair.apply(number, &Op::Write(format!("made/new-{number}"), "n".repeat(size + number)));
    }
    pair.apply(1, &Op::Rename("a".into(), "moved".into()));
    pair.apply(2, &Op::Rename("c".into(), "a".into()));
    pair.apply(3, &Op::Remove("x".into()));
    pair.apply(4, &Op::Write("a/x".into(), "two names".into()));
    pair.apply(5, &Op::Link("link".into(), "old-0".into()));
    pair.apply(6, &Op::Rename("old-3".into(), "moved/b/x".into()));
    let (old, new) = (dump(pair.folder.path()), dump(pair.copy.path()));
    (pair, old, new)
}

/// Commits a stage with more and more room on the disk, until all is done. Returns how often it was stopped.
fn commit_step_by_step(
    take: &dyn Fn() -> std::io::Result<Arc<Stage>>,
    commit: &dyn Fn(&Arc<Stage>) -> Result<Committed, CommitError>,
    (folder, disk): (&Path, &Disk),
    (old, new): (&Dump, &Dump),
) -> usize {
    let (mut stopped, mut free) = (0, 0);
    while let Ok(stage) = take() {
        disk.fill(free);
        let committed = commit(&stage);
        if committed.is_err() {
            assert!(is_full(&committed), "{committed:?}");
            stopped += 1;
        }
        assert_old_or_new(&shown(folder), old, new);
        free += PAGE;
        assert!(free < SIZE, "{committed:?}");
    }
    disk.make_room();
    assert_eq!(kinds(&shown(folder)), kinds(new));
    stopped
}

#[test]
fn a_commit_into_a_full_disk_is_stopped_between_two_files_and_goes_on() {
    on_a_small_disk("a_commit_into_a_full_disk_is_stopped_between_two_files_and_goes_on", |disk| {
        let (mut pair, old, new) = changed(Pair::in_folder(disk.0.clone()), LARGER);
        pair.close();
        disk.fill(0);
        // Twice in one process, too.
        let stage = Stages::new(pair.stages.path()).take("one").unwrap();
        for _ in 0..2 {
            let stopped = commit(&stage);
            assert!(is_full(&stopped) && stage.is_committing(), "{stopped:?}");
            assert_old_or_new(&shown(&disk.0), &old, &new);
        }
        drop(stage);
        let take = || Stages::new(pair.stages.path()).take("one");
        let stopped = commit_step_by_step(&take, &commit, (&disk.0, disk), (&old, &new));
        assert!(stopped > 3, "stopped {stopped} times");
        assert_eq!(shown(&disk.0), new, "with the names of each file");
    });
}

#[test]
fn a_commit_of_a_stage_on_a_full_disk_is_stopped_between_two_files_and_goes_on() {
    on_a_small_disk("a_commit_of_a_stage_on_a_full_disk_is_stopped_between_two_files_and_goes_on", |disk| {
        let (mut pair, old, new) = changed(Pair::with_stages(TempDir::new_in(&disk.0).unwrap()), LARGER);
        pair.close();
        let take = || Stages::new(pair.stages.path()).take("one");
        let stopped = commit_step_by_step(&take, &commit, (pair.folder.path(), disk), (&old, &new));
        assert!(stopped > 0);
    });
}

fn begin(history: &History) -> Arc<Record> {
    history.begin(RecordHeader { command: "commit".to_owned(), ..RecordHeader::default() })
}

/// Commits a pair with a record, and returns the name of the record.
fn commit_with_record(pair: &mut Pair, history: &History) -> Option<String> {
    let (stage, record) = (pair.stage.clone(), begin(history));
    pair.close();
    stage.commit(false, Some(&record), &mut |_, _| {}).unwrap();
    record.id()
}

fn undo(history: &History, stages: &Path, id: &str) -> std::io::Result<Undo> {
    history.undo(&[Recorded { record: id.to_owned(), call: None }], &Stages::new(stages), false)
}

#[test]
fn an_undo_into_a_full_disk_is_stopped_between_two_files_and_goes_on() {
    on_a_small_disk("an_undo_into_a_full_disk_is_stopped_between_two_files_and_goes_on", |disk| {
        let (mut pair, old, new) = changed(Pair::in_folder(disk.0.clone()), SMALLER);
        let (folder, stages) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let history = History::new(folder.path(), LIMITS);
        let id = commit_with_record(&mut pair, &history).unwrap();
        assert_eq!(shown(&disk.0), new);
        let planned = undo(&history, stages.path(), &id).unwrap();
        assert!(planned.refused.is_empty(), "{:?}", planned.refused);
        let name = planned.stage.name().to_owned();
        drop(planned);
        let take = || Stages::new(stages.path()).take(&name);
        let commit = |stage: &Arc<Stage>| stage.clone().commit(false, Some(&begin(&history)), &mut |_, _| {});
        let stopped = commit_step_by_step(&take, &commit, (&disk.0, disk), (&new, &old));
        assert!(stopped > 3, "stopped {stopped} times");
    });
}

#[test]
fn an_undo_whose_stage_is_on_a_full_disk_changes_nothing_and_is_done_later() {
    on_a_small_disk("an_undo_whose_stage_is_on_a_full_disk_changes_nothing_and_is_done_later", |disk| {
        let (mut pair, old, new) = changed(Pair::new(), LARGER);
        let folder = TempDir::new().unwrap();
        let history = History::new(folder.path(), LIMITS);
        let id = commit_with_record(&mut pair, &history).unwrap();
        let stages = disk.0.join("stages");
        for free in [0, 2 * PAGE, 20 * PAGE] {
            disk.fill(free);
            let error = undo(&history, &stages, &id).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::StorageFull, "{free}");
            assert_eq!(dump(pair.folder.path()), new, "{free}");
            // What it has begun goes with the next one, also while the disk is full.
            let stages = Stages::new(&stages);
            assert_eq!(history.sweep(&stages).unwrap(), None, "{free}");
            assert_eq!(stages.names().unwrap(), Vec::<String>::new(), "{free}");
        }
        disk.make_room();
        let planned = undo(&history, &stages, &id).unwrap();
        assert!(planned.refused.is_empty(), "{:?}", planned.refused);
        commit(&planned.stage).unwrap();
        assert_eq!(kinds(&dump(pair.folder.path())), kinds(&old));
    });
}

#[test]
fn a_commit_that_a_full_disk_cannot_note_is_done_and_says_so() {
    on_a_small_disk("a_commit_that_a_full_disk_cannot_note_is_done_and_says_so", |disk| {
        for pages in [0, 1, 2, 10, 30] {
            let (mut pair, old, new) = changed(Pair::new(), LARGER);
            let stages = TempDir::new().unwrap();
            let history = History::new(disk.0.join(format!("history-{pages}")), LIMITS);
            disk.fill(pages * PAGE);
            let (stage, record) = (pair.stage.clone(), begin(&history));
            pair.close();
            stage.commit(false, Some(&record), &mut |_, _| {}).unwrap();
            assert!(record.problem().is_some() || record.lost() > 0, "{pages}");
            assert_eq!(dump(pair.folder.path()), new, "{pages}");
            let id = record.id();
            drop(record);
            disk.make_room();
            // What was noted is taken back, and nothing else is made up.
            if let Some(planned) = id.and_then(|id| undo(&history, stages.path(), &id).ok()) {
                commit(&planned.stage).unwrap();
                assert_old_or_new(&dump(pair.folder.path()), &new, &old);
            }
        }
    });
}

/// Kinds and contents alone: an undo gives no file the other names that it had.
fn kinds(dump: &Dump) -> BTreeMap<&String, (&String, &Vec<u8>)> {
    dump.iter().map(|(path, (kind, bytes, _))| (path, (kind, bytes))).collect()
}
