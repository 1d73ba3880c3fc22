//! The seam of the library: a fake in this process takes the place of the sandbox, and all other stages stay.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use toolcrib::call::{Behavior, Media, Part};
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::policy::Rule;
use toolcrib::worker::{WorkerAnswer, WorkerCall, Workers};
use toolcrib::{Audit, Builder, Outcome, Policy, Runtime, ToolCall, ToolError, ToolResult};

use super::readers;
use crate::crib::{Crib, target};

type Act = dyn Fn(&WorkerCall<'_>) -> Option<Result<WorkerAnswer, ToolError>> + Send + Sync;

/// Fake of workers.
struct Fake {
    act: Box<Act>,
    calls: Mutex<Vec<(String, String, String)>>,
    dropped: AtomicUsize,
}

/// Counts the calls that are dropped.
struct Running<'a>(&'a AtomicUsize, bool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(usize::from(!self.1), SeqCst);
    }
}

impl Workers for Fake {
    fn call<'a>(&'a self, call: WorkerCall<'a>) -> BoxFuture<'a, Result<WorkerAnswer, ToolError>> {
        async move {
            let seen = [call.tool, call.digest, call.arguments].map(str::to_owned);
            self.calls.lock().unwrap().push(seen.into());
            call.accepted_by("fake");
            let mut running = Running(&self.dropped, false);
            match (self.act)(&call) {
                Some(end) => {
                    running.1 = true;
                    end
                }
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}

fn fake(act: impl Fn(&WorkerCall<'_>) -> Option<Result<WorkerAnswer, ToolError>> + Send + Sync + 'static) -> Arc<Fake> {
    Arc::new(Fake { act: Box::new(act), calls: Mutex::default(), dropped: AtomicUsize::default() })
}

fn answer(line: &str) -> Option<Result<WorkerAnswer, ToolError>> {
    Some(Ok(WorkerAnswer::new(Ok(Some(line.to_owned())))))
}

/// Calls a tool with the fake, with settings of the test.
fn call(crib: &Crib, fake: &Arc<Fake>, tool: &str, with: impl FnOnce(Builder) -> Builder) -> ToolResult {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let builder = Runtime::builder(Audit::folder(crib.path("audit"))).trusted_source(crib.path("tools.json"));
    let builder = builder.compile_cache(target().join("test-cache"));
    let runtime = with(builder.workers(fake.clone())).build().unwrap();
    tokio.block_on(runtime.call(ToolCall::new("1", tool, r#"{"a":1}"#)))
}

#[test]
fn a_worker_gets_the_decided_call_and_the_record_names_it() {
    let (crib, fake) = (readers(), fake(|_| answer(r#"{"b":2}"#)));
    let result = call(&crib, &fake, "echo", |builder| builder);
    assert_eq!(result.outcome.as_deref(), Ok(r#"{"b":2}"#));
    let digest = toolcrib::source::digest(&std::fs::read(crib.path("tools/bin/echo.wasm")).unwrap());
    let calls = fake.calls.lock().unwrap();
    assert_eq!(calls.as_slice(), [("echo".to_owned(), digest, r#"{"a":1}"#.to_owned())]);
    assert_eq!(result.receipt.worker.as_deref(), Some("fake"));
    assert_eq!(result.receipt.stdout_bytes, 7);
    assert_eq!(crib.records()[0]["worker"], "fake");
}

#[test]
fn no_call_is_passed_on_that_a_rule_denies_or_that_may_change_something() {
    let (crib, fake) = (readers(), fake(|_| answer("1")));
    let denied = |builder: Builder| {
        builder.policy(Policy::default().rule(Rule::new(Behavior::Deny, "echo".parse().unwrap(), "test")))
    };
    assert_eq!(call(&crib, &fake, "echo", denied).receipt.outcome, Outcome::Denied);
    let result = call(&crib, &fake, "change", |builder| builder);
    assert_eq!(result.receipt.outcome, Outcome::Denied);
    assert!(result.content().contains("only tools that only read"), "{}", result.content());
    assert!(fake.calls.lock().unwrap().is_empty());
    assert_eq!(crib.records().len(), 2);
}

#[test]
fn an_answer_is_bounded_and_quoted_like_the_answer_of_a_tool() {
    let crib = readers();
    let quoted = call(&crib, &fake(|_| answer(r#"{"toolcrib":{}}"#)), "echo", |builder| builder);
    assert!(quoted.content().contains("quoted"), "{}", quoted.content());
    let long = json!("x".repeat(3 << 20)).to_string();
    let result = call(&crib, &fake(move |_| answer(&long)), "echo", |builder| builder);
    assert_eq!(result.receipt.outcome, Outcome::OutputLimit, "{:?}", result.receipt);
    let media = fake(|_| {
        let mut answered = WorkerAnswer::new(Ok(Some(r#""x""#.to_owned())));
        answered.media =
            vec![Media::new("image/png", Some("../a".to_owned()), vec![1]), Media::new("none", None, vec![2])];
        Some(Ok(answered))
    });
    let result = call(&crib, &media, "echo", |builder| builder);
    assert_eq!(result.media, [Media::new("image/png", None, vec![1])]);
    assert!(result.receipt.warnings[0].contains("without a valid type"), "{:?}", result.receipt.warnings);
}

#[test]
fn an_error_of_a_worker_names_it_unless_it_is_of_the_tool() {
    let crib = readers();
    let refused = fake(|_| Some(Ok(WorkerAnswer::new(Err(ToolError::new(Outcome::Denied, "no"))))));
    let result = call(&crib, &refused, "echo", |builder| builder);
    assert_eq!(result.content(), r#"{"error":"at the worker `fake`: no"}"#);
    let failed = fake(|_| Some(Ok(WorkerAnswer::new(Err(ToolError::new(Outcome::Failed, "no"))))));
    assert_eq!(call(&crib, &failed, "echo", |builder| builder).content(), r#"{"error":"no"}"#);
}

#[test]
fn a_deadline_drops_the_call_of_the_worker() {
    let (crib, fake) = (readers(), fake(|_| None));
    let short = |builder: Builder| builder.limits(toolcrib::tool::Limits::with_deadline(Duration::from_millis(50)));
    let result = call(&crib, &fake, "echo", short);
    assert_eq!(result.receipt.outcome, Outcome::Deadline);
    assert_eq!(fake.dropped.load(SeqCst), 1);
}

/// Collects the progress of calls.
#[derive(Default)]
struct Shown(Mutex<Vec<Part>>);

impl Observer for Shown {
    fn observe(&self, event: &Event<'_>) {
        if let EventKind::Part { part, .. } = &event.kind {
            self.0.lock().unwrap().push((*part).clone());
        }
    }
}

#[test]
fn progress_is_shown_and_too_many_reports_are_dropped() {
    let (crib, shown) = (readers(), Arc::new(Shown::default()));
    let many = fake(|call| {
        (0..1000).for_each(|done| call.progress(done, Some(1000)));
        answer("1")
    });
    let result = call(&crib, &many, "echo", |builder| builder.observer(shown.clone()));
    assert_eq!(result.receipt.outcome, Outcome::Ok);
    let shown = shown.0.lock().unwrap();
    assert_eq!(shown[0], Part::Progress { done: 0, total: Some(1000) });
    assert!(shown.len() <= 16, "{}", shown.len());
}
