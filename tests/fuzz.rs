//! Replay of the inputs that fuzzing saved.

#[path = "../benches/fuzz/targets/mod.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tempfile::TempDir;

use targets::{ALL, inputs, saved};

#[test]
fn every_saved_input_is_survived() {
    let mut failed = Vec::new();
    for target in ALL {
        let saved = inputs(target.name);
        assert!(!saved.is_empty(), "{} has no saved input", target.name);
        let folder = TempDir::new().unwrap();
        let mut act = (target.open)(folder.path());
        for (name, input) in saved {
            if catch_unwind(AssertUnwindSafe(|| act(&input))).is_err() {
                failed.push(name);
            }
        }
    }
    assert!(failed.is_empty(), "not survived: {failed:#?}");
}

#[test]
fn every_folder_of_saved_inputs_has_a_target() {
    let all = saved("").read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let lost: Vec<_> = all.filter(|name| ALL.iter().all(|target| target.name != name)).collect();
    assert!(lost.is_empty(), "no target tries {lost:?}");
}
