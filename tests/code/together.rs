//! Programs at once, programs of one step, and interruptions between the calls of a program and at their questions.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use toolcrib::call::Behavior;
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Policy, Rule};
use toolcrib::tool::Limits;
use toolcrib::{Audit, Outcome, Runtime, ToolCall};

use super::nested;
use crate::crib::{Crib, target};
use crate::records::watched::on_threads;

/// Approver that agrees once it is let.
struct Person {
    asked: watch::Sender<usize>,
    agrees: Arc<Semaphore>,
}

impl Person {
    fn new() -> Arc<Self> {
        Arc::new(Self { asked: watch::Sender::new(0), agrees: Arc::new(Semaphore::new(0)) })
    }

    /// Waits until this many questions were asked.
    async fn asked(&self, questions: usize) {
        self.asked.subscribe().wait_for(|asked| *asked >= questions).await.unwrap();
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.asked.send_modify(|asked| *asked += 1);
        async {
            self.agrees.acquire().await.unwrap().forget();
            ApprovalAnswer::Once
        }
        .boxed()
    }
}

/// Observer that counts the calls that have started, but for programs.
struct Started(watch::Sender<usize>);

impl Observer for Started {
    fn observe(&self, event: &Event<'_>) {
        if event.name != "run_code" && matches!(event.kind, EventKind::Started(_)) {
            self.0.send_modify(|started| *started += 1);
        }
    }
}

/// Runtime that asks a person about each call of `echo` with `ask`.
fn runtime(crib: &Crib, person: &Arc<Person>, deadline: Duration) -> Runtime {
    let rule = Rule::new(Behavior::Ask, "echo(ask=true)".parse().unwrap(), "test");
    Runtime::builder(Audit::folder(crib.path("audit")))
        .trusted_source(crib.path("tools.json"))
        .compile_cache(target().join("test-cache"))
        .code_interpreter(
            (toolcrib_embedded::LANGUAGES[0].name, ""),
            toolcrib_embedded::LANGUAGES[0].digest,
            toolcrib_embedded::LANGUAGES[0].read,
        )
        .policy(Policy::default().rule(rule))
        .approver(person.clone())
        .limits(Limits::with_deadline(deadline))
        .build()
        .unwrap()
}

fn program(id: impl ToString, code: &str) -> ToolCall {
    ToolCall::new(id.to_string(), "run_code", json!({ "code": code }).to_string())
}

