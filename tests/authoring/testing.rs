//! `toolcrib test`: passing and failing cases, each in its own sandbox and folder.

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran, toolbox};
use crate::screen::Page;

use super::{shipped, write};

fn tested(crib: &Crib, component: &str, cases: &Value, flags: &[&str]) -> Ran {
    write(crib, "tests.json", &json!({ "cases": cases }).to_string());
    crib.run(&[&["test", component], flags].concat())
}

#[test]
fn cases_that_hold_are_ok() {
    let crib = Crib::new();
    shipped(&crib, "get_time");
    let cases = json!([
        { "name": "knows UTC", "arguments": { "timezone": "UTC" }, "expect": { "contains": "\"offset\":\"+00:00\"" } },
        { "name": "needs a zone", "tool": "get_time", "expect": { "error": "`timezone` is required" } },
        { "name": "fails by itself", "arguments": { "timezone": "x" }, "expect": { "outcome": "failed" } },
    ]);
    let ran = tested(&crib, "get_time.wasm", &cases, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("ok      knows UTC  ") && lines[0].ends_with(" ms"), "{}", ran.stdout);
    assert!(lines.len() == 4 && lines[3].starts_with("3 cases, 0 failed, "), "{}", ran.stdout);
    let records = crib.records();
    assert_eq!(records.len(), 3, "each is signed for");
    assert!(records.iter().all(|record| record["run"] == records[0]["run"] && record["door"] == "test"), "{records:?}");
    assert_eq!(tested(&crib, ".", &cases, &[]).code, Some(0), "the folder has one component");
}

#[test]
fn a_case_that_fails_says_what_was_expected_and_found() {
    let page = Page::new();
    let crib = Crib::new();
    shipped(&crib, "calculate");
    let cases = json!([
        { "name": "adds", "arguments": { "expression": "1 + 1" }, "expect": { "answer": { "result": "3" } } },
        { "name": "an answer is no error", "arguments": { "expression": "1 + 1" }, "expect": { "error": "2" } },
        { "name": "an error is no answer", "expect": { "contains": "expression" } },
        { "name": "ends otherwise", "arguments": { "expression": "1" }, "expect": { "outcome": "denied" } },
    ]);
    let ran = tested(&crib, "calculate.wasm", &cases, &[]);
    page.show(&ran);
    assert_eq!(ran.stdout.matches("FAILED  ").count(), 4, "{}", ran.stdout);
    let ran = tested(&crib, "calculate.wasm", &cases, &["--json"]);
    let total: Value = serde_json::from_str(&ran.stdout).expect("one object");
    assert_eq!((&total["passed"], &total["failed"]), (&json!(0), &json!(4)), "{total}");
    assert_eq!(total["cases"][0]["failures"][0]["expected"], "{\"result\":\"3\"}");
    page.matches("test/failed");
}

#[test]
fn files_are_fresh_in_every_case_and_looked_at_afterwards() {
    let page = Page::new();
    let crib = Crib::new();
    shipped(&crib, "fs_write_file");
    let arguments = json!({ "path": "a/b.md", "content": "new" });
    let case = |name: &str, files: Value, after: Value| {
        json!({
            "name": name, "arguments": arguments, "files": files, "after": after, "expect": { "outcome": "ok" },
        })
    };
    let cases = json!([
        case("writes", json!({ "a/b.md": "old", "c": "kept" }), json!({ "a/b.md": "new", "c": "kept", "d": null })),
        case("writes otherwise", json!({ "a/b.md": "old" }), json!({ "a/b.md": "old", "c": "kept" })),
        { "name": "has no folder", "arguments": arguments, "expect": { "outcome": "ok" } },
    ]);
    let ran = tested(&crib, "fs_write_file.wasm", &cases, &[]);
    page.show(&ran);
    page.matches("test/files");
}

