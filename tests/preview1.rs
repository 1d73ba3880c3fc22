//! Core modules for WASI preview 1, run directly: their memory is isolated, and the limits of components apply.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{Outcome, Runtime, ToolCall};

use crate::crib::Crib;
use crate::screen::Page;

/// Imports of the programs below, and a memory.
const HEAD: &str = r#"
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_readdir" (func $readdir (param i32 i32 i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "sock_shutdown" (func $shutdown (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)"#;

/// Creates a crib with this program as its tool `n`.
fn crib(body: &str) -> Crib {
    let crib = Crib::new();
    crib.install_wat("n", &format!("(module {HEAD} {body})"));
    crib.manifest(&json!({"tools": [{"name": "n", "command": ["./tools/bin/n"]}]}));
    crib
}

fn called(crib: &Crib, flags: &[&str]) -> Value {
    crib.call("n", &json!({}), flags)
}

#[test]
fn memory_that_a_program_grew_is_its_own_while_it_calls_the_host() {
    // The allocator knows the size of the memory from its start, and uses all growth behind it without asking for the
    // owner.
    let crib = crib(
        r#"(data (i32.const 64) "f")
        (global $end (mut i32) (i32.const 65536))
        (func $must (param i32) (if (local.get 0) (then (call $exit (i32.const 2)))))
        (func $host (param $turn i32)
            (call $must (call $random (i32.const 128) (i32.const 256)))
            (call $must (call $time (i32.const 1) (i64.const 0) (i32.const 32)))
            (call $must (call $environ (i32.const 40) (i32.const 44)))
            (call $must (call $readdir (i32.const 3) (i32.const 1024) (i32.const 4096) (i64.const 0) (i32.const 8)))
            (call $must (call $open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 1)
                (i64.const 66) (i64.const 66) (i32.const 1) (i32.const 16)))
            (i32.store (i32.const 0) (i32.const 64))
            (i32.store (i32.const 4) (i32.const 1))
            (call $must (call $write (i32.load (i32.const 16)) (i32.const 0) (i32.const 1) (i32.const 8)))
            (call $must (call $close (i32.load (i32.const 16)))))
        (func $fill (param $from i32) (param $to i32)
            (loop $more
                (i32.store (local.get $from) (i32.mul (local.get $from) (i32.const 0x9e3779b1)))
                (local.set $from (i32.add (local.get $from) (i32.const 4)))
                (br_if $more (i32.lt_u (local.get $from) (local.get $to)))))
        (func $check (param $from i32) (param $to i32)
            (loop $more
                (if (i32.ne (i32.load (local.get $from)) (i32.mul (local.get $from) (i32.const 0x9e3779b1)))
                    (then (call $exit (i32.const 1))))
                (local.set $from (i32.add (local.get $from) (i32.const 4)))
                (br_if $more (i32.lt_u (local.get $from) (local.get $to)))))
        (func (export "_start") (local $turn i32) (local $to i32)
            (loop $more
                (drop (memory.grow (i32.const 3)))
                (local.set $to (i32.add (global.get $end) (i32.const 196608)))
                (call $fill (global.get $end) (local.get $to))
                (global.set $end (local.get $to))
                (call $host (local.get $turn))
                (call $check (i32.const 65536) (global.get $end))
                (local.set $turn (i32.add (local.get $turn) (i32.const 1)))
                (br_if $more (i32.lt_u (local.get $turn) (i32.const 40))))
            (if (i32.ne (i32.mul (memory.size) (i32.const 65536)) (global.get $end)) (then (call $exit (i32.const 3)))))"#,
    );
    let output = called(&crib, &["--allow-write=work"]);
    assert_eq!(output["receipt"]["outcome"], "ok", "{output}");
    assert_eq!(fs::read_to_string(crib.path("work/f")).unwrap(), "f".repeat(40));
    let peak = output["receipt"]["peakMemoryBytes"].as_u64().unwrap();
    assert_eq!(peak, 65_536 + 40 * 196_608, "the host has taken nothing of it");
}

