//! Decisions about a call and their order: rules, people, hooks, records. A refused call never starts a tool.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use toolcrib::call::Behavior;
use toolcrib::hook::{Hook, HookPhase, Modification, ProposedCall, Verdict};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Rule};
use toolcrib::{Audit, Builder, HandlerError, Outcome, Policy, Runtime, Session, Tool, ToolCall, ToolResult};

use crate::crib::{Crib, nesting};

/// Approver with a constant answer that records the rule of each request.
struct Person(ApprovalAnswer, Mutex<Vec<String>>);

impl Approver for Person {
    fn ask<'a>(&'a self, question: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        let each = if question.approval.is_none() { " each time" } else { "" };
        self.1.lock().unwrap().push(format!("{}{each}", question.rests_on));
        ready(self.0.clone()).boxed()
    }
}

fn person(answer: ApprovalAnswer) -> Arc<Person> {
    Arc::new(Person(answer, Mutex::default()))
}

/// Creates a crib with one tool, `t`, from a guest, with more in its entry.
fn crib(guest: &str, more: Value) -> Crib {
    let crib = Crib::new();
    let mut entry = crib.entry(guest);
    entry["name"] = json!("t");
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    crib.manifest(&json!({"tools": [entry]}));
    crib
}

fn policy(rules: &[(Behavior, &str)]) -> Policy {
    rules.iter().fold(Policy::default(), |policy, (behavior, pattern)| {
        policy.rule(Rule::new(*behavior, pattern.parse().unwrap(), "test"))
    })
}

fn runtime(crib: &Crib, with: impl FnOnce(Builder) -> Builder) -> Runtime {
    let builder = nesting::builder(Audit::folder(crib.path("audit"))).trusted_source(crib.path("tools.json"));
    with(builder).build().unwrap()
}

fn call(session: &Session, arguments: Value) -> ToolResult {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(nesting::call(session, ToolCall::new("c", "t", arguments.to_string())))
}

#[test]
fn every_question_that_a_call_meets_is_asked_until_somebody_agreed_to_it() {
    let (crib, person) = (crib("echo", json!({})), person(ApprovalAnswer::Session));
    let rules = policy(&[(Behavior::Ask, "t"), (Behavior::Ask, "t(path=*.git*)")]);
    let session = runtime(&crib, |builder| builder.policy(rules).approver(person.clone())).session();
    for path in ["a", "b", "x.git", "y.git"] {
        assert_eq!(call(&session, json!({ "path": path })).receipt.outcome, Outcome::Ok);
    }
    let asked = person.1.lock().unwrap().clone();
    assert_eq!(asked, ["ask t (test)", "ask t(path=*.git*) (test)"], "the wide answer is none to the narrow question");
    let reasons: Vec<_> = crib.records().iter().map(|record| record["decision"]["restsOn"].clone()).collect();
    assert_eq!(reasons[3], "ask t(path=*.git*) (test)");
}

#[test]
fn a_tool_that_needs_a_person_for_each_call_asks_each_time() {
    let crib = crib("echo", json!({"interface": {"requires_user_interaction": true}}));
    let person = person(ApprovalAnswer::Always);
    let allow = policy(&[(Behavior::Allow, "*")]);
    let session = runtime(&crib, |builder| builder.policy(allow.clone()).approver(person.clone())).session();
    for _ in 0..2 {
        assert_eq!(call(&session, json!({})).receipt.outcome, Outcome::Ok);
    }
    assert_eq!(*person.1.lock().unwrap(), ["requires_user_interaction each time"; 2]);
    let alone = call(&runtime(&crib, |builder| builder.policy(allow)).session(), json!({}));
    assert_eq!(alone.receipt.outcome, Outcome::Denied, "no rule stands for a person");
    assert_eq!(crib.records()[1]["decision"]["reason"], "once");
}

/// Hook with a constant verdict.
struct Says(Verdict);

impl Hook for Says {
    fn name(&self) -> &str {
        "says"
    }

    fn applies(&self, tool: &Tool, _: HookPhase) -> bool {
        !nesting::is_of_program(&tool.name)
    }

    fn before<'a>(&'a self, _: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        ready(Ok(self.0.clone())).boxed()
    }
}

#[test]
fn what_a_hook_allows_holds_for_the_arguments_that_it_saw() {
    let crib = crib("echo", json!({}));
    let change = Modification::new(json!({"b": 2}));
    let asked = |hooks: Vec<Verdict>| {
        let rules = policy(&[(Behavior::Ask, "t")]);
        let hooked =
            |builder: Builder| hooks.into_iter().fold(builder, |builder, says| builder.hook(Arc::new(Says(says))));
        call(&runtime(&crib, |builder| hooked(builder.policy(rules))).session(), json!({"a": 1})).receipt.outcome
    };
    assert_eq!(asked(vec![Verdict::Modify(change.clone()), Verdict::Allow]), Outcome::Ok);
    assert_eq!(asked(vec![Verdict::Allow, Verdict::Modify(change)]), Outcome::Denied);
}

