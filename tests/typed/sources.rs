//! Typed functions with other sources: an entry that names one, a descriptor, and the comments of a WIT package.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{call, content, crib, shown};
use crate::crib::{Crib, guest};
use crate::screen::Page;

#[test]
fn an_entry_of_a_manifest_names_a_function_and_adds_to_it() {
    let crib = crib();
    crib.install(&crib.path("typed.wasm"), "typed");
    let entry = |name: &str, function: &str| json!({"name": name, "command": ["./tools/bin/typed", function]});
    let mut limited = entry("letters", "long");
    limited["description"] = json!("So many letters.");
    limited["limits"] = json!({"outputKb": 1});
    let mut narrower = entry("low", "test:typed/echo@0.1.0#a-u8");
    narrower["schema"] = json!({"type": "object", "properties": {"value": {"type": "integer", "maximum": 9}}});
    crib.manifest(&json!({"tools": [limited, narrower, entry("sum", "add")]}));
    assert_eq!(shown(&crib, "letters", "tools.json")["description"], "So many letters.");
    let schema = shown(&crib, "letters", "tools.json");
    assert_eq!(schema["parameters"]["properties"]["length"]["maximum"], json!(u32::MAX));
    assert_eq!(content(&crib.call("letters", &json!({"length": 3}), &[])), json!("xxx"));
    assert_eq!(crib.outcome("letters", &json!({"length": 2000}), &[]), "output-limit");
    assert_eq!(content(&crib.call("sum", &json!({"a": 1, "b": 2}), &[])), json!(3));
    // The schema of an entry applies in addition to the types.
    assert_eq!(crib.outcome("low", &json!({"value": 9}), &[]), "ok");
    assert_eq!(crib.outcome("low", &json!({"value": 10}), &[]), "bad-arguments");
    assert_eq!(crib.outcome("low", &json!({"value": -1}), &[]), "bad-arguments");
}

#[test]
fn an_entry_that_means_no_function_says_which_there_are() {
    let page = Page::new();
    let crib = crib();
    crib.install(&crib.path("typed.wasm"), "typed");
    for command in
        [json!(["./tools/bin/typed", "nope"]), json!(["./tools/bin/typed"]), json!(["./tools/bin/typed", "take"])]
    {
        crib.manifest(&json!({"tools": [{"name": "t", "command": command}]}));
        page.run(&crib, &["list", "--strict"]);
    }
    page.matches("typed/entry");
}

#[test]
fn a_markdown_file_names_a_function_and_tells_when_to_use_it() {
    let page = Page::new();
    let crib = crib();
    let write = |name: &str, front: &str, body: &str| {
        fs::write(crib.path(name), format!("---\n{front}---\n{body}\n")).unwrap();
    };
    fs::copy(guest("echo"), crib.path("echo.wasm")).unwrap();
    write("sum.md", "component: typed.wasm\nfunction: add\ntimeout_ms: 5000\n", "Add two whole numbers.");
    let told = crib.call("sum", &json!({"a": 40, "b": 2}), &["--tools", "sum.md"]);
    assert_eq!(content(&told), json!(42));
    let schema = shown(&crib, "sum", "sum.md");
    assert_eq!(schema["description"], "Add two whole numbers.");
    assert_eq!(schema["parameters"]["required"], json!(["a", "b"]));
    for front in [
        "component: ../typed.wasm\n",
        "function: add\n",
        "component: typed.wasm\nfunction: add\nscript: |\n  def run(args): return 1\n",
        "component: typed.wasm\nfunction: add\nasync: true\n",
        "component: typed.wasm\nfunction: nope\n",
        "component: none.wasm\nfunction: add\n",
        "component: echo.wasm\nfunction: add\n",
    ] {
        write("bad.md", front, "Bad.");
        page.run(&crib, &["list", "--strict", "--tools", "bad.md"]);
    }
    page.matches("typed/markdown");
}

#[test]
fn a_descriptor_and_a_wit_put_words_into_a_component() {
    let page = Page::new();
    let crib = crib();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/typed/wit");
    assert_eq!(shown(&crib, "long", "typed.wasm")["description"], json!(null));
    let wit = wit.to_str().unwrap();
    page.run(&crib, &["describe", "typed.wasm", "--wit", wit, "--out", "told.wasm"]);
    assert_eq!(shown(&crib, "long", "told.wasm")["description"], "So many times a letter.");
    assert_eq!(shown(&crib, "add", "told.wasm")["description"], "Adds two numbers.");
    let record = shown(&crib, "a_record", "told.wasm");
    let item = &record["parameters"]["properties"]["value"];
    assert_eq!(item["description"], "Something for sale.");
    assert_eq!(item["properties"]["size"]["description"], "How large it is.");
    let variant = shown(&crib, "a_variant", "told.wasm");
    assert_eq!(variant["parameters"]["properties"]["value"]["oneOf"][0]["description"], "Of this radius.");
    // It is the same program, and adding the comments again changes nothing.
    page.run(&crib, &["describe", "told.wasm", "--wit", wit]);
    assert_eq!(content(&crib.call("add", &json!({"a": 1, "b": 1}), &["--tools", "told.wasm"])), json!(2));
    let descriptor = json!({"name": "add", "description": "Sums.", "limits": {"memoryMb": 16}});
    fs::write(crib.path("add.json"), descriptor.to_string()).unwrap();
    page.run(&crib, &["describe", "told.wasm", "--write", "add.json"]);
    assert_eq!(shown(&crib, "add", "told.wasm")["description"], "Sums.");
    fs::write(crib.path("add.json"), r#"{"name": "nope"}"#).unwrap();
    page.run(&crib, &["describe", "told.wasm", "--write", "add.json"]);
    assert_eq!(shown(&crib, "add", "told.wasm")["description"], "Sums.", "nothing was written");
    page.matches("typed/words");
}

#[test]
fn a_wit_of_something_else_is_refused_and_nothing_is_written() {
    let page = Page::new();
    let crib = crib();
    let before = fs::read(crib.path("typed.wasm")).unwrap();
    fs::write(crib.path("other.wit"), "package a:b;\ninterface c {\n  /// Text.\n  f: func();\n}\n").unwrap();
    fs::write(crib.path("bad.wit"), "package a:b;\ninterface c {\n").unwrap();
    for wit in ["other.wit", "bad.wit", "no.wit"] {
        page.run(&crib, &["describe", "typed.wasm", "--wit", wit]);
    }
    assert_eq!(fs::read(crib.path("typed.wasm")).unwrap(), before);
    page.matches("typed/wit");
}

/// Policies, rules and hooks treat a tool in the same way, whatever its source.
#[test]
fn rules_and_records_know_functions_as_they_know_every_tool() {
    let crib: Crib = crib();
    let (outcome, _) = call(&crib, "add", &json!({"a": 1, "b": 2}), &["--deny-tool", "add"]);
    assert_eq!(outcome, "denied");
    let record = &crib.records()[0];
    assert_eq!((&record["tool"], &record["outcome"]), (&json!("add"), &json!("denied")));
    let digest = call(&crib, "add", &json!({"a": 1, "b": 2}), &[]);
    assert_eq!(digest.0, "ok");
    assert!(crib.records()[1]["digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:")));
}
