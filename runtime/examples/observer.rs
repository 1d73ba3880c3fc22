//! An observer: prints the events of each call with the time since its first one. Observers run on the path of the call,
//! so a real one hands its work to another task.
//!
//! ```console
//! $ cargo run --example observer -- target/crib
//! ```

#![allow(clippy::print_stdout, reason = "an example shows its results")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::{Audit, Runtime, ToolCall};

#[derive(Default)]
struct Timeline {
    start: Mutex<Option<SystemTime>>,
}

impl Observer for Timeline {
    fn observe(&self, event: &Event<'_>) {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        if let EventKind::Received(_) = event.kind {
            *start = Some(event.at);
        }
        let elapsed = start.and_then(|start| event.at.duration_since(start).ok()).unwrap_or_default();
        let text = format!("{:?}", event.kind);
        let name = text.split([' ', '(']).next().unwrap_or_default();
        println!("{:>9.3} ms  {}  {name}", elapsed.as_secs_f64() * 1e3, event.call_id);
        if let EventKind::Ended(result) = event.kind {
            println!("               {} {}", result.receipt.outcome, result.content());
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).unwrap_or_else(|| "target/crib".into());
    let runtime = Runtime::builder(Audit::off()).source(source).observer(Arc::new(Timeline::default())).build()?;
    for (id, arguments) in [("first", r#"{"expression":"6*7"}"#), ("second", r#"{"expression":"1/0"}"#)] {
        runtime.call(ToolCall::new(id, "calculate", arguments)).await;
    }
    Ok(())
}
