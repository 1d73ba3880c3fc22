//! Ends of a run without an answer: at the last step, or from outside.

#[cfg(unix)]
use std::io::{BufRead, BufReader, Read};
#[cfg(unix)]
use std::process::Child;
use std::process::Command;
#[cfg(unix)]
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::place::server as server_of;
use super::place::*;
#[cfg(unix)]
use crate::crib::until_started;
use crate::screen::Page;

/// Time for the end of an interrupted run on a slow machine. The work that is interrupted takes longer.
#[cfg(unix)]
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_model_that_never_stops_calling_is_stopped() {
    let server = server([calls(&[("echo", "same", "{}")])]);
    let place = Place::new();
    for (args, steps) in [(&["go", "--set=run.repeats=0"][..], 100), (&["go", "--max-steps", "3", "--quiet"], 3)] {
        let end = place.ask(&base(&server), args).ended(4);
        let wanted = format!("error: stopped after {steps} steps without a final answer\n");
        assert!(end.stderr.contains(&wanted) && end.stdout.is_empty(), "{end:?}");
    }
    assert_eq!(bodies(&server).len(), 103);
    let end = place.ask(&base(&server), &["go", "--max-steps", "1", "--json"]).ended(4);
    let last = end.events().pop().expect("an event");
    assert_eq!((&last["type"], &last["reason"], &last["exitCode"]), (&json!("end"), &json!("max_steps"), &json!(4)));
    assert!(end.stderr.contains("error: stopped after 1 step without a final answer"), "{}", end.stderr);
}

