//! Traces of the host and of earlier calls: a guest finds none.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use toolcrib::policy::Permission;
use toolcrib::{Outcome, Policy, ToolCall};

use super::{crib, ends};
use crate::crib::{Crib, guest, nesting};

#[test]
fn no_error_text_names_a_place_of_the_host() {
    let crib = crib(&["tell_errors"]);
    symlink(crib.path("secret"), crib.path("work/absolute_link")).unwrap();
    symlink("..", crib.path("work/up")).unwrap();
    let place = crib.path(".").canonicalize().unwrap().display().to_string();
    let user = std::env::var("USER").unwrap_or_else(|_| "root".into());
    for flags in [&["--allow-read=work"][..], &["--allow-write=work"], &[]] {
        let line = ends(&crib, "tell_errors", json!({}), flags, "ok");
        let output = line["result"].to_string();
        assert!(output.matches("Err").count() > 10, "{output}");
        for word in [&*place, &*user, "/home", "/proc", "/tmp/", "canary", env!("CARGO_MANIFEST_DIR")] {
            assert!(!output.contains(word), "`{word}` in {output}");
        }
    }
}

/// Searches its memory, its table and its globals for values that differ from its file, then writes bytes everywhere:
/// exits with 1 if it found any.
const LOOKS_AND_LEAVES: &str = r#"(module
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 2)
    (table $t 8 funcref)
    (elem declare func $left)
    (global $g (mut i64) (i64.const 0))
    (func $left)
    (func $found (call $exit (i32.const 1)))
    (func (export "_start") (local $at i32) (local $end i32) (local $l i64)
        (if (i64.ne (global.get $g) (i64.const 0)) (then (call $found)))
        (if (i64.ne (local.get $l) (i64.const 0)) (then (call $found)))
        (if (i32.eqz (ref.is_null (table.get $t (i32.const 3)))) (then (call $found)))
        (if (i32.eq (memory.grow (i32.const 200)) (i32.const -1)) (then (call $found)))
        (local.set $end (i32.mul (memory.size) (i32.const 65536)))
        (loop $more
            (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then (call $found)))
            (i64.store (local.get $at) (i64.const 0x7972616e6163))
            (local.set $at (i32.add (local.get $at) (i32.const 8)))
            (br_if $more (i32.lt_u (local.get $at) (local.get $end))))
        (table.set $t (i32.const 3) (ref.func $left))
        (global.set $g (i64.const 0x7972616e6163))))"#;

#[test]
fn nothing_of_an_earlier_call_is_left_in_a_later_one() {
    let crib = Crib::new();
    crib.install_wat("looks", LOOKS_AND_LEAVES);
    crib.install_wat("looks_too", LOOKS_AND_LEAVES);
    let tool = |name: &str| crib.path(format!("tools/bin/{name}.wasm"));
    // One slot, so that each call gets the memory of the call before.
    let builder =
        nesting::builder(toolcrib::Audit::off()).source(tool("looks")).source(tool("looks_too")).concurrency(1);
    let runtime = builder.build().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for call in 0..20 {
        let name = if call % 2 == 0 { "looks" } else { "looks_too" };
        let result = tokio.block_on(nesting::call(&runtime, ToolCall::new("", name, "{}")));
        assert_eq!(result.receipt.outcome, Outcome::Ok, "call {call}: {:?}", result.content());
    }
}

#[test]
fn a_call_leaves_no_file_but_those_it_wrote() {
    let crib = Crib::with_guests(&["file_io"]);
    let temporary = crib.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let policy = Policy::default().allow(Permission::Write(crib.path("work")));
    let runtime = nesting::builder(toolcrib::Audit::off()).source(guest("file_io")).policy(policy).build().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = |arguments: serde_json::Value| {
        tokio
            .block_on(nesting::call(&runtime, ToolCall::new("", "file_io", arguments.to_string())))
            .content()
            .into_owned()
    };
    assert_eq!(call(json!({"op": "write", "path": "one", "text": "canary"})), r#"{"ok":6}"#);
    assert_eq!(call(json!({"op": "set_size", "path": "one"})), r#"{"error":"quota"}"#);
    assert_eq!(call(json!({"op": "list", "path": "."})), r#"{"ok":["one"]}"#);
    // A file grows by zeros, never by old data.
    let ran = crib.toolcrib(&["call", "file_io", r#"{"op":"grow","path":"one","text":"x"}"#, "--allow-write=work"]);
    let ran = { ran }.env("TMPDIR", &temporary).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "{\"ok\":\"canary\\u0000\\u0000x\"}\n");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}
