//! Fuzz target: a function that takes any bytes and asserts invariants. It does not depend on a fuzzer: `cargo test` replays
//! the saved inputs with the same functions.

use std::fs;
use std::path::{Path, PathBuf};

/// State of a target between two inputs.
pub(crate) type Act = Box<dyn FnMut(&[u8])>;

/// One target.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Folder of its saved inputs in `tests/fuzz/corpus`. Targets that read the same bytes share one.
    pub(crate) corpus: &'static str,
    /// Prepares the target in a folder of its own.
    pub(crate) open: fn(&Path) -> Act,
}

/// Returns a folder of saved inputs.
pub(crate) fn saved(corpus: &str) -> PathBuf {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = packages.map(|folder| folder.join("tests/fuzz/corpus"));
    folders.find(|folder| folder.is_dir()).expect("the repository's corpus").join(corpus)
}

/// Returns the saved inputs of a folder, sorted by file name.
pub(crate) fn inputs(corpus: &str) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(saved(corpus)) else { return Vec::new() };
    let read = |path: PathBuf| (path.display().to_string(), fs::read(&path).expect("a saved input"));
    let mut inputs: Vec<_> = entries.map(|entry| read(entry.expect("a file").path())).collect();
    inputs.sort();
    inputs
}
