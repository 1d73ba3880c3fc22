//! Calls of one tool among others: no program but its own is read, and names, hints and protection still cover
//! all tools.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
#[cfg(target_os = "linux")]
use crate::crib::guest;
use crate::screen::Page;

use super::{entry, mixed};

/// Creates the crib of [`mixed`] without trust in its manifest: the review of a trusted one reads all programs.
fn unreviewed() -> Crib {
    Crib { trusts: false, ..mixed() }
}

#[test]
fn the_call_of_a_broken_tool_tells_its_mistake_once() {
    let page = Page::new();
    let crib = Crib::new();
    fs::write(crib.path("bad.md"), "---\ntimeout_ms: -1\nscript: |\n  def run(args):\n    return 1\n---\n").unwrap();
    fs::write(crib.path("unparsed.md"), "no front matter").unwrap();
    fs::write(crib.path("bad.tool.json"), "{\"schema_version\": \"0.2.0\", \"tool_id\": \"a.bad\"}").unwrap();
    for (file, name, told) in [
        ("bad.md", "bad", "timeout_ms must be >= 0"),
        ("unparsed.md", "unparsed", "markdown file must start with"),
        ("bad.tool.json", "bad", "component is required"),
    ] {
        let ran = page.run(&crib, &["call", name, "--tools", file]);
        assert_eq!((ran.code, ran.stderr.matches(told).count()), (Some(1), 1), "{ran:?}");
        let ran = page.run(&crib, &["validate", file]);
        assert_eq!((ran.code, ran.stdout.matches("error: ").count()), (Some(1), 1), "{ran:?}");
    }
    // Another tool of the same file keeps its warning.
    fs::write(crib.path("sound.md"), "---\nscript: |\n  def run(args):\n    return 1\n---\nOne.\n").unwrap();
    page.run(&crib, &["call", "sound", "--tools", "sound.md", "--tools", "bad.md"]);
    page.matches("unusable/mistake");
}

#[test]
fn a_call_reads_no_program_but_its_own() {
    let page = Page::new();
    let crib = unreviewed();
    page.run(&crib, &["list"]);
    page.run(&crib, &["call", "echo", r#"{"n":1}"#]);
    // Faults of the manifest are found without the programs.
    crib.manifest(&json!({"tools": [entry("echo"), entry("garbage"), {"name": "faulty", "command": []}]}));
    page.run(&crib, &["call", "echo", r#"{"n":1}"#]);
    page.matches("unusable/own-program");
}

#[test]
fn an_unusable_tool_that_is_called_is_refused_with_its_own_reason() {
    let page = Page::new();
    let crib = unreviewed();
    for (name, _) in super::BAD {
        page.run(&crib, &["call", name]);
    }
    page.run(&crib, &["call", "ecko"]);
    page.matches("unusable/called");
}

#[test]
fn names_of_tools_that_are_not_called_are_taken() {
    let page = Page::new();
    for other in ["echo", "Echo"] {
        let crib = Crib { trusts: false, ..Crib::with_guests(&["echo"]) };
        crib.manifest(&json!({"tools": [entry("echo"), entry(other)]}));
        page.run(&crib, &["call", "echo", r#"{"n":1}"#]);
    }
    page.matches("unusable/names");
}

/// Other systems protect files by their names alone.
#[cfg(target_os = "linux")]
#[test]
fn the_programs_of_tools_that_are_not_called_are_protected() {
    let crib = Crib { trusts: false, ..Crib::new() };
    let writer = crib.entry("file_io");
    let programs = ["work/other.wasm", "work/unwritten.wasm"].map(|path| crib.path(path));
    fs::copy(guest("echo"), &programs[0]).unwrap();
    let other = |name: &str, program: &std::path::Path| json!({"name": name, "command": [program]});
    crib.manifest(&json!({"tools": [writer, other("other", &programs[0]), other("unwritten", &programs[1])]}));
    let before = fs::read(&programs[0]).unwrap();
    for path in ["other.wasm", "unwritten.wasm"] {
        let arguments = json!({"op": "write", "path": path, "text": "x"});
        let line = crib.call("file_io", &arguments, &["--allow-write=work"]);
        assert_eq!(line["result"]["error"], "not-permitted", "{line}");
    }
    assert!(fs::read(&programs[0]).unwrap() == before && !programs[1].exists());
    let line: Value =
        crib.call("file_io", &json!({"op": "write", "path": "free", "text": "x"}), &["--allow-write=work"]);
    assert!(line["result"].get("ok").is_some(), "{line}");
}
