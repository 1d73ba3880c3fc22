//! An approver: calls that match an `ask` rule wait for its decision. This one approves writes below `notes/` and refuses
//! the rest, as a service with its own policy would; a program for people would show the request and wait.
//!
//! ```console
//! $ cargo run --example approver -- target/crib
//! ```

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;
use toolcrib::call::Behavior;
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Permission, Policy, Rule};
use toolcrib::{Audit, Runtime, ToolCall};

struct NotesOnly;

impl Approver for NotesOnly {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        let arguments: Value = serde_json::from_str(request.arguments).unwrap_or_default();
        let is_note = arguments["path"].as_str().is_some_and(|path| path.starts_with("notes/"));
        println!("approval requested: {} {}", request.tool.name, request.arguments);
        ready(if is_note { ApprovalAnswer::Once } else { ApprovalAnswer::No }).boxed()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).unwrap_or_else(|| "target/crib".into());
    let state = tempfile::tempdir()?;
    let work = state.path().join("work");
    std::fs::create_dir_all(work.join("notes"))?;
    let policy = Policy::default().allow(Permission::Write(work)).rule(Rule::new(
        Behavior::Ask,
        "fs_write_file".parse()?,
        "example",
    ));
    let runtime = Runtime::builder(Audit::folder(state.path().join("audit")))
        .source(source)
        .policy(policy)
        .approver(Arc::new(NotesOnly))
        .build()?;
    for path in ["notes/a.md", "b.md"] {
        let arguments = format!(r#"{{"path":"{path}","content":"hello"}}"#);
        let result = runtime.call(ToolCall::new(path, "fs_write_file", arguments)).await;
        println!("{path}: {} {}", result.receipt.outcome, result.content());
    }
    Ok(())
}
