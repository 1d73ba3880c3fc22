//! Replay of the inputs that fuzzing saved.

#[path = "../benches/fuzz/program.rs"]
mod program;
#[path = "../benches/fuzz/target.rs"]
mod target;
#[path = "../benches/fuzz/targets/mod.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tempfile::TempDir;

use target::{Target, inputs, saved};

/// The targets of the library and those for programs.
fn all() -> impl Iterator<Item = &'static Target> {
    targets::ALL.iter().chain(&program::ALL)
}

#[test]
fn every_saved_input_is_survived() {
    let mut failed = Vec::new();
    for target in all() {
        let saved = inputs(target.corpus);
        assert!(!saved.is_empty(), "{} has no saved input", target.name);
        let folder = TempDir::new().unwrap();
        let mut act = (target.open)(folder.path());
        for (name, input) in saved {
            if catch_unwind(AssertUnwindSafe(|| act(&input))).is_err() {
                failed.push(format!("{}: {name}", target.name));
            }
        }
    }
    assert!(failed.is_empty(), "not survived: {failed:#?}");
}

#[test]
fn every_folder_of_saved_inputs_has_a_target() {
    let folders = saved("").read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let lost: Vec<_> = folders.filter(|name| all().all(|target| target.corpus != name)).collect();
    assert!(lost.is_empty(), "no target tries {lost:?}");
}
