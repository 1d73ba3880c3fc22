//! `tools.json` through the built program: messages of the format, paths, environment, time limits.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

/// Output of `validate` for a manifest with these entries.
fn validate(tools: Value) -> String {
    let crib = Crib::with_guests(&["echo"]);
    crib.manifest(&json!({ "tools": tools }));
    let ran = crib.run(&["validate", "tools.json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.stdout + &ran.stderr
}

fn echo(name: &str) -> Value {
    json!({"name": name, "command": ["./tools/bin/echo"]})
}

#[test]
fn each_mistake_gets_the_formats_own_words() {
    let page = Page::new();
    let command = |command: &str| json!([{"name": "n", "command": [command]}]);
    let env = |names: Value| json!([{"name": "n", "command": ["./tools/bin/echo"], "envPassthrough": names}]);
    for tools in [
        json!([{"command": ["./tools/bin/echo"]}]),
        json!([{"name": "  "}]),
        json!([echo("n"), echo("n")]),
        json!([{"name": "n"}]),
        json!([{"name": "n", "command": []}]),
        command("bin/echo"),
        command("tools/bin/../x"),
        command("./tools/bin/../hack"),
        command("../hack"),
        env(json!(["OAI-API-KEY"])),
        env(json!(["TZ", "1BAD"])),
        env(json!([" "])),
        json!([{"name": "n", "command": "x"}]),
        json!([{"name": "n", "command": ["./tools/bin/echo"], "schema": []}]),
        json!([{"name": "n", "command": ["./tools/bin/echo"], "schema": {"type": "strin"}}]),
        command("./tools/bin/absent"),
    ] {
        page.note(tools.to_string());
        page.text("validate", validate(tools));
    }
    page.matches("manifest/mistakes");
}

#[test]
fn the_first_check_that_fails_is_the_one_told() {
    let page = Page::new();
    let all_wrong = json!([{"name": "", "command": [], "envPassthrough": ["1BAD"]}]);
    page.text("all is wrong", validate(all_wrong));
    let environment_before_program = json!([{"name": "n", "command": ["../x"], "envPassthrough": ["1BAD"]}]);
    page.text("environment before program", validate(environment_before_program));
    page.matches("manifest/first-check");
}

#[test]
fn validate_tells_every_problem_and_a_strict_load_the_first() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    crib.manifest(&json!({"tools": [{"name": "a"}, echo("b"), {"name": "c", "command": ["../x"]}]}));
    page.run(&crib, &["validate", "tools.json"]);
    page.run(&crib, &["list", "--strict"]);
    page.matches("manifest/every-problem");
}

#[test]
fn every_field_of_an_entry_is_checked_in_the_formats_order() {
    let page = Page::new();
    let output = validate(json!([{
        "name": "n", "command": ["../x"], "envPassthrough": ["1BAD"], "schema": [], "capabilities": [], "limits": {"fuel": 0},
        "timeoutsec": 1
    }]));
    page.text("validate", &output);
    page.matches("manifest/order");
}

#[test]
fn a_missing_or_broken_manifest_is_named() {
    let page = Page::new();
    let crib = Crib::new();
    page.run(&crib, &["list", "--tools", "absent.json"]);
    fs::write(crib.path("broken.json"), "{\"tools\": [").unwrap();
    page.run(&crib, &["list", "--tools", "broken.json"]);
    page.matches("manifest/absent");
}

#[cfg(unix)]
#[test]
fn endless_files_are_not_read() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    page.run(&crib, &["list", "--tools", "/dev/zero"]);
    page.run(&crib, &["call", "echo", "@/dev/zero"]);
    page.run(&crib, &["run", "--script", "/dev/zero"]);
    page.matches("manifest/endless");
}

#[test]
fn unknown_fields_are_kept_and_warned_about_with_the_nearest() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    crib.manifest(&json!({"tools": [
        {"name": "n", "command": ["./tools/bin/echo"], "timeoutSecs": 3, "x-vendor": 1}
    ]}));
    page.run(&crib, &["validate", "tools.json"]);
    page.run(&crib, &["validate", "tools.json", "--strict"]);
    let loaded = toolcrib::source::load(&crib.path("tools.json")).unwrap();
    assert_eq!(loaded.tools[0].origin.unknown["x-vendor"], 1);
    page.matches("manifest/unknown-fields");
}

