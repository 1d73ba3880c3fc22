//! Contract of the command line: exit codes, one line on standard output, messages for people on standard error. Every
//! test uses the built program, in its own folder and without outside variables.

mod cache;
mod call;
mod help;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran};
use crate::screen::Page;

const COMMANDS: [&str; 34] = [
    "run",
    "chat",
    "runs",
    "call",
    "list",
    "mcp",
    "result",
    "schema",
    "validate",
    "init",
    "new",
    "build",
    "test",
    "describe",
    "bundle",
    "install",
    "update",
    "outdated",
    "remove",
    "trust",
    "key",
    "sign",
    "verify",
    "push",
    "pull",
    "login",
    "logout",
    "approvals",
    "secret",
    "config",
    "cache",
    "audit",
    "doctor",
    "completions",
];

/// Copies standard input to standard output.
const ECHO: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "_start") (local $length i32)
    (block $end (loop $more
      (i32.store (i32.const 0) (i32.add (i32.const 64) (local.get $length)))
      (i32.store (i32.const 4) (i32.sub (i32.const 60000) (local.get $length)))
      (br_if $end (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (br_if $end (i32.eqz (i32.load (i32.const 8))))
      (local.set $length (i32.add (local.get $length) (i32.load (i32.const 8))))
      (br $more)))
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Reports an error on standard error and exits with 1.
const FAIL: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "{\"error\":\"no such \1b[2Jnote\"}")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const 32))
    (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $exit (i32.const 1))))"#;

/// Never ends.
const SPIN: &str = r#"(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (loop $for_ever (br $for_ever))))"#;

/// Creates a crib with the tools `echo`, `fail` and `spin`.
fn crib() -> Crib {
    let crib = Crib::new();
    for (name, text) in [("echo", ECHO), ("fail", FAIL), ("spin", SPIN)] {
        crib.install_wat(name, text);
    }
    write(
        &crib,
        "tools.json",
        r#"{"tools":[
          {"name":"echo","description":"Say it again. And nothing else.","command":["./tools/bin/echo"],
           "schema":{"type":"object","properties":{"zebra":{"type":"string"},"apple":{"type":"integer","minimum":-1.50}},"required":["zebra"],"additionalProperties":true}},
          {"name":"fail","command":["./tools/bin/fail"]},
          {"name":"spin","description":"Turns.","command":["./tools/bin/spin"]}
        ]}"#,
    );
    crib
}

fn write(crib: &Crib, name: &str, content: impl AsRef<[u8]>) {
    fs::write(crib.path(name), content).expect("a file");
}

pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository")
}

