//! `toolcrib inspect`: the output about one tool, for people and for programs.

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, target, toolbox};
use crate::screen::Page;

fn inspect(crib: &Crib, args: &[&str]) -> Value {
    let ran = crib.run(&[&["inspect", "--json"], args].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Creates a crib with one tool `n`, of the guest `echo`.
fn crib(interface: &Value) -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    crib.manifest(&json!({"tools": [{
        "name": "n", "description": "d", "command": ["./tools/bin/echo"], "timeoutSec": 2, "envPassthrough": ["TZ"],
        "schema": {"type": "object", "properties": {"a": {}, "b": {"visibility": "internal"}}},
        "capabilities": {"files": "read"}, "interface": interface, "x_vendor": 1
    }]}));
    crib
}

#[test]
fn every_field_is_told_with_its_basis() {
    let crib = crib(&json!({"strict": true}));
    let output = inspect(&crib, &["n"]);
    let fact = |partition: &str, field: &str| output["interface"][partition][field].clone();
    let is = |value: Value, basis: &str| json!({"value": value, "basis": basis});
    assert_eq!(output["interface"].as_object().unwrap().len(), 10, "ten partitions");
    assert_eq!(fact("identity", "tool_id"), is(json!("toolcrib.n"), "default"));
    assert_eq!(fact("identity", "name"), is(json!("n"), "declared"));
    assert_eq!(fact("discovery", "description"), is(json!("d"), "declared"));
    assert_eq!(fact("schemas", "strict"), is(json!(true), "declared"));
    assert_eq!(
        fact("schemas", "runtime_input_schema")["value"]["properties"],
        json!({"a": {}, "b": {"visibility": "internal"}})
    );
    assert_eq!(fact("schemas", "model_input_schema")["value"]["properties"], json!({"a": {}}));
    assert_eq!(fact("execution", "timeout_ms"), is(json!(2000), "declared"));
    assert_eq!(fact("safety", "is_read_only"), is(json!(true), "inferred"));
    assert_eq!(fact("safety", "requires_user_interaction"), is(json!(false), "default"));
}

#[test]
fn what_stands_around_a_tool_is_told() {
    let crib = crib(&json!({}));
    let output = inspect(&crib, &["n", "--allow-read=work", "--deny-env=TZ", "--max-memory=1MiB"]);
    assert_eq!((&output["name"], &output["description"]), (&json!("n"), &json!("d")));
    assert_eq!(output["source"]["format"], "manifest");
    assert_eq!((&output["source"]["index"], &output["source"]["unknown"]), (&json!(0), &json!({"x_vendor": 1})));
    assert_eq!(output["requested"], json!({"stated": true, "files": "read", "env": ["TZ"]}));
    assert!(output["granted"][0].as_str().unwrap().starts_with("read:"), "{output}");
    assert_eq!(output["denied"], json!(["env:TZ"]));
    assert_eq!((&output["limits"]["deadlineMs"], &output["limits"]["memoryBytes"]), (&json!(2000), &json!(1 << 20)));
    let called = crib.call("n", &json!({"a": 1}), &[]);
    assert_eq!(output["program"]["digest"], called["receipt"]["digest"], "the digest of the receipt: {called}");
    assert_eq!(output["program"]["bytes"], fs::metadata(crib.path("tools/bin/echo.wasm")).unwrap().len());
    let imports = output["imports"].as_array().unwrap();
    let stdin = imports.iter().find(|import| import["from"].as_str().unwrap().starts_with("wasi:cli/stdin@"));
    assert_eq!(stdin.unwrap()["functions"], json!(["get-stdin"]));
}

#[test]
fn a_file_is_inspected_alone() {
    let crib = crib(&json!({}));
    let component = inspect(&crib, &["tools/bin/echo.wasm"]);
    assert_eq!((&component["name"], &component["source"]["format"]), (&json!("echo"), &json!("component")));
    let record =
        json!({"schema_version": "0.2.0", "tool_id": "a.r", "component": "tools/bin/echo", "lifecycle": "retired"});
    fs::write(crib.path("r.tool.json"), record.to_string()).unwrap();
    let record = inspect(&crib, &["r.tool.json"]);
    assert_eq!((&record["name"], &record["source"]["format"]), (&json!("r"), &json!("agent-tool")));
    assert_eq!((&record["callable"], &record["reason"]), (&json!(false), &json!("the tool is disabled")));
    let one_entry = inspect(&crib, &["tools.json"]);
    assert_eq!(one_entry["name"], "n");
}

#[test]
fn a_person_reads_a_sheet() {
    let page = Page::of_programs();
    let crib = crib(&json!({"rendering": {"ui_summary": "do {a}"}}));
    let sheet = page.run(&crib, &["inspect", "n"]).stdout;
    assert!(sheet.contains("wasi:cli/stdin@"), "{sheet}");
    page.run(&crib, &["inspect", "n", "--all"]);
    page.matches("inspect/sheet");
}

#[test]
fn a_text_of_a_tool_has_no_power_over_a_terminal() {
    let page = Page::of_programs();
    let crib = crib(&json!({"search_hint": "a\u{1b}[2J\nb", "aliases": ["\u{202e}x"]}));
    page.run(&crib, &["inspect", "n"]);
    page.matches("inspect/hostile-text");
}

#[test]
fn a_wrong_name_or_file_is_told_with_what_to_do() {
    let page = Page::new();
    let crib = crib(&json!({}));
    page.run(&crib, &["inspect", "m"]);
    page.run(&crib, &["inspect", "absent.tool.json"]);
    page.run(&crib, &["inspect", toolbox().join("tools.json").to_str().unwrap()]);
    page.matches("inspect/wrong-name");
}

#[test]
fn no_shipped_tool_leaves_its_behaviour_to_a_guess() {
    let crib = Crib::new();
    let manifest = target().join("crib/tools.json");
    let names: Value =
        serde_json::from_str(&crib.run(&["list", "--json", "--tools", manifest.to_str().unwrap()]).stdout).unwrap();
    for tool in names.as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let output = inspect(&crib, &[name, "--tools", manifest.to_str().unwrap()]);
        for (partition, field) in [
            ("identity", "user_facing_name"),
            ("discovery", "search_hint"),
            ("rendering", "ui_summary"),
            ("rendering", "activity_description"),
            ("rendering", "transcript_search_text"),
        ] {
            assert_eq!(output["interface"][partition][field]["basis"], "declared", "{name}: {field}");
        }
        let names_resources = output["interface"]["schemas"]["runtime_input_schema"]["value"]["properties"]
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| key.ends_with("path") || ["from", "to", "url"].contains(&key.as_str()))
            .count();
        let checked = output["interface"]["validation"]["io_preflight_validation"]["value"].as_array().unwrap().len();
        assert_eq!(checked, names_resources, "{name}");
    }
}
