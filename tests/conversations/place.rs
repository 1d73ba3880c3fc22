//! Home, folder with tools that leave a trace of each call, and the commands of the tests.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::model::{Model, Turn};
use crate::crib::{Crib, Ran};

/// Appends its arguments to `log.txt` in the granted folder, sleeps for a while and answers `{}`.
const NOTE: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 2)
  (data (i32.const 64) "log.txt")
  (data (i32.const 80) "{}")
  (func (export "_start") (local $length i32)
    (i32.store (i32.const 0) (i32.const 1024))
    (i32.store (i32.const 4) (i32.const 60000))
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $length (i32.load (i32.const 8)))
    (i32.store8 (i32.add (i32.const 1024) (local.get $length)) (i32.const 10))
    (if (call $open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 7) (i32.const 1)
                    (i64.const 64) (i64.const 0) (i32.const 1) (i32.const 32))
      (then (call $exit (i32.const 3))))
    (i32.store (i32.const 4) (i32.add (local.get $length) (i32.const 1)))
    (drop (call $write (i32.load (i32.const 32)) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 216) (i32.const 1))
    (i64.store (i32.const 224) (i64.const SLEEP))
    (drop (call $poll (i32.const 200) (i32.const 264) (i32.const 1) (i32.const 328)))
    (i32.store (i32.const 0) (i32.const 80))
    (i32.store (i32.const 4) (i32.const 2))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Time for which a call of `note` lasts, in milliseconds.
pub(super) const SLEEP_MS: u64 = 300;

/// Working folder with the tools `note` and `mark`, which leave a line for each call; `mark` ends at once.
pub(super) struct Place {
    pub(super) crib: Crib,
}

impl Place {
    pub(super) fn new() -> Self {
        let crib = Crib::new();
        let mut tools = Vec::new();
        for (name, sleep) in [("note", SLEEP_MS * 1_000_000), ("mark", 1)] {
            crib.install_wat(name, &NOTE.replace("SLEEP", &sleep.to_string()));
            tools.push(json!({
                "name": name, "description": "leaves a line", "schema": { "type": "object" },
                "command": [format!("./tools/bin/{name}")], "capabilities": { "files": "write" },
            }));
        }
        crib.manifest(&json!({ "tools": tools }));
        Self { crib }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.crib.path(name)
    }

    /// Folder of kept runs.
    pub(super) fn runs(&self) -> PathBuf {
        self.path("home/.local/state/toolcrib/runs")
    }

    /// Command of the program with a model.
    pub(super) fn command(&self, model: &Model, args: &[&str]) -> Command {
        let common = [
            "--base-url",
            &model.address,
            "--model",
            "m",
            "--set",
            "model.http_retry_backoff=300ms",
            "--allow-write=work",
        ];
        let mut command = self.crib.toolcrib(&[&args[..1], &common, &args[1..]].concat());
        command.stdin(Stdio::null());
        command
    }

    pub(super) fn run(&self, model: &Model, args: &[&str]) -> Ran {
        Ran::of(&mut self.command(model, args))
    }

    pub(super) fn start(&self, model: &Model, args: &[&str]) -> Child {
        let mut command = self.command(model, args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    /// Calls that were made, as the tools noted them.
    pub(super) fn made(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("work/log.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Kept runs, last changed first.
    pub(super) fn listed(&self) -> Vec<Value> {
        let ran = self.crib.run(&["runs", "list", "--json"]);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// Identifier of the only kept run.
    pub(super) fn id(&self) -> String {
        let listed = self.listed();
        assert_eq!(listed.len(), 1, "{listed:?}");
        listed[0]["id"].as_str().expect("an identifier").to_owned()
    }

    /// Messages of a run, as `export` writes them.
    pub(super) fn messages(&self, id: &str) -> Vec<Value> {
        let ran = self.crib.run(&["runs", "export", id]);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// Text of the file of a run.
    pub(super) fn file(&self, id: &str) -> String {
        fs::read_to_string(self.runs().join(format!("{id}.ndjson"))).expect("a kept run")
    }
}

/// Turn with a text alone.
pub(super) fn says(text: &'static str) -> Turn {
    Turn { parts: vec![text], calls: Vec::new() }
}

/// Turn with a text and calls of one tool, each with its identifier as argument.
pub(super) fn calls(text: &'static str, tool: &'static str, ids: &[&'static str]) -> Turn {
    let call = |id: &&'static str| (tool, *id, json!({ "n": id }));
    Turn { parts: vec![text], calls: ids.iter().map(call).collect() }
}

/// Asserts that a conversation is whole: every call has exactly one result after it, in order, and nothing else between.
pub(super) fn assert_whole(messages: &[Value]) {
    let mut at = 0;
    while at < messages.len() {
        let calls = messages[at]["tool_calls"].as_array().cloned().unwrap_or_default();
        for (next, call) in calls.iter().enumerate() {
            let result = messages.get(at + 1 + next).unwrap_or_else(|| panic!("no result of {call}: {messages:#?}"));
            assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &call["id"]), "{messages:#?}");
        }
        at += 1 + calls.len();
        assert!(
            messages.get(at).is_none_or(|next| next["role"] != "tool"),
            "the result of an unknown call: {messages:#?}"
        );
    }
}

/// Result of a call in a conversation.
pub(super) fn result_of(messages: &[Value], id: &str) -> String {
    let found = messages.iter().find(|message| message["tool_call_id"] == id);
    found.unwrap_or_else(|| panic!("no result of {id}: {messages:#?}"))["content"].as_str().expect("text").to_owned()
}
