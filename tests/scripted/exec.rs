//! Programs that scripts run: found by name, in a separate sandbox, with at most the script's grant, and recorded in
//! the single record of the call.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::crib::guest;

/// Runs the requested command, as the format's own example does.
const RUN_COMMAND: &str = "---
parameters:
  command: { type: string, required: true }
  args: { type: array, items: { type: string } }
  stdin: { type: string }
  timeout_ms: { type: number }
  folder: { type: string }
script: |
  def run(args):
      return exec.run(args[\"command\"], args.get(\"args\", []), args.get(\"timeout_ms\", 15000),
                      cwd=args.get(\"folder\"), stdin=args.get(\"stdin\", \"{}\"))
timeout_ms: 30000
---
# run_command
Runs a program of the crib.
";

fn crib(guests: &[&str]) -> Crib {
    let crib = project(&[(".harness/tools/run_command.md", RUN_COMMAND)]);
    for name in guests {
        write(&crib, &format!(".harness/bin/{name}.wasm"), fs::read(guest(name)).expect("the guest was built"));
    }
    crib
}

fn error(line: &Value) -> &str {
    line["error"].as_str().unwrap_or_else(|| panic!("no error: {line}"))
}

#[test]
fn a_program_gets_its_arguments_its_input_and_the_scripts_surroundings() {
    let crib = crib(&["env_dump"]);
    let arguments = json!({"command": "env_dump", "args": ["-a", "b c", "; rm *"]});
    let line = crib.call("run_command", &arguments, &["--allow-exec=env_dump", "--allow-read=work"]);
    let seen: Value = serde_json::from_str(line["result"]["stdout"].as_str().expect("text")).expect("JSON");
    assert_eq!(seen["args"], json!(["env_dump", "-a", "b c", "; rm *"]), "no shell reads them: {line}");
    assert_eq!(seen["preopens"], json!(["/"]));
    assert_eq!(line["receipt"]["granted"].as_array().map(Vec::len), Some(2), "{line}");
    let output = crib.run(&["list"]).stdout;
    assert!(output.contains("run_command"), "{output}");
    let ran = play(&crib, &json!({"prompt": "go", "turns": [calls("env_dump", json!({})), {"content": "x"}]}), &[]);
    assert!(results(&ran)[0]["content"].as_str().is_some_and(|text| text.contains("only by the host")), "{ran:?}");
}

#[test]
fn a_line_for_a_shell_is_refused_and_the_refusal_signed_for() {
    let crib = crib(&["echo"]);
    for (command, token) in [
        ("echo | whoami", "'|'"),
        ("echo;ls", "';'"),
        ("$(echo)", "'$'"),
        ("a\nb", "'\\n'"),
        ("a`b`", "'`'"),
        ("a>b", "'>'"),
    ] {
        let line = crib.call("run_command", &json!({ "command": command }), &["--allow-exec"]);
        let wanted =
            format!("forbidden shell token {token} in {command:?}: name a program in the crib, without shell syntax");
        assert_eq!(error(&line), format!("tool error: exec.run: {wanted}"));
        assert_eq!(line["receipt"]["denied"], json!([{ "capability": format!("exec:{command}") }]), "{line}");
        assert_eq!(line["receipt"]["executed"], Value::Null);
    }
    let last = crib.records().pop().expect("a record");
    assert_eq!((&last["outcome"], &last["denied"][0]["capability"]), (&json!("denied"), &json!("exec:a>b")), "{last}");
}

#[test]
fn a_name_that_nothing_has_and_a_rule_that_stands_before_it() {
    let crib = crib(&["echo"]);
    let line = crib.call("run_command", &json!({"command": "bash", "args": ["-lc", "ls"]}), &["--allow-exec"]);
    assert_eq!(error(&line), "tool error: exec.run: the crib has no program named `bash`");
    for (rule, why) in [
        ("--deny-tool=echo", "its tool is not available"),
        ("--ask-tool=echo", "each call of its tool requires approval"),
    ] {
        let line = crib.call("run_command", &json!({"command": "echo"}), &["--allow-exec", rule]);
        assert_eq!(error(&line), format!("tool error: exec.run: `echo`: {why}"), "{rule}");
        assert_eq!(line["receipt"]["denied"][0]["capability"], "exec:echo");
    }
}

#[test]
fn a_failure_is_an_exit_code_and_a_stop_is_an_error() {
    let crib = crib(&["exit_code", "spin", "grow"]);
    let output = json!({"code": 1, "stdout": "out", "stderr": "err"}).to_string();
    let line = crib.call("run_command", &json!({"command": "exit_code", "stdin": output}), &["--allow-exec"]);
    let result = &line["result"];
    assert_eq!(
        (&result["ok"], &result["exit_code"], &result["stdout"], &result["stderr"]),
        (&json!(false), &json!(1), &json!("out"), &json!("err")),
        "{line}"
    );
    let begun = Instant::now();
    let line = crib.call("run_command", &json!({"command": "spin", "timeout_ms": 50}), &["--allow-exec"]);
    assert_eq!(error(&line), "tool error: exec.run: `spin` was stopped: tool timed out");
    assert_eq!(line["receipt"]["executed"][0]["stopped"], "deadline", "{line}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let line = crib.call("run_command", &json!({"command": "grow"}), &["--allow-exec", "--max-memory=32MiB"]);
    assert_eq!(line["receipt"]["executed"][0]["stopped"], "memory", "{line}");
    assert!(error(&line).contains("`grow` was stopped: tool ran out of memory (limit 32 MiB)"), "{line}");
    assert_eq!(line["receipt"]["outcome"], "failed", "the script itself ran out of nothing");
}

#[cfg(unix)]
#[test]
fn a_program_sees_one_folder_of_the_scripts_where_it_is_named() {
    let crib = crib(&["env_dump", "file_io"]);
    write(&crib, "work/inner/a.txt", "inside");
    write(&crib, "work/b.txt", "beside");
    std::os::unix::fs::symlink("/", crib.path("work/root")).expect("a link");
    let read = |path: &str, folder: &str| {
        let stdin = json!({"op": "read", "path": path}).to_string();
        let arguments = json!({"command": "file_io", "stdin": stdin, "folder": folder});
        crib.call("run_command", &arguments, &["--allow-exec", "--allow-read=work"])
    };
    let line = read("a.txt", "inner");
    assert!(line["result"]["stdout"].as_str().is_some_and(|text| text.contains("inside")), "{line}");
    let line = read("../b.txt", "inner");
    assert_eq!(line["result"]["stdout"], "{\"error\":\"not-permitted\"}\n", "{line}");
    for folder in ["..", "inner/../..", "root", "root/etc"] {
        let line = read("a.txt", folder);
        assert!(error(&line).contains(&format!("folder `{folder}`: permission denied by the grant")), "{line}");
        assert_eq!(line["receipt"]["denied"][0]["capability"], "exec:file_io", "{line}");
    }
    assert!(error(&read("a.txt", "none")).contains("no such folder"));
}

#[test]
fn what_its_programs_do_to_the_world_counts_for_the_call() {
    let crib = project(&[(
        ".harness/tools/fill.md",
        &tool(
            "for n in range(5):\n    exec.run(\"many_entries\", [], stdin='{\"kind\":\"file\",\"most\":2}', cwd=str(n))\nreturn 1",
        ),
    )]);
    write(&crib, ".harness/bin/many_entries.wasm", fs::read(guest("many_entries")).expect("the guest was built"));
    (0..5).for_each(|n| fs::create_dir_all(crib.path(format!("work/{n}"))).expect("a folder"));
    let flags = ["--allow-exec", "--allow-write=work", "--set=limits.max_disk_entries=5"];
    let line = crib.call("fill", &json!({}), &flags);
    assert_eq!(line["receipt"]["diskEntries"], 5, "{line}");
    let made: usize = (0..5).map(|n| fs::read_dir(crib.path(format!("work/{n}"))).expect("a folder").count()).sum();
    assert_eq!(made, 5);
    assert_eq!(line["receipt"]["executed"].as_array().map(Vec::len), Some(5), "{line}");
}

#[test]
fn every_slot_may_hold_a_script_that_runs_a_program() {
    let crib = crib(&["nap"]);
    let one = |id: usize| {
        let arguments = json!({"command": "nap", "stdin": "{\"ms\":100}"});
        json!({"id": format!("c{id}"), "name": "run_command", "arguments": arguments})
    };
    let turn = json!({ "tool_calls": (0..6).map(one).collect::<Vec<_>>() });
    let script = json!({"prompt": "go", "turns": [turn, {"content": "x"}]});
    for concurrency in ["--set=limits.concurrency=1", "--set=limits.concurrency=4"] {
        let ran = play(&crib, &script, &["--allow-exec", concurrency]);
        let ended: Vec<_> = results(&ran).iter().map(|result| result["isError"].clone()).collect();
        assert_eq!(ended, [false; 6], "{ran:?}");
    }
}

#[test]
fn a_programs_tool_keeps_its_rules_its_hooks_and_its_limits() {
    let crib = crib(&["echo", "fill_disk"]);
    let run = |stdin: &str, flags: &[&str]| {
        let arguments = json!({"command": "echo", "stdin": stdin});
        crib.call("run_command", &arguments, &[&["--allow-exec"], flags].concat())
    };
    let rule = "--deny-tool=echo(path=secret*)";
    assert!(error(&run("{\"path\":\"secret.txt\"}", &[rule])).contains("denied by an operator rule"));
    assert_eq!(run("{\"path\":\"other.txt\"}", &[rule])["result"]["ok"], true);
    assert!(
        error(&run("words", &[rule])).contains("rules match its arguments, but its input is not a single JSON object")
    );
    let line = run("{\"path\":\"a\"}", &["--ask-tool=echo(path=*)"]);
    assert!(error(&line).contains("requires approval"), "{line}");
    let guard = "if payload[\"name\"] == \"echo\":\n    return block(\"not here\")";
    write(&crib, ".harness/hooks/guard.md", hook("tool.pre", guard));
    let line = run("{}", &[]);
    assert!(error(&line).contains("`echo`: blocked by hook \"guard\": not here"), "{line}");
    assert_eq!(line["receipt"]["executed"], Value::Null);
}

#[test]
fn what_a_program_is_given_as_arguments_is_judged_too() {
    let crib = crib(&["echo"]);
    let run = |stdin: &str, args: &[&str], flags: &[&str]| {
        let arguments = json!({"command": "echo", "stdin": stdin, "args": args});
        crib.call("run_command", &arguments, &[&["--allow-exec"], flags].concat())
    };
    let refused = |line: &Value, why: &str| {
        assert!(error(line).contains(why), "{line}");
        assert_eq!((&line["receipt"]["outcome"], &line["receipt"]["executed"]), (&json!("denied"), &Value::Null));
    };
    let rule = "--deny-tool=echo(argv=*secret*)";
    for args in [&["secrets/a"] as &[_], &["-v", "--path=secrets/a"], &["--path", "secrets"]] {
        refused(&run("{}", args, &[rule]), "denied by an operator rule");
    }
    refused(&run("{}", &["-r", "/"], &["--deny-tool=echo(argv=-r /)"]), "denied by an operator rule");
    refused(&run("{}", &["--force"], &["--ask-tool=echo(argv=--force)"]), "requires approval");
    for args in [&[] as &[_], &["notes"]] {
        assert_eq!(run("{}", args, &[rule])["result"]["ok"], true);
    }
    // A rule over another argument cannot see the arguments of the program.
    let blind = "rules match its arguments, but its input is not a single JSON object";
    for rule in ["--deny-tool=echo(path=secrets/*)", "--ask-tool=echo(path=*)"] {
        for args in [&["secrets/a"] as &[_], &["--path=secrets/a"], &["notes"]] {
            refused(&run("{\"n\":1}", args, &[rule]), blind);
        }
        assert_eq!(run("{\"n\":1}", &[], &[rule])["result"]["ok"], true);
    }
    let both = ["--ask-tool=echo", "--allow-tool=echo(path=out/*)"];
    assert_eq!(run("{\"path\":\"out/a\"}", &[], &both)["result"]["ok"], true);
    refused(&run("{\"path\":\"out/a\"}", &["secrets/a"], &both), "requires approval");
}

#[test]
fn a_hook_is_asked_about_arguments_that_its_conditions_cannot_see() {
    let crib = crib(&["echo"]);
    let guard = "if \"secrets\" in str(payload[\"args\"]):\n    return block(\"not these\")";
    let text = hook("tool.pre", guard).replacen("---\n", "---\nwhen: {tool: echo, args: {path: \"*\"}}\n", 1);
    write(&crib, ".harness/hooks/guard.md", text);
    let run = |stdin: &str, args: &[&str]| {
        crib.call("run_command", &json!({"command": "echo", "stdin": stdin, "args": args}), &["--allow-exec"])
    };
    for (stdin, args) in
        [("{\"path\":\"secrets/a\"}", &[] as &[_]), ("{}", &["secrets/a"]), ("{}", &["-v", "secrets/a"])]
    {
        let line = run(stdin, args);
        assert!(error(&line).contains("blocked by hook \"guard\": not these"), "{line}");
    }
    assert_eq!(run("{}", &["notes"])["result"]["ok"], true);
}

#[test]
fn fuel_is_the_calls_own_and_every_program_is_counted() {
    let lines = "for n in range(30):\n    exec.run(\"echo\", [], stdin=\"{}\")\nreturn 1";
    let crib = project(&[(".harness/tools/often.md", &tool(lines))]);
    write(&crib, ".harness/bin/echo.wasm", fs::read(guest("echo")).expect("the guest was built"));
    let line = crib.call("often", &json!({}), &["--allow-exec"]);
    assert_eq!((&line["result"], &line["receipt"]["executions"]), (&json!(1), &json!(30)), "{line}");
    assert_eq!(line["receipt"]["executed"].as_array().map(Vec::len), Some(16));
    let used = |fuel: &str| crib.call("often", &json!({}), &["--allow-exec", "--fuel", fuel]);
    let all = used("1000000000");
    let fuel = all["receipt"]["fuel"].as_u64().unwrap_or_else(|| panic!("no fuel: {all}"));
    let less = used(&(fuel * 9 / 10).to_string());
    assert_ne!(less["receipt"]["outcome"], "ok", "what programs used is the call's: {less}");
}

#[test]
fn a_program_is_given_so_many_arguments_and_bytes_of_them() {
    let run = |args: &str| {
        let crib = project(&[(
            ".harness/tools/many.md",
            &tool(&format!("return exec.run(\"echo\", {args}, stdin=\"{{}}\")")),
        )]);
        write(&crib, ".harness/bin/echo.wasm", fs::read(guest("echo")).expect("the guest was built"));
        crib.call("many", &json!({}), &["--allow-exec"])
    };
    assert_eq!(run("[\"x\" * 131072]")["result"]["ok"], true);
    for args in ["[\"x\" * 131073]", "[\"\"] * 1001"] {
        let line = run(args);
        assert!(error(&line).starts_with("tool error: exec.run: ") && error(&line).contains("1000"), "{line}");
        assert_eq!(line["receipt"]["executed"], Value::Null);
    }
}

#[test]
fn a_program_that_a_script_names_is_granted_by_trust_and_by_a_flag_and_by_nothing_else() {
    let script = "---
capabilities: { exec: [echo] }
parameters: { command: { type: string } }
script: |
  def run(args):
      return exec.run(args[\"command\"], [], stdin=\"{}\")[\"stdout\"]
---
# runs
Runs a program.
";
    let mut crib = project(&[(".harness/tools/runs.md", script)]);
    crib.trusts = false;
    for name in ["echo", "env_dump"] {
        write(&crib, &format!(".harness/bin/{name}.wasm"), fs::read(guest(name)).expect("the guest was built"));
    }
    let digest = toolcrib::policy::review(&crib.path(".harness")).unwrap().digest;
    let trust = format!("--trust={digest}");
    let call = |command: &str, flags: &[&str]| crib.call("runs", &json!({ "command": command }), flags);
    for (command, flags, outcome) in [
        ("echo", &[][..], "denied"),
        ("echo", &["--allow-exec=echo"], "ok"),
        ("echo", &["--allow-exec=runs:echo"], "ok"),
        ("echo", &["--allow-exec=other:echo"], "denied"),
        ("echo", &[&trust], "ok"),
        ("env_dump", &[&trust], "denied"),
        ("env_dump", &[&trust, "--allow-exec"], "denied"),
        ("echo", &[&trust, "--deny-exec"], "denied"),
        ("echo", &[&trust, "--deny-exec=e*"], "denied"),
    ] {
        let line = call(command, flags);
        assert_eq!(line["receipt"]["outcome"], outcome, "{command} {flags:?}: {line}");
    }
    let granted = call("echo", &[&trust])["receipt"]["granted"].clone();
    assert_eq!(granted, json!(["exec:echo"]), "what is granted is what the call may do");
}

#[test]
fn a_denial_for_one_tool_holds_for_its_program_in_a_script() {
    let crib = crib(&["file_io"]);
    write(&crib, "work/x", "as it was");
    let write_it = |flags: &[&str]| {
        let stdin = json!({"op": "write", "path": "x", "text": "changed"}).to_string();
        let arguments = json!({"command": "file_io", "stdin": stdin});
        let line = crib.call("run_command", &arguments, &[&["--allow-exec", "--allow-write=work"], flags].concat());
        (line, fs::read_to_string(crib.path("work/x")).expect("the file"))
    };
    for denial in [
        "--deny-write=file_io:work",
        "--deny-read=file_*:work",
        "--deny-write=*:work",
        "--deny-env=file_io:LANG",
        "--deny-net=file_io:example.com",
    ] {
        let (line, text) = write_it(&[denial]);
        assert_eq!(text, "as it was", "{denial}: {line}");
        let is_for_all = denial.contains("=*:");
        assert_eq!(line["receipt"]["denied"][0]["capability"] == "exec:file_io", !is_for_all, "{denial}: {line}");
    }
    let (line, text) = write_it(&["--deny-env=run_command:LANG"]);
    assert_eq!(text, "changed", "{line}");
}

#[test]
fn a_program_that_a_script_names_is_granted_by_an_installation() {
    let script = "---
capabilities: { exec: [echo] }
script: |
  def run(args):
      return exec.run(\"echo\", [], stdin=\"{}\")[\"stdout\"]
---
# runs
Runs a program.
";
    let crib = Crib::new();
    write(&crib, "source/.harness/tools/runs.md", script);
    write(&crib, "source/.harness/bin/echo.wasm", fs::read(guest("echo")).expect("the guest was built"));
    let packed = crib.run(&["bundle", "pack", "source", "-o", "runs.tar", "--name=acme/runs", "--version=1.0.0"]);
    let digest = packed.stdout.lines().last().expect("a digest");
    let outcome = |flags: &[&str]| {
        let line = crib.call("runs", &json!({}), flags);
        (line["receipt"]["outcome"].clone(), line["receipt"]["granted"].clone())
    };
    for (grant, expected) in [
        ("none", (json!("denied"), json!([]))),
        ("exec:echo", (json!("ok"), json!(["exec:echo"]))),
        ("all", (json!("ok"), json!(["exec:echo"]))),
    ] {
        let ran = crib.run(&["install", "./runs.tar", &format!("--trust={digest}"), &format!("--grant={grant}")]);
        assert_eq!(ran.code, Some(0), "{grant}: {ran:?}");
        assert_eq!(outcome(&[]), expected, "{grant}");
    }
    assert_eq!(outcome(&["--deny-exec"]).0, "denied");
}
