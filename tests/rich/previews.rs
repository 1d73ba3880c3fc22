//! Previews of calls: shown before a call runs, and in the request for approval.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::json;
use toolcrib::call::Behavior;
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Rule};
use toolcrib::{Outcome, Policy};

use super::{call, crib, runtime, watched};

/// Approver that records each preview and refuses.
#[derive(Default)]
struct Doubter(Mutex<Vec<Option<String>>>);

impl Approver for Doubter {
    fn ask<'a>(&'a self, question: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.0.lock().unwrap().push(question.preview.map(str::to_owned));
        ready(ApprovalAnswer::No).boxed()
    }
}

#[test]
fn whoever_is_asked_is_told_what_the_call_would_do() {
    let crib = crib();
    let doubter = Arc::new(Doubter::default());
    let ask = Policy::default().rule(Rule::new(Behavior::Ask, "*".parse().unwrap(), "test"));
    let runtime = runtime(&crib, |builder| builder.policy(ask).approver(doubter.clone()));
    let result = call(&runtime, "echo", json!({"value": "dangerous"}));
    assert_eq!(result.receipt.outcome, Outcome::Denied);
    call(&runtime, "stream", json!({}));
    let output = doubter.0.lock().unwrap().clone();
    assert_eq!(output, [Some("echo value='dangerous'".to_owned()), None], "only what says something is told");
}

#[test]
fn a_preview_without_end_is_given_up_and_the_call_runs() {
    let crib = crib();
    let (runtime, shown) = watched(&crib);
    let began = Instant::now();
    let result = call(&runtime, "spin_preview", json!({}));
    assert_eq!(result.content(), "ran");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(shown.all(), ["started", "ended ok"]);
    assert!(result.log.contains("preview: tool timed out"), "{}", result.log);
}

#[test]
fn a_preview_is_no_longer_than_a_person_reads() {
    let crib = crib();
    let (runtime, shown) = watched(&crib);
    call(&runtime, "echo", json!({"value": "x".repeat(5000)}));
    assert_eq!(shown.all()[0].chars().count(), "preview ".len() + 2000);
}

#[test]
fn a_call_that_nobody_watches_has_no_preview() {
    let crib = crib();
    let result = call(&runtime(&crib, |builder| builder), "spin_preview", json!({}));
    assert_eq!((result.content().as_ref(), result.log.as_str()), ("ran", ""));
}

#[test]
fn where_the_tool_says_nothing_its_record_does() {
    let crib = crib();
    crib.install(&crate::crib::guest("rich"), "rich");
    let entry = json!({
        "name": "stream",
        "command": ["./tools/bin/rich"],
        "interface": {"rendering": {"activity_description": "showing three parts"}},
    });
    crib.manifest(&json!({ "tools": [entry] }));
    let shown = Arc::new(super::Shown::default());
    let runtime = super::runtime_of(&crib, "tools.json", |builder| builder.observer(shown.clone()));
    call(&runtime, "stream", json!({}));
    assert_eq!(shown.all()[0], "preview showing three parts");
}
