//! Changes after trust: each ends it, and nothing is granted that was not reviewed.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{Audit, ToolCall};

use crate::crib::{Crib, guest, nesting};
use crate::screen::Page;

use super::{digest, dump, is_granted, stranger, trust};

/// Changes the only entry of a manifest.
fn change(crib: &Crib, change: impl FnOnce(&mut Value)) {
    let text = fs::read_to_string(crib.path("tools.json")).unwrap();
    let mut manifest: Value = serde_json::from_str(&text).unwrap();
    change(&mut manifest["tools"][0]);
    crib.manifest(&manifest);
}

#[test]
fn every_change_of_the_content_ends_trust_until_it_is_reviewed_again() {
    type Change = (&'static str, fn(&Crib));
    let changes: [Change; 8] = [
        ("program", |crib| {
            let path = crib.path("tools/bin/env_dump.wasm");
            let mut bytes = fs::read(&path).unwrap();
            bytes.extend([0, 2, 1, b'x']);
            fs::write(path, bytes).unwrap();
        }),
        ("fixed argument", |crib| change(crib, |tool| tool["command"] = json!(["./tools/bin/env_dump", "--force"]))),
        ("description", |crib| change(crib, |tool| tool["description"] = json!("something else"))),
        ("schema", |crib| change(crib, |tool| tool["schema"] = json!({"type": "object", "properties": {"a": {}}}))),
        ("variable", |crib| change(crib, |tool| tool["capabilities"]["env"] = json!(["TOKEN", "OTHER"]))),
        ("folder", |crib| {
            fs::create_dir(crib.path("more")).unwrap();
            change(crib, |tool| tool["capabilities"]["files"]["read"] = json!(["./work", "./more"]));
        }),
        ("access", |crib| {
            change(crib, |tool| tool["capabilities"] = json!({"env": ["TOKEN"], "files": {"write": ["./work"]}}));
        }),
        ("deadline", |crib| change(crib, |tool| tool["timeoutSec"] = json!(7))),
    ];
    for (name, apply) in changes {
        let crib = stranger();
        trust(&crib);
        assert!(is_granted(&crib, &[]), "{name}");
        apply(&crib);
        assert!(!is_granted(&crib, &[]), "{name}");
        let (_, stderr) = dump(&crib, &[]);
        assert!(stderr.contains("`tools.json` has changed since it was trusted"), "{name}: {stderr}");
        trust(&crib);
        assert!(is_granted(&crib, &[]), "{name}");
    }
}

#[test]
fn a_call_reads_its_own_tool_alone_and_a_new_one_is_granted_nothing() {
    let page = Page::new();
    let crib = stranger();
    trust(&crib);
    let text = fs::read_to_string(crib.path("tools.json")).unwrap();
    let first = serde_json::from_str::<Value>(&text).unwrap()["tools"][0].clone();
    let mut second = first.clone();
    second["name"] = json!("second");
    crib.manifest(&json!({"tools": [first, second]}));
    assert!(is_granted(&crib, &[]), "the called tool is as it was reviewed");
    assert_eq!(crib.call("second", &json!({}), &[])["receipt"]["granted"], json!([]));
    page.run(&crib, &["list"]);
    page.matches("trust/new-tool");
}

#[test]
fn a_hook_or_a_policy_that_is_removed_ends_trust() {
    type Guard = (&'static str, fn(&Crib), &'static str);
    let guards: [Guard; 3] = [
        ("hook", |crib| assert_eq!(crib.run(&["new", "hook", "guard"]).code, Some(0)), ".harness/hooks"),
        ("hook with its folder", |crib| assert_eq!(crib.run(&["new", "hook", "guard"]).code, Some(0)), ".harness"),
        (
            "policy",
            |crib| {
                fs::write(crib.path("harness.md"), "---\ntools_policy: {mode: denylist, deny: [\"x*\"]}\n---\n")
                    .unwrap()
            },
            "harness.md",
        ),
    ];
    for (name, add, file) in guards {
        let crib = stranger();
        fs::create_dir_all(crib.path(".harness")).unwrap();
        add(&crib);
        let option = format!("--trust={}", digest(&crib.path(".")));
        assert_eq!(crib.run(&["trust", ".", &option]).code, Some(0), "{name}");
        let flags = ["--tools", "."];
        assert!(is_granted(&crib, &flags), "{name}");
        let path = crib.path(file);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        assert!(!is_granted(&crib, &flags), "{name}");
    }
}

#[test]
fn another_order_or_spelling_of_the_same_content_stays_trusted() {
    let crib = stranger();
    trust(&crib);
    let text = fs::read_to_string(crib.path("tools.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    fs::write(crib.path("tools.json"), serde_json::to_string_pretty(&manifest).unwrap()).unwrap();
    assert!(is_granted(&crib, &[]));
}

#[test]
fn a_folder_that_was_moved_or_copied_is_not_trusted() {
    let crib = stranger();
    trust(&crib);
    let elsewhere = crib.path("elsewhere");
    fs::create_dir_all(elsewhere.join("tools/bin")).unwrap();
    fs::create_dir_all(elsewhere.join("work")).unwrap();
    fs::copy(crib.path("tools.json"), elsewhere.join("tools.json")).unwrap();
    fs::copy(crib.path("tools/bin/env_dump.wasm"), elsewhere.join("tools/bin/env_dump.wasm")).unwrap();
    assert_eq!(digest(&elsewhere.join("tools.json")), digest(&crib.path("tools.json")));
    assert!(!is_granted(&crib, &["--tools", "elsewhere/tools.json"]));
    assert!(is_granted(&crib, &["--tools", "./elsewhere/../tools.json"]), "another spelling of the trusted path");
}

#[cfg(unix)]
#[test]
fn trust_in_a_link_is_trust_in_the_file_that_it_names_now() {
    use std::os::unix::fs::symlink;
    let crib = stranger();
    let (real, other) = (crib.path("real"), crib.path("other"));
    for folder in [&real, &other] {
        fs::create_dir_all(folder.join("work")).unwrap();
        fs::copy(crib.path("tools.json"), folder.join("tools.json")).unwrap();
        fs::create_dir_all(folder.join("tools/bin")).unwrap();
        fs::copy(guest("env_dump"), folder.join("tools/bin/env_dump.wasm")).unwrap();
    }
    let link = crib.path("link");
    symlink(&real, &link).unwrap();
    let option = format!("--trust={}", digest(&link.join("tools.json")));
    assert_eq!(crib.run(&["trust", "link/tools.json", &option]).code, Some(0));
    assert!(is_granted(&crib, &["--tools", "link/tools.json"]) && is_granted(&crib, &["--tools", "real/tools.json"]));
    fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    assert!(!is_granted(&crib, &["--tools", "link/tools.json"]));
}

#[test]
fn a_program_that_is_replaced_after_the_load_does_not_run() {
    let crib = stranger();
    let manifest = crib.path("tools.json");
    let builder = nesting::builder(Audit::off()).source(&manifest).trust(digest(&manifest));
    let runtime = builder.build().unwrap();
    fs::copy(guest("echo"), crib.path("tools/bin/env_dump.wasm")).unwrap();
    let call = nesting::call(&runtime, ToolCall::new("1", "env_dump", "{}"));
    let result = tokio::runtime::Runtime::new().unwrap().block_on(call);
    let fault = result.fault.expect("a fault").to_string();
    assert!(fault.contains("the program has changed since its source was reviewed"), "{fault}");
}
