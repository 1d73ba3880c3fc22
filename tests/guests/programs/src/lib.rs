//! Compiled guests of the tests: the build script compiles them, so that only tests and benches wait for it.

use std::path::{Path, PathBuf};

/// Returns the path of a guest's program, by its name without `.wasm`.
#[must_use]
pub fn guest(name: &str) -> PathBuf {
    Path::new(env!("TOOLCRIB_TEST_GUESTS")).join(format!("{name}.wasm"))
}
