//! Effects of hooks on a call: they run in order, block, allow a call that needs approval, change arguments, withhold
//! results; and a hook that fails blocks.

use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use toolcrib::call::Behavior;
use toolcrib::hook::{FinishedCall, Hook, HookPhase, Modification, ProposedCall, Review, Verdict};
use toolcrib::policy::{Policy, Rule};
use toolcrib::{Audit, Builder, HandlerError, Outcome, Tool, ToolCall, ToolResult};

use crate::crib::{Crib, nesting};

/// Hook with a constant answer that records its input.
struct Always {
    name: &'static str,
    priority: i32,
    before: Result<Verdict, HandlerError>,
    after: Result<Review, HandlerError>,
    saw: Arc<Mutex<Vec<String>>>,
}

impl Hook for Always {
    fn name(&self) -> &str {
        self.name
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn applies(&self, tool: &Tool, _: HookPhase) -> bool {
        tool.name != "untouched" && !nesting::is_of_program(&tool.name)
    }

    fn before<'a>(&'a self, call: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        self.saw.lock().unwrap().push(format!("{} {} {}", self.name, call.model_input, call.arguments));
        ready(self.before.clone()).boxed()
    }

    fn after<'a>(&'a self, call: FinishedCall<'a>) -> BoxFuture<'a, Result<Review, HandlerError>> {
        self.saw.lock().unwrap().push(format!("{} {:?}", self.name, call.answer.map_err(|error| error.outcome)));
        ready(self.after.clone()).boxed()
    }
}

#[derive(Default)]
struct Hooks(Vec<Arc<dyn Hook>>, Arc<Mutex<Vec<String>>>);

impl Hooks {
    fn with(
        mut self,
        name: &'static str,
        priority: i32,
        before: Result<Verdict, HandlerError>,
        after: Result<Review, HandlerError>,
    ) -> Self {
        self.0.push(Arc::new(Always { name, priority, before, after, saw: self.1.clone() }));
        self
    }

    fn before(self, name: &'static str, verdict: Result<Verdict, HandlerError>) -> Self {
        self.with(name, 0, verdict, Ok(Review::Pass))
    }

    fn after(self, name: &'static str, review: Result<Review, HandlerError>) -> Self {
        self.with(name, 0, Ok(Verdict::Pass), review)
    }
}

/// Creates a crib with tools that echo; `user` is a field that only the host sets.
fn crib() -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "user": {"type": "string", "visibility": "internal"},
    }});
    let tool = |name: &str| json!({"name": name, "command": ["./tools/bin/echo"], "schema": schema});
    crib.manifest(&json!({"tools": [tool("echo"), tool("untouched")]}));
    crib
}

fn call_with(crib: &Crib, hooks: Hooks, name: &str, with: impl FnOnce(Builder) -> Builder) -> ToolResult {
    let builder = nesting::builder(Audit::folder(crib.path("audit"))).trusted_source(crib.path("tools.json"));
    let runtime = hooks.0.into_iter().fold(with(builder), Builder::hook).build().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(nesting::call(&runtime, ToolCall::new("c", name, "{\"a\":1}")))
}

fn call(crib: &Crib, hooks: Hooks) -> ToolResult {
    call_with(crib, hooks, "echo", |builder| builder)
}

fn modify(arguments: Value, source: Option<&str>) -> Result<Verdict, HandlerError> {
    let mut change = Modification::new(arguments).reason("for the test");
    change.mutation_source = source.map(str::to_owned);
    Ok(Verdict::Modify(change))
}

#[test]
fn a_hook_that_passes_changes_nothing() {
    let crib = crib();
    let result = call(&crib, Hooks::default().before("one", Ok(Verdict::Pass)));
    assert_eq!(result.content(), "{\"a\":1}");
    assert!(crib.records()[0].get("hooks").is_none());
}

