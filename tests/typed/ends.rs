//! Ends of functions: with a value, with an error of their own, in a trap, at a limit.

use serde_json::json;

use super::{call, crib, wat};
use crate::screen::Page;

#[test]
fn an_error_that_a_function_returns_is_a_failure_and_never_an_answer() {
    let crib = crib();
    let fail = |fail: bool| json!({ "fail": fail });
    for (name, answer, error) in [
        ("with_text", json!("well"), json!({"error": "no such thing"})),
        ("with_variant", json!(7), json!({"error": {"not-found": "it"}})),
        ("with_enum", json!({}), json!({"error": "tired"})),
        ("with_nothing", json!({}), json!({"error": "the function failed without a reason"})),
    ] {
        assert_eq!(call(&crib, name, &fail(false), &[]), ("ok".to_owned(), answer), "{name}");
        assert_eq!(call(&crib, name, &fail(true), &[]), ("failed".to_owned(), error), "{name}");
    }
    assert_eq!(call(&crib, "quietly", &json!({}), &[]), ("ok".to_owned(), json!({})));
    let ran = crib.run(&["call", "with_text", r#"{"fail":true}"#, "--tools", "typed.wasm"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "{\"error\":\"no such thing\"}\n"));
}

#[test]
fn every_limit_of_a_call_holds_for_a_function() {
    let crib = crib();
    for (name, arguments, flags, outcome, expected) in [
        ("crash", json!({}), vec![], "trap", "unreachable"),
        ("for_ever", json!({}), vec!["--set", "limits.max_timeout=300ms"], "deadline", "timed out"),
        ("long", json!({"length": 2_000_000}), vec![], "output-limit", "more than 1 MiB"),
        ("many_bytes", json!({"length": 900_000}), vec![], "output-limit", "more than 16 MiB of values"),
        ("long", json!({"length": 200_000_000}), vec![], "memory", "out of memory"),
        ("deeply", json!({"depth": 100_000_000}), vec![], "stack", "recursed"),
    ] {
        let (ended, answer) = call(&crib, name, &arguments, &flags);
        assert_eq!(ended, outcome, "{name}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(expected), "{name}: {answer}");
    }
    let records = crib.records();
    assert_eq!(records.len(), 6, "one record a call");
}

#[test]
fn each_call_begins_anew_and_what_is_written_goes_to_the_log_alone() {
    let page = Page::new();
    let crib = crib();
    for _ in 0..3 {
        assert_eq!(call(&crib, "state", &json!({}), &[]).1, json!(0));
    }
    page.run(&crib, &["call", "speak", r#"{"text":"hi"}"#, "--tools", "typed.wasm", "--verbose"]);
    page.matches("typed/log");
}

#[test]
fn a_function_reaches_what_its_tool_was_granted_and_nothing_else() {
    let crib = crib();
    std::fs::write(crib.path("work/note.txt"), "a note").unwrap();
    let note = json!({"path": "note.txt"});
    let (outcome, answer) = call(&crib, "read_file", &note, &[]);
    assert_eq!(outcome, "failed", "{answer}");
    let (outcome, answer) = call(&crib, "read_file", &note, &["--allow-read=work"]);
    assert_eq!((outcome.as_str(), answer), ("ok", json!("a note")));
    let (outcome, answer) = call(&crib, "read_file", &json!({"path": "../typed.wasm"}), &["--allow-read=work"]);
    assert_eq!(outcome, "failed", "{answer}");
}

#[test]
fn a_component_that_checks_arguments_is_asked_before_its_functions_are_called() {
    let crib = crib();
    let text = |answer: u8| {
        format!(
            r#"(component
            (core module $m
                (memory (export "memory") 1)
                (data (i32.const 64) "no")
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
                (func (export "check") (param i32 i32) (result i32)
                    (i32.store8 (i32.const 0) (i32.const {answer}))
                    (i32.store (i32.const 4) (i32.const 64))
                    (i32.store (i32.const 8) (i32.const 2))
                    (i32.const 0))
                (func (export "f") (result i32) (i32.const 7)))
            (core instance $i (instantiate $m))
            (func $check (param "arguments" string) (result (result (error string)))
                (canon lift (core func $i "check") (memory $i "memory") (realloc (func $i "realloc"))))
            (instance $validate (export "check" (func $check)))
            (export "toolcrib:tool/validate@0.1.0" (instance $validate))
            (func $f (result u32) (canon lift (core func $i "f")))
            (export "f" (func $f)))"#
        )
    };
    for (answer, outcome, expected) in
        [(0, "ok", json!(7)), (1, "bad-arguments", json!({"error": "invalid values: no"}))]
    {
        wat(&crib, "typed.wasm", &text(answer));
        assert_eq!(call(&crib, "f", &json!({}), &[]), (outcome.to_owned(), expected));
    }
}
