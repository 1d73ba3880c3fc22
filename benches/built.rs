//! The measured program and guests, and the threads and arguments of the measured calls, for every bench that has the program.

use std::path::{Path, PathBuf};

use serde_json::json;

/// The built program.
pub(crate) const TOOLCRIB: &str = env!("CARGO_BIN_EXE_toolcrib");

/// Folder of everything that is built.
pub(crate) fn target() -> PathBuf {
    Path::new(TOOLCRIB).ancestors().nth(2).expect("the program lies two folders down").to_path_buf()
}

/// Path of a guest of the tests.
pub(crate) fn guest(name: &str) -> PathBuf {
    target().join(format!("guests/wasm32-wasip2/guest/{name}.wasm"))
}

/// Runtime of tasks on two threads.
pub(crate) fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// About 1 KiB of arguments, as a model writes them.
pub(crate) fn arguments() -> String {
    let line = "The quick brown fox jumps over the lazy dog. ".repeat(4);
    json!({"path": "notes/today.md", "lines": [line, line, line, line, line], "limit": 40, "exact": true}).to_string()
}

/// Reads the option `--calls N` of at least `min`; an error is the usage of the bench.
pub(crate) fn calls(bench: &str, default: usize, min: usize) -> Result<usize, String> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    match (arguments.next().as_deref(), arguments.next().map(|number| number.parse())) {
        (None, _) => Ok(default),
        (Some("--calls"), Some(Ok(calls))) if calls >= min => Ok(calls),
        _ => Err(format!("usage: cargo bench --bench {bench} -- [--calls N], at least {min}")),
    }
}