#[test]
fn nothing_is_tested_where_there_is_nothing_to_test() {
    let page = Page::new();
    let crib = Crib::new();
    page.run(&crib, &["test"]);
    shipped(&crib, "get_time");
    page.run(&crib, &["test"]);
    write(&crib, "tests.json", r#"{"cases": []}"#);
    page.text("tests.json", r#"{"cases": []}"#);
    page.run(&crib, &["test"]);
    write(&crib, "tests.json", r#"{"cases": [{"name": "a", "expect": {"answer": 1}, "arguement": {}}]}"#);
    page.text("tests.json", r#"{"cases": [{"name": "a", "expect": {"answer": 1}, "arguement": {}}]}"#);
    page.run(&crib, &["test"]);
    write(&crib, "tests.json", r#"{"cases": [{"name": "a", "tool": "get_tim", "expect": {"answer": 1}}]}"#);
    page.text("tests.json", r#"{"cases": [{"name": "a", "tool": "get_tim", "expect": {"answer": 1}}]}"#);
    page.run(&crib, &["test"]);
    shipped(&crib, "calculate");
    page.run(&crib, &["test"]);
    assert!(crib.records().is_empty(), "no call was made");
    page.matches("test/nothing");
}

#[test]
fn a_folder_is_tested_with_all_tools_that_have_cases() {
    let page = Page::new().hide(r#""unix":\d+.*?"weekday":"\w+""#, r#""unix":[now]"#);
    let crib = Crib::new();
    page.run(&crib, &["new", "tool", "count", "--markdown"]);
    let ran = page.run(&crib, &["test"]);
    assert!(ran.stdout.lines().count() == 3, "{ran:?}");
    let folder = crib.path("time");
    fs::create_dir_all(&folder).expect("a folder");
    fs::copy(toolbox().join("tools/bin/get_time.wasm"), folder.join("get_time.wasm")).expect("the crib was laid out");
    let cases =
        r#"{"cases": [{"name": "knows UTC", "arguments": {"timezone": "UTC"}, "expect": {"contains": "UTC"}}]}"#;
    write(&crib, "time/tests.json", cases);
    // Neither a tool nor beside one.
    write(&crib, "data/tests.json", "[1, 2]");
    write(&crib, "target/x/tests.json", "[1, 2]");
    page.run(&crib, &["test"]);
    write(&crib, "time/get_time.tests.json", &cases.replace("{\"contains\": \"UTC\"}", "{\"answer\": 1}"));
    write(&crib, "lost.tests.json", cases);
    page.run(&crib, &["test", "."]);
    let total: Value = serde_json::from_str(&crib.run(&["test", "--json"]).stdout).expect("one object");
    assert_eq!(total["errors"][0]["source"], "lost.md", "{total}");
    let sources = total["cases"].as_array().expect("cases").iter();
    assert!(sources.clone().any(|case| case["source"] == ".harness/tools/count.md" && case["ok"] == true), "{total}");
    page.matches("test/folder");
}

#[test]
fn each_source_that_is_not_tested_has_its_hint() {
    let crib = Crib::new();
    let cases = r#"{"cases": [{"name": "a", "expect": {"contains": "a"}}]}"#;
    for name in ["one", "two"] {
        write(&crib, &format!("{name}.tests.json"), cases);
    }
    let ran = crib.run(&["test"]);
    let errors = ran.stderr.lines().filter(|line| line.starts_with("error: ")).count();
    let hints = ran.stderr.lines().filter(|line| line.starts_with("hint: ")).count();
    assert!(errors == 2 && hints == 2, "{ran:?}");
}

#[test]
fn a_misspelt_path_leads_to_the_nearest() {
    let crib = Crib::new();
    assert_eq!(crib.run(&["new", "tool", "count", "--markdown"]).code, Some(0));
    shipped(&crib, "get_time");
    for (path, near) in [
        ("get_tme.wasm", "did you mean `get_time.wasm`?"),
        ("get_time", "did you mean `get_time.wasm`?"),
        ("cuont", "did you mean `.harness/tools/count.md`?"),
        ("wrok", "did you mean `work`?"),
        ("nothing-like-it", "pass a component, a Markdown tool, or a folder of them"),
    ] {
        let ran = crib.run(&["test", path]);
        let expected = format!("error: `{path}` does not exist\nhint: {near}\n");
        assert_eq!((ran.code, ran.stderr), (Some(1), expected));
    }
}
