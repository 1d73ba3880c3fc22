//! Contract of `toolcrib call`: one line on standard output after every outcome, and one record.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[cfg(unix)]
use crate::crib::until_started;
use crate::crib::{Crib, Ran};
use crate::screen::Page;

use super::{crib, write};

fn run_with_input(crib: &Crib, arguments: &[&str], input: &str) -> Ran {
    let mut command = crib.toolcrib(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("standard input");
    Ran::from(child.wait_with_output().expect("an end"))
}

#[test]
fn a_call_prints_one_line_wherever_its_arguments_come_from() {
    let crib = crib();
    write(&crib, "arguments.json", r#"{"zebra":"from a file"}"#);
    let cases = [
        (crib.run(&["call", "echo", r#"{"zebra":"given"}"#]), r#"{"zebra":"given"}"#),
        (run_with_input(&crib, &["call", "echo", "-"], r#"{"zebra":"two  spaces"}"#), r#"{"zebra":"two  spaces"}"#),
        (crib.run(&["call", "echo", "@arguments.json"]), r#"{"zebra":"from a file"}"#),
    ];
    for (ran, line) in cases {
        assert_eq!((ran.stdout.as_str(), ran.code), (format!("{line}\n").as_str(), Some(0)), "{}", ran.stderr);
    }
    assert_eq!(crib.records().len(), 3);
}

#[test]
fn arguments_that_cannot_be_read_are_a_failed_call_like_others() {
    let crib = crib();
    fs::write(crib.path("odd.json"), b"{\"zebra\":\"\xff\"}").unwrap();
    let stdin = |arguments: &[&str]| {
        let mut command = crib.toolcrib(arguments);
        let output = command.stdin(File::open(crib.path("odd.json")).unwrap()).output().unwrap();
        Ran::from(output)
    };
    for (ran, source) in [
        (stdin(&["call", "echo", "-", "--json"]), "standard input"),
        (stdin(&["call", "echo", "--text", "-", "--json"]), "standard input"),
        (crib.run(&["call", "echo", "@odd.json", "--json"]), "`odd.json`"),
    ] {
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        let said = format!("cannot read arguments from {source}: the text is not UTF-8");
        assert_eq!((&line["error"], &line["receipt"]["outcome"]), (&json!(said), &json!("bad-arguments")), "{line}");
        assert!(ran.stderr.starts_with("error: cannot read arguments"), "{ran:?}");
    }
    let absent = crib.run(&["call", "echo", "@absent.json"]);
    assert!(absent.code == Some(1) && absent.stdout.contains("\"error\":\"cannot read arguments"), "{absent:?}");
    assert_eq!(crib.records().len(), 4, "each is signed for");
    assert!(crib.records().iter().all(|record| record["outcome"] == "bad-arguments"));
}

#[test]
fn a_call_that_cannot_begin_is_told_as_json_where_that_was_asked_for() {
    let crib = crib();
    fs::write(crib.path("odd.toml"), b"# \xff\n").unwrap();
    fs::write(crib.path("odd.json"), b"\xff\xfe").unwrap();
    for flags in
        [&["--config=odd.toml"] as &[_], &["--tools=odd.json"], &["--deny-tool=echo(zbra=1)", "--config=odd.toml"]]
    {
        let ran = crib.run(&[&["call", "echo", "{}", "--json"], flags].concat());
        assert_eq!((ran.code, ran.stdout.lines().count()), (Some(1), 1), "{ran:?}");
        let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        assert!(line["error"].is_string() && ran.stderr.starts_with("error: "), "{ran:?}");
        let plain = crib.run(&[&["call", "echo", "{}"], flags].concat());
        assert_eq!((plain.code, plain.stdout.as_str()), (Some(1), ""), "{plain:?}");
    }
}

#[test]
fn absent_arguments_are_an_empty_object() {
    let crib = crib();
    let manifest = r#"{"tools":[{"name":"echo","command":["./tools/bin/echo"]}]}"#;
    write(&crib, "tools.json", manifest);
    assert_eq!(crib.run(&["call", "echo"]).stdout, "{}\n");
    assert_eq!(run_with_input(&crib, &["call", "echo", "-"], "").stdout, "{}\n");
}

#[test]
fn a_failed_call_is_an_error_object_and_exit_1() {
    let crib = crib();
    let ran = crib.run(&["call", "fail"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.stdout.lines().count(), 1);
    let line: Value = serde_json::from_str(&ran.stdout).expect("a line of JSON");
    assert!(line["error"].as_str().is_some_and(|error| error.contains("no such")), "{line}");
    assert_eq!(ran.stderr, "", "there is no more to say than the model was told");
}

#[test]
fn what_a_tool_says_on_standard_error_is_shown_on_demand_and_inert() {
    let page = Page::new();
    page.run(&crib(), &["call", "fail", "--verbose"]);
    page.matches("call/standard-error");
}

#[test]
fn arguments_against_the_schema_never_start_the_tool() {
    let crib = crib();
    for arguments in [r#"{"zebra":1}"#, "{", "[]"] {
        let ran = crib.run(&["call", "echo", arguments]);
        assert_eq!(ran.code, Some(1), "{arguments}");
        assert!(ran.stdout.starts_with(r#"{"error":""#), "{arguments}: {}", ran.stdout);
    }
    assert!(crib.records().iter().all(|record| record["outcome"] == "bad-arguments"), "{:?}", crib.records());
}

#[test]
fn an_unknown_tool_names_its_nearest_neighbour() {
    let ran = crib().run(&["call", "ecko"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.stdout, "{\"error\":\"unknown tool: ecko; did you mean `echo`?\"}\n", "also for the model");
    assert_eq!(ran.stderr, "error: unknown tool: ecko\nhint: did you mean `echo`?\n");
    for name in ["functions.echo", "Echo", "tools/ECHO", "mcp:echo"] {
        let ran = crib().run(&["call", name]);
        assert!(ran.stdout.contains("did you mean `echo`?"), "{name}: {ran:?}");
    }
    let ran = crib().run(&["call", "something"]);
    assert_eq!(ran.stdout, "{\"error\":\"unknown tool: something\"}\n");
    let ran = crib().run(&["schema", "ecko"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert_eq!(ran.stderr, "error: unknown tool: ecko\nhint: did you mean `echo`?\n");
}

#[test]
fn wrong_arguments_are_hinted_at_and_the_line_stays() {
    let page = Page::new();
    let crib = crib();
    let strict = r#"{"tools":[{"name":"echo","command":["./tools/bin/echo"],"schema":{"type":"object",
        "properties":{"zebra":{"type":"string"}},"additionalProperties":false}}]}"#;
    write(&crib, "tools.json", strict);
    for arguments in [r#"{"zbera":"x"}"#, r#"{"lion":"x"}"#, "zebra=x"] {
        page.run(&crib, &["call", "echo", arguments]);
    }
    page.run(&crib, &["call", "nobody"]);
    page.run(&crib, &["echo", r#"{"zebra":"x"}"#]);
    page.run(&crib, &["version"]);
    page.run(&crib, &["audit", "echo"]);
    for context in ["5", "{"] {
        page.run(&crib, &["call", "echo", &format!("--context={context}")]);
    }
    page.matches("call/wrong-arguments");
}

#[test]
fn json_adds_the_receipt_and_keeps_the_result_byte_for_byte() {
    let crib = crib();
    let ran = crib.run(&["call", "echo", r#"{"zebra":"a  b","n":1.50}"#, "--json"]);
    assert!(ran.stdout.starts_with(r#"{"result":{"zebra":"a  b","n":1.50},"receipt":{"#), "{}", ran.stdout);
    let line: Value = serde_json::from_str(&ran.stdout).expect("a line of JSON");
    assert_eq!((&line["receipt"]["tool"], &line["receipt"]["outcome"]), (&json!("echo"), &json!("ok")));
    let ran = crib.run(&["call", "nobody", "--json"]);
    assert!(ran.stdout.starts_with(r#"{"error":"unknown tool: nobody","receipt":{"#), "{}", ran.stdout);
}

#[test]
fn a_deadline_ends_a_tool_that_never_ends() {
    let page = Page::new();
    page.run(&crib(), &["call", "spin", "--set", "limits.tool_timeout=300ms"]);
    page.matches("call/deadline");
}

#[test]
fn records_go_to_the_state_folder_and_hold_no_key() {
    let crib = crib();
    write(
        &crib,
        "tools.json",
        r#"{"tools":[{"name":"echo","command":["./tools/bin/echo","sk-very-secret","hush-12"]}]}"#,
    );
    let mut command = crib.toolcrib(&["call", "echo", "--set", "records.redact=hush-[0-9]+; unused"]);
    command.env_remove("TOOLCRIB_AUDIT_DIR").env("OPENAI_API_KEY", "sk-very-secret");
    assert_eq!(Ran::from(command.output().expect("the program starts")).code, Some(0));
    assert!(crib.records().is_empty(), "nothing goes to a folder that is not named any more");
    let folder = crib.path("home/.local/state/toolcrib/audit");
    let mut files = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let day = files.find(|path| path.extension().is_some_and(|ending| ending == "log")).expect("a day");
    let line = fs::read_to_string(day).expect("a record");
    assert_eq!(line.lines().count(), 1);
    assert_eq!(line.matches("***REDACTED***").count(), 2, "{line}");
    assert!(!line.contains("sk-very-secret") && !line.contains("hush-12"), "{line}");
}

#[test]
fn an_expression_with_a_comma_masks_and_a_short_key_masks_nothing() {
    let crib = crib();
    write(&crib, "tools.json", r#"{"tools":[{"name":"echo","command":["./tools/bin/echo","aab","x,y"]}]}"#);
    let mut command = crib.toolcrib(&["call", "echo", "--redact", r"a{2,3},x\,y"]);
    command.env("OAI_API_KEY", "o");
    assert_eq!(Ran::from(command.output().expect("the program starts")).code, Some(0));
    let [record] = crib.records().try_into().expect("one record");
    assert_eq!(record["argv"], json!(["./tools/bin/echo", "***REDACTED***b", "***REDACTED***"]));
    assert_eq!(record["tool"], "echo");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_a_call_whose_record_cannot_be_written_for_now() {
    let crib = crib();
    crib.run(&["call", "nobody"]);
    let log = File::open(crib.path("audit/head")).expect("a log");
    log.lock().expect("a lock");
    let mut child =
        crib.toolcrib(&["call", "nobody"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    crate::crib::until_it_listens(child.id());
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    let begun = Instant::now();
    assert!(sent.success());
    assert_eq!(child.wait().expect("an end").code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[cfg(target_os = "linux")]
#[test]
fn as_many_files_may_be_open_as_the_system_allows() {
    let crib = crib();
    let call = format!("ulimit -S -n 64; exec '{}' call echo -", crate::crib::TOOLCRIB);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(call).current_dir(crib.path(".")).env("HOME", crib.path("home"));
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shell");
    let raised = || {
        let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).expect("limits");
        let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
        let words: Vec<&str> = files.split_whitespace().collect();
        words[3] == words[4]
    };
    let begun = Instant::now();
    while !raised() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the limit is raised");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(child.stdin.take());
    child.wait().expect("an end");
}

#[cfg(unix)]
#[test]
fn an_interrupted_call_is_exit_130_and_still_signed_for() {
    let crib = crib();
    let mut command = crib.toolcrib(&["call", "spin", "--records", "kept"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    until_started(&crib.path("kept"), 1);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
    let begun = Instant::now();
    let status = child.wait().expect("an end");
    assert_eq!(status.code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(20), "the deadline of the call is later");
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    assert_eq!(said, "{\"error\":\"interrupted before the call ended\"}\n");
    let outcomes: Vec<Value> = crib.records().iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes, ["cancelled"]);
}
