//! Approval of a run's calls from another terminal: `run --wait-approval` and `approvals allow` or `deny`.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::crib::{Crib, Ran};
use crate::screen::Page;

/// Maximum wait for a call: tests share the machine.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Starts a run whose model makes these calls of `echo` in one step.
fn start(crib: &Crib, calls: usize, wait: &str) -> Child {
    let call = |n: usize| json!({"name": "echo", "arguments": {"n": n}});
    let turns = json!([{"tool_calls": (0..calls).map(call).collect::<Vec<_>>()}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let args = ["run", "--script", "script.json", "--json", "--ask-tool=echo", "--wait-approval", wait];
    let mut command = crib.toolcrib(&args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Calls that wait for an answer.
fn pending(crib: &Crib) -> Vec<Value> {
    let ran = crib.run(&["approvals", "pending", "--json"]);
    let all: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    all.into_iter().filter(|call| call.get("answer").is_none()).collect()
}

/// Waits for a call with these arguments, and returns it.
fn waiting(crib: &Crib, arguments: &str) -> Value {
    let started = Instant::now();
    loop {
        if let Some(call) = pending(crib).into_iter().find(|call| call["arguments"] == arguments) {
            return call;
        }
        assert!(started.elapsed() < MAX_WAIT, "no call with {arguments} waits");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Waits for the end of a run, and returns it with the reasons of the decisions about its calls.
fn end(child: Child) -> (Ran, Vec<String>) {
    let ran = Ran::from(child.wait_with_output().unwrap());
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let results = events.filter(|event| event["type"] == "tool_result");
    let reasons = results.map(|event| event["receipt"]["decision"]["reason"].as_str().unwrap_or("none").to_owned());
    let reasons = reasons.collect();
    (ran, reasons)
}

#[test]
fn a_person_answers_the_calls_of_a_run_from_another_terminal() {
    let crib = Crib::with_guests(&["echo"]);
    let run = start(&crib, 2, "60s");
    let first = waiting(&crib, "{\"n\":0}");
    assert!(first["client"].as_str().unwrap().starts_with("a run: "), "{first}");
    assert_eq!(pending(&crib).len(), 1, "one question at a time");
    let id = first["id"].as_str().unwrap();
    assert_eq!(crib.run(&["approvals", "allow", id]).code, Some(0));
    let second = waiting(&crib, "{\"n\":1}");
    let denied = crib.run(&["approvals", "deny", second["id"].as_str().unwrap(), "--reason", "use the\ncopy"]);
    assert_eq!((denied.code, denied.stderr.lines().count()), (Some(0), 1), "{denied:?}");
    let (ran, reasons) = end(run);
    assert_eq!((ran.code, reasons), (Some(0), vec!["once".to_owned(), "refused".to_owned()]), "{ran:?}");
    assert!(ran.stderr.contains(&format!("`toolcrib approvals allow {id}`")), "{ran:?}");
    assert!(ran.stdout.contains("the user denied this call: use the copy"), "the model gets the reason: {ran:?}");
    assert!(pending(&crib).is_empty());
}

#[test]
fn a_call_that_nobody_answers_in_time_is_denied_and_waits_no_longer() {
    let crib = Crib::with_guests(&["echo"]);
    let (ran, reasons) = end(start(&crib, 1, "1s"));
    assert_eq!((ran.code, reasons), (Some(0), vec!["nobody".to_owned()]), "{ran:?}");
    assert!(pending(&crib).is_empty(), "nobody can answer it any more");
}

#[test]
fn a_call_is_shown_with_the_time_until_which_its_run_waits() {
    let crib = Crib::with_guests(&["echo"]);
    let run = start(&crib, 1, "10m");
    let call = waiting(&crib, "{\"n\":0}");
    let time = |name: &str| call[name].as_str().unwrap().parse::<Timestamp>().unwrap();
    let wait = time("until").duration_since(time("asked"));
    // The question is written after the wait has begun.
    assert!((SignedDuration::from_mins(9)..=SignedDuration::from_mins(10)).contains(&wait), "{call}");
    let id = call["id"].as_str().unwrap();
    let sheet = crib.run(&["approvals", "pending", id]).stdout;
    assert!(sheet.contains(&format!("     State | waiting until {:.0}", time("until"))), "{sheet}");
    let allowed = crib.run(&["approvals", "allow", id]);
    assert!(allowed.stderr.ends_with(", which waits for this answer\n"), "{allowed:?}");
    assert_eq!(end(run).0.code, Some(0));
}

#[test]
fn a_call_of_a_run_that_was_killed_is_not_listed_and_cannot_be_answered() {
    let crib = Crib::with_guests(&["echo"]);
    let mut run = start(&crib, 1, "10m");
    let call = waiting(&crib, "{\"n\":0}");
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(pending(&crib).is_empty());
    let id = call["id"].as_str().unwrap();
    for action in ["pending", "allow", "deny"] {
        let ran = crib.run(&["approvals", action, id]);
        let message =
            format!("error: no call waits under `{id}` (`echo`) any more: its run or server has ended\nhint: ");
        assert!(ran.code == Some(1) && ran.stderr.starts_with(&message), "{ran:?}");
    }
    // The next run that waits removes it with its lock, and its own at its end.
    let (ran, reasons) = end(start(&crib, 1, "1s"));
    assert_eq!((ran.code, reasons), (Some(0), vec!["nobody".to_owned()]), "{ran:?}");
    let folder = crib.path("home/.local/state/toolcrib");
    assert!(!fs::read_to_string(folder.join("pending.json")).unwrap().contains(id));
    let locks = fs::read_dir(folder)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|it| it == "run"));
    assert_eq!(locks.count(), 0);
}

#[test]
fn the_wait_is_bounded_and_excludes_the_answers_of_a_program() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    for flags in [&["--wait-approval=2h"][..], &["--wait-approval=1m", "--answers", "--json"]] {
        page.run(&crib, &[&["run", "go", "--model", "m"], flags].concat());
    }
    page.matches("permissions/wait");
}
