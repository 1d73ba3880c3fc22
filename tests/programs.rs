//! Accepted programs, and the environment of a program.

use std::fs;

use serde_json::json;

use crate::crib::Crib;
use crate::screen::Page;

/// Core module for WASI preview 1, as compilers emit it: copies standard input to standard output.
const PREVIEW_1: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 2)
    (func (export "_start")
        (loop $more
            (i32.store (i32.const 0) (i32.const 1024))
            (i32.store (i32.const 4) (i32.const 65536))
            (if (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
            (if (i32.load (i32.const 8)) (then
                (i32.store (i32.const 4) (i32.load (i32.const 8)))
                (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
                (br $more))))))"#;

#[test]
fn a_core_module_for_preview_1_runs_as_it_is() {
    let crib = Crib::new();
    crib.install_wat("cat", PREVIEW_1);
    crib.manifest(&json!({"tools": [{"name": "cat", "command": ["./tools/bin/cat"]}]}));
    let ran = crib.run(&["call", "cat", r#"{"text": "é  \u0007"}"#]);
    assert_eq!(ran.stdout, "{\"text\": \"é  \\u0007\"}\n");
    assert_eq!(crib.run(&["call", "cat", "{\"a\":1}"]).stdout, "{\"a\":1}\n", "from the compile cache");
}

#[test]
fn a_folder_of_components_is_a_source() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo", "empty"]);
    fs::remove_file(crib.path("tools.json")).unwrap();
    let ran = crib.run(&["list", "--json", "--tools", "tools/bin"]);
    assert!(ran.stdout.contains("\"echo\"") && ran.stdout.contains("\"empty\""), "{ran:?}");
    page.run(&crib, &["call", "echo", "{\"a\":1}", "--tools", "tools/bin"]);
    page.run(&crib, &["call", "echo", "{}", "--tools", "work"]);
    crib.manifest(&json!({"tools": []}));
    page.run(&crib, &["call", "echo", "{}", "--tools", "work"]);
    fs::write(crib.path("work/Cargo.toml"), "").unwrap();
    page.run(&crib, &["list", "--tools", "work"]);
    page.run(&crib, &["call", "x", "{}", "--tools", "work/x.wasm"]);
    page.matches("list/folder");
}

#[test]
fn two_tools_of_one_name_are_refused_and_both_sources_named() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    page.run(&crib, &["list", "--tools", "tools.json", "--tools", "tools/bin/echo.wasm"]);
    page.matches("list/same-name");
}

#[test]
fn two_tools_whose_names_look_alike_are_refused_and_both_named() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let entry = |name: &str| json!({"name": name, "command": ["./tools/bin/echo"]});
    for like in ["Read_File", "read-file", "read file", "read_fi1e", "r\u{435}ad_file", "read\u{200b}_file"] {
        crib.manifest(&json!({"tools": [entry("read_file"), entry("write_file"), entry(like)]}));
        for command in [&["call", "read_file", "{}"][..], &["list"], &["validate", "tools.json"]] {
            page.run(&crib, command);
        }
    }
    // An alias counts as a name, and so do the names of the host's own tools.
    let mut alias = entry("other");
    alias["interface"] = json!({"aliases": ["READ_FILE"]});
    crib.manifest(&json!({"tools": [entry("read_file"), alias]}));
    page.run(&crib, &["list"]);
    crib.manifest(&json!({"tools": [entry("Read-Result")]}));
    assert!(page.run(&crib, &["list"]).stderr.contains("looks like"), "the host's own `read_result`");
    page.matches("list/look-alike");
}

#[test]
fn a_tool_that_is_replaced_during_a_call_ends_on_the_old_version() {
    let crib = Crib::with_guests(&["nap", "empty"]);
    let program = crib.path("tools/bin/nap.wasm");
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let runtime =
        toolcrib::Runtime::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json")).build().unwrap();
    let naps = || {
        let runtime = runtime.clone();
        tokio.spawn(async move { runtime.call(toolcrib::ToolCall::new("", "nap", r#"{"ms":700}"#)).await })
    };
    tokio.block_on(runtime.prepare("nap")).unwrap();
    let (renamed, overwritten) = (naps(), naps());
    std::thread::sleep(std::time::Duration::from_millis(100));
    fs::copy(crib.path("tools/bin/empty.wasm"), crib.path("new.wasm")).unwrap();
    fs::rename(crib.path("new.wasm"), &program).unwrap();
    let renamed = tokio.block_on(renamed).unwrap();
    fs::write(&program, "no program at all").unwrap();
    let overwritten = tokio.block_on(overwritten).unwrap();
    for call in [&renamed, &overwritten, &tokio.block_on(naps()).unwrap()] {
        assert_eq!(call.content(), r#"{"slept":700}"#);
        assert_eq!(call.receipt.digest, renamed.receipt.digest, "the record names what has run");
    }
    fs::copy(crate::crib::guest("empty"), &program).unwrap();
    let line = crib.call("nap", &json!({}), &[]);
    assert_eq!(line["result"], json!({}), "the next runtime has the new one");
    assert_ne!(line["receipt"]["digest"].as_str(), renamed.receipt.digest.as_deref());
}

#[test]
fn a_program_that_cannot_run_says_why() {
    let component = |body: &str| format!("(component {body})");
    let sockets = r#"(import "wasi:sockets/tcp@0.3.0" (instance (export "f" (func))))"#;
    for (text, reason) in [
        (component(""), "it exports nothing; a tool exports functions of its own, a command `wasi:cli/run`"),
        (component(sockets), "wasi:sockets/tcp@0.3.0"),
        (component(r#"(import "own:thing/x" (instance (export "f" (func))))"#), "own:thing/x"),
        (r#"(module (import "env" "f" (func)))"#.to_owned(), "a core module that imports `env`"),
        ("(module)".to_owned(), "a core module that is not a command: it exports no function and no `_start`"),
    ] {
        let crib = Crib::new();
        crib.install_wat("n", &text);
        crib.manifest(&json!({"tools": [{"name": "n", "command": ["./tools/bin/n"]}]}));
        let line = crib.call("n", &json!({}), &[]);
        assert_eq!(line["receipt"]["outcome"], "bad-component", "{line}");
        assert!(line["error"].as_str().unwrap().contains(reason), "expected {reason:?} in {line}");
    }
}

#[test]
fn no_guest_has_a_socket() {
    let crib = Crib::with_guests(&["connect"]);
    let line = crib.call("connect", &json!({"address": "127.0.0.1:1"}), &[]);
    assert_eq!(line["result"]["connected"], false, "{line}");
    assert!(line["result"]["error"].as_str().unwrap().contains("ermission denied"), "{line}");
    assert_eq!(line["receipt"]["denied"][0]["capability"], "sockets:create-tcp-socket", "{line}");
}

#[test]
fn a_guest_sees_its_own_path_and_home_and_what_was_granted() {
    let crib = Crib::with_guests(&["env_dump"]);
    crib.manifest(&json!({"tools": [{
        "name": "env_dump", "command": ["./tools/bin/env_dump", "--fixed"], "envPassthrough": ["granted", "PATH", "UNSET"]
    }]}));
    let mut command = crib.toolcrib(&["call", "env_dump", "{}", "--json"]);
    command.env("GRANTED", "canary-1").env("SECOND", "canary-2").env("THIRD", "canary-3").env("PATH", "/host/path");
    let output = command.output().unwrap();
    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let seen = &line["result"];
    assert_eq!(seen["env"], json!({"GRANTED": "canary-1", "HOME": "/", "PATH": "/bin"}));
    assert_eq!(seen["args"], json!(["./tools/bin/env_dump", "--fixed"]));
    assert_eq!(seen["cwd"], "/");
    assert_eq!(line["receipt"]["envKeys"], json!(["GRANTED"]));
    let record = &crib.records()[0];
    assert_eq!(record["envKeys"], json!(["GRANTED"]));
    assert!(!record.to_string().contains("canary"), "no value is ever logged: {record}");
}

#[test]
fn flags_add_to_and_take_from_the_environment() {
    let crib = Crib::with_guests(&["env_dump"]);
    let entry = |name: &str, extra: serde_json::Value| {
        let mut entry = json!({"name": name, "command": ["./tools/bin/env_dump"], "envPassthrough": ["ONE"]});
        entry.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        entry
    };
    crib.manifest(&json!({"tools": [entry("unstated", json!({})), entry("stated", json!({"capabilities": {}}))]}));
    let names = |tool: &str, flags: &[&str]| {
        let mut args = vec!["call", tool, "{}", "--json"];
        args.extend(flags);
        let output = crib.toolcrib(&args).env("ONE", "1").env("TWO", "2").output().unwrap();
        let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        line["receipt"]["envKeys"].clone()
    };
    assert_eq!(names("unstated", &["--allow-env=TWO"]), json!(["ONE", "TWO"]));
    assert_eq!(names("stated", &["--allow-env=TWO"]), json!(["ONE"]), "a tool gets no more than it asks for");
    assert_eq!(names("unstated", &["--allow-env=TWO", "--deny-env=ONE"]), json!(["TWO"]));
    assert_eq!(names("unstated", &["--allow-env=TWO", "--deny-env"]), json!([]));
}

#[test]
fn a_failure_is_what_the_tool_said() {
    let crib = Crib::with_guests(&["exit_code"]);
    let of = |stderr: &str, stdout: &str| {
        let arguments = json!({"code": 1, "stderr": stderr, "stdout": stdout}).to_string();
        let ran = crib.run(&["call", "exit_code", &arguments]);
        assert_eq!(ran.code, Some(1));
        ran.stdout
    };
    assert_eq!(of("{\"error\":\"no  such zone\"}\n", ""), "{\"error\":\"no  such zone\"}\n");
    assert_eq!(of("plain", "{\"ignored\":1}"), "{\"error\":\"plain\"}\n");
    assert_eq!(of("", ""), "{\"error\":\"tool failed with exit code 1\"}\n");
}

#[test]
fn no_byte_of_an_earlier_call_is_seen_later() {
    // The module answers with a page of its memory above its data, which holds zeros or old data, and then writes to
    // it.
    let soil = r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 4)
        (data (i32.const 0) "\"clean\"")
        (data (i32.const 16) "\"soiled\"")
        (func (export "_start") (local $at i32) (local $found i32)
            (local.set $at (i32.const 1024))
            (loop $each
                (local.set $found (i32.or (local.get $found) (i32.load (local.get $at))))
                (i32.store (local.get $at) (i32.const 0x5a5a5a5a))
                (local.set $at (i32.add (local.get $at) (i32.const 4)))
                (br_if $each (i32.lt_u (local.get $at) (i32.const 262144))))
            (i32.store (i32.const 64) (select (i32.const 16) (i32.const 0) (local.get $found)))
            (i32.store (i32.const 68) (select (i32.const 8) (i32.const 7) (local.get $found)))
            (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 72)))))"#;
    let crib = Crib::new();
    crib.install_wat("soil", soil);
    let runtime = toolcrib::Runtime::builder(toolcrib::Audit::off())
        .source(crib.path("tools/bin/soil.wasm"))
        .concurrency(1)
        .build()
        .unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..50 {
        let result = tokio.block_on(runtime.call(toolcrib::ToolCall::new("", "soil", "{}")));
        assert_eq!(result.outcome.unwrap(), "\"clean\"");
    }
}
