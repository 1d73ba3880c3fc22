//! Requests of a rich tool to the host: other tools and the model, each only if granted, under budgets, and recorded as
//! a tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use toolcrib::call::Behavior;
use toolcrib::model::{Completion, CompletionRequest};
use toolcrib::policy::{Permission, Rule};
use toolcrib::tool::Service;
use toolcrib::{HandlerError, Model, Outcome, Policy, Results, ToolCall};

use super::{call, crib, record, runtime};

/// Model that repeats its request.
#[derive(Default)]
struct Parrot(AtomicU64);

impl Model for Parrot {
    fn complete(&self, question: CompletionRequest) -> BoxFuture<'_, Result<Completion, HandlerError>> {
        self.0.fetch_add(1, SeqCst);
        let text = match question.prompt.as_str() {
            "large" => "x".repeat((256 << 10) + 1),
            prompt => format!("{prompt} ({} tokens)", question.max_tokens),
        };
        ready(Ok(Completion::new(text, 7))).boxed()
    }
}

#[test]
fn the_model_answers_who_is_granted_it_and_the_tokens_are_signed_for() {
    let crib = crib();
    let parrot = Arc::new(Parrot::default());
    let allow = Policy::default().allow(Permission::service(Service::Model));
    let with = |policy: Policy| runtime(&crib, |builder| builder.policy(policy).model(parrot.clone()));
    let result = call(&with(allow.clone()), "asks", json!({"prompt": "hello"}));
    assert_eq!(result.content(), "hello (1024 tokens)");
    assert_eq!((result.receipt.completions, result.receipt.tokens), (1, 7));
    assert_eq!(result.receipt.granted, ["model"]);
    let refused = call(&with(Policy::default()), "asks", json!({"prompt": "hello"}));
    assert_eq!(refused.receipt.outcome, Outcome::Denied);
    assert_eq!(refused.receipt.denied[0].capability, "model");
    assert_eq!(refused.receipt.denied[0].flag.as_deref(), Some("--allow-model"));
    let denied = call(&with(allow.deny(Permission::service(Service::Model))), "asks", json!({"prompt": "hello"}));
    assert_eq!(denied.receipt.outcome, Outcome::Denied, "a denial wins");
    assert_eq!(parrot.0.load(SeqCst), 1);
}

#[test]
fn no_model_gets_an_answer_that_a_rule_withholds() {
    let (crib, parrot) = (crib(), Arc::new(Parrot::default()));
    let results = Results::folder(crib.path("results"));
    let label = json!({"integrity": "trusted", "confidentiality": ["private"]});
    let reference = results.put_labelled("t", "c", Some(label), b"\"a secret\"").unwrap().reference;
    let policy = Policy::default().allow(Permission::service(Service::Model)).rule(Rule::new(
        Behavior::Deny,
        "flow private -> model".parse().unwrap(),
        "test",
    ));
    let runtime = runtime(&crib, |builder| builder.policy(policy).results(results).model(parrot.clone()));
    let (session, tokio) = (runtime.session(), tokio::runtime::Runtime::new().unwrap());
    let ask = |prompt: Value| {
        tokio.block_on(session.call(ToolCall::new("c", "asks", json!({ "prompt": prompt }).to_string())))
    };
    assert_eq!(ask(json!("hello")).content(), "hello (1024 tokens)");
    let refused = ask(json!({"$result": reference}));
    assert!(!refused.content().contains("secret") && refused.receipt.withheld.is_some(), "{refused:?}");
    assert_eq!(refused.receipt.denied[0].capability, "flow private -> model");
    assert_eq!(parrot.0.load(SeqCst), 1);
}