#[test]
fn sixteen_programs_run_at_once_and_one_more_waits_for_its_turn_or_is_refused() {
    let (crib, person) = (Crib::with_guests(&["echo"]), Person::new());
    let runtime = runtime(&crib, &person, Duration::from_secs(60));
    on_threads(async {
        runtime.prepare("echo").await.unwrap();
        let programs = |range: std::ops::Range<usize>| {
            let call = |n| {
                let (runtime, call) = (runtime.clone(), program(n, "tools.echo(ask=True)"));
                tokio::spawn(async move { runtime.call(call).await })
            };
            range.map(call).collect::<Vec<_>>()
        };
        let held = programs(0..16);
        person.asked(16).await;
        let waiting = programs(16..17);
        // The first that ends lets the next one ask.
        person.agrees.add_permits(1);
        person.asked(17).await;
        person.agrees.add_permits(16);
        for ended in join_all(held.into_iter().chain(waiting)).await {
            let ended = ended.unwrap();
            assert_eq!(ended.receipt.outcome, Outcome::Ok, "{ended:?}");
        }
    });
    let short = self::runtime(&crib, &person, Duration::from_secs(2));
    on_threads(async {
        short.prepare("echo").await.unwrap();
        let held = (0..16).map(|n| short.call(program(n, "tools.echo(ask=True)")));
        let refused = async {
            person.asked(17 + 16).await;
            let refused = short.call(program("refused", "1")).await;
            person.agrees.add_permits(16);
            refused
        };
        let (held, refused) = futures::join!(join_all(held), refused);
        assert_eq!(refused.receipt.outcome, Outcome::Busy, "{refused:?}");
        assert_eq!(refused.content(), r#"{"error":"16 other programs run"}"#);
        assert!(held.iter().all(|held| held.receipt.outcome == Outcome::Ok), "{held:?}");
    });
}

#[test]
fn an_interruption_ends_the_calls_that_are_asked_about_or_may_be_stopped_and_lets_the_others_end() {
    let (crib, person) = (Crib::with_guests(&["echo", "nap"]), Person::new());
    let code = "import asyncio\nawait asyncio.gather(tools.nap(ms=1500), tools.stops(ms=20000), tools.echo(ask=True))";
    let tool = |name: &str, program: &str, interrupt: &str| {
        json!({
            "name": name, "command": [format!("./tools/bin/{program}")],
            "interface": {"is_concurrency_safe": true, "interrupt_behavior": interrupt},
        })
    };
    let tools = [tool("echo", "echo", "block"), tool("nap", "nap", "block"), tool("stops", "nap", "cancel")];
    crib.manifest(&json!({ "tools": tools }));
    let runtime = runtime(&crib, &person, Duration::from_secs(60));
    let started = Arc::new(Started(watch::Sender::new(0)));
    let result = on_threads(async {
        for tool in ["nap", "stops"] {
            runtime.prepare(tool).await.unwrap();
        }
        let session = runtime.session();
        session.watched_by(started.clone());
        let mut step = session.step(vec![program("p", code)]);
        person.asked(1).await;
        started.0.subscribe().wait_for(|started| *started >= 2).await.unwrap();
        step.interrupt();
        step.next().await.unwrap()
    });
    assert_eq!(result.receipt.outcome, Outcome::Cancelled, "{result:?}");
    let content: Value = serde_json::from_str(&result.content()).unwrap();
    let calls = content["calls"].as_array().expect("the calls that the program made");
    for (tool, outcome) in [("echo", "cancelled"), ("nap", "ok"), ("stops", "cancelled")] {
        assert!(calls.contains(&json!({"tool": tool, "outcome": outcome, "count": 1})), "{content}");
    }
    let ended = |tool: &str| {
        let call = nested(&crib).into_iter().find(|record| record["tool"] == tool);
        call.unwrap_or_else(|| panic!("no call of {tool}"))["outcome"].clone()
    };
    let outcomes = ["echo", "nap", "stops"].map(ended);
    assert_eq!(outcomes, ["cancelled", "ok", "cancelled"].map(Value::from), "{:?}", crib.records());
}

#[test]
fn programs_of_one_step_run_one_after_another_and_each_call_has_its_own_parent() {
    let crib = Crib::with_guests(&["echo"]);
    let call = |n: usize| json!({"name": "run_code", "arguments": {"code": format!("for n in range(3):\n    last = tools.echo(program={n}, n=n)\nlast")}});
    let turns = json!([{"tool_calls": [call(0), call(1)]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let ran = crib.run(&["run", "--json", "--code", "--script=script.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let results: Vec<Value> = events.filter(|event| event["type"] == "tool_result").collect();
    assert_eq!(results.len(), 2, "{ran:?}");
    for (n, result) in results.iter().enumerate() {
        let content: Value = serde_json::from_str(result["content"].as_str().unwrap()).unwrap();
        assert_eq!(content["value"], json!({"n": 2, "program": n}), "{result}");
        let parent = &result["receipt"]["invocation"];
        let made: Vec<Value> = nested(&crib).into_iter().filter(|record| record["parent"] == *parent).collect();
        let arguments: Vec<&Value> = made.iter().map(|record| &record["arguments"]["json"]).collect();
        let expected = [0, 1, 2].map(|of| json!({"n": of, "program": n}));
        assert_eq!(arguments, expected.iter().collect::<Vec<_>>(), "{made:?}");
    }
    let programs = crib.records().into_iter().map(|record| record["arguments"]["json"]["program"].clone());
    let order: Vec<u64> = programs.filter_map(|program| program.as_u64()).collect();
    assert_eq!(order, [0, 0, 0, 1, 1, 1], "a program may make changes: the next one waits for it");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interruption_between_the_calls_of_a_program_lets_one_end_and_begins_no_other() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::process::Stdio;

    let crib = Crib::with_guests(&["echo"]);
    let code = json!({"code": "while True:\n    tools.echo(n=1)"}).to_string();
    let mut command = crib.toolcrib(&["call", "run_code", &code, "--json", "--records=kept"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The program, and calls that it made.
    crate::crib::until_started(&crib.path("kept"), 1 + 3);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let records = crib.records();
    let (calls, programs): (Vec<&Value>, Vec<&Value>) = records.iter().partition(|record| record["parent"].is_string());
    let (last, before) = calls.split_last().unwrap();
    assert!(before.len() >= 2 && before.iter().all(|record| record["outcome"] == "ok"), "{calls:?}");
    // The last call may have been interrupted before it was authorized, and has not run then.
    assert!(last["outcome"] == "ok" || last["outcome"] == "cancelled" && last["exit"].is_null(), "{last}");
    let [program] = &programs[..] else { panic!("one program: {programs:?}") };
    assert_eq!((&program["outcome"], &program["calls"]), (&json!("cancelled"), &json!(calls.len())), "{program}");
    assert_eq!(records.last(), Some(*program), "its record is the last one");
}
