//! Components for other hosts, through the built program: their imports beside WASI are provided, within limits, and
//! interfaces that no tool gets refuse each use.

use serde_json::{Value, json};

use crate::crib::{Crib, guest};

mod kept;
mod lasting;
mod settings;
pub(crate) mod sockets;

/// Results of the calls that a scripted model makes one after another in one run.
fn run(crib: &Crib, calls: &[(&str, Value)], flags: &[&str]) -> Vec<Value> {
    let turn = |(name, arguments): &(&str, Value)| json!({"tool_calls": [{"name": name, "arguments": arguments}]});
    let turns: Vec<Value> = calls.iter().map(turn).chain([json!({"content": "x"})]).collect();
    std::fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let ran = crib.run(&[&["run", "--script", "script.json", "--json"], flags].concat());
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let results = events.filter(|event| event["type"] == "tool_result");
    results.map(|event| serde_json::from_str(event["content"].as_str().unwrap()).unwrap()).collect()
}

/// Entry for a program under another name.
fn entry(crib: &Crib, program: &str, name: &str, more: Value) -> Value {
    crib.install(&guest(program), program);
    let mut entry = json!({"name": name, "command": [format!("./tools/bin/{program}")]});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    entry
}
