//! Interpreters of one's own that wait for their calls: each call is one of any program, and the time of the interpreter stands
//! still meanwhile.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};
use toolcrib::call::Behavior;
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Policy, Rule};
use toolcrib::tool::Limits;
use toolcrib::{Audit, Runtime, ToolCall};

use super::nested;
use crate::crib::{Crib, guest, target};
use crate::records::watched::on_threads;

/// Crib with `echo` and the interpreter of steps, and the flag that adds it.
fn crib() -> (Crib, &'static str) {
    let crib = Crib::with_guests(&["echo"]);
    fs::copy(guest("waiting"), crib.path("waiting.wasm")).unwrap();
    (crib, "--set=sources.interpreters=[\"waiting.wasm\"]")
}

fn program(crib: &Crib, steps: &Value, flags: &[&str]) -> Value {
    crib.call("run_code", &json!({"language": "steps", "code": steps.to_string()}), flags)
}

#[test]
fn an_interpreter_waits_for_its_calls_and_gets_their_results() {
    let (crib, flag) = crib();
    let steps = json!([[["echo", {"n": 1}], ["echo", {"n": 2}]], [["echo", {"n": 3}], ["none", {}]]]);
    let line = program(&crib, &steps, &[flag]);
    assert_eq!(line["result"]["value"][0], json!([{"n": 1}, {"n": 2}]), "{line}");
    assert_eq!(line["result"]["value"][1][0], json!({"n": 3}), "{line}");
    assert_eq!(line["result"]["value"][1][1]["failed"], "invalid", "{line}");
    let parents: Vec<Value> = nested(&crib).iter().map(|record| record["parent"].clone()).collect();
    assert_eq!(parents, [1, 2, 3, 4].map(|_| line["receipt"]["invocation"].clone()));
}

#[test]
fn a_refused_call_is_a_failure_that_the_program_sees() {
    let (crib, flag) = crib();
    let line = program(&crib, &json!([[["echo", {}]]]), &[flag, "--deny-tool=echo"]);
    assert_eq!(line["result"]["value"][0][0]["failed"], "refused", "{line}");
    assert_eq!(nested(&crib)[0]["outcome"], "denied");
}

#[test]
fn calls_outside_of_a_program_none_and_too_many_end_the_program() {
    let (crib, flag) = crib();
    let calls = Value::from(vec![json!(["echo", {}]); 1001]);
    for (steps, message) in [
        (json!(["early", [["echo", {}]]]), "while no program ran"),
        (json!([[]]), "without a call"),
        (json!([calls]), "more than 1000"),
    ] {
        let line = program(&crib, &steps, &[flag]);
        assert_eq!(line["receipt"]["outcome"], "bad-component", "{line}");
        assert!(line["error"].to_string().contains(message), "{line}");
    }
    assert!(nested(&crib).is_empty());
}

#[test]
fn the_deadline_of_an_interpreter_holds_before_and_after_a_call() {
    let (crib, flag) = crib();
    // A call does not give the interpreter its time again.
    let parts = json!([1500, [["echo", {}]], 1500]);
    for steps in [json!(["spin"]), json!([[["echo", {}]], "spin"]), parts] {
        let line = program(&crib, &steps, &[flag, "--timeout=2s"]);
        assert_eq!(line["receipt"]["outcome"], "deadline", "{line}");
    }
}

/// Approver that takes longer than the deadline of a program.
struct Slow(Duration);

impl Approver for Slow {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        tokio::time::sleep(self.0).map(|()| ApprovalAnswer::Once).boxed()
    }
}

