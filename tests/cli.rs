//! Contract of the command line: exit codes, one line on standard output, messages for people on standard error. Every
//! test uses the built program, in its own folder and without outside variables.

mod cache;
mod call;
mod help;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran};

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
    let help = crib.run(&["--help"]);
    assert_eq!(help.code, Some(0));
    for words in ["Examples:", "Exit status:", "130 interrupted, 129 or 143 terminated", "fresh sandbox", "--color"]
        .iter()
        .chain(&COMMANDS)
    {
        assert!(help.stdout.contains(words), "{words} in {}", help.stdout);
    }
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
    let call = crib.run(&["call", "--help"]).stdout;
    for heading in ["Tools:", "Permissions (none, unless granted here", "Limits:", "Records:", "General:"] {
        assert!(call.contains(heading), "{heading} in {call}");
    }
}

#[test]
fn the_version_is_one_line() {
    let version = Crib::new().run(&["--version"]);
    assert_eq!(version.stdout, format!("toolcrib {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_use_is_exit_2_and_says_what_was_wrong() {
    let crib = crib();
    let cases: [(&[&str], &str); 9] = [
        (&[], "Usage:"),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["lst"], "list"),
        (&["call"], "<TOOL>"),
        (&["call", "echo", "--timeout", "soon"], "`soon` is not a time such as `30s`"),
        (&["list", "--max-memory", "lots"], "`lots` is not a size such as `64MiB`"),
        (&["list", "--color", "pink"], "always"),
        (&["list", "--concurrency", "0"], "expected a whole number from 1 to 1000"),
        (&["list", "--fuel", "none"], "expected a whole number, at least 0"),
    ];
    for (arguments, words) in cases {
        let ran = crib.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn without_tools_the_hint_says_how_to_name_some() {
    let crib = Crib::new();
    // A folder with a lock has a project, and so no built-in tools.
    write(&crib, "toolcrib.lock", "version = 1\n");
    let ran = crib.run(&["list"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let expected = "error: no tools found: this folder has no `./tools.json` and no `./.harness`\n\
                    hint: pass a `tools.json`, a Markdown file, a component, a folder of them or a bundle with \
                    `--tools PATH`, or create a tool with `toolcrib new tool NAME --markdown`\n";
    assert_eq!(ran.stderr, expected);
    let crib = Crib::new();
    assert_eq!(crib.run(&["validate"]).stderr, expected);
    write(&crib, "tools/tools.json", r#"{"tools":[]}"#);
    let ran = crib.run(&["validate", "--tools", "tools"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "1 source, 0 errors, 1 warning\n"), "{ran:?}");
    let ran = crib.run(&["list", "--tools", "tools"]);
    assert!(ran.code == Some(0) && ran.stdout.is_empty() && ran.stderr.ends_with("\nno usable tools\n"), "{ran:?}");
}

#[test]
fn a_missing_program_ends_every_strict_command() {
    let crib = crib();
    fs::remove_file(crib.path("tools/bin/fail.wasm")).expect("a program to remove");
    for arguments in [["list"].as_slice(), &["schema"], &["call", "echo", r#"{"zebra":""}"#]] {
        let ran = crib.run(&[arguments, &["--strict"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(ran.stderr.starts_with("error: configured tool \"fail\" is unavailable: "), "{}", ran.stderr);
        assert!(ran.stderr.contains("\nhint: build or copy the component to "), "{}", ran.stderr);
    }
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
    let crib = crib();
    let table = crib.run(&["list"]);
    assert_eq!(table.code, Some(0), "{}", table.stderr);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert!(lines[0].starts_with("NAME  NEEDS       GRANTED  SOURCE"), "{}", table.stdout);
    assert!(lines[1].starts_with("echo  undeclared  nothing  tools.json  Say it again"), "{}", table.stdout);
    assert!(!table.stdout.contains("And nothing else"), "only the first sentence: {}", table.stdout);

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
}

#[test]
fn text_from_a_manifest_cannot_drive_the_terminal() {
    let crib = crib();
    let manifest =
        r#"{"tools":[{"name":"echo","description":"\u001b[31mred\u202e \u009b2J","command":["./tools/bin/echo"]}]}"#;
    write(&crib, "tools.json", manifest);
    let ran = crib.run(&["list"]);
    assert!(ran.stdout.contains(r"\u{1b}[31mred\u{202e} \u{9b}2J"), "{}", ran.stdout);
}

#[test]
fn validate_names_every_problem_and_its_file() {
    let crib = crib();
    assert_eq!(crib.run(&["validate"]).stderr, "1 source, no problems found\n");
    write(
        &crib,
        "bad.json",
        r#"{"tools":[{"name":"","command":["./tools/bin/echo"]},{"name":"x","command":["./bin/echo"]},{"name":"y","command":["./tools/bin/none"]}]}"#,
    );
    let ran = crib.run(&["validate", "bad.json", "tools.json"]);
    assert_eq!(ran.code, Some(1));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.starts_with("error: bad.json:1:")), "{}", ran.stdout);
    assert_eq!(lines[0], "error: bad.json:1:19: tool[0]: name is required");
    assert!(ran.stdout.contains(r#"tool[1] "x": relative command[0] must start with ./tools/bin/"#), "{}", ran.stdout);
    assert!(ran.stderr.starts_with("2 sources, "), "{}", ran.stderr);
}

#[test]
fn warnings_fail_under_strict_only() {
    let crib = crib();
    write(&crib, "odd.json", r#"{"tools":[{"name":"echo","command":["./tools/bin/echo"],"timeoutSecs":5}]}"#);
    let ran = crib.run(&["validate", "odd.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("warning: odd.json:1:71: ") && ran.stdout.contains("timeoutSec"), "{}", ran.stdout);
    assert_eq!(crib.run(&["validate", "odd.json", "--strict"]).code, Some(1));
    let problems: Value = serde_json::from_str(&crib.run(&["validate", "odd.json", "--json"]).stdout).expect("JSON");
    assert_eq!((&problems[0]["severity"], &problems[0]["path"]), (&json!("warning"), &json!("odd.json")));
    assert!(crib.run(&["list", "--tools", "odd.json"]).stderr.starts_with("warning: odd.json: "));
}

#[test]
fn a_program_that_is_no_component_is_found_before_an_agent_meets_it() {
    let crib = crib();
    write(&crib, "tools/bin/spin.wasm", b"\0asm\x01\0\0\0not a module");
    let ran = crib.run(&["validate"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("spin"), "{}", ran.stdout);
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
    let mut crib = crib();
    crib.trusts = false;
    let mut command = crib.toolcrib(&["doctor"]);
    let ran = Ran::from(command.env("OAI_API_KEY", "sk-very-secret").output().expect("the program starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    for words in [
        "ok   toolcrib",
        "wasmtime 48.",
        "cache",
        "audit log",
        "./tools.json: no problems found",
        "TOOLCRIB_CACHE_DIR, OAI_API_KEY\n",
    ] {
        assert!(ran.stdout.contains(words), "{words} in {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("sk-very-secret") && !ran.stdout.contains("zbus"), "{}", ran.stdout);
    let left: Vec<_> = fs::read_dir(crib.path("home")).expect("the home").collect();
    assert!(left.is_empty(), "it changes nothing: {left:?}");
}

#[test]
fn doctor_fails_with_a_cure_where_something_is_broken() {
    let crib = crib();
    write(&crib, "blocker", "a file, no folder");
    write(&crib, "tools.json", "{}}");
    let ran = crib.run(&["doctor", "--json", "--audit-dir", "blocker/log"]);
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
    for (file, line) in [("README.md", "cargo test"), (".ci/run", "step tests cargo test")] {
        let text = fs::read_to_string(repository().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.lines().any(|found| found.trim() == line), "`{line}` is a line of {file}");
    }
}