#[test]
fn an_answer_from_a_cache_is_withheld_with_all_that_was_put_there() {
    let crib = crib();
    let prebuilt = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/contracts/tool.wasm");
    std::fs::copy(prebuilt, crib.path("tool.wasm")).unwrap();
    let results = Results::folder(crib.path("results"));
    let label = json!({"confidentiality": ["private"]});
    let reference = results.put_labelled("t", "c", Some(label), b"\"CANARY\"").unwrap().reference;
    let rule = Rule::new(Behavior::Deny, "flow private -> model".parse().unwrap(), "test");
    let with = |builder: toolcrib::Builder| builder.policy(Policy::default().rule(rule)).results(results);
    let runtime = super::runtime_of(&crib, "tool.wasm", with);
    let (session, tokio) = (runtime.session(), tokio::runtime::Runtime::new().unwrap());
    let withheld = |arguments: Value| {
        let result = tokio.block_on(session.call(ToolCall::new("c", "tool", arguments.to_string())));
        assert!(result.outcome.is_ok() && !result.content().contains("CANARY"), "{result:?}");
        result.receipt.withheld.is_some()
    };
    assert!(!withheld(json!({"a": 1})), "nothing is in the cache yet");
    assert!(withheld(json!({"a": {"$result": reference}})));
    assert!(withheld(json!({"a": 1})), "it reads the cache");
}

#[test]
fn a_question_has_a_bound() {
    let crib = crib();
    let parrot = Arc::new(Parrot::default());
    let allow = Policy::default().allow(Permission::service(Service::Model));
    let runtime = runtime(&crib, |builder| builder.policy(allow).model(parrot.clone()));
    let result = call(&runtime, "asks", json!({"prompt": "x".repeat((256 << 10) + 1)}));
    assert!(result.content().contains("more than the 262144 allowed"), "{}", result.content());
    assert_eq!(parrot.0.load(SeqCst), 0);
}

#[test]
fn questions_and_answers_are_counted_and_bounded() {
    let crib = crib();
    let parrot = Arc::new(Parrot::default());
    let allow = Policy::default().allow(Permission::service(Service::Model)).allow(Permission::service(Service::Call));
    let runtime = runtime(&crib, |builder| builder.policy(allow).model(parrot.clone()));
    let most = call(&runtime, "asks", json!({"prompt": "p", "tokens": 1_000_000}));
    assert_eq!(most.content(), "p (4096 tokens)");
    let large = call(&runtime, "asks", json!({"prompt": "large"}));
    assert!(large.content().contains("the model answered with more than 262144 bytes"), "{}", large.content());
    assert_eq!(call(&runtime, "asks", json!({"prompt": "p", "times": 8})).receipt.completions, 8);
    let ninth = call(&runtime, "asks", json!({"prompt": "p", "times": 9}));
    assert!(ninth.content().contains("already asked the model 8 times"), "{}", ninth.content());
    // Calls that it makes use the same budget of eight requests.
    let inner = json!({"name": "asks", "arguments": {"prompt": "p", "times": 5}, "times": 2});
    let together = call(&runtime, "calls", inner);
    assert!(together.content().contains("already asked the model 8 times"), "{}", together.content());
}

fn calls(names: &[&str]) -> Policy {
    names
        .iter()
        .fold(Policy::default(), |policy, name| policy.allow(Permission::Service(Service::Call, name.parse().unwrap())))
}

#[test]
fn a_tool_calls_another_as_far_as_it_is_granted_and_the_log_shows_the_tree() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder.policy(calls(&["echo"])));
    let result = call(&runtime, "calls", json!({"name": "echo", "arguments": {"value": "x"}}));
    assert_eq!(result.content(), "\"x\"");
    assert_eq!(result.receipt.calls, 1);
    let records = crib.records();
    let tools: Vec<_> = records.iter().map(|record| record["tool"].clone()).collect();
    assert_eq!(tools, ["echo", "calls"], "the inner call ends first");
    assert_eq!(records[0]["parent"], records[1]["invocation"]);
    assert_eq!((&records[0]["callId"], &records[1]["parent"]), (&json!("call_1/1"), &Value::Null));
    let refused = call(&runtime, "calls", json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
    assert_eq!(refused.receipt.outcome, Outcome::Denied);
    assert_eq!(refused.receipt.denied[0].flag.as_deref(), Some("--allow-call=add"));
}

