//! Many tools of one program: shared state is created once, and the number of tools is limited.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::crib::{Crib, guest, nesting};
use crate::screen::Page;

/// Maximum tools of a run.
const MAX_TOOLS: usize = 32_768;

/// Creates a crib with a manifest that names one program this many times.
fn crib(count: usize) -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    let entry = |n: usize| {
        json!({"name": format!("tool_{n}"), "description": format!("Number {n}."), "command": ["./tools/bin/echo"], "schema": {
            "type": "object", "properties": {"a": {"type": "integer", "maximum": n}}
        }})
    };
    crib.manifest(&json!({"tools": (0..count).map(entry).collect::<Vec<_>>()}));
    crib
}

#[test]
fn thousands_of_tools_of_one_program_are_listed_called_and_run() {
    let crib = crib(5000);
    let begun = Instant::now();
    let ran = crib.run(&["list"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 5001), "{}", ran.stderr);
    assert_eq!(crib.outcome("tool_4999", &json!({"a": 4999}), &[]), "ok");
    assert_eq!(crib.outcome("tool_7", &json!({"a": 8}), &[]), "bad-arguments", "each has a schema of its own");
    let script = json!({"prompt": "go", "turns": [
        {"content": "", "tool_calls": [{"name": "tool_search", "arguments": {"query": "select:tool_4321"}}]},
        {"content": "", "tool_calls": [{"name": "tool_4321", "arguments": {"a": 1}}]},
        {"content": "the end"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "the end\n"), "{}", ran.stderr);
    assert_eq!(crib.records().last().unwrap()["outcome"], "ok");
    // Compiling a program for each of them takes gigabytes and minutes.
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
}

#[test]
fn more_tools_than_a_run_may_have_are_refused_with_the_limit() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let manifest = |name: &str, count: usize| {
        let entry = |n: usize| format!(r#"{{"name":"{name}_{n}","command":["./tools/bin/echo"]}}"#);
        let text = format!(r#"{{"tools":[{}]}}"#, (0..count).map(entry).collect::<Vec<_>>().join(","));
        fs::write(crib.path(format!("{name}.json")), text).unwrap();
    };
    manifest("a", MAX_TOOLS + 1);
    for args in [&["list", "--tools", "a.json"][..], &["validate", "a.json"]] {
        page.run(&crib, args);
    }
    // The limit covers all sources together.
    manifest("a", MAX_TOOLS);
    manifest("b", 1);
    page.run(&crib, &["list", "--tools", "a.json", "--tools", "b.json"]);
    page.matches("unusable/too-many");
}

#[test]
fn one_program_under_several_names_is_one() {
    let crib = Crib::new();
    for name in ["one", "two", "three"] {
        crib.install(&guest("echo"), name);
    }
    let runtime = nesting::builder(toolcrib::Audit::off()).source(crib.path("tools/bin")).build().unwrap();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let digests: Vec<_> = ["one", "two", "three"]
        .map(|name| tokio.block_on(nesting::call(&runtime, toolcrib::ToolCall::new("", name, r#"{"a":1}"#))))
        .into_iter()
        .map(|result| (result.outcome.unwrap(), result.receipt.digest))
        .collect();
    assert!(digests.iter().all(|(answer, digest)| answer == r#"{"a":1}"# && *digest == digests[0].1), "{digests:?}");
}

#[test]
fn a_schema_is_asked_for_by_an_alias() {
    let crib = Crib::with_guests(&["echo"]);
    crib.manifest(&json!({"tools": [
        {"name": "echo", "command": ["./tools/bin/echo"], "interface": {"aliases": ["say", "repeat"]}}
    ]}));
    let expected = crib.run(&["schema", "echo"]);
    for names in [&["schema", "say"][..], &["schema", "repeat", "say"], &["schema", "echo", "say"]] {
        let ran = crib.run(names);
        assert_eq!((ran.code, &ran.stdout), (Some(0), &expected.stdout), "{names:?}");
    }
    assert_eq!(crib.run(&["schema", "sya"]).code, Some(1));
}
