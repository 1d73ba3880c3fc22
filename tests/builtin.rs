//! The built-in tools: available by name and in a folder without a project, trusted like the program, and stored once.

mod init;
mod storing;

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran, toolbox};
use crate::screen::Page;

/// Part of the hint that the tools are the built-in ones.
const HINT: &str = "the tools are the built-in ones; `toolcrib init` creates a project with them";
/// Call with a known answer.
const CALL: [&str; 3] = ["call", "calculate", r#"{"expression":"6*7"}"#];

/// Names of the shipped tools.
fn shipped() -> Vec<String> {
    let manifest: Value = serde_json::from_slice(&fs::read(toolbox().join("tools.json")).unwrap()).unwrap();
    let tools = manifest["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Records of `list --json`.
fn listed(ran: &Ran) -> Vec<Value> {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Asserts that a run of [`CALL`] has its answer.
fn calculated(ran: &Ran) {
    assert!(ran.code == Some(0) && ran.stdout.contains(r#""result":"42""#), "{ran:?}");
}

#[test]
fn a_folder_without_a_project_has_the_shipped_tools_and_a_hint_says_so() {
    let page = Page::new();
    let crib = Crib::new();
    let ran = page.run(&crib, &["list"]);
    let rows: Vec<&str> = ran.stdout.lines().skip(1).collect();
    assert_eq!(rows.len(), shipped().len());
    assert!(rows.iter().all(|row| row.contains("  built in  ")), "{ran:?}");
    let tools = listed(&crib.run(&["list", "--json"]));
    assert_eq!(names(&tools), shipped());
    for tool in &tools {
        assert_eq!(tool["source"]["builtin"], true, "{tool}");
        // Trust grants the requests of a definition, and no folder and no host.
        assert_eq!(tool["granted"] == json!([]), tool["name"] != "summarize", "{tool}");
    }
    page.note("a call that succeeds needs no hint");
    let ran = page.run(&crib, &CALL);
    calculated(&ran);
    let ran = page.run(&crib, &["call", "calc"]);
    assert!(ran.stderr.matches(HINT).count() == 1, "{ran:?}");
    page.run(&crib, &["call", "fs_list_dir", r#"{"path":"."}"#]);
    page.run(&crib, &["call", "fs_list_dir", r#"{"path":"."}"#, "--allow-read=work"]);
    page.matches("builtin/hint");
}

#[test]
fn the_hints_about_the_tools_are_those_of_the_beginning_of_a_conversation() {
    let crib = Crib::new();
    let script = json!({"prompt": "go", "turns": [{"content": "one"}, {"content": "two"}]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let hints = ["the tools are the built-in ones", "hidden from the model: missing permissions"];
    let ran = crib.run(&["run", "--script", "script.json"]);
    assert!(ran.code == Some(0) && hints.iter().all(|hint| ran.stderr.matches(hint).count() == 1), "{ran:?}");
    let ran = crib.run(&["run", "and now?", "--continue", "--script", "script.json"]);
    assert!(ran.code == Some(0) && !hints.iter().any(|hint| ran.stderr.contains(hint)), "{ran:?}");
}

#[test]
fn the_tools_are_shown_as_a_part_of_the_program() {
    let page = Page::of_programs();
    let crib = Crib::new();
    page.run(&crib, &["inspect", "calculate"]);
    let ran = crib.run(&["inspect", "calculate", "--tools", "builtin", "--json"]);
    let output: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(output["source"]["builtin"], true);
    for flags in [&[][..], &["--tools", "builtin"]] {
        page.run(&crib, &[&["doctor"], flags].concat());
    }
    page.run(&crib, &["trust", "builtin"]);
    page.run(&crib, &["validate", "builtin"]);
    let ran = crib.run(&["mcp", "config", "cursor", "--tools", "builtin", "--json"]);
    let output: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(output["entry"]["args"], json!(["mcp", "--tools", "builtin"]), "{output}");
    page.matches("builtin/shown");
}

#[test]
fn the_name_adds_them_to_a_project_that_does_not_have_them() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let ran = crib.run(&["list", "--json"]);
    assert_eq!((names(&listed(&ran)), ran.stderr.as_str()), (vec!["echo"], ""));
    page.run(&crib, &CALL);
    let ran = page.run(&crib, &[&["--color", "never"], &CALL[..], &["--tools", "builtin"]].concat());
    calculated(&ran);
    let tools = listed(&crib.run(&["list", "--json", "--tools", "tools.json", "--tools", "builtin"]));
    assert_eq!((tools.len(), &tools[0]["name"]), (shipped().len() + 1, &json!("echo")));
    assert_eq!((&tools[0]["source"]["builtin"], &tools[1]["source"]["builtin"]), (&json!(false), &json!(true)));
    page.matches("builtin/added");
}

#[test]
fn a_folder_of_the_same_name_is_no_built_in_source() {
    let crib = Crib::with_guests(&["echo"]);
    fs::create_dir_all(crib.path("builtin/tools/bin")).unwrap();
    for file in ["tools.json", "tools/bin/echo.wasm"] {
        fs::rename(crib.path(file), crib.path("builtin").join(file)).unwrap();
    }
    assert_eq!(names(&listed(&crib.run(&["list", "--json", "--tools", "builtin"]))), shipped());
    for path in ["./builtin", "builtin/"] {
        assert_eq!(names(&listed(&crib.run(&["list", "--json", "--tools", path]))), ["echo"], "{path}");
    }
}
