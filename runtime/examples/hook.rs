//! A hook: blocks calls before they run, changes their arguments, and replaces results. Hooks run in order of priority; the
//! first that blocks ends the call, and none overrides a denial of the policy.
//!
//! ```console
//! $ cargo run --example hook -- target/crib
//! ```

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::json;
use toolcrib::hook::{FinishedCall, Hook, HookPhase, ProposedCall, Review, Verdict};
use toolcrib::{Audit, HandlerError, Runtime, Tool, ToolCall};

/// Refuses divisions and labels results of `calculate`.
struct Arithmetic;

impl Hook for Arithmetic {
    fn name(&self) -> &str {
        "arithmetic"
    }

    fn applies(&self, tool: &Tool, _moment: HookPhase) -> bool {
        tool.name == "calculate"
    }

    fn before<'a>(&'a self, call: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        let expression = call.arguments["expression"].as_str().unwrap_or_default();
        let verdict = match expression.contains('/') {
            true => Verdict::Block("divisions are not allowed here".to_owned()),
            false => Verdict::Pass,
        };
        ready(Ok(verdict)).boxed()
    }

    fn after<'a>(&'a self, call: FinishedCall<'a>) -> BoxFuture<'a, Result<Review, HandlerError>> {
        let review = match call.answer {
            Ok(line) => Review::Replace(json!({ "checked": true, "answer": line })),
            Err(_) => Review::Pass,
        };
        ready(Ok(review)).boxed()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).unwrap_or_else(|| "target/crib".into());
    let runtime = Runtime::builder(Audit::off()).source(source).hook(Arc::new(Arithmetic)).build()?;
    for expression in ["6*7", "1/3"] {
        let call = ToolCall::new(expression, "calculate", json!({ "expression": expression }).to_string());
        let result = runtime.call(call).await;
        println!("{expression}: {} {}", result.receipt.outcome, result.content());
    }
    Ok(())
}