#[test]
fn a_call_of_a_tool_is_judged_like_every_other() {
    let crib = crib();
    let policy = calls(&["*"]).rule(Rule::new(Behavior::Deny, "echo(value=no*)".parse().unwrap(), "test"));
    let runtime = runtime(&crib, |builder| builder.policy(policy));
    let inner = |value: &str| json!({"name": "echo", "arguments": {"value": value}});
    assert_eq!(call(&runtime, "calls", inner("yes")).content(), "\"yes\"");
    let [made, caller] = crib.records().try_into().expect("two calls, two records");
    assert_eq!(made["arguments"], json!({"json": {"value": "yes"}}));
    assert_eq!(caller["arguments"], json!({ "json": inner("yes") }));
    assert_eq!((&made["parent"], &made["session"]), (&caller["invocation"], &caller["session"]));
    let refused = call(&runtime, "calls", inner("no"));
    assert!(refused.content().contains("denied by an operator rule"), "{}", refused.content());
    let wrong = call(&runtime, "calls", json!({"name": "echo", "arguments": {"vale": 1}}));
    assert!(wrong.content().contains("invalid arguments"), "{}", wrong.content());
}

#[test]
fn calls_of_tools_are_counted_together() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder.policy(calls(&["*"])));
    let echo = json!({"name": "echo", "arguments": {"value": "x"}, "times": 64});
    assert_eq!(call(&runtime, "calls", echo.clone()).receipt.calls, 64);
    let inner = json!({"name": "calls", "arguments": echo});
    let one_more = call(&runtime, "calls", inner);
    assert!(one_more.content().contains("already called 64 tools, the maximum"), "{}", one_more.content());
}

#[test]
fn no_route_leads_to_a_tool_that_is_not_granted() {
    let crib = crib();
    let with = |builder: toolcrib::Builder| builder.policy(calls(&["shown", "echo"])).route("shown", "add");
    let runtime = runtime(&crib, |builder| with(builder).route("echo", "add"));
    for name in ["shown", "echo"] {
        let result = call(&runtime, "calls", json!({"name": name, "arguments": {"a": 1, "b": 2, "value": "x"}}));
        assert_eq!(result.receipt.outcome, Outcome::Denied, "{}", result.content());
        assert_eq!(result.receipt.denied[0].capability, "call:add");
    }
    let inner: Vec<_> = crib.records().iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(inner, ["denied"; 4], "each of them stands in the log");
}

#[test]
fn a_tool_that_is_called_waits_for_no_slot_of_its_caller() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder.policy(calls(&["*"])).concurrency(1));
    let checked = json!({"name": "checked", "arguments": {"span": [1, 3], "most": 3}});
    let result = call(&runtime, "calls", checked);
    assert_eq!(result.content(), "\"2 of 3\"");
}

#[test]
fn tools_call_one_another_only_so_deep() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder.policy(calls(&["*"])));
    let nested = |depth: usize| {
        (0..depth).fold(
            json!({"name": "echo", "arguments": {"value": "deep"}}),
            |inner, _| json!({"name": "calls", "arguments": inner}),
        )
    };
    let deepest = call(&runtime, "calls", nested(2));
    assert!(deepest.content().contains("deep") && !deepest.is_error(), "{}", deepest.content());
    let deeper = call(&runtime, "calls", nested(3));
    assert!(deeper.content().contains("already nested 3 deep"), "{}", deeper.content());
}

#[test]
fn a_refused_question_stands_in_the_record() {
    let crib = crib();
    call(&runtime(&crib, |builder| builder), "asks", json!({"prompt": "hello"}));
    let record = record(&crib);
    assert_eq!((&record["outcome"], &record["denied"][0]["capability"]), (&json!("denied"), &json!("model")));
}

#[test]
fn the_model_of_a_run_answers_its_tools() {
    let crib = crib();
    let script = json!({
        "prompt": "go",
        "turns": [{"tool_calls": [{"name": "asks", "arguments": {"prompt": "how?"}}]}, {"content": "done"}],
        "agents": [{"turns": [{"content": "like this"}]}],
    });
    std::fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json", "--tools", "rich.wasm", "--allow-model", "--json"]);
    let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = events.iter().find(|event| event["type"] == "tool_result").unwrap();
    assert_eq!(result["content"], "like this", "{ran:?}");
    assert_eq!(result["receipt"]["completions"], 1);
}
