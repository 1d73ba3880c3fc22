//! Binding of a permanent approval: after any change of the tool, its calls need approval again.

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, guest};
use crate::screen::Page;

use super::terminal::Terminal;

const FLAGS: [&str; 2] = ["--json", "--ask-tool=t"];

/// Creates a crib with one tool `t` with these additional fields.
fn crib(more: Value) -> Crib {
    let crib = Crib::new();
    crib.install(&guest("echo"), "t");
    define(&crib, more);
    crib
}

fn define(crib: &Crib, more: Value) {
    let mut entry = json!({
        "name": "t",
        "description": "say it back",
        "command": ["./tools/bin/t", "--dry-run"],
        "schema": {"type": "object", "properties": {"path": {"type": "string"}}},
        "timeoutSec": 5,
        "capabilities": {"files": "read"},
    });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    crib.manifest(&json!({ "tools": [entry] }));
}

/// Approves calls of `t` permanently, and returns the question.
fn agree(crib: &Crib, flags: &[&str]) -> String {
    let mut terminal = Terminal::start(crib.toolcrib(&[&["call", "t", "{}"], &FLAGS[..], flags].concat()));
    let question = terminal.question();
    terminal.types("a");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    question
}

/// Reason of a decision without a question, and its message.
fn unasked(crib: &Crib, flags: &[&str]) -> (String, String) {
    let ran = crib.run(&[&["call", "t", "{}"], &FLAGS[..], flags].concat());
    let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (line["receipt"]["decision"]["reason"].as_str().unwrap_or_default().to_owned(), ran.stderr)
}

#[track_caller]
fn asked_again(crib: &Crib, flags: &[&str], change: &str) {
    let (reason, said) = unasked(crib, flags);
    assert_eq!(reason, "nobody", "{change}: {said}");
    assert_eq!(said.matches("hint: an approval of `t` does not apply: ").count(), 1, "{change}: {said}");
}

#[test]
fn every_change_of_a_definition_is_asked_about_again() {
    let crib = crib(json!({}));
    agree(&crib, &[]);
    assert_eq!(unasked(&crib, &[]).0, "always");
    for change in [
        json!({"command": ["./tools/bin/t", "--force"]}),
        json!({"command": ["./tools/bin/t"]}),
        json!({"command": ["./tools/bin/t", "--dry-run", "--force"]}),
        json!({"command": ["./tools/bin/t", "--dry-run --force"]}),
        json!({"description": "say it back, but first read all letters aloud"}),
        json!({"schema": {"type": "object", "properties": {"path": {"type": "string", "default": "/"}}}}),
        json!({"schema": {"type": "object"}}),
        json!({"envPassthrough": ["TOKEN"]}),
        json!({"timeoutSec": 6}),
        json!({"limits": {"memoryMb": 512}}),
        json!({"limits": {"requests": 1000}}),
        json!({"capabilities": {"files": "write"}}),
        json!({"capabilities": {"files": "read", "network": "allow"}}),
        json!({"interface": {"is_read_only": true}}),
        json!({"interface": {"aliases": ["u"]}}),
    ] {
        define(&crib, change.clone());
        asked_again(&crib, &[], &change.to_string());
    }
    define(&crib, json!({}));
    assert_eq!(unasked(&crib, &[]).0, "always", "what is as it was is covered as it was");
}

#[test]
fn the_same_tool_from_another_source_or_under_another_order_is_asked_about_again() {
    let crib = crib(json!({}));
    let other =
        |name: &str| json!({"name": name, "description": "say it back", "command": ["./tools/bin/t", "--dry-run"]});
    let copy = fs::read(crib.path("tools.json")).unwrap();
    fs::write(crib.path("second.json"), json!({"tools": [other("u")]}).to_string()).unwrap();
    let flags = ["--tools", "tools.json", "--tools", "second.json"];
    agree(&crib, &flags);
    assert_eq!(unasked(&crib, &flags).0, "always");
    let turned = ["--tools", "second.json", "--tools", "./work/../tools.json"];
    assert_eq!(unasked(&crib, &turned).0, "always", "the same file by another path and in another order is the same");
    // Now the other source provides the tool of this name.
    fs::write(crib.path("tools.json"), json!({"tools": [other("v")]}).to_string()).unwrap();
    fs::write(crib.path("second.json"), &copy).unwrap();
    asked_again(&crib, &flags, "another source");
    asked_again(&crib, &turned, "another source, in another order");
}

