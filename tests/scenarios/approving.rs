//! Approvals and refusals: scenarios 6 to 8 and 16.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use toolcrib::call::Behavior;
use toolcrib::hook::{Hook, Modification, ProposedCall, Verdict};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Policy, Rule};
use toolcrib::{HandlerError, ToolCall};

use super::crib;
use crate::crib::nesting;
use crate::records::watched::{Run, Watched, call, on_threads};

fn policy(rules: &[(Behavior, &str)]) -> Policy {
    let rule = |(behavior, pattern): &(Behavior, &str)| Rule::new(*behavior, pattern.parse().unwrap(), "--rule");
    rules.iter().map(rule).fold(Policy::default(), Policy::rule)
}

/// Approver that waits for `leave`, and reports every question.
struct Person {
    asked: mpsc::UnboundedSender<String>,
    leave: Arc<Semaphore>,
    answer: ApprovalAnswer,
}

impl Approver for Person {
    fn ask<'a>(&'a self, question: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        async move {
            self.asked.send(question.invocation.to_owned()).unwrap();
            self.leave.acquire().await.unwrap().forget();
            self.answer.clone()
        }
        .boxed()
    }
}

/// Hook that replaces the model's argument.
struct Rewrites;

impl Hook for Rewrites {
    fn name(&self) -> &str {
        "rewrites"
    }

    fn before<'a>(&'a self, _: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        let change = Modification::new(json!({"a": "long"})).source("settings").reason("it was short");
        ready(Ok(Verdict::Modify(change))).boxed()
    }
}

#[test]
fn scenario_06_the_four_inputs_stay_apart_after_hooks_and_questions() {
    let (watched, crib) = (Watched::new(), crib(&[("say", "echo", json!({}))]));
    let (asked, _questions) = mpsc::unbounded_channel();
    let person = Person { asked, leave: Arc::new(Semaphore::new(1)), answer: ApprovalAnswer::Once };
    let builder = watched.builder(&crib).policy(policy(&[(Behavior::Ask, "say")])).approver(Arc::new(person));
    let runtime = builder.hook(Arc::new(Rewrites)).build().unwrap();
    assert_eq!(
        on_threads(nesting::call(&runtime, ToolCall::new("c", "say", "{ \"a\" : \"x\" }"))).content(),
        r#"{"a":"long"}"#
    );
    drop(runtime);
    let run = watched.close();
    let (call, changed) = (run.only("invocations"), run.only("input-mutations"));
    assert_eq!(call["model_input"], "{ \"a\" : \"x\" }", "as the model sent it, to the letter");
    assert_eq!(call["observable_input"], json!({"a": "x"}));
    assert_eq!((&call["permission_input"], &call["call_input"]), (&json!({"a": "long"}), &json!({"a": "long"})));
    let refs = ["model_input_ref", "observable_input_ref", "permission_input_ref", "call_input_ref"];
    let refs = refs.map(|field| call[field].as_str().unwrap().rsplit('/').next().unwrap());
    assert_eq!(refs, ["0", "0", "1", "1"]);
    assert_eq!(
        (&changed["from_input_ref"], &changed["to_input_ref"]),
        (&call["model_input_ref"], &call["call_input_ref"])
    );
    assert_eq!((&changed["changed_fields"], &changed["mutation_source"]), (&json!(["a"]), &json!("settings")));
    assert_eq!(changed["source_ref"], run.of("hooks", "c")["hook_id"]);
}

