//! Interpreters in sources: packed, reviewed and installed as tools are, and used by agreement alone.

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran, guest};

/// Paths of the component and its bundle.
const COMPONENT: &str = "steps.wasm";
const BUNDLE: &str = "steps.tar";
/// Flags that add the tools of the crib and the component.
const TOOLS: [&str; 2] = ["--tools=tools.json", "--tools=steps.wasm"];

/// Crib with `echo` and the interpreter of steps as a source.
fn crib() -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    fs::copy(guest("waiting"), crib.path(COMPONENT)).unwrap();
    crib
}

/// Runs a program with one call.
fn program(crib: &Crib, flags: &[&str]) -> Value {
    let code = json!([[["echo", {"n": 1}]]]).to_string();
    crib.call("run_code", &json!({"language": "steps", "code": code}), flags)
}

/// Agrees to the content that a command asks about, by the digest that it names.
fn agree(crib: &Crib, command: &[&str]) -> Ran {
    let asked = crib.run(command);
    let trust = asked.stderr.split_whitespace().find(|word| word.starts_with("--trust=sha256:"));
    let trust = trust.unwrap_or_else(|| panic!("a digest: {asked:?}"));
    crib.run(&[command, &[trust][..]].concat())
}

#[test]
fn an_interpreter_of_a_source_is_used_once_a_person_has_agreed_to_its_content() {
    let mut crib = crib();
    let refused = program(&crib, &TOOLS);
    assert!(refused["receipt"]["outcome"] == "bad-arguments" && refused.to_string().contains("steps"), "{refused}");
    let ran = crib.run(&["call", "run_code", r#"{"language":"python","code":"1"}"#, TOOLS[0], TOOLS[1]]);
    assert_eq!(ran.stdout, "{\"value\":1}\n");
    assert!(
        ran.stderr.contains("interpreter \"steps\" of steps programs is not used: nobody has trusted its source"),
        "{ran:?}"
    );

    crib.trusts = false;
    let agreed = agree(&crib, &["trust", COMPONENT]);
    let asks = "run the steps programs of a model, and make each call that they can make";
    assert!(agreed.code == Some(0) && agreed.stdout.contains(asks), "{agreed:?}");
    let line = program(&crib, &TOOLS);
    assert_eq!(line["result"]["value"], json!([[{"n": 1}]]), "{line}");
    let shown = crib.run(&["inspect", "run_code", TOOLS[0], TOOLS[1]]);
    assert!(
        shown.stdout.contains("  programs  python: built in, javascript: built in, steps: steps.wasm\n"),
        "{shown:?}"
    );

    let mut changed = fs::read(crib.path(COMPONENT)).unwrap();
    // A custom section at the end, with the name `x` and no content.
    changed.extend([0, 2, 1, b'x']);
    fs::write(crib.path(COMPONENT), changed).unwrap();
    assert_eq!(program(&crib, &TOOLS)["receipt"]["outcome"], "bad-arguments", "other content was never reviewed");
}

#[test]
fn a_bundle_with_an_interpreter_is_installed_as_one_with_tools() {
    let crib = crib();
    let packed = crib.run(&["bundle", "pack", COMPONENT, "--out", BUNDLE, "--name=acme/steps"]);
    assert_eq!(packed.code, Some(0), "{packed:?}");
    let installed = agree(&crib, &["install", "./steps.tar"]);
    assert!(installed.code == Some(0) && installed.stderr.contains("granted: programs:steps"), "{installed:?}");
    assert!(installed.stdout.contains("imports toolcrib:code/"), "the import shows what it can do: {installed:?}");
    fs::remove_file(crib.path(COMPONENT)).unwrap();
    fs::remove_file(crib.path(BUNDLE)).unwrap();
    let line = program(&crib, &[]);
    assert_eq!(line["result"]["value"], json!([[{"n": 1}]]), "{line}");

    let denied = program(&crib, &["--deny-tool=steps"]);
    assert_eq!(denied["receipt"]["outcome"], "bad-arguments", "a rule can leave it out: {denied}");

    let log = crib.run(&["audit", "show"]).stdout;
    assert!(log.contains(" ↳ echo ") && log.contains(" run_code "), "{log}");

    let listed: Value = serde_json::from_str(&crib.run(&["list", "--all", "--json"]).stdout).unwrap();
    let tool = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "steps").expect("the interpreter");
    assert!(tool.to_string().contains("an interpreter of steps programs"), "{tool}");
    let called = crib.call("steps", &json!({}), &[]);
    assert_eq!(called["receipt"]["outcome"], "denied", "{called}");
    let code = json!([[["steps", {}]]]).to_string();
    let nested = crib.call("run_code", &json!({"language": "steps", "code": code}), &[]);
    assert!(nested["result"]["value"][0][0]["failed"].is_string(), "no program calls it either: {nested}");
}

#[test]
fn an_interpreter_that_is_not_granted_or_states_no_language_is_unused() {
    let crib = crib();
    let source = fs::read(crib.path(COMPONENT)).unwrap();
    let name = b"toolcrib:language{";
    let at = source.windows(name.len()).position(|part| part == name).expect("the section");
    let mut nameless = source.clone();
    nameless[at] = b'x';
    fs::write(crib.path(COMPONENT), nameless).unwrap();
    let ran = crib.run(&["validate", COMPONENT]);
    assert!(ran.code == Some(1) && format!("{ran:?}").contains("without the custom section"), "{ran:?}");

    fs::write(crib.path(COMPONENT), source).unwrap();
    let packed = crib.run(&["bundle", "pack", COMPONENT, "--out", BUNDLE, "--name=acme/steps"]);
    assert_eq!(packed.code, Some(0), "{packed:?}");
    let installed = agree(&crib, &["install", "./steps.tar", "--grant=none"]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let line = program(&crib, &[]);
    assert_eq!(line["receipt"]["outcome"], "bad-arguments", "{line}");
}