#[test]
fn programs_lie_beside_their_manifest_wherever_the_caller_stands() {
    let crib = Crib::with_guests(&["echo"]);
    let manifest = crib.path("tools.json");
    let manifest = manifest.to_str().unwrap();
    let mut command = crib.toolcrib(&["call", "echo", "{\"a\":1}", "--tools", manifest]);
    let output = command.current_dir(crib.path("work")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"a\":1}\n");
    let mut command = crib.toolcrib(&["call", "echo", "{\"a\":1}", "--tools", "../tools.json"]);
    let output = command.current_dir(crib.path("work")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"a\":1}\n");
}

#[test]
fn a_manifest_for_native_programs_runs_unchanged() {
    for program in
        ["./tools/bin/echo", "./tools/bin/echo.exe", "tools/bin/echo", r".\\tools\\bin\\echo", "./tools/bin/echo.wasm"]
    {
        let crib = Crib::with_guests(&["echo"]);
        fs::write(crib.path("tools.json"), format!(r#"{{"tools":[{{"name":"n","command":["{program}"]}}]}}"#)).unwrap();
        assert_eq!(crib.run(&["call", "n", "{\"a\":1}"]).stdout, "{\"a\":1}\n", "{program}");
    }
}

#[test]
fn a_native_program_is_refused_and_never_run() {
    let page = Page::new();
    let crib = Crib::new();
    fs::write(crib.path("tools/bin/native.wasm"), "#!/bin/sh\necho {} > ran\n").unwrap();
    crib.manifest(&json!({"tools": [{"name": "native", "command": ["./tools/bin/native"]}]}));
    page.run(&crib, &["call", "native"]);
    assert!(!crib.path("ran").exists());
    page.matches("manifest/native-program");
}

#[test]
fn the_entrys_time_limit_wins_over_the_flags() {
    let crib = Crib::with_guests(&["echo", "busy"]);
    let entry =
        |name: &str, seconds: Value| json!({"name": name, "command": ["./tools/bin/busy"], "timeoutSec": seconds});
    crib.manifest(&json!({"tools": [entry("long", json!(20)), entry("unset", json!(0))]}));
    let busy = json!({"ms": 700});
    assert_eq!(crib.outcome("long", &busy, &["--set", "limits.tool_timeout=100ms"]), "ok");
    assert_eq!(crib.outcome("unset", &busy, &["--set", "limits.tool_timeout=100ms"]), "deadline");
    assert_eq!(crib.outcome("unset", &busy, &["--timeout", "100ms"]), "deadline");
}

#[test]
fn the_model_sees_the_schema_as_the_manifest_gives_it() {
    let crib = Crib::with_guests(&["echo"]);
    let text = r#"{"tools":[{"name":"n","description":"d","command":["./tools/bin/echo"],"schema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"],"additionalProperties":false}}]}"#;
    fs::write(crib.path("tools.json"), text).unwrap();
    let schema: Value = serde_json::from_str(&crib.run(&["schema"]).stdout).unwrap();
    let expected = r#"[{"type":"function","function":{"name":"n","description":"d","parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"]}}}]"#;
    assert_eq!(schema.to_string(), expected, "but for a keyword that models do not need");
}

#[test]
fn a_wrong_call_never_starts_the_guest() {
    let crib = Crib::with_guests(&["spin"]);
    crib.manifest(&json!({"tools": [{"name": "n", "command": ["./tools/bin/spin"], "schema": {
        "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false
    }}]}));
    for arguments in ["{", "[]", "{}", r#"{"a":"1"}"#, r#"{"a":1,"b":2}"#, r#"{"a":1,"a":2}"#] {
        let ran = crib.run(&["call", "n", arguments, "--json"]);
        assert_eq!(ran.code, Some(1));
        let line: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(line["receipt"]["outcome"], "bad-arguments", "{line}");
        assert_eq!(line["receipt"]["cpuMs"], 0.0, "the guest was not started: {line}");
    }
    let unknown = crib.run(&["call", "unknown", "{}"]);
    assert_eq!(unknown.stdout, "{\"error\":\"unknown tool: unknown\"}\n");
}

#[test]
fn an_entry_of_any_depth_is_told_and_leaves_the_others_their_places() {
    let page = Page::new();
    let crib = Crib::with_guests(&[]);
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let text = format!("{{\"tools\":[{{\"name\":\"a\",\"command\":[\"./a\"],\"x\":{deep}}},\n{{\"name\":\"b\"}}]}}");
    fs::write(crib.path("tools.json"), text).unwrap();
    page.run(&crib, &["validate", "tools.json"]);
    let ran = crib.run(&["doctor", "--tools", "tools.json"]);
    assert!(ran.code.is_some(), "{ran:?}");
    page.matches("manifest/deep");
}
