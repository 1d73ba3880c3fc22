//! A stage shows, at each step, what the same changes make of a real folder; its commit makes the same of its own.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test may end in a panic, and uses a part of `common`"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;

use common::{Op, Pair, commit, dump, operations};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_shrink_iters: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_step_shows_what_a_real_folder_shows(operations in operations(60)) {
        let mut pair = Pair::new();
        for (number, op) in operations.iter().enumerate() {
            pair.apply(number, op);
            if number % 4 == 0 {
                prop_assert_eq!(pair.staged(), pair.real(), "after {} of {:?}", number, &operations[..=number]);
            }
        }
        prop_assert_eq!(pair.staged(), pair.real());
        prop_assert_eq!(pair.base(), Pair::new().base(), "the folder has changed");
    }

    #[test]
    fn a_commit_makes_the_folder_what_the_stage_showed(operations in operations(60)) {
        let mut pair = Pair::new();
        for (number, op) in operations.iter().enumerate() {
            pair.apply(number, op);
        }
        let (before, shown) = (dump(pair.folder.path()), dump(pair.copy.path()));
        let changes = pair.stage.changes().unwrap();
        // A folder that was removed and made again is another one.
        prop_assert!(!changes.is_empty() || before == shown, "{:?}", changes);
        let conflicts: Vec<_> = changes.iter().filter(|change| change.conflict.is_some()).collect();
        prop_assert!(conflicts.is_empty(), "{:?}", conflicts);
        pair.stage.clone().commit(false, None, &mut |_, _| {}).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        // With the names of each file.
        prop_assert_eq!(dump(pair.folder.path()), shown);
        prop_assert!(!pair.stages.path().join("one").exists());
    }

    #[test]
    fn a_reopened_stage_shows_the_same(operations in operations(40)) {
        let mut pair = Pair::new();
        for (number, op) in operations.iter().enumerate() {
            pair.apply(number, op);
            if number % 16 == 15 {
                pair.reopen();
            }
        }
        prop_assert_eq!(pair.staged(), pair.real());
    }

    #[test]
    fn a_withdrawn_stage_shows_the_folder(operations in operations(40)) {
        let mut pair = Pair::new();
        for (number, op) in operations.iter().enumerate() {
            pair.apply(number, op);
        }
        // One after another, as some have to wait for others.
        for _ in 0..8 {
            let changes = pair.stage.changes().unwrap();
            pair.stage.withdraw(&changes).unwrap();
        }
        if pair.stage.changes().unwrap().is_empty() {
            prop_assert_eq!(pair.staged(), pair.base());
        }
    }
}

#[test]
fn many_files_are_moved_by_one_step() {
    let mut pair = Pair::new();
    for number in 0..2_000 {
        fs::write(pair.folder.path().join("a").join(format!("file-{number}")), "x").unwrap();
        fs::write(pair.copy.path().join("a").join(format!("file-{number}")), "x").unwrap();
    }
    pair.apply(0, &Op::Rename("a".into(), "moved".into()));
    pair.apply(1, &Op::Write("moved/file-7".into(), "changed".into()));
    pair.apply(2, &Op::Remove("moved/file-8".into()));
    assert_eq!(pair.staged(), pair.real());
    let shown = pair.real();
    let steps = pair.stage.clone().commit(false, None, &mut |_, _| {}).unwrap();
    assert_eq!(steps.steps, 3);
    let base: BTreeMap<_, _> = pair.base();
    assert_eq!(base, shown);
}

#[test]
fn another_name_of_an_unchanged_file_replaces_a_file() {
    // The order of the nodes differs from tree to tree.
    for _ in 0..16 {
        for (source, replaced) in [("c/x", "a/x"), ("x", "a/b/x"), ("a/x", "x")] {
            let mut pair = Pair::new();
            pair.apply(0, &Op::Name(source.into(), "new".into()));
            pair.apply(1, &Op::Rename("new".into(), replaced.into()));
            commit(&pair.stage).unwrap();
            assert_eq!(dump(pair.folder.path()), dump(pair.copy.path()), "{source} over {replaced}");
        }
    }
}
