//! Hints about denied capabilities: only those that can be the reason of the outcome, each once.

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran, toolbox};
use crate::screen::Page;

/// Shows a call of a shipped tool that fails.
fn shown(page: &Page, name: &str, arguments: &Value, flags: &[&str]) -> Ran {
    let (crib, tools, arguments) = (Crib::new(), toolbox(), arguments.to_string());
    let call = ["call", name, &arguments, "--tools", tools.to_str().unwrap()];
    let ran = page.run(&crib, &[&call, flags].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran
}

/// Hints of a call of a shipped tool that fails.
fn hints(name: &str, arguments: &Value, flags: &[&str]) -> Vec<String> {
    let (crib, tools, arguments) = (Crib::new(), toolbox(), arguments.to_string());
    let call = ["call", name, &arguments, "--tools", tools.to_str().unwrap()];
    let ran = crib.run(&[&call, flags].concat());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.stderr.lines().filter(|line| line.starts_with("hint: ")).map(str::to_owned).collect()
}

#[test]
fn a_wrong_argument_gives_no_hint_about_a_permission() {
    // The first two are refused by the schema, the last by the tool itself, which looked for no folder.
    for (name, arguments) in [
        ("fs_read_file", json!({"paht": "x"})),
        ("fs_list_dir", json!({"depth": 99})),
        ("json_query", json!({"filter": "."})),
    ] {
        let hints = hints(name, &arguments, &[]);
        assert!(!hints.iter().any(|hint| hint.contains("allow")), "{name}: {hints:?}");
    }
}

#[test]
fn a_hint_names_the_flag_that_denies_what_another_allows() {
    let page = Page::new();
    let page_of_host = json!({"url": "https://example.com/"});
    let file = json!({"path": "notes.md"});
    for (name, arguments, flags) in [
        ("fs_read_file", &file, &["--allow-read=work", "--deny-read"][..]),
        ("fs_read_file", &file, &["--allow-read=work", "--deny-read=work"]),
        ("fs_read_file", &file, &["--deny-read"]),
        ("fs_mkdirp", &file, &["--allow-write=work", "--deny-write"]),
        ("fetch_page", &page_of_host, &["--allow-net=example.com", "--deny-net=example.com"]),
        ("fetch_page", &page_of_host, &["--deny-net"]),
        ("summarize", &json!({"text": "x"}), &["--deny-model"]),
    ] {
        shown(&page, name, arguments, flags);
    }
    page.matches("permissions/denied");
}

#[test]
fn a_denial_that_does_not_apply_leaves_the_flag_that_allows() {
    let page = Page::new();
    let arguments = json!({"url": "https://example.com/"});
    for denial in ["--deny-net=POST example.com", "--deny-net=http://example.com", "--deny-net=10.0.0.0/8"] {
        shown(&page, "fetch_page", &arguments, &[denial]);
    }
    page.matches("permissions/other-denial");
}

#[test]
fn a_failure_with_a_path_names_the_folders_as_the_tool_sees_them() {
    let crib = Crib::new();
    for folder in ["docs", "out", "work/deep"] {
        fs::create_dir_all(crib.path(folder)).unwrap();
    }
    fs::write(crib.path("work/a.md"), "a").unwrap();
    let tools = toolbox();
    let run = |name: &str, arguments: Value, flags: &[&str]| {
        let arguments = arguments.to_string();
        let ran = crib.run(&[&["call", name, &arguments, "--tools", tools.to_str().unwrap()], flags].concat());
        let hints = ran.stderr.lines().filter_map(|line| line.strip_prefix("hint: paths as the tool sees them: "));
        (ran.code, hints.map(str::to_owned).collect::<Vec<_>>())
    };
    let two = ["--allow-read=docs", "--allow-write=out"];
    let named = |access: &str| format!("`/` or `/docs` is `docs` (read only), `/out` is `out` ({access})");
    // Written beside the granted folder, read in another one, and above all.
    for (name, arguments, access) in [
        ("fs_write_file", json!({"path": "x.md", "content": "x"}), "read and write"),
        ("fs_read_file", json!({"path": "x.md"}), "read only"),
        ("fs_read_file", json!({"path": "../x.md"}), "read only"),
    ] {
        assert_eq!(run(name, arguments.clone(), &two), (Some(1), vec![named(access)]), "{name} {arguments}");
    }
    assert_eq!(run("fs_write_file", json!({"path": "out/x.md", "content": "x"}), &two), (Some(0), vec![]));
    // `a` is no path, although the message has the letter.
    let arguments = json!({"path": "out/y.md", "content": "a", "mode": "a"});
    let ran = run("fs_write_file", arguments, &two);
    assert_eq!(ran.1, Vec::<String>::new(), "{ran:?}");
    // One folder has no name, which people write all the same.
    let one = |path: &str| run("fs_list_dir", json!({"path": path}), &["--allow-read=work"]);
    for path in ["work", "work/missing"] {
        assert_eq!(one(path), (Some(1), vec!["`/` is `work` (read only)".to_owned()]), "{path}");
    }
    assert_eq!(one("work/deep"), (Some(1), vec![]), "the tool tells the path itself");
    assert_eq!(one("missing"), (Some(1), vec![]), "a folder that is missing");
    assert_eq!(one("deep"), (Some(0), vec![]));
}

#[test]
fn a_call_that_is_stopped_at_a_limit_names_the_flag_that_raises_it() {
    let page = Page::new();
    let crib = Crib::with_guests(&["grow", "spin"]);
    let hint = |name: &str, flags: &[&str]| page.run(&crib, &[&["call", name, "{}"], flags].concat()).stderr;
    let memory = "hint: `--max-memory=SIZE` raises the limit, if you trust the tool with more\n";
    assert!(hint("grow", &["--max-memory=8MiB"]).contains(memory), "{}", hint("grow", &[]));
    let time = "hint: `--set limits.tool_timeout=TIME`, and `--set limits.max_timeout=TIME` where that is lower, raises the limit, if you trust the tool with more\n";
    assert!(hint("spin", &["--timeout=200ms"]).contains(time), "{}", hint("spin", &["--timeout=200ms"]));
    let mut entry = crib.entry("grow");
    entry["limits"] = json!({"memoryMb": 4});
    crib.manifest(&json!({"tools": [entry]}));
    assert!(hint("grow", &[]).contains("(`limits.memoryMb`): raise it there"), "{}", hint("grow", &[]));
    // The flag would not raise it in a run either.
    let turns = json!([{"tool_calls": [{"name": "grow", "arguments": {}}]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    page.run(&crib, &["run", "--script", "script.json"]);
    // A limit of the operator that is lower than the one of the definition.
    let mut entry = crib.entry("spin");
    entry["timeoutSec"] = json!(60);
    crib.manifest(&json!({"tools": [entry]}));
    let turns = json!([{"tool_calls": [{"name": "spin", "arguments": {}}]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    page.run(&crib, &["run", "--script", "script.json", "--set=limits.max_timeout=200ms"]);
    page.matches("permissions/limits");
}

#[test]
fn a_tool_that_asks_a_model_names_the_command_that_has_one() {
    let hints = hints("summarize", &json!({"text": "x"}), &["--allow-model"]);
    let hint = "hint: `summarize` asks a model, which only `toolcrib run` provides".to_owned();
    assert!(hints.contains(&hint), "{hints:?}");
    // A failure before the question has its own hint alone.
    let denied = self::hints("summarize", &json!({"path": "notes.md"}), &[]);
    assert!(!denied.contains(&hint) && denied.iter().any(|hint| hint.contains("--allow-read")), "{denied:?}");
}

#[test]
fn a_call_without_a_folder_gets_one_hint_with_the_flag_that_it_needs() {
    let page = Page::new();
    for (name, arguments) in [
        ("fs_read_file", json!({"path": "x"})),
        ("fs_list_dir", json!({})),
        ("fs_mkdirp", json!({"path": "x"})),
        ("fs_apply_patch", json!({"patch": "--- a/t\n+++ b/t\n@@ -1,1 +1,1 @@\n-c\n+C\n"})),
    ] {
        let ran = shown(&page, name, &arguments, &[]);
        assert_eq!(ran.stderr.matches("hint: ").count(), 1, "{name}: {ran:?}");
    }
    page.matches("permissions/no-folder");
}

#[test]
fn a_denied_host_is_hinted_at_once_with_its_own_flag() {
    let page = json!({"url": "https://example.com/"});
    for flags in [&[][..], &["--allow-net=other.example"]] {
        let hint = "hint: `net:https://example.com/` is not allowed; use --allow-net=example.com:443";
        assert_eq!(hints("fetch_page", &page, flags), [hint], "{flags:?}");
    }
    // A destination that the tool requests and then uses is one capability, written in two ways.
    let crib = Crib::with_guests(&["http"]);
    let mut http = crib.entry("http");
    http["capabilities"] = json!({"network": ["api.example.com"]});
    crib.manifest(&json!({"tools": [http]}));
    let arguments = json!({"url": "https://api.example.com/", "silent": true}).to_string();
    let ran = crib.run(&["call", "http", &arguments, "--deny-net"]);
    assert!(ran.code == Some(1) && ran.stderr.matches("hint: ").count() == 1, "{ran:?}");
}

#[test]
fn the_record_still_lists_every_denied_request() {
    let (crib, tools) = (Crib::new(), toolbox());
    let line = crib.call("fs_read_file", &json!({"paht": "x"}), &["--tools", tools.to_str().unwrap()]);
    let denied = json!([{"capability": "read", "flag": "--allow-read=DIR"}]);
    assert_eq!((&line["receipt"]["outcome"], &line["receipt"]["denied"]), (&json!("bad-arguments"), &denied), "{line}");
    assert_eq!(crib.records()[0]["denied"], denied);
}

/// Program that fails as the standard library of Rust does for a variable that is not there.
const WITHOUT_VARIABLE: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "{\"error\":\"environment variable not found\"}")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 42))
    (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $exit (i32.const 1))))"#;

#[test]
fn a_program_that_misses_a_variable_is_told_which_it_requests() {
    let page = Page::new();
    let crib = Crib::new();
    crib.install_wat("reads", WITHOUT_VARIABLE);
    let tool = |capabilities: &Value| json!({ "name": "reads", "command": ["./tools/bin/reads"], "capabilities": capabilities });
    for env in [json!([]), json!(["TZ", "LANG"])] {
        crib.manifest(&json!({ "tools": [tool(&json!({ "env": env }))] }));
        page.run(&crib, &["call", "reads"]);
    }
    page.matches("permissions/variables");
}