#[test]
fn the_same_call_again_and_again_is_told_to_the_model_and_then_ends_the_run() {
    let server = server([calls(&[("echo", "same", "{}")])]);
    let place = Place::new();
    let end = place.ask(&base(&server), &["go", "--set=run.repeats=3"]).ended(4);
    let wanted = "error: stopped: `echo` was called with the same arguments and the same result in 6 calls\n";
    assert!(end.stderr.contains(wanted) && end.stderr.contains("run saved; continue"), "{end:?}");
    let requests = bodies(&server);
    assert_eq!(requests.len(), 6, "no request follows the last call");
    let told = |request: &Value| {
        request["messages"].to_string().matches("with the same arguments and the same result").count()
    };
    assert_eq!(requests.iter().map(told).collect::<Vec<_>>(), [0, 0, 0, 1, 2, 3]);
    let end = place.ask(&base(&server), &["go", "--json"]).ended(4);
    let last = end.events().pop().expect("an event");
    assert_eq!((&last["reason"], &last["budget"]), (&json!("budget"), &json!("repeats")));
    assert_eq!(last["calls"], 10, "five calls are told, and ten end the run: {last}");
    // Another result each time is no repetition, and neither are other arguments.
    let other = |number: usize| calls(&[("echo", "same", &format!("{{\"n\":{number}}}"))]);
    let server = server_of((0..12).map(other).chain([says("done")]));
    place.ask(&base(&server), &["go"]).ended(0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_stops_every_call_and_leaves_their_records() {
    for signal in ["-INT", "-TERM"] {
        let place = Place::new();
        let script = place.script(json!([
            { "tool_calls": [{ "name": "echo" }, { "name": "spin" }, { "name": "spin" }] },
            { "content": "done" },
        ]));
        let child = place.start(&[
            "--script",
            &script,
            "--json",
            "--save-messages",
            "talk.json",
            "--timeout",
            "10m",
            "--records",
            "kept",
        ]);
        let begun = |event: &Value| {
            let begun = event["type"] == "tool_result";
            if begun {
                // A call that has not started when the signal comes never starts, and leaves no record.
                until_started(&place.path("kept"), 3);
            }
            begun
        };
        let (code, took, events) = interrupted_after(child, signal, begun);
        assert!(took < SOON, "{signal}: {took:?}");
        assert_eq!(code, Some(if signal == "-INT" { 130 } else { 143 }), "{signal}");
        let last = events.last().expect("an event");
        assert_eq!((&last["type"], &last["reason"]), (&json!("end"), &json!("interrupted")), "{signal}");
        let mut ends = place.audited();
        ends.sort();
        assert_eq!(ends, ["cancelled", "cancelled", "ok"], "{signal}");
        let talk = place.json("talk.json");
        assert_eq!(talk.as_array().expect("messages").len(), 5, "every call is answered: {talk}");
        assert_eq!(talk[2]["content"], "{}");
        assert!(talk[3]["content"].as_str().expect("text").contains("interrupted"), "{talk}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_run_that_waits_for_its_server() {
    let server = server([says("late").late(Duration::from_secs(60))]);
    let place = Place::new();
    let child =
        place.start(&["go", "--base-url", &base(&server), "--model", "m", "--json", "--save-messages", "talk.json"]);
    let (code, took, _) = interrupted_after(child, "-INT", |event| event["type"] == "start");
    assert!(code == Some(130) && took < SOON, "{code:?} {took:?}");
    assert_eq!(place.json("talk.json"), json!([{ "role": "user", "content": "go" }]));
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_a_run_that_waits_for_its_prompt() {
    let place = Place::new();
    let mut command = place.command(&["-", "--model", "m"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("the program starts");
    // The program is ready once it has its handlers; before that, a signal ends it like any other.
    crate::crib::until_it_listens(child.id());
    let (code, took) = interrupt(&mut child, "-INT");
    assert!(code == Some(130) && took < SOON, "{code:?} {took:?}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_run_whose_thread_is_stuck() {
    for (signal, wanted) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let place = Place::new();
        assert!(Command::new("mkfifo").arg(place.path("pipe")).status().expect("`mkfifo` runs").success());
        let mut child = place.start(&["--script", "pipe"]);
        // Opens once the program reads the script, which blocks it and keeps it waiting.
        let writer = std::fs::OpenOptions::new().write(true).open(place.path("pipe")).expect("a pipe");
        let (code, took) = interrupt(&mut child, signal);
        assert!(code == Some(wanted) && took < SOON, "{code:?} {took:?}");
        drop(writer);
    }
}

/// Interrupts a run once an event satisfies `when`; returns its exit code, its duration, and its events.
#[cfg(unix)]
fn interrupted_after(
    mut child: Child,
    signal: &str,
    when: impl Fn(&Value) -> bool,
) -> (Option<i32>, Duration, Vec<Value>) {
    let mut lines = BufReader::new(child.stdout.take().expect("standard output")).lines();
    let mut next = || Some(serde_json::from_str::<Value>(&lines.next()?.expect("a line")).expect("an event"));
    let mut events = Vec::new();
    while let Some(event) = next() {
        let now = when(&event);
        events.push(event);
        if now {
            break;
        }
    }
    let (code, took) = interrupt(&mut child, signal);
    events.extend(std::iter::from_fn(next));
    (code, took, events)
}

#[cfg(unix)]
fn interrupt(child: &mut Child, signal: &str) -> (Option<i32>, Duration) {
    let began = Instant::now();
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("`kill` runs");
    assert!(sent.success());
    let status = loop {
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None if began.elapsed() > Duration::from_secs(20) => {
                let _ = child.kill();
                panic!("the program did not end");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut output = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut output);
    }
    assert!(!output.contains("panicked"), "{output}");
    (status.code(), began.elapsed())
}

#[test]
fn a_run_of_which_every_call_was_denied_says_so_in_its_last_line() {
    let page = Page::new();
    let place = Place::new();
    let call = json!({"tool_calls": [{"name": "echo", "arguments": {"n": 1}}]});
    let other = json!({"tool_calls": [{"name": "peek", "arguments": {}}]});
    let last = json!({"content": "done"});
    for (turns, calls, denied) in [(json!([call, last]), 1, 1), (json!([call, other, last]), 2, 1)] {
        let script = place.script(turns);
        let ran = place.run(&["--script", &script, "--deny-tool=echo"]).ended(0);
        page.text("standard error", &ran.stderr);
        let events = place.run(&["--script", &script, "--deny-tool=echo", "--json"]).ended(0).events();
        let end = events.last().unwrap();
        assert_eq!((&end["calls"], &end["deniedCalls"]), (&json!(calls), &json!(denied)), "{end}");
    }
    page.matches("run/denied-calls");
}

#[test]
fn one_identifier_names_a_run_in_its_events_its_file_and_its_records() {
    let place = Place::new();
    // The server counts the calls of each run from zero.
    let server = server([
        calls(&[("echo", "call_0", "{\"n\":1}")]),
        says("done"),
        calls(&[("echo", "call_0", "{\"n\":2}")]),
        says("done"),
    ]);
    let ran = |args: &[&str]| {
        place.ask(&base(&server), args).ended(0).events().pop().unwrap()["run"].as_str().unwrap().to_owned()
    };
    let runs = [ran(&["go", "--json"]), ran(&["go", "--json"])];
    assert_ne!(runs[0], runs[1]);
    let other = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(args).env_clear().env("HOME", place.path("")).env("TOOLCRIB_AUDIT_DIR", place.path("audit"));
        end(command.current_dir(place.path("")))
    };
    for (at, run) in runs.iter().enumerate() {
        let listed = other(&["runs", "list", "--json"]).ended(0).stdout;
        assert!(listed.contains(run.as_str()), "{listed}");
        let logged = other(&["audit", "show", "--json", "--run", &run.to_uppercase()]).ended(0).stdout;
        let records: Vec<Value> = logged.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(records.len(), 1, "{logged}");
        assert_eq!((&records[0]["run"], &records[0]["callId"]), (&json!(run), &json!("call_0")));
        assert_eq!(records[0]["arguments"]["json"], json!({"n": at + 1}), "{logged}");
    }
    let none = other(&["audit", "show", "--run", "other"]).ended(1);
    assert!(none.stderr.contains("no matching record has the run `other`"), "{none:?}");
}
