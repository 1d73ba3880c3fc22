//! Questions about the calls of one step: their order, answers that cover later calls, and the time that people take.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use serde_json::json;
use toolcrib::call::{Behavior, Reason};
use toolcrib::hook::{Hook, ProposedCall, Verdict};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Policy, Rule};
use toolcrib::{HandlerError, Outcome, Runtime, Scheduler, ToolCall};

use super::{Diary, block_on, crib, outcomes, results, run, runtime};
use crate::crib::Crib;

/// Approver that takes its time, and records the identifiers of the calls that it is asked about.
struct Person {
    asked: Mutex<Vec<String>>,
    takes: Duration,
    answer: ApprovalAnswer,
}

impl Person {
    fn new(answer: ApprovalAnswer, takes: Duration) -> Arc<Self> {
        Arc::new(Self { asked: Mutex::default(), takes, answer })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.asked.lock().unwrap().push(request.call_id.to_owned());
        tokio::time::sleep(self.takes).map(|()| self.answer.clone()).boxed()
    }
}

/// Hook that holds back a call for as long as it will take, which its argument `ms` states in milliseconds.
struct Waits;

impl Hook for Waits {
    fn name(&self) -> &str {
        "waits"
    }

    fn before<'a>(&'a self, call: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        let wait = call.arguments["ms"].as_u64().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(wait)).map(|()| Ok(Verdict::Pass)).boxed()
    }
}

fn asking(crib: &Crib, person: &Arc<Person>, scheduler: Scheduler) -> Runtime {
    let rule = |pattern: &str| Rule::new(Behavior::Ask, pattern.parse().unwrap(), "test");
    let policy = Policy::default().rule(rule("r")).rule(rule("w"));
    let (diary, person) = (Arc::<Diary>::default(), person.clone());
    runtime(crib, &diary, |builder| builder.policy(policy).approver(person).hook(Arc::new(Waits)).scheduler(scheduler))
}

/// Calls of a step; the first is the last to reach its question.
fn held_back() -> Vec<ToolCall> {
    let call = |(id, tool, ms): (&str, &str, u64)| ToolCall::new(id, tool, json!({ "ms": ms }).to_string());
    [("one", "r", 400), ("two", "w", 200), ("three", "r", 0)].map(call).into()
}

#[test]
fn questions_come_in_the_order_of_the_calls_however_long_their_hooks_take() {
    let (crib, person) = (crib(), Person::new(ApprovalAnswer::Once, Duration::ZERO));
    let runtime = asking(&crib, &person, Scheduler::default());
    let all = block_on(async { results(&mut runtime.session().step(held_back())).await });
    assert!(all.iter().all(|result| !result.is_error()), "{all:?}");
    assert_eq!(person.asked(), ["one", "two", "three"]);
}

#[test]
fn an_answer_for_the_session_covers_the_calls_that_wait_for_their_question() {
    let (crib, person) = (crib(), Person::new(ApprovalAnswer::Session, Duration::ZERO));
    let runtime = asking(&crib, &person, Scheduler::default());
    let all = block_on(async { results(&mut runtime.session().step(held_back())).await });
    assert_eq!(person.asked(), ["one", "two"], "one question for each tool");
    let reasons: Vec<Reason> = all.iter().map(|result| result.receipt.decision.as_ref().unwrap().reason).collect();
    assert_eq!(reasons, [Reason::Session; 3]);
}

#[test]
fn a_call_that_is_refused_holds_up_no_question() {
    let (crib, person) = (crib(), Person::new(ApprovalAnswer::NoBecause("later".to_owned()), Duration::ZERO));
    let runtime = asking(&crib, &person, Scheduler::default());
    let mut calls = held_back();
    calls.insert(0, ToolCall::new("none", "no_such_tool", "{}"));
    let all = block_on(async { results(&mut runtime.session().step(calls)).await });
    assert_eq!(person.asked(), ["one", "two", "three"]);
    for result in &all[1..] {
        assert_eq!(result.receipt.outcome, Outcome::Denied);
        assert_eq!(result.content(), r#"{"error":"the user denied this call: later"}"#);
    }
}

#[test]
fn an_interruption_ends_the_calls_that_wait_for_their_question() {
    let (crib, person) = (crib(), Person::new(ApprovalAnswer::Once, Duration::from_secs(3600)));
    let runtime = asking(&crib, &person, Scheduler::default());
    let all = block_on(async {
        let mut step = runtime.session().step(held_back());
        while person.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        step.interrupt();
        results(&mut step).await
    });
    assert!(all.iter().all(|result| result.receipt.outcome == Outcome::Cancelled), "{:?}", outcomes(&all));
}

#[test]
fn the_time_of_a_person_is_not_that_of_the_step() {
    let (crib, person) = (crib(), Person::new(ApprovalAnswer::Once, Duration::from_millis(2500)));
    let scheduler = Scheduler { time: Some(Duration::from_secs(5)), ..Scheduler::default() };
    let runtime = asking(&crib, &person, scheduler);
    let all = run(&runtime, &["w1:1", "w2:1", "w3:1"]);
    assert_eq!(outcomes(&all), [("w1", Outcome::Ok), ("w2", Outcome::Ok), ("w3", Outcome::Ok)]);
    assert_eq!(person.asked(), ["w1", "w2", "w3"]);
}
