//! Ends that nobody wishes: busy and lost workers, deadlines, cancelled calls, and a server that goes away.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::lies::Liar;
use super::{WorkerProcess, ended, readers, served};
use crate::crib::Crib;
use crate::nats::Nats;

/// Starts a long call.
fn long_call(crib: &Crib, url: &str) -> Child {
    let mut command = crib.toolcrib(&["call", "nap", r#"{"ms":60000}"#, "--timeout=120s", "--json", "--remote", url]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_busy_worker_leaves_the_call_to_another_and_all_busy_is_an_error() {
    let Some((nats, there, worker)) = served(&["--concurrency=1"]) else { return };
    let (here, mut wire) = (readers(), nats.wire());
    let mut long = long_call(&here, &nats.url());
    worker.until(&mut wire, "inFlight", 1);
    let line = here.call("echo", &json!({}), &["--timeout=60s", "--remote", &nats.url()]);
    assert_eq!(ended(&line).0, "busy", "{line}");
    assert!(ended(&line).1.contains("every worker that answered") && ended(&line).1.contains(&worker.name), "{line}");
    let other = WorkerProcess::start(&there, &nats.url(), &[]);
    let line = here.call("echo", &json!({"a": 1}), &["--remote", &nats.url()]);
    assert_eq!((ended(&line).0, &line["receipt"]["worker"]), ("ok", &json!(other.name)), "{line}");
    // Ctrl-C ends the call at its worker.
    kill_process(Pid::from_child(&long), Signal::INT).unwrap();
    let data = worker.until(&mut wire, "inFlight", 0);
    assert_eq!((&data["ended"], &data["answered"]), (&json!(1), &json!(0)), "{data}");
    assert_eq!(long.wait().unwrap().code(), Some(130));
}

#[test]
fn a_call_ends_at_its_worker_when_the_caller_is_killed() {
    let Some((nats, _there, worker)) = served(&[]) else { return };
    let (here, mut wire) = (readers(), nats.wire());
    let mut command = here.toolcrib(&[
        "call",
        "nap",
        r#"{"ms":60000}"#,
        "--timeout=120s",
        "--remote-silence=400ms",
        "--remote",
        &nats.url(),
    ]);
    let mut long = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    worker.until(&mut wire, "inFlight", 1);
    long.kill().unwrap();
    long.wait().unwrap();
    let data = worker.until(&mut wire, "ended", 1);
    assert_eq!(data["answered"], 0, "{data}");
}

#[test]
fn a_deadline_holds_on_both_sides() {
    let Some((nats, _there, worker)) = served(&[]) else { return };
    let mut wire = nats.wire();
    let line = readers().call("nap", &json!({"ms": 60_000}), &["--timeout=300ms", "--remote", &nats.url()]);
    assert_eq!(ended(&line).0, "deadline", "{line}");
    worker.until(&mut wire, "inFlight", 0);
}

#[test]
fn a_worker_that_dies_in_the_middle_of_a_call_is_replaced_by_another() {
    let Some(nats) = Nats::start() else { return };
    let (there, here) = (readers(), readers());
    let mut dying = Liar::new(&nats, &here, "echo");
    let mut command =
        here.toolcrib(&["call", "echo", r#"{"a":1}"#, "--json", "--remote-silence=3s", "--remote", &nats.url()]);
    let caller = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let call = dying.accept();
    let started = dying.started(&call);
    assert_eq!(started["kind"], "start");
    let other = WorkerProcess::start(&there, &nats.url(), &[]);
    drop(dying);
    let output = caller.wait_with_output().unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&line["result"], &line["receipt"]["worker"]), (&json!({"a": 1}), &json!(other.name)), "{line}");
}

#[test]
fn a_worker_that_is_told_to_end_finishes_its_calls_and_takes_no_more() {
    let Some((nats, _there, mut worker)) = served(&[]) else { return };
    let (here, mut wire) = (readers(), nats.wire());
    let mut command = here.toolcrib(&["call", "nap", r#"{"ms":4000}"#, "--json", "--remote", &nats.url()]);
    let caller = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    worker.until(&mut wire, "inFlight", 1);
    worker.signal(Signal::TERM);
    // It says so while its call runs.
    let data = worker.until(&mut wire, "draining", true);
    assert_eq!((&data["inFlight"], &data["answered"]), (&json!(1), &json!(0)), "{data}");
    let line: Value = serde_json::from_slice(&caller.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(line["result"], json!({"slept": 4000}), "{line}");
    assert_eq!(worker.code(), Some(143));
    let line = here.call("echo", &json!({}), &["--remote", &nats.url()]);
    assert_eq!(ended(&line).0, "upstream", "{line}");
    assert!(ended(&line).1.contains("no worker at nats://127.0.0.1"), "{line}");
}

#[test]
fn a_worker_without_its_server_ends_when_it_is_told_to() {
    let Some((mut nats, _there, mut worker)) = served(&[]) else { return };
    nats.stop();
    worker.line("is lost");
    worker.signal(Signal::TERM);
    assert_eq!(worker.code(), Some(143));
}

#[test]
fn a_server_that_is_gone_is_named_without_its_password() {
    let ran = readers().run(&["call", "echo", "{}", "--remote", "nats://ada:pass-of-ada@127.0.0.1:1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("cannot connect to nats://127.0.0.1:1"), "{ran:?}");
    assert!(!format!("{ran:?}").contains("pass-of-ada"), "{ran:?}");
    let wrong = "http://ada:pass-of-ada@127.0.0.1:1";
    for command in [
        &["fleet", "status", "--nats", wrong][..],
        &["worker", "--nats", wrong],
        &["call", "echo", "{}", "--remote", wrong],
    ] {
        let ran = readers().run(command);
        assert!(ran.code == Some(1) && ran.stderr.contains("unknown scheme `http`"), "{ran:?}");
        assert!(!format!("{ran:?}").contains("pass-of-ada"), "{ran:?}");
    }
}

#[test]
fn a_server_that_goes_away_in_the_middle_ends_the_call_and_workers_connect_again() {
    let Some((mut nats, _there, worker)) = served(&[]) else { return };
    let (here, mut wire) = (readers(), nats.wire());
    let mut command = here.toolcrib(&[
        "call",
        "nap",
        r#"{"ms":60000}"#,
        "--json",
        "--timeout=15s",
        "--remote-silence=2s",
        "--remote",
        &nats.url(),
    ]);
    let caller = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    worker.until(&mut wire, "inFlight", 1);
    nats.stop();
    worker.line("is lost");
    let line: Value = serde_json::from_slice(&caller.wait_with_output().unwrap().stdout).unwrap();
    assert!(matches!(ended(&line).0, "upstream" | "deadline"), "{line}");
    nats.resume();
    worker.line("connected to");
    let line = here.call("echo", &json!({"a": 1}), &["--remote", &nats.url()]);
    assert_eq!(line["result"], json!({"a": 1}), "{line}");
}
