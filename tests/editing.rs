//! Shipped tools that change many files in one call: their bounds on numbers of files, stages, undo, labels and questions.

use std::fmt::Write;
use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, toolbox};

/// Tools of these tests.
const EDITORS: [&str; 4] = ["fs_replace", "fs_copy", "apply_patch", "fs_read_file"];
/// Flags: these tools over the folder `work`.
const TOOLS: [&str; 2] = ["--tools=tools.json", "--allow-write=work"];

/// Creates a crib with the tools that edit, which have more time than usual: the machine is shared.
fn patient() -> Crib {
    let crib = Crib::new();
    let shipped: Value = serde_json::from_str(include_str!("../tools/tools.json")).unwrap();
    let mut tools = shipped["tools"].as_array().unwrap().clone();
    tools.retain(|tool| EDITORS.contains(&tool["name"].as_str().unwrap()));
    for tool in &mut tools {
        tool["timeoutSec"] = 600.into();
        let name = tool["name"].as_str().unwrap();
        crib.install(&toolbox().join(format!("tools/bin/{name}.wasm")), name);
    }
    crib.manifest(&json!({ "tools": tools }));
    crib
}

/// Creates files `d/0` to `d/N` with this content.
fn numbered(crib: &Crib, count: usize, content: &str) {
    fs::create_dir_all(crib.path("work/d")).unwrap();
    for number in 0..count {
        fs::write(crib.path("work/d").join(number.to_string()), content).unwrap();
    }
}

fn text(crib: &Crib, name: &str) -> Option<String> {
    fs::read_to_string(crib.path("work").join(name)).ok()
}

/// Calls a tool that fails, and returns its error.
#[track_caller]
fn refused(crib: &Crib, tool: &str, arguments: &Value) -> String {
    let line = crib.call(tool, arguments, &TOOLS);
    assert_eq!(line["receipt"]["outcome"], "failed", "{line}");
    line["error"].as_str().unwrap().to_owned()
}

/// Calls a tool that succeeds, and returns its result.
#[track_caller]
fn done(crib: &Crib, tool: &str, arguments: &Value) -> Value {
    let line = crib.call(tool, arguments, &TOOLS);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    line["result"].clone()
}

