//! Unusable entries and programs, each reported before anything is compiled, and errors of the whole source.

use std::fs;

use serde_json::{Value, json};

use super::{ASYNCHRONOUS, WASI_0_3, entry};
use crate::crib::{Crib, guest};
use crate::screen::Page;

/// Output of `list` for an entry beside a usable one.
fn beside_echo(bad: Value) -> crate::crib::Ran {
    let crib = Crib::with_guests(&["echo"]);
    crib.manifest(&json!({"tools": [bad, entry("echo")]}));
    crib.run(&["list"])
}

#[test]
fn one_bad_entry_of_a_manifest_leaves_the_others() {
    let page = Page::new();
    let with = |name: &str, more: Value| {
        let mut entry = json!({"name": name, "command": ["./tools/bin/echo"]});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    for bad in [
        json!({"name": "bad"}),
        with("bad", json!({"command": ["../x"]})),
        with("bad", json!({"command": ["x"]})),
        with("bad", json!({"envPassthrough": ["1X"]})),
        with("bad", json!({"schema": []})),
        with("bad", json!({"schema": {"type": "strin"}})),
        with("bad", json!({"schema": {"pattern": "("}})),
        with("bad", json!({"schema": {"$ref": "http://x/"}})),
        with("bad", json!({"limits": {"fuel": 0}})),
        with("bad", json!({"command": "x"})),
        with("bad", json!({"timeoutSec": "1"})),
        with("bad", json!({"interface": {"redaction_policy_refs": ["none"]}})),
        with("", json!({})),
        with(&"x".repeat(129), json!({})),
        json!(7),
    ] {
        let ran = beside_echo(bad.clone());
        page.show(&ran);
        let is_named = bad["name"] == "bad";
        assert_eq!(ran.stdout.contains("\nbad "), is_named, "{bad}: {ran:?}");
    }
    page.matches("unusable/entry");
}

#[test]
fn what_concerns_a_whole_source_stays_an_error() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let manifest = |text: &str| fs::write(crib.path("tools.json"), text).unwrap();
    let twice = json!({"tools": [entry("echo"), entry("echo")]}).to_string();
    let twice_and_wrong = json!({"tools": [entry("echo"), {"name": "echo", "command": 7}]}).to_string();
    let alike = json!({"tools": [entry("read_file"), entry("Read-File")]}).to_string();
    for text in
        ["{\"tools\": [", "[]", r#"{"tools": 7}"#, r#"{"tools": [], "tools": []}"#, &twice, &twice_and_wrong, &alike]
    {
        manifest(text);
        for args in [&["list"][..], &["validate", "tools.json"]] {
            page.run(&crib, args);
        }
    }
    page.matches("unusable/source");
}

#[test]
fn a_guard_that_cannot_be_loaded_is_never_left_out() {
    let page = Page::new();
    let tool = "---\nscript: |\n  def run(args):\n    return 1\n---\nOne.\n";
    for (file, text) in [
        (".harness/hooks/guard.md", "no front matter"),
        (".harness/hooks/guard.md", "---\nevent: tool.pre\n---\n"),
        (".harness/hooks/guard.md", "---\nscript: x\n---\n"),
        (".harness/hooks/guard.md", "---\nevent: tool.pre\nscript: x\ncapabilities: 7\n---\n"),
        ("harness.md", "---\nhooks:\n  - {name: h, event: tool.pre}\n---\n"),
        ("harness.md", "---\ntools_policy: {mode: x}\n---\n"),
        ("harness.md", "---\ntools_policy: [\n---\n"),
        (".harness/plugins/p.md", "---\nhooks: 7\n---\n"),
    ] {
        let crib = Crib::new();
        for (path, text) in [(".harness/tools/one.md", tool), (file, text)] {
            let path = crib.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for args in [&["list", "--tools", "."][..], &["call", "one", "--tools", "."]] {
            page.run(&crib, args);
        }
        assert!(crib.logs().is_empty(), "nothing was called without its guard");
    }
    page.matches("unusable/guard");
}

#[test]
fn one_bad_markdown_file_or_component_of_a_folder_leaves_the_others() {
    let crib = Crib::new();
    let folder = crib.path("all");
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, text: &[u8]| fs::write(folder.join(name), text).unwrap();
    fs::copy(guest("echo"), folder.join("echo.wasm")).unwrap();
    write("broken.wasm", b"\0asm\x0d\0\x01\0\x07");
    write("unparsed.md", b"no front matter");
    write("invalid.md", b"---\ntimeout_ms: -1\nscript: x\n---\n");
    write("sound.md", b"---\nscript: |\n  def run(args):\n    return 1\n---\nOne.\n");
    let ran = crib.run(&["list", "--tools", "all", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let why = |name: &str| {
        let tool = listed.as_array().unwrap().iter().find(|tool| tool["name"] == name);
        tool.unwrap_or_else(|| panic!("{name}: {listed}"))["disabled"].as_str().unwrap_or("sound").to_owned()
    };
    assert_eq!((why("echo").as_str(), why("sound").as_str()), ("sound", "sound"));
    for (name, expected) in [
        ("broken", "truncated: the file ends before its section at byte 8 does"),
        ("unparsed", "markdown file must start with --- frontmatter delimiter"),
        ("invalid", "invalid config: tool \"invalid\" timeout_ms must be >= 0"),
    ] {
        assert!(why(name).contains(expected), "{name}: {}", why(name));
    }
}

#[test]
fn a_record_that_is_wrong_sets_its_component_not_free() {
    let wrong = r#"{"tool_id": "a.deploy", "component": "impl.wasm", "requires_user_interaction": true, "limits": {"fuel": 0}}"#;
    let same = wrong.replace("a.deploy", "a.impl");
    for (file, record, disabled, expected) in [
        ("deploy.tool.json", wrong, vec!["deploy"], "limits.fuel must be a positive whole number"),
        ("x.tool.json", wrong, vec!["deploy"], "limits.fuel must be a positive whole number"),
        ("impl.tool.json", same.as_str(), vec!["impl"], "limits.fuel must be a positive whole number"),
        ("bad.tool.json", "{", vec!["bad", "impl"], "parse record: EOF while parsing"),
        ("impl.tool.json", "{", vec!["impl"], "parse record: EOF while parsing"),
        (
            "worse.tool.json",
            r#"{"tool_id": "a.worse", "component": 7}"#,
            vec!["impl", "worse"],
            "component must be a string, found a number",
        ),
        (
            "out.tool.json",
            r#"{"tool_id": "a.out", "component": "../impl.wasm"}"#,
            vec!["impl", "out"],
            "is not beside the record",
        ),
    ] {
        let crib = Crib::with_guests(&["echo"]);
        let folder = crib.path("all");
        fs::create_dir(&folder).unwrap();
        fs::copy(guest("echo"), folder.join("impl.wasm")).unwrap();
        fs::write(folder.join(file), record).unwrap();
        let ran = crib.run(&["list", "--json", "--tools", "tools.json", "--tools", "all"]);
        let listed: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        let listed = listed.as_array().unwrap();
        let mut names: Vec<_> = listed.iter().filter(|tool| !tool["disabled"].is_null()).collect();
        names.sort_by_key(|tool| tool["name"].to_string());
        let names: Vec<_> = names.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, disabled, "{file}: {record}: {ran:?}");
        assert_eq!(listed.len(), disabled.len() + 1, "{listed:?}");
        assert!(ran.stderr.contains(expected), "{file}: {ran:?}");
        let call = crib.call("impl", &json!({}), &["--tools", "all"]);
        assert_ne!(call["receipt"]["outcome"], "ok", "{file}: {call}");
    }
}

#[test]
fn a_component_that_cannot_be_used_takes_no_name_from_a_tool_that_can() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    fs::create_dir(crib.path("other")).unwrap();
    fs::write(crib.path("other/echo.wasm"), "garbage").unwrap();
    for sources in [["other", "tools.json"], ["tools.json", "other"]] {
        page.run(&crib, &["call", "echo", "{\"a\":1}", "--tools", sources[0], "--tools", sources[1]]);
    }
    page.matches("unusable/name-taken");
}

#[test]
fn what_can_never_load_says_so_before_it_is_compiled() {
    let task_return = "(component (core func (canon task.return)))";
    let inside = "(component (component (core func (canon task.return))))";
    let stream = "(component (type (stream u8)))";
    let future = r#"(component (import "a:b/c" (instance (type (future)) (export "t" (type (eq 0))))))"#;
    let imports = r#"(component (import "wasi:clocks/monotonic-clock@0.3.0" (instance (export "now" (func)))))"#;
    let foreign =
        r#"(component (import "own:thing/x@1.2.0" (instance (export "f" (func)))) (import "own:y/z" (func)))"#;
    let unknown = r#"(module (import "wasi_snapshot_preview1" "no_such" (func)) (func (export "_start")))"#;
    let other = r#"(component (component $c) (instance $i (instantiate $c)) (export "wasi:http/incoming-handler@0.2.0" (instance $i)))"#;
    for (text, why) in [
        (ASYNCHRONOUS, WASI_0_3),
        (task_return, WASI_0_3),
        (inside, WASI_0_3),
        (stream, WASI_0_3),
        (future, WASI_0_3),
        (imports, "(wasm32-wasip2): it imports `wasi:clocks/monotonic-clock@0.3.0`"),
        (foreign, "it has imports that cannot be linked: `own:thing/x@1.2.0` (not available to tools), `own:y/z` ("),
        (unknown, "a core module that imports `no_such` from `wasi_snapshot_preview1`, which has no such function"),
        (r#"(module (import "env" "f" (func)))"#, "a core module that imports `env`; only `wasi_snapshot_preview1`"),
        (super::REACTOR, "as a reactor, it exports `_initialize`, `add` and no `_start`"),
        (r#"(module (func (export "add")))"#, "a core module that is not a command: it exports `add` and no `_start`"),
        ("(component)", "not a tool: it exports nothing; a tool exports functions of its own"),
        (other, "not a tool: it exports `wasi:http/incoming-handler@0.2.0`; a tool exports functions of its own"),
    ] {
        let crib = Crib::new();
        crib.install_wat("n", text);
        crib.manifest(&json!({"tools": [entry("n")]}));
        for args in [
            &["validate", "tools.json"][..],
            &["validate", "tools/bin/n.wasm"],
            &["list"],
            &["list", "--tools", "tools/bin/n.wasm"],
            &["inspect", "n"],
            &["inspect", "tools/bin/n.wasm"],
        ] {
            let mut command = crib.toolcrib(args);
            command.env("TOOLCRIB_CACHE_DIR", crib.path("cache"));
            let ran = crate::crib::Ran::from(command.output().unwrap());
            assert!((ran.stdout.clone() + &ran.stderr).contains(why), "{args:?}: expected {why:?} in {ran:?}");
        }
        assert!(!crib.path("cache").exists() || fs::read_dir(crib.path("cache")).unwrap().next().is_none());
    }
}

#[test]
fn a_file_that_is_empty_or_breaks_off_is_no_tool() {
    let page = Page::new().hide(r"section at byte \d+", "section at byte [place]");
    let whole = fs::read(guest("echo")).unwrap();
    let garbage = b"\0asm\x02\0\0\0 and more".to_vec();
    for (bytes, why) in [
        (Vec::new(), "not a WebAssembly component or module: the file is empty"),
        (b"#!/bin/sh\n".to_vec(), "not a WebAssembly component or module"),
        (b"(module)".to_vec(), "in the text format of WebAssembly; convert it with `wasm-tools parse"),
        (b"\n(component)".to_vec(), "in the text format of WebAssembly; convert it with `wasm-tools parse"),
        (whole[..4].to_vec(), "truncated: the file ends within its first 8 bytes"),
        (whole[..whole.len() / 2].to_vec(), "truncated: the file ends before its section at byte "),
        (whole[..whole.len() - 1].to_vec(), "truncated: the file ends before its section at byte "),
        (garbage, "neither a component nor a core module of a known version"),
    ] {
        let crib = Crib::with_guests(&["echo"]);
        fs::write(crib.path("tools/bin/n.wasm"), &bytes).unwrap();
        crib.manifest(&json!({"tools": [entry("n"), entry("echo")]}));
        let ran = page.run(&crib, &["list"]);
        let (usable, disabled) = ran.stdout.split_once("\n\n").unwrap_or_else(|| panic!("{why}: {ran:?}"));
        assert!(!usable.contains("\nn ") && disabled.contains(why), "expected {why:?} in {ran:?}");
        page.run(&crib, &["validate", "tools.json"]);
        assert_eq!(crib.outcome("echo", &json!({}), &[]), "ok");
    }
    page.matches("unusable/broken-file");
}
