//! Span data: name, times, parent, attributes and status.

use std::time::SystemTime;

use toolcrib::call::TraceContext;
use toolcrib_base::otlp::{AttributeValue, Attributes};

/// Position of a span in a trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The trace, never 0.
    pub(super) trace: u128,
    /// The parent span, if any, never 0.
    pub(super) parent: Option<u64>,
}

impl Place {
    /// Returns the place of the first span in a new trace.
    pub(super) fn root() -> Self {
        Self { trace: rand::random_range(1..=u128::MAX), parent: None }
    }

    /// Returns the place below the span of a caller.
    pub(super) fn below(context: TraceContext) -> Self {
        Self { trace: context.trace_id(), parent: Some(context.parent_id()) }
    }
}

/// A finished operation.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) place: Place,
    /// Never 0.
    pub(super) id: u64,
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) start: SystemTime,
    /// No earlier than `start`.
    pub(super) end: SystemTime,
    pub(super) attributes: Attributes,
    pub(super) moments: Vec<Moment>,
    pub(super) failed: bool,
}

/// Kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// This program.
    Internal,
    /// A server.
    Client,
}

/// An event within a span.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) name: &'static str,
    pub(super) at: SystemTime,
    pub(super) attributes: Attributes,
}

impl Span {
    /// Creates a span from `start` until now.
    pub(super) fn ended(id: u64, place: Place, who: Kind, name: String, start: SystemTime) -> Self {
        // The clock may have been set back.
        let end = SystemTime::now().max(start);
        Self { place, id, kind: who, name, start, end, attributes: Vec::new(), moments: Vec::new(), failed: false }
    }

    /// Adds an attribute.
    pub(super) fn say(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        self.attributes.push((name, value.into()));
    }

    /// Marks the span as failed with an error type.
    pub(super) fn fail(&mut self, kind: &str) {
        self.failed = true;
        self.say("error.type", kind);
    }
}

/// Creates a random span identifier.
pub(super) fn new_id() -> u64 {
    rand::random_range(1..=u64::MAX)
}
