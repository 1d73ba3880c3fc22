//! A service around one runtime: reads one call per line from standard input, runs calls at the same time, and writes one
//! JSON line per result as it ends.
//!
//! ```console
//! $ printf 'get_time {"timezone":"UTC"}\ncalculate {"expression":"6*7"}\n' | cargo run --example embed -- target/crib
//! ```

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use std::io::{BufRead, stdin};
use std::sync::Arc;

use serde_json::json;
use toolcrib::tool::Limits;
use toolcrib::{Audit, Runtime, ToolCall};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).unwrap_or_else(|| "target/crib".into());
    let state = tempfile::tempdir()?;
    // Nothing is granted here: tools that need files or the network are refused with the permission that they lack.
    let runtime = Runtime::builder(Audit::folder(state.path().join("audit")))
        .source(source)
        .compile_cache(state.path().join("cache"))
        .limits(Limits::with_deadline(std::time::Duration::from_secs(5)))
        .concurrency(8)
        .build()?;
    let runtime = Arc::new(runtime);
    let mut calls = tokio::task::JoinSet::new();
    for (number, line) in stdin().lock().lines().enumerate() {
        let line = line?;
        let (tool, arguments) = line.split_once(' ').unwrap_or((&line, "{}"));
        let call = ToolCall::new(format!("call-{}", number + 1), tool, arguments);
        let runtime = runtime.clone();
        calls.spawn(async move { runtime.call(call).await });
    }
    while let Some(result) = calls.join_next().await {
        let result = result?;
        println!(
            "{}",
            json!({
                "id": result.call_id,
                "outcome": result.receipt.outcome,
                "content": result.content(),
                "milliseconds": result.receipt.ms,
            })
        );
    }
    Ok(())
}
