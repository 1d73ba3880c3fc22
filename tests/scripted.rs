//! Scripts from the command line: their permissions by flag, the output of `validate` and `new`, delegation to agents,
//! and hooks of a run.

mod agents;
mod beginning;
mod effects;
mod events;
mod exec;
mod flags;
mod hooking;
mod images;
mod limits;
mod meta;
mod problems;
mod scope;
mod tasks;

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran};

/// Program that prints `hello`.
const HELLO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "\"hello\"")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 7))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Creates a folder with these files.
fn project(files: &[(&str, &str)]) -> Crib {
    let crib = Crib::new();
    files.iter().for_each(|(name, text)| write(&crib, name, text));
    crib
}

fn write(crib: &Crib, name: &str, content: impl AsRef<[u8]>) {
    let path = crib.path(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("its folder");
    fs::write(path, content).expect("a file");
}

/// File of a tool with these lines in its `run`.
fn tool(lines: &str) -> String {
    let parameters = "parameters: {task: {type: string}, context: {type: object}, max_steps: {type: number}}";
    format!("---\n{parameters}\nscript: |\n  def run(args):\n{}---\nA tool.\n", indented(lines))
}

/// File of a hook with these lines in its `handle`.
fn hook(event: &str, lines: &str) -> String {
    format!("---\nevent: {event}\nscript: |\n  def handle(event, payload):\n{}---\nA hook.\n", indented(lines))
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("      {line}\n")).collect()
}

/// Plays a script in a run, with events and these flags.
fn play(crib: &Crib, script: &Value, flags: &[&str]) -> Ran {
    write(crib, "script.json", script.to_string());
    crib.run(&[&["run", "--script", "script.json", "--json"], flags].concat())
}

fn events(ran: &Ran) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    ran.stdout.lines().map(read).collect()
}

/// Results of calls, of all agents.
fn results(ran: &Ran) -> Vec<Value> {
    events(ran).into_iter().filter(|event| event["type"] == "tool_result").collect()
}

/// Turn of a model that calls one tool.
fn calls(name: &str, arguments: Value) -> Value {
    json!({ "tool_calls": [{ "name": name, "arguments": arguments }] })
}
