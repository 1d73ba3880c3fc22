//! Commits of a part: the stage shows the same before and after, and the rest can be committed later.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test may end in a panic, and uses a part of `common`"
)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use common::{Op, Pair, commit, dump, operations};
use proptest::prelude::*;
use toolcrib_staging::{Change, ChangeKind, CommitError, Conflict, Limits, Stages};

/// Returns the changes for which a bit is set.
fn chosen(changes: &[Change], bits: u64) -> Vec<Change> {
    changes.iter().enumerate().filter(|(at, _)| bits >> (at % 64) & 1 == 1).map(|(_, change)| change.clone()).collect()
}

/// Returns one change, if there is one.
fn single(changes: &[Change], number: u64) -> Vec<Change> {
    let at = number.checked_rem(changes.len() as u64);
    at.map(|at| changes[at as usize].clone()).into_iter().collect()
}

/// Names changes, whatever their conflicts are.
fn named(changes: &[Change]) -> BTreeSet<String> {
    changes.iter().map(|change| format!("{:?} {:?} {:?}", change.kind, change.from, change.path)).collect()
}

fn check(operations: &[Op], choices: &[u64], choose: fn(&[Change], u64) -> Vec<Change>) -> Result<(), TestCaseError> {
    let fail = |what: &str, error: &dyn std::fmt::Debug| TestCaseError::fail(format!("{what}: {error:?}"));
    let mut pair = Pair::new();
    for (number, op) in operations.iter().enumerate() {
        pair.apply(number, op);
    }
    let shown = pair.staged();
    let mut is_left = true;
    for (number, bits) in choices.iter().enumerate() {
        let (all, before) = (pair.stage.changes().unwrap(), pair.base());
        let chosen = choose(&all, *bits);
        let part = pair.stage.part(&chosen).map_err(|error| fail("part", &error))?;
        let made = part.changes().unwrap();
        prop_assert_eq!(pair.base(), before, "making the part changes nothing");
        prop_assert_eq!(pair.staged(), shown.clone(), "making the part shows the same");
        let committed = commit(&part).map_err(|error| fail("commit of the part", &error))?;
        drop(part);
        is_left = committed.left > 0;
        prop_assert_eq!(pair.stage.path().exists(), is_left);
        if !is_left {
            break;
        }
        prop_assert_eq!(pair.staged(), shown.clone(), "after {} of {:?}", number, named(&made));
        let rest = pair.stage.changes().unwrap();
        prop_assert_eq!(committed.left, rest.len());
        // The path of a removed entry is that in the real folders, which have changed.
        let stays = |path: &Path| rest.iter().any(|one| one.path == path && one.kind != ChangeKind::Removed);
        let again = chosen.iter().find(|change| change.kind != ChangeKind::Removed && stays(&change.path));
        prop_assert!(again.is_none(), "{:?} after {:?}", again, named(&made));
        let conflicts: Vec<_> = rest.iter().filter(|change| change.conflict.is_some()).collect();
        prop_assert!(conflicts.is_empty(), "{:?} after {:?}", conflicts, named(&made));
        // Another process finds the same.
        pair.reopen();
        prop_assert_eq!(pair.staged(), shown.clone(), "reopened after {:?}", named(&made));
        prop_assert_eq!(named(&pair.stage.changes().unwrap()), named(&rest));
    }
    if is_left {
        commit(&pair.stage).map_err(|error| fail("commit of the rest", &error))?;
    }
    prop_assert_eq!(dump(pair.folder.path()), dump(pair.copy.path()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_committed_part_leaves_what_the_stage_shows(
        operations in operations(160),
        choices in prop::collection::vec(any::<u64>(), 1..4),
    ) {
        check(&operations, &choices, chosen)?;
    }

    #[test]
    fn single_changes_are_committed_one_after_another(
        operations in operations(120),
        choices in prop::collection::vec(any::<u64>(), 1..8),
    ) {
        check(&operations, &choices, single)?;
    }
}

/// Stages a new content for some files.
fn written(paths: &[&str]) -> Pair {
    let mut pair = Pair::new();
    for (number, path) in paths.iter().enumerate() {
        pair.apply(number, &Op::Write((*path).into(), "new".into()));
    }
    pair
}

/// Returns the changes at some paths of the folder.
fn at(pair: &Pair, paths: &[&str]) -> Vec<Change> {
    let folder = pair.folder.path().canonicalize().unwrap();
    let is_at = |change: &Change| paths.iter().any(|path| change.path == folder.join(path));
    let changes: Vec<_> = pair.stage.changes().unwrap().into_iter().filter(is_at).collect();
    assert_eq!(changes.len(), paths.len(), "{changes:?}");
    changes
}

fn read(pair: &Pair, path: &str) -> String {
    fs::read_to_string(pair.folder.path().join(path)).unwrap()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[test]
fn a_conflict_of_a_chosen_change_stops_before_anything_has_changed() {
    let pair = written(&["x", "a/x"]);
    fs::write(pair.folder.path().join("x"), "others").unwrap();
    let (before, shown) = (dump(pair.folder.path()), pair.staged());
    let part = pair.stage.part(&at(&pair, &["x", "a/x"])).unwrap();
    assert_eq!((part.name(), part.path().exists()), ("one", true));
    assert!(matches!(commit(&part), Err(CommitError::Conflict(_, Conflict::Changed))));
    let folder = part.path().to_owned();
    drop(part);
    assert!(!folder.exists() && !pair.stage.is_committing());
    assert_eq!((dump(pair.folder.path()), pair.staged()), (before, shown));
}

#[test]
fn a_conflict_of_another_change_stops_nothing_and_stays_one() {
    let pair = written(&["x", "a/x"]);
    fs::write(pair.folder.path().join("x"), "others").unwrap();
    assert_eq!(commit(&pair.stage.part(&at(&pair, &["a/x"])).unwrap()).unwrap().left, 1);
    assert_eq!((read(&pair, "x"), read(&pair, "a/x")), ("others".to_owned(), "new".to_owned()));
    let rest = at(&pair, &["x"]);
    assert_eq!(rest[0].conflict, Some(Conflict::Changed));
    assert_eq!(pair.stage.withdraw(&rest).unwrap(), []);
}

#[test]
fn names_of_one_file_go_together_and_a_removed_name_is_removed_later() {
    let mut pair = written(&["c/x"]);
    pair.apply(1, &Op::Remove("a/c".into()));
    pair.apply(2, &Op::Name("c/x".into(), "third".into()));
    let part = pair.stage.part(&at(&pair, &["third"])).unwrap();
    let folder = pair.folder.path().canonicalize().unwrap();
    let paths: Vec<_> = part.changes().unwrap().into_iter().map(|change| change.path).collect();
    assert_eq!(
        paths,
        ["a/c", "c/x", "third"].map(|path| folder.join(path)),
        "until it is removed, that name is one too"
    );
    commit(&part).unwrap();
    assert_eq!(read(&pair, "a/c"), "new");
    assert_eq!(at(&pair, &["a/c"])[0].conflict, None);
    commit(&pair.stage).unwrap();
    assert_eq!(dump(pair.folder.path()), dump(pair.copy.path()));
}

#[test]
fn a_part_whose_commit_was_left_before_or_after_its_end_goes_on_once() {
    let mut pair = written(&["x", "a/x", "new"]);
    pair.apply(3, &Op::Rename("a".into(), "t".into()));
    pair.apply(4, &Op::Rename("c".into(), "a".into()));
    pair.apply(5, &Op::Rename("t".into(), "c".into()));
    pair.apply(6, &Op::Append("a/a/b".into(), "more".into()));
    let (shown, place) = (pair.staged(), pair.stages.path().join("one"));
    let part = pair.stage.part(&at(&pair, &["a", "c", "new"])).unwrap();
    let kept = tempfile::TempDir::new().unwrap();
    let left = part.commit(false, None, &mut |done, all| {
        if done == all {
            copy_folder(&place, &kept.path().join("one"));
        }
    });
    assert_eq!(left.unwrap().left, 3);
    pair.close();
    // Once more, after all was done but its removal.
    copy_folder(&kept.path().join("one/part"), &place.join("part"));
    let stages = Stages::new(pair.stages.path());
    assert_eq!(stages.open("one", Limits::default()).unwrap_err().kind(), ErrorKind::ResourceBusy);
    assert_eq!(commit(&stages.take("one").unwrap()).unwrap().left, 3);
    pair.reopen();
    assert_eq!(pair.staged(), shown);
    pair.close();
    // Before the stage was put over the new folders.
    fs::remove_dir_all(&place).unwrap();
    copy_folder(&kept.path().join("one"), &place);
    assert_eq!(commit(&stages.take("one").unwrap()).unwrap().left, 3);
    assert!(!place.join("part").exists());
    pair.reopen();
    assert_eq!(pair.staged(), shown);
    commit(&pair.stage).unwrap();
    assert_eq!(dump(pair.folder.path()), dump(pair.copy.path()));
}

#[test]
fn a_change_that_an_interrupted_commit_leaves_out_stays_in_the_stage() {
    let pair = written(&["a/x", "x", "new"]);
    let (folder, part) = (pair.folder.path(), pair.stage.part(&at(&pair, &["a/x", "x"])).unwrap());
    let stopped = part.commit(false, None, &mut |_, _| fs::write(folder.join("x"), "others").unwrap());
    assert!(matches!(stopped, Err(CommitError::Conflict(_, Conflict::Changed))), "{stopped:?}");
    assert!(pair.stage.is_committing());
    assert!(pair.stage.part(&[]).is_err(), "one at a time");
    let committed = pair.stage.clone().commit(true, None, &mut |_, _| {}).unwrap();
    assert_eq!((committed.skipped.len(), committed.left), (1, 2));
    assert_eq!((read(&pair, "a/x"), read(&pair, "x")), ("new".to_owned(), "others".to_owned()));
    assert_eq!(at(&pair, &["x"])[0].conflict, Some(Conflict::Changed));
    assert_eq!(at(&pair, &["new"])[0].conflict, None);
}