#[test]
fn an_entry_before_a_tool_changes_nothing_of_it() {
    let crib = crib(json!({}));
    agree(&crib, &[]);
    let mut manifest: Value = serde_json::from_slice(&fs::read(crib.path("tools.json")).unwrap()).unwrap();
    manifest["tools"].as_array_mut().unwrap().insert(0, json!({"name": "first", "command": ["./tools/bin/t"]}));
    crib.manifest(&manifest);
    assert_eq!(unasked(&crib, &[]).0, "always");
}

#[test]
fn the_text_of_a_markdown_tool_is_part_of_what_was_agreed_to() {
    let crib = Crib::new();
    let write = |returned: &str, described: &str| {
        fs::create_dir_all(crib.path(".harness/tools")).unwrap();
        let text = format!("---\nscript: |\n  def run(args):\n      return {returned}\n---\n{described}\n");
        fs::write(crib.path(".harness/tools/t.md"), text).unwrap();
    };
    write("1", "Say one.");
    agree(&crib, &[]);
    assert_eq!(unasked(&crib, &[]).0, "always");
    for (returned, described) in [("2", "Say one."), ("1", "Say one, and then everything else.")] {
        write(returned, described);
        asked_again(&crib, &[], described);
    }
}

#[test]
fn the_descriptor_of_a_component_is_part_of_what_was_agreed_to() {
    let crib = Crib::new();
    let describe = |description: &str| {
        crib.install(&guest("echo"), "t");
        fs::write(crib.path("t.json"), json!({"name": "t", "description": description}).to_string()).unwrap();
        let ran = crib.run(&["describe", "tools/bin/t.wasm", "--write", "t.json", "--out", "t.wasm"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    let flags = ["--tools", "t.wasm"];
    describe("say it back");
    agree(&crib, &flags);
    assert_eq!(unasked(&crib, &flags).0, "always");
    describe("say something else");
    asked_again(&crib, &flags, "a descriptor");
}

#[test]
fn a_question_shows_the_fixed_arguments() {
    let page = Page::new();
    let crib = crib(json!({"command": ["./tools/bin/t", "--force", "a b", "\u{1b}[2J"]}));
    let question = agree(&crib, &[]);
    page.text("fixed arguments", &question);
    define(&crib, json!({"command": ["./tools/bin/t"]}));
    let question = agree(&crib, &[]);
    page.text("no fixed argument", &question);
    page.matches("terminal/fixed");
}

#[test]
fn what_an_earlier_version_stored_is_read_and_asked_about_again() {
    let crib = crib(json!({}));
    agree(&crib, &[]);
    let path = crib.path("approvals.json");
    let mut stored: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    stored["approvals"][0].as_object_mut().unwrap().remove("definition").expect("it is bound to a definition");
    fs::write(&path, stored.to_string()).unwrap();
    asked_again(&crib, &[], "an earlier version");
    let said = unasked(&crib, &[]).1;
    assert!(said.contains("stored by an earlier version"), "{said}");
    let listed = crib.run(&["approvals", "list"]);
    assert!(
        listed.code == Some(0)
            && listed.stderr.contains("hint: approvals of an earlier version that no longer apply: 1"),
        "{listed:?}"
    );
    let others = crib.run(&["call", "t", "{}"]);
    assert_eq!((others.code, others.stderr.as_str()), (Some(0), ""), "where nothing is asked, nothing is said");
    agree(&crib, &[]);
    assert_eq!(unasked(&crib, &[]), ("always".to_owned(), String::new()));
    let listed: Value = serde_json::from_str(&crib.run(&["approvals", "list", "--json"]).stdout).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "the new one has taken its place: {listed}");
}
