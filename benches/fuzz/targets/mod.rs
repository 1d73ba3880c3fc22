//! What is fuzzed: each target takes any bytes, gives them to one part of the library through its public doors, and
//! asserts what has to hold whatever the bytes are. It knows no fuzzer: the same functions try the saved inputs again in
//! `cargo test`.

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

/// Every target.
pub(crate) const ALL: [Target; 12] = [
    Target { name: "manifest", corpus: "manifest", open: sources::manifest },
    Target { name: "record", corpus: "record", open: sources::record },
    Target { name: "artifact", corpus: "artifact", open: sources::artifact },
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

/// The smallest program that there is: a core module for WASI preview 1 whose `_start` returns.
const PROGRAM: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x05\x03\x01\0\x01\
    \x07\x13\x02\x06memory\x02\0\x06_start\0\0\x0a\x04\x01\x02\0\x0b";

/// Puts the program where entries name it as `./tools/bin/a`.
fn install(folder: &Path) {
    fs::create_dir_all(folder.join("tools/bin")).expect("a folder");
    fs::write(folder.join("tools/bin/a.wasm"), PROGRAM).expect("a program");
}

/// Writes a manifest with this one entry, which is called `t` and runs the program.
fn manifest_of(folder: &Path, mut entry: Value) -> PathBuf {
    install(folder);
    entry["name"] = "t".into();
    entry["command"] = json!(["./tools/bin/a"]);
    let path = folder.join("tools.json");
    fs::write(&path, json!({ "tools": [entry] }).to_string()).expect("a manifest");
    path
}

/// The two parts of an input, around its first NUL.
fn parts(input: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = input.splitn(2, |byte| *byte == 0);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// The threads on which calls run.
fn threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("threads")
}

/// Calls a tool; whatever becomes of the call, the model gets one line of JSON.
fn call(threads: &tokio::runtime::Runtime, runtime: &Runtime, name: &str, arguments: &str) -> ToolResult {
    let result = threads.block_on(runtime.call(ToolCall::new("c", name, arguments)));
    let line = result.content();
    assert!(!line.contains('\n'), "more than a line: {line:?}");
    serde_json::from_str::<serde::de::IgnoredAny>(&line).expect("JSON");
    result
}