#[test]
fn nothing_of_a_tool_runs_for_a_call_that_is_denied() {
    let crib = crib("checked", json!({"timeoutSec": 20}));
    let deny = policy(&[(Behavior::Deny, "t(spin=true)")]);
    let begun = Instant::now();
    let result = call(&runtime(&crib, |builder| builder.policy(deny)).session(), json!({"spin": true}));
    assert_eq!((result.receipt.outcome, result.receipt.cpu_ms), (Outcome::Denied, 0.0));
    assert!(begun.elapsed() < Duration::from_secs(15), "its check was not run");
}

#[test]
fn an_interruption_reaches_a_tools_own_check() {
    let crib = crib("checked", json!({"timeoutSec": 30}));
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let session = runtime(&crib, |builder| builder).session();
    let begun = Instant::now();
    let result = tokio.block_on(async {
        let mut step = session.step(vec![ToolCall::new("c", "t", "{\"spin\":true}")]);
        tokio::time::sleep(Duration::from_millis(300)).await;
        step.interrupt();
        step.next().await.unwrap()
    });
    assert_eq!(result.receipt.outcome, Outcome::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_tool_for_the_host_alone_is_refused_from_a_model_and_never_found() {
    let crib = crib("echo", json!({"interface": {"schema_visibility": "internal", "should_defer": true}}));
    let runtime = runtime(&crib, |builder| builder);
    let session = runtime.session();
    assert_eq!(call(&session, json!({})).content(), r#"{"error":"the tool can be called only by the host"}"#);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found = tokio.block_on(nesting::call(&session, ToolCall::new("c", "tool_search", r#"{"query":"select:t"}"#)));
    assert!(found.content().contains(r#""tools":[]"#), "{}", found.content());
    assert_eq!(call(&runtime.open_session(), json!({})).receipt.outcome, Outcome::Ok, "the host calls it");
}

#[test]
fn a_tool_waits_for_its_features() {
    let crib = crib("echo", json!({"interface": {"feature_gate_refs": ["beta"]}}));
    let off = call(&runtime(&crib, |builder| builder).session(), json!({}));
    assert_eq!(off.content(), r#"{"error":"the tool requires the feature `beta`, which is off"}"#);
    let on = call(&runtime(&crib, |builder| builder.feature("beta")).session(), json!({}));
    assert_eq!(on.receipt.outcome, Outcome::Ok);
}

#[test]
fn what_a_model_writes_is_bounded_in_records_and_answers() {
    let preflight = json!({"io_preflight_validation": [{"field": "/path", "use": "read"}]});
    let endless = crib("echo", json!({ "interface": preflight }));
    let output = call(&runtime(&endless, |builder| builder).session(), json!({"path": "../".repeat(1_000_000)}));
    assert_eq!(output.receipt.outcome, Outcome::Denied);
    assert!(output.content().len() < 1000 && endless.records()[0].to_string().len() < 4000);

    let failing = crib("exit_code", json!({"limits": {"outputKb": 512}}));
    let session = runtime(&failing, |builder| builder.max_inline(1000)).session();
    let error = json!({"error": "e".repeat(30_000)}).to_string();
    let output = call(&session, json!({"code": 1, "stderr": error}));
    assert_eq!(output.receipt.outcome, Outcome::Failed);
    assert!(
        output.content().len() < 1100,
        "an error is no way round the most that is told: {}",
        output.content().len()
    );
}

#[test]
fn a_search_tells_no_more_than_a_model_can_take() {
    let crib = Crib::new();
    crib.install(&crate::crib::guest("echo"), "echo");
    let tool = |n: usize| {
        let interface = json!({"should_defer": true});
        let schema = json!({"type": "object", "description": "s".repeat(20_000)});
        json!({"name": format!("word_{n}"), "description": "d".repeat(100_000), "command": ["./tools/bin/echo"],
               "schema": schema, "interface": interface})
    };
    crib.manifest(&json!({"tools": (0..20).map(tool).collect::<Vec<_>>()}));
    let session = runtime(&crib, |builder| builder).session();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let search = ToolCall::new("c", "tool_search", r#"{"query":"word","max_results":20}"#);
    let found = tokio.block_on(session.call(search));
    let output: Value = serde_json::from_str(&found.content()).unwrap();
    assert!(found.content().len() < 100_000, "{}", found.content().len());
    let loaded = output["tools"].as_array().unwrap().len();
    assert!(loaded >= 1 && output["toolcrib"]["stillHidden"] == 20 - loaded, "what was not told was not loaded");
}

#[test]
fn a_missing_answer_has_to_fit_the_schema_of_answers() {
    let crib = crib("empty", json!({"interface": {"output_schema": {"type": "object", "required": ["n"]}}}));
    assert_eq!(call(&runtime(&crib, |builder| builder).session(), json!({})).receipt.outcome, Outcome::BadResult);
}

#[test]
fn a_rule_that_names_no_tool_is_told() {
    let crib = crib("echo", json!({}));
    let runtime =
        runtime(&crib, |builder| builder.policy(policy(&[(Behavior::Deny, "tt(a=1)"), (Behavior::Deny, "x*")])));
    let output: Vec<_> = runtime.warnings().iter().map(ToString::to_string).collect();
    let wanted =
        ["`deny tt(a=1) (test)` matches no loaded tool; did you mean `t`?", "`deny x* (test)` matches no loaded tool"];
    assert_eq!(output, wanted);
}
