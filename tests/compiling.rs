//! Compilation of untrusted bytes: refusals before the compilation, its limits, the rule that only complete code is
//! loaded, and the size limit of the cache.

mod ahead;
mod bounded;
mod bytes;
mod damage;
mod embedded;
mod process;
mod refused;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib::{Outcome, Runtime, ToolCall};

use crate::crib::Crib;

/// Creates a crib with this program as its only tool, `n`.
fn crib(program: &[u8]) -> Crib {
    let crib = Crib::new();
    fs::write(crib.path("tools/bin/n.wasm"), program).unwrap();
    crib.manifest(&json!({"tools": [{"name": "n", "command": ["./tools/bin/n"]}]}));
    crib
}

/// Calls through the built program with a fresh compile cache; returns the outcome and the text for the model.
fn called(crib: &Crib, flags: &[&str]) -> (String, String) {
    let cache = crib.path("cache");
    let mut all = vec!["--cache-dir", cache.to_str().unwrap()];
    all.extend(flags);
    let line: Value = crib.call("n", &json!({}), &all);
    let outcome = line["receipt"]["outcome"].as_str().unwrap().to_owned();
    (outcome, line["error"].as_str().unwrap_or_default().to_owned())
}

/// Files of compiled code in a folder.
fn compiled(cache: &Path) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(cache).into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|it| it == "cwasm")).collect()
}

/// Outcome of one call of a runtime.
fn outcome(runtime: &Runtime) -> Outcome {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(runtime.call(ToolCall::new("", "n", "{}"))).receipt.outcome
}

/// Command that does nothing, with a part of each kind that programs have.
const SMALL: &str = r#"(component
    (core module $m
        (type $t (func (result i32)))
        (memory 1) (table 2 funcref) (global $g (mut i32) (i32.const 7))
        (elem (i32.const 0) $f $f) (data (i32.const 8) "small")
        (func $f (type $t) (local i32)
            (block (br_table 0 0 (global.get $g)))
            (local.set 0 (i32.load (i32.const 8)))
            (if (result i32) (local.get 0) (then (i32.const 0)) (else (i32.const 1))))
        (func (export "run") (result i32) (call_indirect (type $t) (i32.const 1))))
    (core instance $i (instantiate $m))
    (func $run (result (result)) (canon lift (core func $i "run")))
    (instance $exports (export "run" (func $run)))
    (export "wasi:cli/run@0.2.0" (instance $exports)))"#;
