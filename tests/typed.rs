//! Components of plain functions, end to end: no descriptor, no generated code, only the types in their bytes. The
//! component `typed` has a function for each type and one for each way to end.

use serde_json::{Value, json};

use crate::crib::{Crib, guest};

mod ends;
mod languages;
mod mapping;
mod naming;
mod sources;

/// Creates a crib with the component in its folder.
fn crib() -> Crib {
    let crib = Crib::new();
    std::fs::copy(guest("typed"), crib.path("typed.wasm")).expect("the guest was built");
    crib
}

/// Calls a function of the component; returns the outcome and the result for a model.
fn call(crib: &Crib, name: &str, arguments: &Value, flags: &[&str]) -> (String, Value) {
    let flags = [&["--tools", "typed.wasm"], flags].concat();
    let output = crib.call(name, arguments, &flags);
    (output["receipt"]["outcome"].as_str().expect("a receipt").to_owned(), content(&output))
}

/// Result for a model.
fn content(told: &Value) -> Value {
    told.get("result").cloned().unwrap_or_else(|| json!({ "error": told["error"] }))
}

/// Function of a tool as shown to a model.
fn shown(crib: &Crib, name: &str, tools: &str) -> Value {
    let ran = crib.run(&["schema", "--tools", tools]);
    let all: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let found = all.iter().map(|tool| &tool["function"]).find(|function| function["name"] == name);
    found.unwrap_or_else(|| panic!("no `{name}`")).clone()
}

/// Compiles WebAssembly text into the crib's folder.
fn wat(crib: &Crib, name: &str, text: &str) {
    std::fs::write(crib.path(name), wat::parse_str(text).expect("valid text")).unwrap();
}

/// Arguments of a function with one parameter.
fn of(value: Value) -> Value {
    json!({ "value": value })
}