#[test]
fn a_replacement_in_too_many_files_changes_none() {
    let crib = patient();
    numbered(&crib, 2001, "old");
    let replace = |more: Value| {
        let mut arguments = json!({"pattern": "old", "replacement": "new"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let error = refused(&crib, "fs_replace", &replace(json!({})));
    assert!(
        error.starts_with("more than 2000 files would change") && error.ends_with("no file was changed"),
        "{error}"
    );
    assert_eq!(text(&crib, "d/0").as_deref(), Some("old"));
    let result = done(&crib, "fs_replace", &replace(json!({"exclude": ["d/2000"]})));
    assert_eq!((&result["files_changed"], &result["files_not_listed"]), (&json!(2000), &json!(1900)), "{result}");
    assert_eq!(result["files"].as_array().unwrap().len(), 100);
    assert_eq!((text(&crib, "d/1999").as_deref(), text(&crib, "d/2000").as_deref()), (Some("new"), Some("old")));
}

#[test]
fn a_replacement_that_selects_too_many_files_is_refused() {
    let crib = patient();
    numbered(&crib, 20_001, "");
    let error = refused(&crib, "fs_replace", &json!({"pattern": "old", "replacement": "new"}));
    assert!(error.starts_with("more than 20000 files are selected"), "{error}");
}

#[test]
fn a_copy_of_too_many_entries_copies_none() {
    let crib = patient();
    // The folder counts too.
    numbered(&crib, 5000, "x");
    let error = refused(&crib, "fs_copy", &json!({"from": "d", "to": "e"}));
    assert!(error.starts_with("copy: more than 5000 files and folders"), "{error}");
    assert!(!crib.path("work/e").exists());
    fs::remove_file(crib.path("work/d/0")).unwrap();
    let result = done(&crib, "fs_copy", &json!({"from": "d", "to": "e"}));
    assert_eq!((&result["files"], &result["folders"]), (&json!(4999), &json!(1)), "{result}");
    assert_eq!(text(&crib, "e/4999").as_deref(), Some("x"));
}

#[test]
fn a_copy_that_ends_at_the_quota_leaves_nothing() {
    let crib = patient();
    numbered(&crib, 10, "0123456789");
    let flags = [&TOOLS[..], &["--set=limits.max_disk=55B"]].concat();
    let line = crib.call("fs_copy", &json!({"from": "d", "to": "e"}), &flags);
    assert_ne!(line["receipt"]["outcome"], "ok", "{line}");
    assert!(!crib.path("work/e").exists(), "{line}");
}

#[test]
fn a_patch_changes_1000_files_and_lists_100() {
    let crib = patient();
    numbered(&crib, 1000, "old\n");
    let mut diff = String::new();
    for number in 0..1000 {
        write!(diff, "--- a/d/{number}\n+++ b/d/{number}\n@@ -1 +1,2 @@\n-old\n+new\n+line\n").unwrap();
    }
    let result = done(&crib, "fs_apply_patch", &json!({"patch": diff}));
    assert_eq!(result["files"].as_array().unwrap().len(), 100);
    assert_eq!(result["total"], json!({"files": 1000, "added": 2000, "removed": 1000}));
    assert_eq!(text(&crib, "d/999").as_deref(), Some("new\nline\n"));
    let mut patch = "*** Begin Patch\n".to_owned();
    for number in 0..1000 {
        writeln!(patch, "*** Update File: d/{number}\n-new\n+newer").unwrap();
    }
    let over = format!("{patch}*** Delete File: d/0\n*** End Patch");
    let line = crib.call("apply_patch", &json!({"patch": over}), &TOOLS);
    assert!(line.to_string().contains("the patch is for more than 1000 files"), "{line}");
    let line = crib.call("apply_patch", &json!({"patch": format!("{patch}*** End Patch")}), &TOOLS);
    assert!(line["receipt"]["outcome"] == "ok" && line.to_string().contains("and 900 more files"), "{line}");
    assert_eq!(text(&crib, "d/999").as_deref(), Some("newer\nline\n"));
}

#[test]
fn the_older_name_of_the_patch_tool_calls_it_and_denies_it() {
    let crib = Crib::new();
    fs::create_dir_all(crib.path("work")).unwrap();
    fs::write(crib.path("work/t"), "a\n").unwrap();
    let diff = json!({"patch": "--- a/t\n+++ b/t\n@@\n-a\n+A\n"});
    let flags = ["--tools=builtin", "--allow-write=work"];
    for (name, rule) in
        [("apply_patch", "fs_apply_patch"), ("fs_apply_patch", "apply_patch"), ("fs_apply_patch", "fs_apply_*")]
    {
        let line = crib.call(name, &diff, &[&flags[..], &[&format!("--deny-tool={rule}")]].concat());
        assert_eq!(line["receipt"]["outcome"], "denied", "{name} {rule}: {line}");
    }
    assert_eq!(text(&crib, "t").as_deref(), Some("a\n"));
    let line = crib.call("fs_apply_patch", &diff, &flags);
    assert_eq!((&line["receipt"]["outcome"], text(&crib, "t").as_deref()), (&json!("ok"), Some("A\n")), "{line}");
    let named: Vec<Value> = crib.records().into_iter().map(|record| record["tool"].clone()).collect();
    assert_eq!(named, ["apply_patch"; 4]);
}

#[test]
fn a_staged_replacement_and_a_staged_copy_are_committed_and_taken_back() {
    let crib = patient();
    numbered(&crib, 3, "old\r\n");
    let staged = [&TOOLS[..], &["--stage=one"]].concat();
    for (tool, arguments) in [
        ("fs_replace", json!({"pattern": "old", "replacement": "new", "expected": 3})),
        ("fs_copy", json!({"from": "d", "to": "e"})),
    ] {
        let line = crib.call(tool, &arguments, &staged);
        assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    }
    assert_eq!((text(&crib, "d/0").as_deref(), text(&crib, "e/0")), (Some("old\r\n"), None));
    let ran = crib.run(&["stage", "commit", "one", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(["d/2", "e/2"].map(|name| text(&crib, name).unwrap()), ["new\r\n", "new\r\n"]);
    let ran = crib.run(&["undo", "one", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((text(&crib, "d/2").as_deref(), crib.path("work/e").exists()), (Some("old\r\n"), false));
}

#[test]
fn a_replacement_without_a_stage_is_taken_back_as_a_whole() {
    let crib = patient();
    numbered(&crib, 3, "old");
    done(&crib, "fs_replace", &json!({"pattern": "old", "replacement": "new"}));
    assert_eq!(text(&crib, "d/1").as_deref(), Some("new"));
    let ran = crib.run(&["undo", "--yes"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("took back 3 changes"), "{ran:?}");
    assert_eq!(["d/0", "d/1", "d/2"].map(|name| text(&crib, name).unwrap()), ["old", "old", "old"]);
}

#[test]
fn a_rule_about_a_path_holds_for_each_path_of_a_list() {
    let crib = patient();
    fs::write(crib.path("work/open"), "1").unwrap();
    fs::write(crib.path("work/secret"), "2").unwrap();
    let flags = [&TOOLS[..], &["--deny-tool=fs_read_file(path=secret*)"]].concat();
    for (path, outcome) in
        [(json!("secret"), "denied"), (json!(["open", "secret"]), "denied"), (json!(["open", "./open"]), "ok")]
    {
        let line = crib.call("fs_read_file", &json!({"path": path}), &flags);
        assert_eq!(line["receipt"]["outcome"], outcome, "{line}");
    }
}

#[test]
fn a_copy_has_the_label_of_its_source() {
    let crib = patient();
    numbered(&crib, 1, "x");
    let place = format!("--set=labels.customers=[{:?}]", crib.path("work/d"));
    let line = crib.call("fs_copy", &json!({"from": "d", "to": "e"}), &[&TOOLS[..], &[&place]].concat());
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    assert!(line["receipt"]["label"].to_string().contains("customers"), "{line}");
}