#[test]
fn scenario_07_a_risky_call_pauses_for_approval_and_resumes_under_its_invocation_id() {
    let (watched, crib) = (Watched::new(), crib(&[("risky", "echo", json!({})), ("plain", "echo", json!({}))]));
    let (asked, mut questions) = mpsc::unbounded_channel();
    let leave = Arc::new(Semaphore::new(0));
    let person = Person { asked, leave: leave.clone(), answer: ApprovalAnswer::Once };
    let builder = watched.builder(&crib).policy(policy(&[(Behavior::Ask, "risky")]));
    let runtime = builder.approver(Arc::new(person)).build().unwrap();
    let invocation = on_threads(async {
        let waits = tokio::spawn({
            let runtime = runtime.clone();
            async move { nesting::call(&runtime, ToolCall::new("r", "risky", "{}")).await }
        });
        let invocation = questions.recv().await.unwrap();
        assert!(!nesting::call(&runtime, ToolCall::new("p", "plain", "{}")).await.is_error(), "other calls go on");
        assert!(!waits.is_finished());
        leave.add_permits(1);
        let result = waits.await.unwrap();
        assert_eq!((result.content().as_ref(), &result.receipt.invocation), ("{}", &invocation));
        invocation
    });
    drop(runtime);
    let run = watched.close();
    let call = run.of("invocations", "r");
    assert_eq!(call["invocation_id"], json!(invocation));
    let states: Vec<_> = call["status_transitions"].as_array().unwrap().iter().map(|turn| &turn["status"]).collect();
    assert_eq!(
        states,
        ["planned", "selected", "arguments_ready", "awaiting_approval", "approved", "queued", "running", "succeeded"]
    );
    let behaviors: Vec<_> = decisions(&run, &invocation).iter().map(|decision| decision["behavior"].clone()).collect();
    assert_eq!(behaviors, ["ask", "allow"]);
}

fn decisions<'a>(run: &'a Run, invocation: &str) -> Vec<&'a Value> {
    run.all("permission-decisions").iter().filter(|decision| decision["invocation_id"] == invocation).collect()
}

#[test]
fn scenario_08_a_denied_or_rejected_call_ends_in_a_terminal_error_result() {
    let (watched, crib) = (Watched::new(), crib(&[("never", "echo", json!({})), ("asks", "echo", json!({}))]));
    let rules = [(Behavior::Deny, "never(a=*)"), (Behavior::Ask, "asks")];
    let runtime = watched.builder(&crib).policy(policy(&rules)).build().unwrap();
    assert!(call(&runtime, "never", &json!({"a": 1})).is_error() && call(&runtime, "asks", &json!({})).is_error());
    drop(runtime);
    let run = watched.close();
    for (name, status, class) in [("never", "denied", "policy_blocked"), ("asks", "rejected", "approval_rejected")] {
        let result = run.of("results", name);
        assert_eq!((&result["is_error"], &result["status"]), (&json!(true), &json!(status)));
        assert_eq!(result["error"]["error_class"], class);
        assert!(
            run.of("invocations", name).get("started_at").is_none()
                && run.of("invocations", name)["ended_at"].is_string()
        );
    }
}

#[test]
fn scenario_16_policy_explains_why_a_tool_was_allowed_denied_or_deferred() {
    let hidden = json!({"interface": {"should_defer": true}});
    let tools = [("open", "echo", json!({})), ("shut", "echo", json!({})), ("hidden", "echo", hidden)];
    let (watched, crib) = (Watched::new(), crib(&tools));
    let rules = [(Behavior::Allow, "open"), (Behavior::Deny, "shut")];
    let runtime = watched.builder(&crib).policy(policy(&rules)).build().unwrap();
    on_threads(async {
        for name in ["open", "shut", "hidden"] {
            nesting::call(&runtime.session(), ToolCall::new(name, name, "{}")).await;
        }
    });
    drop(runtime);
    let run = watched.close();
    for (name, behavior, rule) in [("open", "allow", "allow open (--rule)"), ("shut", "deny", "deny shut (--rule)")] {
        let decision = run.of("permission-decisions", name);
        assert_eq!((&decision["behavior"], &decision["source"]), (&json!(behavior), &json!("operator")));
        assert_eq!(decision["reason"], json!({"type": "rule", "code": "rule", "message": rule}));
    }
    let deferred = &run.of("results", "hidden")["error"];
    assert_eq!(
        (&deferred["error_class"], &deferred["recoverability"]),
        (&json!("schema_not_loaded"), &json!("discover_first"))
    );
}
