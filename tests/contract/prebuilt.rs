//! Prebuilt components, one for each contract: they run as they did when they were built.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::crib::Crib;

fn prebuilt(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/contracts").join(name)
}

/// A crib that holds one prebuilt component in its folder.
fn crib(component: &str) -> Crib {
    let crib = Crib::new();
    fs::copy(prebuilt(component), crib.path(component)).unwrap();
    crib
}

#[test]
fn a_prebuilt_command_answers_and_checks_its_calls() {
    let crib = Crib::new();
    crib.install(&prebuilt("command.wasm"), "command");
    crib.manifest(&json!({"tools": [{"name": "command", "command": ["./tools/bin/command"]}]}));
    let line = crib.call("command", &json!({"a": 1}), &[]);
    assert_eq!((&line["result"], &line["receipt"]["outcome"]), (&json!({"arguments": {"a": 1}}), &json!("ok")));
    let line = crib.call("command", &json!({"a": "refuse"}), &[]);
    assert_eq!(line["error"], "invalid values: refused by its own check");
    assert_eq!(line["receipt"]["outcome"], "bad-arguments");
}

#[test]
fn a_prebuilt_rich_tool_answers_and_checks_its_calls() {
    let crib = crib("tool.wasm");
    let line = crib.call("tool", &json!({"a": 1}), &["--tools", "tool.wasm"]);
    assert_eq!(line["result"], json!({"cached": {"a": 1}, "secrets": 0}));
    assert_eq!(line["shown"], json!([{"type": "text", "text": "done"}]));
    assert_eq!((&line["receipt"]["outcome"], &line["receipt"]["parts"]), (&json!("ok"), &json!(2)));
    let line = crib.call("tool", &json!({"a": "refuse"}), &["--tools", "tool.wasm"]);
    assert_eq!(line["error"], "invalid values: refused by its own check");
    assert_eq!(line["receipt"]["outcome"], "bad-arguments");
}

#[test]
fn prebuilt_typed_functions_are_tools() {
    let crib = crib("typed.wasm");
    let flags = ["--tools", "typed.wasm"];
    let line = crib.call("add", &json!({"numbers": {"left": 40, "right": 2}}), &flags);
    assert_eq!((&line["result"], &line["receipt"]["outcome"]), (&json!(42), &json!("ok")));
    let line = crib.call("add", &json!({"numbers": {"left": u32::MAX, "right": 1}}), &flags);
    assert_eq!((&line["error"], &line["receipt"]["outcome"]), (&json!("the sum is too large"), &json!("failed")));
    assert_eq!(crib.outcome("add", &json!({"numbers": {"left": -1, "right": 1}}), &flags), "bad-arguments");
    let line = crib.call("greet", &json!({"names": ["Ada"]}), &flags);
    assert_eq!(line["result"], json!(["hello Ada"]));
}

#[test]
fn every_prebuilt_component_is_called_and_small() {
    let files = fs::read_dir(prebuilt("")).unwrap().map(|entry| entry.unwrap().path());
    let mut components: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "wasm")).collect();
    components.sort();
    let names: Vec<_> = components.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["command", "tool", "typed"], "a new component needs a test");
    for path in &components {
        assert!(fs::metadata(path).unwrap().len() < 60_000, "{}", path.display());
    }
}
