//! Programs that mean harm end with a message, and the next call works.

use serde_json::json;

use super::{answer, nested, program};
use crate::crib::Crib;

/// Runs a program that has to fail, and returns its outcome and the text of its line.
#[track_caller]
fn fails(crib: &Crib, code: &str, flags: &[&str]) -> (String, String) {
    let line = program(crib, code, flags);
    let outcome = line["receipt"]["outcome"].as_str().unwrap().to_owned();
    assert_ne!(outcome, "ok", "{code}: {line}");
    assert_eq!(answer(crib, "1 + 1", &[])["value"], 2, "after {code}");
    (outcome, line["error"].to_string())
}

#[test]
fn a_program_that_never_ends_is_stopped_at_its_deadline() {
    let crib = Crib::new();
    for code in ["while True:\n    pass", "sum(range(10**12))"] {
        assert_eq!(fails(&crib, code, &["--timeout=2s"]).0, "deadline", "{code}");
    }
}

#[test]
fn a_program_that_needs_too_much_ends_with_a_message() {
    let crib = Crib::new();
    for (code, message) in [
        ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError"),
        ("9**9**9", "MemoryError"),
        ("'x' * 10**10", "OverflowError"),
        ("'x' * 10**9", "MemoryError"),
        ("x = [1]\nwhile True:\n    x += x", "MemoryError"),
        ("().__class__.__subclasses__()", "AttributeError"),
        ("__import__('os').system('ls')", "Error"),
        ("eval('1')", "there is no `eval`"),
        ("1 + ".to_owned().repeat(20_000).as_str(), "not run"),
    ] {
        let (_, error) = fails(&crib, code, &[]);
        assert!(error.contains(message), "{}: {error}", code.chars().take(60).collect::<String>());
    }
}

#[test]
fn calls_without_an_end_stop_at_their_maximum() {
    let crib = Crib::new();
    let code =
        "n = 0\nwhile True:\n    try:\n        tools.calculate(expression='1')\n    except Exception:\n        n += 1";
    let (outcome, error) = fails(&crib, code, &["--timeout=120s"]);
    assert!(outcome == "failed" && error.contains("1000"), "{outcome}: {error}");
    assert_eq!(nested(&crib).len(), 1000);
}

#[test]
fn printed_text_and_values_are_cut_and_it_is_said() {
    let crib = Crib::new();
    let printed = answer(&crib, "for n in range(100000):\n    print('line', n)\n'done'", &[]);
    assert!(printed["printed"].as_str().unwrap().len() <= 16 << 10, "{printed}");
    assert!(printed["dropped_bytes"].as_u64().unwrap() > 0 && printed["value"] == "done", "{printed}");
    let shown = answer(&crib, "'x' * (3 << 20)", &[]);
    assert!(shown.to_string().len() < 64 << 10 && shown["toolcrib"]["reference"].is_string(), "{shown}");
}

#[test]
fn the_calls_of_a_program_end_with_the_time_of_their_step() {
    let crib = Crib::with_guests(&["nap"]);
    let code = json!({"code": "for n in range(600):\n    tools.nap(ms=100)"});
    // The program waits for its calls, and computes for less than its own second.
    let line = crib.call("run_code", &code, &["--timeout=1s", "--set=scheduler.step_time=3s"]);
    assert_eq!(line["receipt"]["outcome"], "deadline", "{line}");
    let made = nested(&crib).iter().filter(|record| record["outcome"] == "ok").count();
    assert!(made < 600, "its calls would take a minute");
    // The last call may end with the program, after its record.
    let calls = &line["error"]["calls"][0];
    assert_eq!((&calls["tool"], &calls["outcome"]), (&json!("nap"), &json!("ok")), "{line}");
    let counted = calls["count"].as_u64().expect("a number of calls");
    assert!(counted == made as u64 || counted + 1 == made as u64, "{made}: {line}");
}

#[test]
fn a_program_in_javascript_that_needs_too_much_is_stopped_with_its_instance() {
    let crib = Crib::new();
    for code in ["const a = []; for (;;) a.push({ a: 1 })", "let s = 'x'; for (;;) s += s", "const f = () => f(); f()"]
    {
        let call = json!({"language": "javascript", "code": code});
        let line = crib.call("run_code", &call, &["--tools=builtin", "--max-memory=32MiB"]);
        assert_eq!(
            line["outcome"].as_str().or(line["receipt"]["outcome"].as_str()).map(|end| end != "ok"),
            Some(true),
            "{code}: {line}"
        );
        assert!(line["error"].is_string() || line["error"].is_object(), "{code}: {line}");
    }
}

#[test]
fn a_program_that_is_stopped_says_which_calls_it_made() {
    let crib = Crib::new();
    let code = "tools.fs_write_file(path='a', content='1')\nwhile True:\n    pass";
    let line = program(&crib, code, &["--timeout=1s"]);
    assert_eq!(line["receipt"]["outcome"], "deadline", "{line}");
    assert_eq!(line["error"]["calls"], json!([{"tool": "fs_write_file", "outcome": "ok", "count": 1}]), "{line}");
    assert!(line["error"]["error"].as_str().unwrap().starts_with("the program was stopped: "), "{line}");
}
