//! `wasi:keyvalue` in the operator's folder: values that outlast a run, their owner, and several processes at once.

use std::fs;

use serde_json::{Value, json};

use super::entry;
use crate::crib::{Crib, guest};
use crate::screen::Page;

const DIR: &[&str] = &["--set", "records.keyvalue_dir=kept"];

fn steps(steps: Value) -> Value {
    json!({ "steps": steps })
}

/// Files in a folder and below it.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_value_outlasts_the_run_and_is_the_tools_own() {
    let crib = Crib::new();
    let tools = ["one", "two"].map(|name| entry(&crib, "kept_first", name, json!({})));
    crib.manifest(&json!({"tools": tools}));
    let add = steps(json!([{"set": ["canary-key", "canary-value"]}, {"add": ["n", 1]}, "list"]));
    for n in 1..=2 {
        assert_eq!(crib.call("one", &add, DIR)["result"], json!([null, n, {"pages": 1, "keys": 2}]));
    }
    assert_eq!(crib.call("two", &steps(json!([{"get": "n"}])), DIR)["result"], json!([null]));
    assert_eq!(crib.call("one", &steps(json!([{"get": "n"}])), &[])["result"], json!([null]), "only where it is told");
    assert!(files(&crib.path("kept")).iter().all(|path| !path.to_string_lossy().contains("canary")));
    assert!(!crib.records().iter().any(|record| record["denied"] != json!([])));
}

#[test]
fn a_changed_program_keeps_what_the_manifests_tool_kept_and_nothing_of_a_bare_components() {
    let crib = Crib::new();
    crib.manifest(&json!({"tools": [entry(&crib, "kept_first", "named", json!({}))]}));
    fs::copy(guest("kept_first"), crib.path("bare.wasm")).unwrap();
    let bare: Vec<&str> = [DIR, &["--tools", "bare.wasm"]].concat();
    let add = steps(json!([{"add": ["n", 1]}]));
    assert_eq!(crib.call("named", &add, DIR)["result"], json!([1]));
    assert_eq!(crib.call("bare", &add, &bare)["result"], json!([1]));
    assert_eq!(crib.call("bare", &add, &bare)["result"], json!([2]));
    // The same program with another digest: a custom section is appended.
    let mut changed = fs::read(guest("kept_first")).unwrap();
    changed.extend([0, 2, 1, b'x']);
    for place in ["tools/bin/kept_first.wasm", "bare.wasm"] {
        fs::write(crib.path(place), &changed).unwrap();
    }
    assert_eq!(crib.call("named", &add, DIR)["result"], json!([2]));
    assert_eq!(crib.call("bare", &add, &bare)["result"], json!([1]));
}

#[test]
fn processes_that_add_at_once_lose_nothing() {
    let crib = Crib::with_guests(&["kept_first"]);
    let adds = steps(Value::Array(vec![json!({"add": ["n", 1]}); 50])).to_string();
    let args = [&["call", "kept_first", &adds], DIR].concat();
    let mut started: Vec<_> = (0..4).map(|_| crib.toolcrib(&args).spawn().unwrap()).collect();
    assert!(started.iter_mut().all(|process| process.wait().unwrap().success()));
    assert_eq!(crib.call("kept_first", &steps(json!([{"get": "n"}])), DIR)["result"], json!(["200"]));
}

#[test]
fn damage_is_told_to_the_guest_without_a_path() {
    let crib = Crib::with_guests(&["kept_first"]);
    assert_eq!(crib.outcome("kept_first", &steps(json!([{"set": ["a", "value"]}])), DIR), "ok");
    let kept = files(&crib.path("kept"));
    let file = kept.iter().find(|path| !path.ends_with("lock")).unwrap();
    fs::write(file, "forged").unwrap();
    let line = crib.call("kept_first", &steps(json!([{"get": "a"}, {"set": ["a", "new"]}, {"get": "a"}])), DIR);
    assert!(line["result"][0]["error"].as_str().unwrap().contains("is damaged"), "{line}");
    assert_eq!((&line["result"][1], &line["result"][2]), (&json!(null), &json!("new")));
    fs::remove_dir_all(crib.path("kept")).unwrap();
    fs::write(crib.path("kept"), "no folder").unwrap();
    let line = crib.call("kept_first", &steps(json!([{"get": "a"}])), DIR);
    let why = line["result"][0]["error"].as_str().unwrap();
    assert!(why.contains("the store cannot be used now") && !why.contains('/'), "{line}");
}

#[test]
fn no_tool_is_granted_the_folder() {
    let page = Page::new();
    let crib = Crib::with_guests(&["kept_first", "echo"]);
    fs::create_dir(crib.path("kept")).unwrap();
    for flag in ["--allow-read=kept", "--allow-write=kept"] {
        let ran = page.run(&crib, &[&["call", "echo", "{}", flag], DIR].concat());
        assert_ne!(ran.code, Some(0));
    }
    page.matches("files/keyvalue");
}
