//! `validate` of a `tools.json`: every problem of every entry at once, each with its line and column.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

const TOOLS: &str = r#"{
  "tools": [
    {"name": "a"},
    {
      "name": "b",
      "command": ["./tools/bin/echo"],
      "envPassthrough": ["TZ", "1BAD"],
      "schema": {
        "type": "object",
        "properties": {
          "é": {"type": "strin"},
          "n": {"minimum": "one"}
        }
      },
      "limits": {"fuel": 0}
    },
    {"name": "c", "command": ["./tools/bin/echo"], "schema": {
      "properties": {"x": {"type": "strin"}, "y": {"minimum": "one"}}}},
    {"name": "d", "command": ["./tools/bin/absent"], "colour": "red"},
    {"name": "e",
     "command": "x"},
    {"name": "f", "command": ["./tools/bin/echo"], "interface": {"strict": 1, "rendering": {"hue": 2}}}
  ]
}
"#;

fn crib() -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    fs::write(crib.path("tools.json"), TOOLS).unwrap();
    crib
}

#[test]
fn each_problem_of_a_manifest_has_its_line_and_column() {
    let page = Page::new();
    let ran = page.run(&crib(), &["validate", "tools.json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for (place, told) in [
        ("3:5", r#"tool[0] "a": command must have at least program name"#),
        ("7:32", r#"tool[1] "b": envPassthrough[1]: invalid name "1BAD""#),
        ("11:25", r#"tool "b": schema: at `/properties/é/type`: "strin""#),
        ("12:28", r#"tool "b": schema: at `/properties/n/minimum`: "one""#),
        ("15:26", r#"tool[1] "b": limits.fuel must be a positive whole number"#),
        ("18:36", r#"tool "c": schema: at `/properties/x/type`: "strin""#),
        ("18:63", r#"tool "c": schema: at `/properties/y/minimum`: "one""#),
        ("19:31", r#"configured tool "d" is unavailable: program not found"#),
        ("19:64", r#"tool[3] "d": unknown field `colour` is ignored"#),
        ("21:", r#"tool[4] "e": parse manifest: invalid type: string "x", expected a sequence"#),
        ("22:76", r#"tool[5] "f": interface.strict must be true or false, found 1"#),
        ("22:100", r#"tool[5] "f": interface.rendering: unknown field `hue` is ignored"#),
    ] {
        let line = ran.stdout.lines().find(|line| line.contains(told)).unwrap_or_else(|| panic!("{told}: {ran:?}"));
        assert!(line.contains(&format!(" tools.json:{place}")), "expected {place} in {line}");
    }
    page.matches("validate/places");
}

#[test]
fn a_default_that_its_argument_refuses_is_warned_of_at_its_place() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let text = r#"{"tools": [{"name": "a", "command": ["./tools/bin/echo"], "schema": {"properties": {
      "mode": {"enum": ["fast", "slow"],
               "default": "fats"},
      "times": {"type": "integer", "default": 3}}}}]}"#;
    fs::write(crib.path("tools.json"), text).unwrap();
    let ran = page.run(&crib, &["validate", "tools.json"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 1), "{ran:?}");
    page.matches("validate/default");
}

#[test]
fn the_problems_are_the_same_as_json() {
    let page = Page::new();
    let ran = page.run(&crib(), &["validate", "tools.json", "--json"]);
    let problems: Value = serde_json::from_str(&ran.stdout).unwrap();
    let problems = problems.as_array().unwrap();
    assert!(problems.iter().all(|problem| problem["line"].is_u64() && problem["column"].is_u64()), "{problems:?}");
    let at = |line: u64| problems.iter().filter(|problem| problem["line"] == line).count();
    assert_eq!((at(3), at(18), at(19)), (1, 2, 2), "{problems:?}");
    let errors = problems.iter().filter(|problem| problem["severity"] == "error").count();
    assert!(ran.stderr.contains(&format!("1 source, {errors} errors, ")), "{ran:?}");
    page.matches("validate/json");
}

#[test]
fn a_text_that_is_no_json_has_the_place_of_the_parser() {
    let page = Page::new();
    let crib = Crib::new();
    for text in ["{\n \"tools\": [}\n", "{\"tools\": 7}", ""] {
        fs::write(crib.path("tools.json"), text).unwrap();
        page.text("tools.json", text);
        page.run(&crib, &["validate", "tools.json"]);
    }
    page.matches("validate/no-json");
}

#[test]
fn one_line_of_many_problems_is_read_once() {
    let crib = Crib::with_guests(&["echo"]);
    let tools: Vec<_> = (0..5000).map(|n| json!({"name": format!("tool_{n}"), "command": ["../x"]})).collect();
    crib.manifest(&json!({"tools": tools}));
    let begun = std::time::Instant::now();
    let ran = crib.run(&["validate", "tools.json"]);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    assert_eq!(ran.stdout.lines().count(), 5000, "{}", ran.stderr);
    assert!(ran.stdout.contains("command[0] must not start with '..' or escape tools/bin (got \"../x\")"));
}
