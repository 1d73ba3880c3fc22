//! Targets for the library: each passes any bytes to one part of it through the public API, and asserts its invariants. The
//! targets do not depend on a fuzzer: `cargo test` replays the saved inputs with the same functions.

mod inputs;
mod kept;
mod log;
mod network;
mod paths;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib::{Runtime, ToolCall, ToolResult};

use super::target::{Act, Target};

/// All targets.
pub(crate) const ALL: [Target; 14] = [
    Target { name: "manifest", corpus: "manifest", open: sources::manifest },
    Target { name: "agent_tool", corpus: "agent_tool", open: sources::agent_tool },
    Target { name: "server", corpus: "server", open: sources::server },
    Target { name: "markdown", corpus: "markdown", open: sources::markdown },
    Target { name: "skill", corpus: "skill", open: sources::skill },
    Target { name: "project", corpus: "project", open: sources::project },
    Target { name: "component", corpus: "component", open: sources::component },
    Target { name: "schema", corpus: "schema", open: inputs::schema },
    Target { name: "arguments", corpus: "arguments", open: inputs::arguments },
    Target { name: "paths", corpus: "paths", open: paths::paths },
    Target { name: "network", corpus: "network", open: network::network },
    Target { name: "audit", corpus: "audit", open: log::audit },
    Target { name: "results", corpus: "results", open: kept::results },
    Target { name: "approvals", corpus: "approvals", open: kept::approvals },
];

/// Minimal program: a core module for WASI preview 1 with a `_start` that returns.
const PROGRAM: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x05\x03\x01\0\x01\
    \x07\x13\x02\x06memory\x02\0\x06_start\0\0\x0a\x04\x01\x02\0\x0b";

/// Installs the program as `./tools/bin/a`.
fn install(folder: &Path) {
    fs::create_dir_all(folder.join("tools/bin")).expect("a folder");
    fs::write(folder.join("tools/bin/a.wasm"), PROGRAM).expect("a program");
}

/// Writes a manifest with one entry, the tool `t`, which runs the program.
fn manifest_of(folder: &Path, mut entry: Value) -> PathBuf {
    install(folder);
    entry["name"] = "t".into();
    entry["command"] = json!(["./tools/bin/a"]);
    let path = folder.join("tools.json");
    fs::write(&path, json!({ "tools": [entry] }).to_string()).expect("a manifest");
    path
}

/// Splits an input at its first NUL.
fn parts(input: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = input.splitn(2, |byte| *byte == 0);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// Creates the tokio runtime of the calls.
fn threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("threads")
}

/// Calls a tool. With every outcome, the model gets one line of JSON.
fn call(threads: &tokio::runtime::Runtime, runtime: &Runtime, name: &str, arguments: &str) -> ToolResult {
    let result = threads.block_on(runtime.call(ToolCall::new("c", name, arguments)));
    let line = result.content();
    assert!(!line.contains('\n'), "more than a line: {line:?}");
    serde_json::from_str::<serde::de::IgnoredAny>(&line).expect("JSON");
    result
}