#[test]
fn help_teaches_with_examples_that_name_real_commands() {
    let crib = Crib::new();
    for command in COMMANDS {
        let help = crib.run(&[command, "--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{command}");
        assert!(help.stdout.contains("Usage: toolcrib "), "{command}: {}", help.stdout);
        assert!(
            help.stdout.contains("Examples:") || help.stdout.contains("Exit status:"),
            "{command}: {}",
            help.stdout
        );
    }
}

#[test]
fn the_version_is_one_line() {
    let version = Crib::new().run(&["--version"]);
    assert_eq!(version.stdout, format!("toolcrib {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_use_is_exit_2_and_says_what_was_wrong() {
    let page = Page::new();
    let crib = crib();
    let cases: [&[&str]; 9] = [
        &[],
        &["--no-such-flag"],
        &["lst"],
        &["call"],
        &["call", "echo", "--timeout", "soon"],
        &["list", "--max-memory", "lots"],
        &["list", "--color", "pink"],
        &["list", "--set", "limits.concurrency=0"],
        &["list", "--set", "limits.fuel=none"],
    ];
    for arguments in cases {
        page.run(&crib, arguments);
    }
    page.matches("usage/wrong-use");
}

#[test]
fn without_tools_the_hint_says_how_to_name_some() {
    let page = Page::new();
    let crib = Crib::new();
    // A folder with the manifest of a project has no built-in tools, whatever is there in its place.
    fs::create_dir(crib.path("tools.json")).expect("a folder");
    page.run(&crib, &["list"]);
    let crib = Crib::new();
    page.run(&crib, &["validate"]);
    write(&crib, "tools/tools.json", r#"{"tools":[]}"#);
    page.run(&crib, &["validate", "--tools", "tools"]);
    page.run(&crib, &["list", "--tools", "tools"]);
    page.matches("list/no-tools");
}

#[test]
fn a_missing_program_ends_every_strict_command() {
    let page = Page::new();
    let crib = crib();
    fs::remove_file(crib.path("tools/bin/fail.wasm")).expect("a program to remove");
    for arguments in [["list"].as_slice(), &["schema"], &["call", "echo", r#"{"zebra":""}"#]] {
        page.run(&crib, &[arguments, &["--strict"]].concat());
    }
    page.matches("list/missing-program");
}

#[test]
fn schema_passes_parameters_through_in_their_own_order() {
    let ran = crib().run(&["schema", "echo", "fail"]);
    let compact: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let expected = concat!(
        r#"[{"type":"function","function":{"name":"echo","description":"Say it again. And nothing else.","parameters":"#,
        r#"{"type":"object","properties":{"zebra":{"type":"string"},"apple":{"type":"integer","minimum":-1.5}},"#,
        r#""required":["zebra"],"additionalProperties":true}}},"#,
        r#"{"type":"function","function":{"name":"fail","parameters":{"type":"object","properties":{}}}}]"#,
    );
    assert_eq!(compact.to_string(), expected);
    assert!(ran.stdout.find("zebra") < ran.stdout.find("apple"));
    let ran = crib().run(&["schema", "fail", "--for", "openai-responses"]);
    let flat: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let parameters = json!({ "type": "object", "properties": {} });
    assert_eq!(flat, json!([{ "type": "function", "name": "fail", "parameters": parameters, "strict": false }]));
}

#[test]
fn list_shows_what_each_tool_may_use() {
    let page = Page::new();
    let crib = crib();
    page.run(&crib, &["list"]);

    let granted = |arguments: &[&str]| {
        let ran = crib.run(&[["list", "--json"].as_slice(), arguments].concat());
        let tools: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
        tools[1]["granted"].as_array().map_or(0, Vec::len)
    };
    fs::create_dir(crib.path("a")).expect("a folder");
    fs::create_dir(crib.path("b")).expect("a folder");
    assert_eq!(granted(&[]), 0);
    assert_eq!(granted(&["--allow-read=a,b"]), 2);
    assert_eq!(granted(&["--allow-read", "a", "--allow-write", "b"]), 2);
    assert_eq!(granted(&["--allow-read=a,b", "--deny-read=a"]), 1, "a denial wins");
    assert_eq!(granted(&["--allow-read=a,b", "--deny-read"]), 0, "a bare denial is of everything");
    assert_eq!(granted(&["--allow-env=HOME,PATH,TZ", "--deny-env"]), 0);
    page.run(&crib, &["list", "--all", "--allow-read=a,b", "--deny-tool=spin"]);
    page.run(&crib, &["list", "--deny-tool=spin"]);
    page.matches("list/table");
}

#[test]
fn text_from_a_manifest_cannot_drive_the_terminal() {
    let page = Page::new();
    let crib = crib();
    let manifest =
        r#"{"tools":[{"name":"echo","description":"\u001b[31mred\u202e \u009b2J","command":["./tools/bin/echo"]}]}"#;
    write(&crib, "tools.json", manifest);
    page.run(&crib, &["list"]);
    page.matches("list/hostile-text");
}

#[test]
fn validate_names_every_problem_and_its_file() {
    let page = Page::new();
    let crib = crib();
    page.run(&crib, &["validate"]);
    write(
        &crib,
        "bad.json",
        r#"{"tools":[{"name":"","command":["./tools/bin/echo"]},{"name":"x","command":["./bin/echo"]},{"name":"y","command":["./tools/bin/none"]}]}"#,
    );
    page.run(&crib, &["validate", "bad.json", "tools.json"]);
    page.matches("validate/every-problem");
}

#[test]
fn warnings_fail_under_strict_only() {
    let page = Page::new();
    let crib = crib();
    write(&crib, "odd.json", r#"{"tools":[{"name":"echo","command":["./tools/bin/echo"],"timeoutSecs":5}]}"#);
    page.run(&crib, &["validate", "odd.json"]);
    page.run(&crib, &["validate", "odd.json", "--strict"]);
    let problems: Value = serde_json::from_str(&crib.run(&["validate", "odd.json", "--json"]).stdout).expect("JSON");
    assert_eq!((&problems[0]["severity"], &problems[0]["path"]), (&json!("warning"), &json!("odd.json")));
    page.run(&crib, &["list", "--tools", "odd.json"]);
    page.matches("validate/strict");
}

#[test]
fn a_program_that_is_no_component_is_found_before_an_agent_meets_it() {
    let page = Page::new();
    let crib = crib();
    write(&crib, "tools/bin/spin.wasm", b"\0asm\x01\0\0\0not a module");
    page.run(&crib, &["validate"]);
    page.matches("validate/no-component");
}

#[test]
fn colours_are_for_terminals_or_on_demand() {
    let crib = Crib::new();
    assert!(!crib.run(&["validate"]).stderr.contains('\u{1b}'));
    assert!(!crib.run(&["validate", "--color", "never"]).stderr.contains('\u{1b}'));
    let always = crib.run(&["validate", "--color", "always"]).stderr;
    assert!(always.contains("\u{1b}[1;31merror:\u{1b}[0m "), "{always:?}");
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let crib = crib();
    for arguments in [["list"].as_slice(), &["schema"], &["completions", "zsh"], &["call", "echo", r#"{"zebra":""}"#]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ran = Ran::from(crib.toolcrib(arguments).stdout(writer).output().expect("the program starts"));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn doctor_finds_a_sound_place_sound_and_shows_no_secret() {
    let page = Page::new();
    let mut crib = crib();
    crib.trusts = false;
    let mut command = crib.toolcrib(&["doctor"]);
    page.command(command.env("OAI_API_KEY", "sk-very-secret"));
    let left: Vec<_> = fs::read_dir(crib.path("home")).expect("the home").collect();
    assert!(left.is_empty(), "it changes nothing: {left:?}");
    page.matches("doctor/sound");
}

#[test]
fn doctor_fails_with_a_cure_where_something_is_broken() {
    let crib = crib();
    write(&crib, "blocker", "a file, no folder");
    write(&crib, "tools.json", "{}}");
    let ran = crib.run(&["doctor", "--json", "--set", "records.audit_dir=blocker/log"]);
    assert_eq!(ran.code, Some(1));
    let findings: Vec<Value> = serde_json::from_str(&ran.stdout).expect("JSON");
    let failed: Vec<&Value> = findings.iter().filter(|finding| finding["status"] == "fail").collect();
    assert_eq!(failed.iter().map(|finding| &finding["check"]).collect::<Vec<_>>(), ["audit log", "tools"]);
    assert!(failed.iter().all(|finding| finding["cure"].is_string()), "{findings:?}");
}

#[test]
fn every_shell_gets_a_completion_script() {
    let crib = Crib::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = crib.run(&["completions", shell]);
        assert_eq!(ran.code, Some(0), "{shell}");
        assert!(ran.stdout.contains("toolcrib") && ran.stdout.contains("validate"), "{shell}");
    }
}

#[cfg(target_os = "linux")]
#[cfg(unix)]
#[test]
fn the_readme_names_the_command_that_tests_and_ci_runs_it() {
    for (file, line) in [("README.md", "cargo test"), (".ci/run", "step tests timed cargo test")] {
        let text = fs::read_to_string(repository().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.lines().any(|found| found.trim() == line), "`{line}` is a line of {file}");
    }
}