#[test]
fn the_time_of_an_answer_is_not_that_of_the_interpreter() {
    let (crib, _) = crib();
    let deadline = Duration::from_secs(2);
    let rule = Rule::new(Behavior::Ask, "echo".parse().unwrap(), "test");
    let runtime = Runtime::builder(Audit::folder(crib.path("audit")))
        .trusted_source(crib.path("tools.json"))
        .compile_cache(target().join("test-cache"))
        .code_component(&crib.path("waiting.wasm"))
        .unwrap()
        .policy(Policy::default().rule(rule))
        .approver(Arc::new(Slow(deadline + Duration::from_millis(500))))
        .limits(Limits::with_deadline(deadline))
        .build()
        .unwrap();
    let code = json!([[["echo", {"n": 1}]], [["echo", {"n": 2}]]]).to_string();
    let call = ToolCall::new("1", "run_code", json!({"language": "steps", "code": code}).to_string());
    let result = on_threads(async {
        runtime.prepare("echo").await.unwrap();
        runtime.call(call).await
    });
    assert!(result.content().starts_with(r#"{"value":[[{"n":1}],[{"n":2}]]"#), "{result:?}");
}

#[test]
fn a_file_that_states_no_language_or_changed_is_no_interpreter() {
    let (crib, flag) = crib();
    fs::copy(guest("typed"), crib.path("waiting.wasm")).unwrap();
    let ran = crib.run(&["call", "run_code", r#"{"code":"1"}"#, flag]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no custom section `toolcrib:language`"), "{ran:?}");
    fs::remove_file(crib.path("waiting.wasm")).unwrap();
    let ran = crib.run(&["call", "run_code", r#"{"code":"1"}"#, flag]);
    assert!(ran.code == Some(1) && ran.stderr.contains("waiting.wasm: cannot be read"), "{ran:?}");
    assert!(ran.stderr.contains("`sources.interpreters`"), "{ran:?}");
    fs::write(crib.path("toolcrib.toml"), "[sources]\ninterpreters = [\"waiting.wasm\"]\n").unwrap();
    let found = crib.run(&["doctor", "--config=toolcrib.toml", "--json"]);
    assert!(found.code == Some(1) && found.stdout.contains("correct `sources.interpreters`"), "{found:?}");
}

#[test]
fn an_interpreter_of_a_known_language_replaces_the_shipped_one() {
    let (crib, flag) = crib();
    let bytes = fs::read(crib.path("waiting.wasm")).unwrap();
    let start = br#"toolcrib:language{"language":"#;
    let place = bytes.windows(start.len()).position(|part| part == start).expect("the section") + start.len();
    let mut renamed = bytes[..place].to_vec();
    // As long as before, so that the sizes of the sections stay.
    renamed.extend(br#""python","version":"1","implementation":"waiting","guide":"s"}"#);
    let end = place + bytes[place..].iter().position(|byte| *byte == b'}').unwrap() + 1;
    renamed.resize(end, b' ');
    renamed.extend(&bytes[end..]);
    fs::write(crib.path("waiting.wasm"), renamed).unwrap();
    let line = crib.call("run_code", &json!({"code": "[[[\"echo\",{}]]]"}), &[flag]);
    assert_eq!(line["result"]["value"], json!([[{}]]), "{line}");
}

#[test]
fn a_language_without_sessions_is_refused_before_the_program_runs() {
    let (crib, flag) = crib();
    let arguments = json!({"language": "steps", "session": "a", "code": json!([[["echo", {}]]]).to_string()});
    let turns = json!([{"tool_calls": [{"name": "run_code", "arguments": arguments}]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({ "turns": turns }).to_string()).unwrap();
    let ran = crib.run(&["run", "go", "--json", "--code", "--script=script.json", flag]);
    assert!(ran.stdout.contains("this interpreter keeps no session"), "{}", ran.stdout);
    assert!(crib.records().iter().all(|record| record["tool"] != "echo"));
}

#[test]
fn no_tool_changes_an_interpreter() {
    let (crib, flag) = crib();
    fs::rename(crib.path("waiting.wasm"), crib.path("work/waiting.wasm")).unwrap();
    let flag = flag.replace("waiting.wasm", "work/waiting.wasm");
    let arguments = json!({"path": "waiting.wasm", "content": "another"});
    let code = json!([[["fs_write_file", arguments.clone()]]]);
    let line = program(&crib, &code, &[&flag, "--tools=builtin", "--allow-write=work"]);
    assert!(line["result"]["value"][0][0]["failed"].is_string(), "{line}");
    assert!(fs::read(crib.path("work/waiting.wasm")).unwrap().starts_with(b"\0asm"));
    // Nor where no program runs.
    let line = crib.call("fs_write_file", &arguments, &[&flag, "--tools=builtin", "--allow-write=work"]);
    assert!(line["receipt"]["outcome"] != "ok", "{line}");
    assert!(fs::read(crib.path("work/waiting.wasm")).unwrap().starts_with(b"\0asm"));
}
