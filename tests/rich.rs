//! Rich tools, end to end: the contract of `wit/tool`, through the library and through the built program. The component
//! `rich` contains unusual tools, one for each case that a host must handle.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib::call::Part;
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::{Audit, Builder, Runtime, ToolCall, ToolResult};

use crate::crib::{Crib, guest, nesting, target};
use crate::records::watched::on_threads;

mod asking;
mod conformance;
mod descriptors;
mod enablement;
mod preparing;
mod previews;
mod program;
mod routing;
mod showing;
mod versions;

/// Creates a crib with the component in its folder.
fn crib() -> Crib {
    let crib = Crib::new();
    std::fs::copy(guest("rich"), crib.path("rich.wasm")).expect("the guest was built");
    crib
}

/// Runtime with the tools of a component of the crib, and its log in the crib.
fn runtime_of(crib: &Crib, component: &str, with: impl FnOnce(Builder) -> Builder) -> Runtime {
    let builder = nesting::builder(Audit::folder(crib.path("audit")))
        .source(crib.path(component))
        .compile_cache(target().join("test-cache"));
    with(builder).build().unwrap()
}

fn runtime(crib: &Crib, with: impl FnOnce(Builder) -> Builder) -> Runtime {
    runtime_of(crib, "rich.wasm", with)
}

/// Makes one call.
fn made(runtime: &Runtime, call: ToolCall) -> ToolResult {
    on_threads(nesting::call(runtime, call))
}

fn call(runtime: &Runtime, name: &str, arguments: Value) -> ToolResult {
    made(runtime, ToolCall::new("call_1", name, arguments.to_string()))
}

/// Observer that records the shown parts, in order.
#[derive(Default)]
struct Shown(Mutex<Vec<String>>);

impl Shown {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Shown {
    fn observe(&self, event: &Event<'_>) {
        let line = match &event.kind {
            EventKind::Preview(text) => format!("preview {text}"),
            EventKind::Part { number, part: Part::Text(text) } => format!("{number} {text}"),
            EventKind::Part { number, part } => format!("{number} {part:?}"),
            EventKind::Started(_) => "started".to_owned(),
            EventKind::Ended(result) => format!("ended {}", result.receipt.outcome),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

/// Runtime with such an observer.
fn watched(crib: &Crib) -> (Runtime, Arc<Shown>) {
    let shown = Arc::new(Shown::default());
    let runtime = runtime(crib, |builder| builder.observer(shown.clone()));
    (runtime, shown)
}

/// Writes the same component with other descriptors.
fn described(crib: &Crib, name: &str, program: &Path, tools: &[Value]) {
    let bytes = std::fs::read(program).unwrap();
    let described = toolcrib::source::descriptor::described(&bytes, tools).unwrap();
    std::fs::write(crib.path(name), described).unwrap();
}

/// The only record of the log.
fn record(crib: &Crib) -> Value {
    let records = crib.records();
    assert_eq!(records.len(), 1, "{records:?}");
    records.into_iter().next().unwrap_or(json!(null))
}
