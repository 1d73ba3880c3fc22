//! Decisions on both sides: the caller's before anything is sent, and the worker's under its own rules.

use serde_json::{Value, json};

use super::{WorkerProcess, ended, readers, served};
use crate::mcp::Client;
use crate::nats::Nats;
use crate::permissions::terminal::Terminal;

#[test]
fn a_tool_that_may_change_something_is_refused_before_anything_is_sent() {
    let Some((nats, _there, _worker)) = served(&[]) else { return };
    let here = readers();
    let mut tap = nats.wire();
    tap.subscribe("toolcrib.>", "");
    let line = here.call("change", &json!({}), &["--remote", &nats.url()]);
    assert_eq!(ended(&line).0, "denied", "{line}");
    assert!(ended(&line).1.contains("may change something") && ended(&line).1.contains("Nothing was sent"), "{line}");
    // The offer of the next call is the first message.
    let line = here.call("echo", &json!({}), &["--remote", &nats.url()]);
    assert_eq!(ended(&line).0, "ok", "{line}");
    assert_eq!(tap.next().head()["tool"], "echo");
}

#[test]
fn a_stage_and_workers_exclude_each_other_before_anything_is_connected() {
    let here = readers();
    for command in [&["call", "echo", "{}"][..], &["run", "go", "--model=m"], &["mcp"]] {
        let ran = here.run(&[command, &["--stage", "--remote=nats://127.0.0.1:1"]].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("--remote and --stage exclude each other"), "{ran:?}");
    }
}

#[test]
fn a_rule_of_the_worker_refuses_and_the_message_names_the_worker() {
    let Some(nats) = Nats::start() else { return };
    for (rule, why) in
        [("--deny-tool=echo(a=x*)", "denied by an operator rule"), ("--ask-tool=echo", "no one is available to ask")]
    {
        let there = readers();
        let worker = WorkerProcess::start(&there, &nats.url(), &[rule]);
        let here = readers();
        let line = here.call("echo", &json!({"a": "xyz"}), &["--remote", &nats.url()]);
        assert_eq!(ended(&line).0, "denied", "{line}");
        assert!(ended(&line).1.contains(&worker.name) && ended(&line).1.contains(why), "{line}");
        assert_eq!(there.records()[0]["outcome"], "denied");
    }
}

#[test]
fn a_client_is_shown_the_tools_that_run_at_workers_alone() {
    let Some(nats) = Nats::start() else { return };
    let mut client = Client::initialized(&readers(), &["--remote", &nats.url()], &json!({}));
    let listed = client.ask("tools/list", &json!({}));
    let mut names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["big_result", "echo", "file_io", "nap", "read_result"], "`change` may change something");
}

#[test]
fn permanent_approvals_of_the_workers_machine_do_not_count() {
    let Some(nats) = Nats::start() else { return };
    let (there, rule) = (readers(), "--ask-tool=echo");
    let mut terminal = Terminal::start(there.toolcrib(&["call", "echo", "{}", rule]));
    terminal.question();
    terminal.types("a");
    assert_eq!(terminal.end().code, Some(0));
    let line = there.call("echo", &json!({}), &[rule]);
    assert_eq!(line["receipt"]["decision"]["reason"], "always", "{line}");
    let _worker = WorkerProcess::start(&there, &nats.url(), &[rule]);
    let line = readers().call("echo", &json!({}), &["--remote", &nats.url()]);
    assert_eq!(ended(&line).0, "denied", "{line}");
}

#[test]
fn a_rule_of_the_caller_refuses_before_any_worker_learns_of_the_call() {
    let Some((nats, there, _worker)) = served(&[]) else { return };
    let line = readers().call("echo", &json!({}), &["--deny-tool=echo", "--remote", &nats.url()]);
    assert_eq!((ended(&line).0, &line["receipt"]["worker"]), ("denied", &Value::Null), "{line}");
    assert_eq!(there.records().len(), 0);
}

#[test]
fn a_user_and_a_password_are_required_and_never_shown() {
    let Some(nats) = Nats::start_for(Some(("ada", "pass-of-ada"))) else { return };
    let with = |password: &str| format!("nats://ada:{password}@127.0.0.1:{}", nats.port);
    let (there, here) = (readers(), readers());
    let _worker = WorkerProcess::start(&there, &with("pass-of-ada"), &[]);
    let line = here.call("echo", &json!({"a": 1}), &["--remote", &with("pass-of-ada")]);
    assert_eq!(line["result"], json!({"a": 1}), "{line}");
    let ran = here.run(&["call", "echo", "{}", "--remote", &with("pass-of-eve")]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("refuses the user"), "{ran:?}");
    assert!(!format!("{ran:?}").contains("pass-of"), "{ran:?}");
}
