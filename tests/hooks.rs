//! The seam before a call: what blocks there keeps the guest from starting, and a hook that fails blocks too.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, ready};
use toolcrib::hook::{Hook, Proposed, Verdict};
use toolcrib::{Audit, Outcome, Runtime, ToolCall, ToolResult};

use crate::crib::{Crib, guest};

/// A hook that always says the same.
struct Always(Result<Verdict, String>);

impl Hook for Always {
    fn name(&self) -> &str {
        "always"
    }

    fn before<'a>(&'a self, _: Proposed<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        ready(self.0.clone()).boxed()
    }
}

/// A call under these hooks.
fn call(crib: &Crib, hooks: Vec<Result<Verdict, String>>) -> ToolResult {
    let builder = Runtime::builder().source(guest("echo")).audit(Audit::folder(crib.path("audit")));
    let runtime =
        hooks.into_iter().fold(builder, |builder, says| builder.hook(Arc::new(Always(says)))).build().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(runtime.call(ToolCall::new("", "echo", "{\"a\":1}")))
}

#[test]
fn a_hook_that_allows_changes_nothing() {
    let result = call(&Crib::new(), vec![Ok(Verdict::Pass), Ok(Verdict::Pass)]);
    assert_eq!(result.outcome.unwrap(), "{\"a\":1}");
}

#[test]
fn a_hook_that_blocks_is_named_and_the_guest_is_not_started() {
    let crib = Crib::new();
    let result = call(&crib, vec![Ok(Verdict::Pass), Ok(Verdict::Block("not today".into()))]);
    assert_eq!(result.content(), r#"{"error":"blocked by hook \"always\": not today"}"#);
    assert_eq!((result.receipt.outcome, result.receipt.cpu_ms), (Outcome::Denied, 0.0));
    assert_eq!(crib.records()[0]["outcome"], "denied");
}

/// A hook with a defect of its own.
struct Panics;

impl Hook for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn before<'a>(&'a self, _: Proposed<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        async { panic!("a defect of the host") }.boxed()
    }
}

#[test]
fn a_panic_in_the_host_ends_one_call_with_one_record() {
    let crib = Crib::new();
    let builder = Runtime::builder().source(guest("echo")).audit(Audit::folder(crib.path("audit")));
    let runtime = builder.hook(Arc::new(Panics)).build().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..2 {
        let result = tokio.block_on(runtime.call(ToolCall::new("", "echo", "{}")));
        assert_eq!(result.content(), r#"{"error":"the call broke off inside the host"}"#);
    }
    assert_eq!(crib.records().len(), 2);
}

#[test]
fn a_hook_that_fails_blocks() {
    let result = call(&Crib::new(), vec![Err("no answer".into())]);
    assert_eq!(result.content(), r#"{"error":"blocked by hook \"always\", which failed: no answer"}"#);
    assert_eq!(result.receipt.outcome, Outcome::Denied);
}