#[test]
fn a_hook_that_blocks_is_named_and_the_guest_is_not_started() {
    let crib = crib();
    let hooks = Hooks::default().before("one", Ok(Verdict::Pass)).before("two", Ok(Verdict::Block("not today".into())));
    let result = call(&crib, hooks.before("three", Ok(Verdict::Pass)));
    assert_eq!(result.content(), r#"{"error":"tool blocked: blocked by hook \"two\": not today"}"#);
    assert_eq!((result.receipt.outcome, result.receipt.cpu_ms), (Outcome::Denied, 0.0));
    let record = &crib.records()[0];
    assert_eq!(record["decision"], json!({"behavior": "deny", "reason": "hook", "restsOn": "two"}));
    assert_eq!(
        record["hooks"],
        json!([{"hook": "two", "said": "block", "point": "before", "action": "blocked"}]),
        "the third is not heard"
    );
}

#[test]
fn a_hook_that_fails_blocks() {
    let crib = crib();
    let result = call(&crib, Hooks::default().before("one", Err("no answer".into())));
    assert_eq!(result.content(), r#"{"error":"tool blocked: blocked by hook \"one\", which failed: no answer"}"#);
    assert_eq!(crib.records()[0]["decision"]["reason"], "hook-failed");
}

#[test]
fn hooks_are_heard_by_priority_and_only_about_what_they_apply_to() {
    let crib = crib();
    let hooks = || {
        let pass = || (Ok(Verdict::Pass), Ok(Review::Pass));
        let (one, two, three) = (pass(), pass(), pass());
        Hooks::default().with("late", 9, one.0, one.1).with("early", -1, two.0, two.1).with("mid", 0, three.0, three.1)
    };
    let heard = hooks();
    let saw = heard.1.clone();
    call(&crib, heard);
    let order: Vec<_> = saw.lock().unwrap().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(order, ["early", "mid", "late", "early", "mid", "late"], "before and after");
    let unheard = hooks();
    let saw = unheard.1.clone();
    call_with(&crib, unheard, "untouched", |builder| builder);
    assert!(saw.lock().unwrap().is_empty());
}

#[test]
fn a_hook_of_the_embedder_judges_the_tools_of_every_source() {
    let crib = crib();
    std::fs::create_dir(crib.path("other")).unwrap();
    std::fs::copy(crib.path("tools/bin/echo.wasm"), crib.path("other/second.wasm")).unwrap();
    let hooks = || Hooks::default().before("one", Ok(Verdict::Block("not today".into())));
    for name in ["echo", "second"] {
        let result = call_with(&crib, hooks(), name, |builder| builder.source(crib.path("other")));
        assert_eq!(result.receipt.outcome, Outcome::Denied, "{name}");
    }
}

#[test]
fn a_hook_that_changes_arguments_leaves_the_models_own_untouched() {
    let crib = crib();
    let hooks = Hooks::default().before("add", modify(json!({"a": 2, "b": 3}), None)).before("look", Ok(Verdict::Pass));
    let saw = hooks.1.clone();
    let result = call(&crib, hooks);
    assert_eq!(result.content(), r#"{"a":2,"b":3}"#, "the tool got the new ones");
    assert_eq!(saw.lock().unwrap()[1], r#"look {"a":1} {"a":2,"b":3}"#, "the next hook sees both");
    let record = &crib.records()[0];
    assert_eq!(record["mutations"], json!([{"by": "add", "fields": ["a", "b"], "reason": "for the test"}]));
    let noted = json!({"hook": "add", "said": "modify", "point": "before", "action": "changed-arguments"});
    assert_eq!(record["hooks"], json!([noted]));
}

#[test]
fn changed_arguments_are_checked_like_any() {
    let result = call(&crib(), Hooks::default().before("one", modify(json!({"a": "x"}), None)));
    assert_eq!(result.receipt.outcome, Outcome::Denied);
    assert!(result.content().contains("which failed: its arguments are wrong"), "{}", result.content());
}

#[test]
fn a_field_of_the_hosts_needs_a_named_source() {
    let crib = crib();
    let refused = call(&crib, Hooks::default().before("one", modify(json!({"a": 1, "user": "ada"}), None)));
    assert!(refused.content().contains("names no source for it"), "{}", refused.content());
    let set = call(&crib, Hooks::default().before("one", modify(json!({"a": 1, "user": "ada"}), Some("login"))));
    assert_eq!(set.content(), r#"{"a":1,"user":"ada"}"#);
    let record = &crib.records()[1];
    assert_eq!(record["mutations"][0]["mutationSource"], "login");
    assert_eq!(record["mutations"][0]["fields"], json!(["user"]));
}

#[test]
fn a_hooks_allow_answers_a_question_and_never_beats_a_denial() {
    let rule = |behavior| Policy::default().rule(Rule::new(behavior, "echo".parse().unwrap(), "test"));
    let allow = || Hooks::default().before("kind", Ok(Verdict::Allow));
    let crib = crib();
    let asked = call_with(&crib, allow(), "echo", |builder| builder.policy(rule(Behavior::Ask)));
    assert_eq!(asked.receipt.outcome, Outcome::Ok);
    let denied = call_with(&crib, allow(), "echo", |builder| {
        let pattern = "echo(a=1)".parse().unwrap();
        builder.policy(Policy::default().rule(Rule::new(Behavior::Deny, pattern, "test")))
    });
    assert_eq!(denied.receipt.outcome, Outcome::Denied);
    let records = crib.records();
    assert_eq!(records[0]["decision"], json!({"behavior": "allow", "reason": "hook", "restsOn": "kind"}));
    assert_eq!(
        records[1]["decision"],
        json!({"behavior": "deny", "reason": "rule", "restsOn": "deny echo(a=1) (test)"})
    );
    let said = json!({"hook": "kind", "said": "allow", "point": "before", "action": "allowed"});
    assert_eq!(records[1]["hooks"], json!([said]), "what it said is kept");
}

#[test]
fn an_answer_is_withheld_by_a_hook_that_blocks_or_fails() {
    let crib = crib();
    let blocked = call(&crib, Hooks::default().after("one", Ok(Review::Block("secret".into()))));
    assert_eq!(blocked.content(), r#"{"error":"tool result blocked: blocked by hook \"one\": secret"}"#);
    let failed = call(&crib, Hooks::default().after("one", Err("broken".into())));
    assert_eq!(failed.content(), r#"{"error":"tool result blocked: blocked by hook \"one\", which failed: broken"}"#);
    assert!(crib.records().iter().all(|record| record["outcome"] == "denied" && record["exit"] == 0));
}

#[test]
fn an_answer_is_replaced_and_a_failure_stays_one() {
    let replace = || Hooks::default().after("one", Ok(Review::Replace(json!({"masked": true}))));
    let crib = crib();
    assert_eq!(call(&crib, replace()).content(), r#"{"masked":true}"#);
    let guests = Crib::with_guests(&["not_json"]);
    let failed = call_with(&guests, replace(), "not_json", |builder| builder);
    assert_eq!((failed.receipt.outcome, failed.content().as_ref()), (Outcome::BadResult, r#"{"masked":true}"#));
}

/// Hook that panics.
struct Panics;

impl Hook for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn applies(&self, tool: &Tool, _: HookPhase) -> bool {
        !nesting::is_of_program(&tool.name)
    }

    fn before<'a>(&'a self, _: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        async { panic!("a defect of the host") }.boxed()
    }
}

#[test]
fn a_panic_in_the_host_ends_one_call_with_one_record() {
    let crib = crib();
    for _ in 0..2 {
        let result = call(&crib, Hooks(vec![Arc::new(Panics)], Arc::default()));
        assert_eq!(result.content(), r#"{"error":"the call failed inside the host"}"#);
    }
    assert_eq!(crib.records().len(), 2);
}