#[test]
fn exit_codes_arrive_as_they_are() {
    for (code, outcome) in [(0, "ok"), (1, "failed"), (33, "failed"), (255, "failed")] {
        let crib = crib(&format!(r#"(func (export "_start") (call $exit (i32.const {code})))"#));
        let output = called(&crib, &[]);
        assert_eq!(output["receipt"]["outcome"], outcome, "{output}");
        assert_eq!(crib.records()[0]["exit"], code, "{:?}", crib.records());
    }
}

#[test]
fn what_is_no_command_of_preview_1_is_refused_by_its_name() {
    let memory = r#"(memory (export "memory") 1)"#;
    for (text, expected) in [
        (r#"(import "env" "f" (func))"#.to_owned(), "a core module that imports `env`"),
        (r#"(import "env" "memory" (memory 1))"#.to_owned(), "a core module that imports `env`"),
        (r#"(import "wasi_unstable" "fd_write" (func))"#.to_owned(), "a draft older than WASI preview 1"),
        (r#"(import "wasi_snapshot_preview1" "sock_open" (func))"#.to_owned(), "imports `sock_open` from"),
        (
            format!(r#"(import "wasi_snapshot_preview1" "fd_read" (global i32)) (func (export "_start")) {memory}"#),
            "which has only functions",
        ),
        (format!(r#"(import "wasi_snapshot_preview1" "fd_sync" (func)) (func (export "_start")) {memory}"#), "fd_sync"),
        (
            format!(r#"(func (export "_initialize")) {memory}"#),
            "not a command: as a reactor, it exports `_initialize` and no `_start`",
        ),
        (format!(r#"(func (export "add")) {memory}"#), "not a command: it exports `add` and no `_start`"),
        (format!(r#"(global (export "_start") i32 (i32.const 0)) {memory}"#), "exports no function and no `_start`"),
        (format!(r#"(func (export "_start") (param i32)) {memory}"#), "whose `_start` has parameters or results"),
        (r#"(func (export "_start"))"#.to_owned(), "exports no `memory`"),
        (r#"(func (export "_start")) (global (export "memory") i32 (i32.const 0))"#.to_owned(), "exports no `memory`"),
        (String::new(), "build it as a program with a `main`"),
    ] {
        let crib = Crib::new();
        crib.install_wat("n", &format!("(module {text})"));
        crib.manifest(&json!({"tools": [{"name": "n", "command": ["./tools/bin/n"]}]}));
        let line = called(&crib, &[]);
        assert_eq!(line["receipt"]["outcome"], "bad-component", "{text}: {line}");
        assert!(line["error"].as_str().unwrap().contains(expected), "expected {expected:?} in {line}");
    }
}

#[test]
fn a_socket_is_refused_and_the_record_says_so() {
    let crib = crib(
        r#"(func (export "_start")
            (if (i32.ne (call $shutdown (i32.const 3) (i32.const 1)) (i32.const 8)) (then (call $exit (i32.const 9))))
            (call $exit (i32.const 1)))"#,
    );
    let ran = crib.run(&["call", "n", "{}", "--allow-net=127.0.0.1"]);
    assert!(ran.stderr.contains("hint: `sockets:sock_shutdown` is not allowed"), "{ran:?}");
    let record = &crib.records()[0];
    assert_eq!((&record["outcome"], &record["exit"]), (&json!("denied"), &json!(1)), "{record}");
    assert_eq!(record["denied"][0]["capability"], "sockets:sock_shutdown", "{record}");
}

/// Program that reads its first folder and exits with this code.
fn looks_and_ends(code: u8) -> Crib {
    crib(&format!(
        r#"(func (export "_start") (drop (call $prestat (i32.const 3) (i32.const 0))) (call $exit (i32.const {code})))"#
    ))
}

#[test]
fn who_fails_without_a_folder_is_told_which_flag_gives_one() {
    let page = Page::new();
    let call = |crib: &Crib, flags: &[&str]| page.run(crib, &[&["call", "n", "{}"], flags].concat());
    let failing = looks_and_ends(1);
    call(&failing, &[]);
    assert_eq!(failing.records()[0]["outcome"], "failed", "what it failed for, nobody knows");
    page.note("it has a folder");
    call(&failing, &["--allow-read=work"]);
    page.note("it has not failed");
    call(&looks_and_ends(0), &[]);
    page.note("it did not look for any folder");
    call(&crib(r#"(func (export "_start") (call $exit (i32.const 1)))"#), &[]);
    page.note("a tool that requests nothing gets no folder by any flag");
    let stated = json!({"name": "n", "command": ["./tools/bin/n"], "capabilities": {}});
    failing.manifest(&json!({"tools": [stated]}));
    call(&failing, &[]);
    page.note("a path is opened without a folder");
    let opens = crib(
        r#"(func (export "_start")
            (if (i32.ne (call $open (i32.const -1) (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 0)
                (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 16)) (i32.const 8)) (then (unreachable)))
            (call $exit (i32.const 1)))"#,
    );
    call(&opens, &[]);
    page.note("the same with a component: looks and fails, has not failed, did not look");
    let component = Crib::with_guests(&["file_io", "exit_code"]);
    page.run(&component, &["call", "file_io", r#"{"op":"open","path":"f"}"#]);
    page.run(&component, &["call", "file_io", r#"{"op":"roots"}"#]);
    page.run(&component, &["call", "exit_code", r#"{"code":1}"#]);
    page.matches("permissions/preview1");
}

#[test]
fn a_module_is_inspected_by_what_it_imports() {
    let page = Page::new();
    let crib = crib(r#"(func (export "_start"))"#);
    page.run(&crib, &["inspect", "tools/bin/n.wasm"]);
    page.matches("inspect/preview1");
}

#[test]
fn calls_of_a_module_and_a_component_run_beside_one_another() {
    let echo = Crib::with_guests(&["echo"]);
    echo.install_wat("n", &format!(r#"(module {HEAD} (func (export "_start")))"#));
    let tools = json!([echo.entry("echo"), {"name": "n", "command": ["./tools/bin/n"]}]);
    echo.manifest(&json!({ "tools": tools }));
    let runtime = Runtime::builder(toolcrib::Audit::off())
        .trusted_source(echo.path("tools.json"))
        .concurrency(8)
        .build()
        .unwrap();
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let calls: Vec<_> = (0..64)
        .map(|number| {
            let (runtime, name) = (runtime.clone(), if number % 2 == 0 { "n" } else { "echo" });
            tokio.spawn(async move { runtime.call(ToolCall::new("", name, "{}")).await.receipt.outcome })
        })
        .collect();
    for call in calls {
        assert_eq!(tokio.block_on(call).unwrap(), Outcome::Ok);
    }
}
