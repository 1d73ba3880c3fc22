//! Scripts that would not end, or would exhaust a resource: each is stopped with its own reason, and the next call is
//! unaffected.

use serde_json::{Value, json};

use super::*;

/// Creates a tool with these lines and these additional members.
fn hostile(lines: &str, members: &str) -> Crib {
    let text = tool(lines).replacen("---\n", &format!("---\n{members}\n"), 1);
    project(&[(".harness/tools/bad.md", &text), (".harness/tools/good.md", &tool("return \"well\""))])
}

#[track_caller]
fn ends(lines: &str, members: &str, flags: &[&str]) -> Value {
    let crib = hostile(lines, members);
    let line = crib.call("bad", &json!({}), flags);
    assert_eq!(crib.call("good", &json!({}), flags)["result"], "well");
    assert_eq!(crib.records().len(), 2);
    line
}

fn outcome(line: &Value) -> (&str, &str) {
    (line["receipt"]["outcome"].as_str().unwrap_or_default(), line["error"].as_str().unwrap_or_default())
}

#[test]
fn a_loop_ends_at_the_deadline_that_its_file_names() {
    let line = ends("for i in range(1000000000):\n    pass", "timeout_ms: 25", &[]);
    assert_eq!(outcome(&line), ("deadline", "tool timed out"), "{line}");
    assert!(line["receipt"]["ms"].as_f64().is_some_and(|ms| (25.0..5000.0).contains(&ms)), "{line}");
    let line = ends("for i in range(1000000000):\n    pass", "timeout_ms: 0", &["--set=limits.max_timeout=100ms"]);
    assert_eq!(outcome(&line), ("deadline", "tool timed out"), "{line}");
    let line = ends("x = [1]\nfor i in x:\n    x.append(i)", "timeout_ms: 1000", &[]);
    assert_eq!(outcome(&line).0, "failed", "a list is not changed while it is gone over: {line}");
}

#[test]
fn a_text_that_doubles_ends_at_the_memorys_limit() {
    let line = ends("s = args.get(\"task\", \"x\")\nfor i in range(60):\n    s = s + s\nreturn s", "", &[]);
    assert_eq!(outcome(&line), ("memory", "tool ran out of memory (limit 128 MiB)"), "{line}");
    let line = ends("x = []\nfor i in range(100000000):\n    x.append([i])\nreturn x", "", &["--max-memory=32MiB"]);
    assert_eq!(outcome(&line), ("memory", "tool ran out of memory (limit 32 MiB)"), "{line}");
}

#[test]
fn a_script_that_fills_its_memory_says_so_wherever_the_limit_is() {
    for step in 0..12 {
        let max = format!("--max-memory={}KiB", 8192 + 733 * step);
        let line = ends("x = []\nfor i in range(100000000):\n    x.append([i])\nreturn x", "", &[&max]);
        assert_eq!(outcome(&line).0, "memory", "{max}: {line}");
    }
}

#[test]
fn what_is_nested_or_large_beyond_measure_is_no_answer() {
    let line = ends("x = []\nfor i in range(100000):\n    x = [x]\nreturn x", "", &[]);
    let wanted = "tool error: run returned a value nested deeper than 128, or one that holds itself";
    assert_eq!(outcome(&line), ("failed", wanted), "{line}");
    let line = ends("x = {}\nx[\"x\"] = x\nreturn x", "", &[]);
    assert_eq!(outcome(&line), ("failed", wanted), "{line}");
    let line = ends("n = 300000\nreturn [i for i in range(n)]", "", &[]);
    let output = outcome(&line);
    assert!(output.0 == "output-limit" && output.1.starts_with("tool answered with more than 1 MiB"), "{line}");
    let line = ends("n = 5000000\nreturn [i for i in range(n)]", "", &[]);
    assert_eq!(outcome(&line).0, "memory", "{line}");
    let line = ends("return {1: 2}", "", &[]);
    assert!(outcome(&line).1.contains("keys must be strings"), "{line}");
    let line = ends("return 1e308 * 10", "", &[]);
    assert_eq!(outcome(&line).0, "failed", "{line}");
}

#[test]
fn a_recursion_by_a_detour_and_a_flood_of_words_end_too() {
    let lines = "def f(g, n):\n    return g(g, n + 1)\nreturn f(f, 0)";
    let line = ends(lines, "", &[]);
    assert_eq!(outcome(&line).0, "failed", "{line}");
    let line = ends("for i in range(100000):\n    print(\"words, words, words\")", "", &[]);
    assert_eq!(outcome(&line), ("output-limit", "tool wrote more than 64 KiB to standard error"), "{line}");
    let line =
        ends("return fs.write(\"a.txt\", \"x\" * 100000)", "", &["--allow-write=work", "--set=limits.max_disk=64KiB"]);
    assert_eq!(outcome(&line), ("quota", "tool wrote more than 64 KiB to its folders"), "{line}");
    let line = ends("for i in range(1000000000):\n    pass", "", &["--set=limits.fuel=10000000"]);
    assert_eq!(outcome(&line), ("fuel", "tool used up its fuel (limit 10000000)"), "{line}");
}

#[test]
fn a_hook_that_does_not_end_blocks_in_time() {
    let text = hook("tool.pre", "for i in range(1000000000):\n    pass").replacen("---\n", "---\ntimeout_ms: 50\n", 1);
    let crib = project(&[(".harness/tools/good.md", &tool("return 1")), (".harness/hooks/h.md", &text)]);
    let line = crib.call("good", &json!({}), &[]);
    let wanted = "tool blocked: blocked by hook \"h\", which failed: tool timed out";
    assert_eq!(outcome(&line), ("denied", wanted), "{line}");
}
