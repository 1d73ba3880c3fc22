//! `tools.json` through the built program: messages of the format, paths, environment, time limits.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;

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
    let command = |command: &str| json!([{"name": "n", "command": [command]}]);
    let env = |names: Value| json!([{"name": "n", "command": ["./tools/bin/echo"], "envPassthrough": names}]);
    for (tools, text) in [
        (json!([{"command": ["./tools/bin/echo"]}]), r#"tool[0]: name is required"#),
        (json!([{"name": "  "}]), r#"tool[0]: name is required"#),
        (json!([echo("n"), echo("n")]), r#"tool[1] "n": duplicate name"#),
        (json!([{"name": "n"}]), r#"tool[0] "n": command must have at least program name"#),
        (json!([{"name": "n", "command": []}]), r#"tool[0] "n": command must have at least program name"#),
        (command("bin/echo"), r#"tool[0] "n": relative command[0] must start with ./tools/bin/"#),
        (command("tools/bin/../x"), r#"tool[0] "n": relative command[0] must start with ./tools/bin/"#),
        (
            command("./tools/bin/../hack"),
            r#"tool[0] "n": command[0] escapes ./tools/bin after normalization (got "./tools/bin/../hack" -> "./tools/hack")"#,
        ),
        (command("../hack"), r#"tool[0] "n": command[0] must not start with '..' or escape tools/bin (got "../hack")"#),
        (
            env(json!(["OAI-API-KEY"])),
            r#"tool[0] "n": envPassthrough[0]: invalid name "OAI-API-KEY" (must match [A-Z_][A-Z0-9_]*)"#,
        ),
        (
            env(json!(["TZ", "1BAD"])),
            r#"tool[0] "n": envPassthrough[1]: invalid name "1BAD" (must match [A-Z_][A-Z0-9_]*)"#,
        ),
        (env(json!([" "])), r#"tool[0] "n": envPassthrough[0]: empty name"#),
        (json!([{"name": "n", "command": "x"}]), "parse manifest: invalid type: string \"x\", expected a sequence"),
        (
            json!([{"name": "n", "command": ["./tools/bin/echo"], "schema": []}]),
            "schema must be an object, found an array",
        ),
        (json!([{"name": "n", "command": ["./tools/bin/echo"], "schema": {"type": "strin"}}]), "tool \"n\": schema: "),
        (command("./tools/bin/absent"), r#"configured tool "n" is unavailable: program not found (program ""#),
    ] {
        let printed = validate(tools);
        assert!(printed.contains(text), "expected {text:?} in {printed:?}");
    }
}

#[test]
fn the_first_check_that_fails_is_the_one_told() {
    let all_wrong = json!([{"name": "", "command": [], "envPassthrough": ["1BAD"]}]);
    assert!(validate(all_wrong).contains("tool[0]: name is required"));
    let environment_before_program = json!([{"name": "n", "command": ["../x"], "envPassthrough": ["1BAD"]}]);
    assert!(validate(environment_before_program).contains("envPassthrough[0]"));
}

#[test]
fn validate_tells_every_problem_and_a_strict_load_the_first() {
    let crib = Crib::with_guests(&["echo"]);
    crib.manifest(&json!({"tools": [{"name": "a"}, echo("b"), {"name": "c", "command": ["../x"]}]}));
    let validated = crib.run(&["validate", "tools.json"]);
    let output = validated.stdout + &validated.stderr;
    assert!(output.contains("tool[0] \"a\"") && output.contains("tool[2] \"c\""), "{output}");
    let listed = crib.run(&["list", "--strict"]);
    assert_eq!(listed.code, Some(1));
    assert!(listed.stderr.contains("tools.json: tool[0] \"a\": command must have at least program name"), "{listed:?}");
    assert!(!listed.stderr.contains("tool[2]"), "{listed:?}");
}

#[test]
fn every_field_of_an_entry_is_checked_in_the_formats_order() {
    let output = validate(json!([{
        "name": "n", "command": ["../x"], "envPassthrough": ["1BAD"], "schema": [], "capabilities": [], "limits": {"fuel": 0},
        "timeoutsec": 1
    }]));
    let places: Vec<_> =
        ["envPassthrough[0]", "command[0] must not", "schema must be", "capabilities must be", "limits.fuel"]
            .iter()
            .map(|word| output.find(word).unwrap_or_else(|| panic!("{word} is not told: {output}")))
            .collect();
    assert!(places.is_sorted(), "{output}");
    assert!(output.contains("unknown field `timeoutsec` is ignored; did you mean `timeoutSec`?"), "{output}");
}

#[test]
fn a_missing_or_broken_manifest_is_named() {
    let crib = Crib::new();
    let absent = crib.run(&["list", "--tools", "absent.json"]);
    assert_eq!(absent.code, Some(1));
    assert!(absent.stderr.contains("absent.json: read manifest: no such file or folder\n"), "{absent:?}");
    fs::write(crib.path("broken.json"), "{\"tools\": [").unwrap();
    let broken = crib.run(&["list", "--tools", "broken.json"]);
    assert!(broken.stderr.contains("parse manifest: EOF while parsing"), "{broken:?}");
}

#[cfg(unix)]
#[test]
fn endless_files_are_not_read() {
    let crib = Crib::with_guests(&["echo"]);
    let manifest = crib.run(&["list", "--tools", "/dev/zero"]);
    assert!(manifest.stderr.contains("/dev/zero: read manifest: not a regular file"), "{manifest:?}");
    let arguments = crib.run(&["call", "echo", "@/dev/zero"]);
    assert_eq!(arguments.code, Some(1));
    assert!(arguments.stderr.contains("larger than the 67108864 bytes allowed"), "{arguments:?}");
    let script = crib.run(&["run", "--script", "/dev/zero"]);
    assert!(script.stderr.contains("larger than the 67108864 bytes allowed"), "{script:?}");
}

#[test]
fn unknown_fields_are_kept_and_warned_about_with_the_nearest() {
    let crib = Crib::with_guests(&["echo"]);
    crib.manifest(&json!({"tools": [
        {"name": "n", "command": ["./tools/bin/echo"], "timeoutSecs": 3, "x-vendor": 1}
    ]}));
    let ran = crib.run(&["validate", "tools.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let output = ran.stdout + &ran.stderr;
    assert!(output.contains("unknown field `timeoutSecs` is ignored; did you mean `timeoutSec`?"), "{output}");
    assert!(output.contains("unknown field `x-vendor` is ignored"), "{output}");
    assert_eq!(crib.run(&["validate", "tools.json", "--strict"]).code, Some(1));
    let loaded = toolcrib::source::load(&crib.path("tools.json")).unwrap();
    assert_eq!(loaded.tools[0].origin.unknown["x-vendor"], 1);
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
    let crib = Crib::new();
    fs::write(crib.path("tools/bin/native.wasm"), "#!/bin/sh\necho {} > ran\n").unwrap();
    crib.manifest(&json!({"tools": [{"name": "native", "command": ["./tools/bin/native"]}]}));
    let ran = crib.run(&["call", "native"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is unavailable: not a WebAssembly component or module"), "{ran:?}");
    assert!(!crib.path("ran").exists());
}

#[test]
fn the_entrys_time_limit_wins_over_the_flags() {
    let crib = Crib::with_guests(&["echo", "busy"]);
    let entry =
        |name: &str, seconds: Value| json!({"name": name, "command": ["./tools/bin/busy"], "timeoutSec": seconds});
    crib.manifest(&json!({"tools": [entry("long", json!(20)), entry("unset", json!(0))]}));
    let busy = json!({"ms": 700});
    assert_eq!(crib.outcome("long", &busy, &["--tool-timeout", "100ms"]), "ok");
    assert_eq!(crib.outcome("unset", &busy, &["--tool-timeout", "100ms"]), "deadline");
    assert_eq!(crib.outcome("unset", &busy, &["--timeout", "100ms"]), "deadline");
}

#[test]
fn the_model_sees_the_schema_as_the_manifest_gives_it() {
    let crib = Crib::with_guests(&["echo"]);
    let text = r#"{"tools":[{"name":"n","description":"d","command":["./tools/bin/echo"],"schema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"],"additionalProperties":false}}]}"#;
    fs::write(crib.path("tools.json"), text).unwrap();
    let schema: Value = serde_json::from_str(&crib.run(&["schema"]).stdout).unwrap();
    let expected = r#"[{"type":"function","function":{"name":"n","description":"d","parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"],"additionalProperties":false}}}]"#;
    assert_eq!(schema.to_string(), expected);
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
    let unknown = crib.run(&["call", "m", "{}"]);
    assert_eq!(unknown.stdout, "{\"error\":\"unknown tool: m\"}\n");
}

#[test]
fn an_entry_of_any_depth_is_told_and_leaves_the_others_their_places() {
    let crib = Crib::with_guests(&[]);
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let text = format!("{{\"tools\":[{{\"name\":\"a\",\"command\":[\"./a\"],\"x\":{deep}}},\n{{\"name\":\"b\"}}]}}");
    fs::write(crib.path("tools.json"), text).unwrap();
    let ran = crib.run(&["validate", "tools.json"]);
    let output = ran.stdout.clone() + &ran.stderr;
    assert_eq!(ran.code, Some(1), "{output}");
    assert!(output.contains("recursion limit exceeded") && output.contains("tools.json:2:1"), "{output}");
    let ran = crib.run(&["doctor", "--tools", "tools.json"]);
    assert!(ran.code.is_some(), "{ran:?}");
}
