//! One `execute_tool` span per call, from pipeline events, below the span of the tool or the calling program that made it.
//! Spans contain no arguments, results or text that quotes them, since these may contain secrets: decisions omit their basis,
//! and failures are reduced to the outcome.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use toolcrib::ToolResult;
use toolcrib::call::Decision;
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib_base::otlp::{AttributeValue, Attributes};

use super::export::Queue;
use super::span::{Kind, Moment, Place, Span, new_id};

/// Observes calls.
pub(super) struct Calls {
    queue: Queue,
    /// Place of calls without a stated trace; without one, each begins its own trace.
    place: Option<Place>,
    /// Running calls by invocation.
    running: Mutex<HashMap<String, Running>>,
}

struct Running {
    /// Identifier of its span.
    id: u64,
    place: Place,
    start: SystemTime,
    moments: Vec<Moment>,
}

impl Calls {
    /// Creates an observer that adds spans below the caller's span, and at `place` for calls that state no trace.
    pub(super) fn new(queue: Queue, place: Option<Place>) -> Self {
        Self { queue, place, running: Mutex::default() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Running>) -> T) -> T {
        // Nothing slow is done under this lock.
        act(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, event: &Event<'_>, name: &'static str, attributes: Attributes) {
        let moment = Moment { name, at: event.at, attributes };
        self.with(|running| running.get_mut(event.invocation).map(|call| call.moments.push(moment)));
    }

    fn end(&self, event: &Event<'_>, result: &ToolResult) {
        let receipt = &result.receipt;
        let ended = self.with(|running| {
            let mut call = running.remove(event.invocation)?;
            // The call of a tool that made this one is still running.
            if let Some(outer) = receipt.parent.as_ref().and_then(|parent| running.get(parent)) {
                call.place = Place { trace: outer.place.trace, parent: Some(outer.id) };
            }
            Some(call)
        });
        let Some(Running { id, place, start, moments }) = ended else { return };
        // An unknown name is text from the model.
        let tool = event.tool.map_or("unknown", |tool| &tool.name);
        let mut span = Span::ended(id, place, Kind::Internal, format!("execute_tool {tool}"), start);
        span.moments = moments;
        span.say("gen_ai.operation.name", "execute_tool");
        span.say("gen_ai.tool.name", tool);
        span.say("gen_ai.tool.type", "function");
        span.say("gen_ai.tool.call.id", receipt.call_id.as_str());
        if let Some(description) = event.tool.and_then(|tool| tool.description.as_deref()) {
            span.say("gen_ai.tool.description", description);
        }
        span.say("toolcrib.invocation", receipt.invocation.as_str());
        span.say("toolcrib.outcome", receipt.outcome.as_str());
        if let Some(digest) = &receipt.digest {
            span.say("toolcrib.digest", digest.as_str());
        }
        span.attributes.extend(receipt.decision.iter().flat_map(decided));
        span.say("toolcrib.waited_ms", receipt.waited_ms);
        span.say("toolcrib.cpu_ms", receipt.cpu_ms);
        span.say("toolcrib.peak_memory_bytes", receipt.peak_memory_bytes);
        if result.is_error() {
            span.fail(receipt.outcome.as_str());
        }
        self.queue.push(span);
    }
}

impl Observer for Calls {
    fn observe(&self, event: &Event<'_>) {
        match event.kind {
            EventKind::Received(_) => {
                let place = event.trace.map(Place::below).or(self.place).unwrap_or_else(Place::root);
                let call = Running { id: new_id(), place, start: event.at, moments: Vec::new() };
                self.with(|running| running.insert(event.invocation.to_owned(), call));
            }
            EventKind::ApprovalRequested(question) => self.note(event, "toolcrib.asked", decided(question).into()),
            EventKind::Decided(decision) => self.note(event, "toolcrib.decided", decided(decision).into()),
            EventKind::Started(_) => self.note(event, "toolcrib.started", Vec::new()),
            EventKind::Persisted(persisted) => {
                let attributes = vec![
                    ("toolcrib.strategy", persisted.strategy.as_str().into()),
                    ("toolcrib.bytes", persisted.bytes.into()),
                    ("toolcrib.shown_bytes", persisted.shown_bytes.into()),
                ];
                self.note(event, "toolcrib.persisted", attributes);
            }
            EventKind::Ended(result) => self.end(event, result),
            _ => {}
        }
    }
}

/// Attributes of a decision. Its basis is omitted, since it may quote an argument.
fn decided(decision: &Decision) -> [(&'static str, AttributeValue); 2] {
    [("toolcrib.decision", decision.behavior.as_str().into()), ("toolcrib.reason", decision.reason.as_str().into())]
}
