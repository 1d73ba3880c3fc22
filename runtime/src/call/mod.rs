//! A call and its result. Every door converts its own protocol into a call, and the result back.

mod availability;
mod decision;
mod flag;
mod hook_note;
mod part;
mod receipt;
mod shell;
mod trace;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::error::{Error, ToolError};
use crate::flow::Label;

pub use availability::Availability;
pub use decision::{Behavior, Decision, Reason};
pub use flag::Flag;
pub use hook_note::{HookAction, HookNote};
pub use part::{Form, Link, Media, Part};
pub use receipt::{
    Denial, Exchange, HeldChanges, HeldEnd, Mutation, NetworkUse, Persisted, ProgramRun, Receipt, Written,
};
pub use trace::TraceContext;

pub(crate) use shell::pasted;
pub(crate) use toolcrib_foundation::text::clipped;

/// Call of a tool by a model or a person. Nothing in it is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The caller's identifier of the call, returned with the result.
    pub id: String,
    /// Name of the tool; empty for a call without a name.
    pub name: String,
    /// Arguments as JSON text (empty text means `{}`), or the text of a text payload.
    pub arguments: String,
    /// Kind of the payload.
    pub payload: Payload,
    /// The caller's name for the format of a text.
    pub format: Option<String>,
    /// The caller's metadata about the payload.
    pub metadata: Map<String, Value>,
    /// Keys that the caller adds to the context of the call. It cannot override the host's own.
    pub context: Map<String, Value>,
    /// Name of the calling program, for the record.
    pub caller: Option<String>,
    /// Position of the call in the calling program's trace. Calls that the tool makes have the same.
    pub trace: Option<TraceContext>,
    /// Label of the arguments, if the caller states one. It adds to what the host observes.
    pub label: Option<Label>,
    /// Reason why the arguments could not be read; such a call ends with bad arguments.
    pub unreadable: Option<String>,
}

/// Kind of a call's payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Payload {
    /// One JSON object.
    #[default]
    Object,
    /// Text in a format that the tool defines.
    Text,
}

impl ToolCall {
    /// Creates a call of `name` with JSON text as arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            payload: Payload::Object,
            format: None,
            metadata: Map::new(),
            context: Map::new(),
            caller: None,
            trace: None,
            label: None,
            unreadable: None,
        }
    }

    /// Creates a call of `name` with text, for a tool that takes text.
    pub fn text(id: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { payload: Payload::Text, ..Self::new(id, name, text) }
    }
}

/// Result of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolResult {
    /// The caller's identifier of the call.
    pub call_id: String,
    /// Name that was called.
    pub name: String,
    /// One line of JSON for the model, or the error for the model.
    pub outcome: Result<String, ToolError>,
    /// Meaning of the line.
    pub form: Form,
    /// Media of the answer, for multimodal models; the line names each one.
    pub media: Vec<Media>,
    /// Parts of the answer for people; never for the model.
    pub shown: Vec<Part>,
    /// The call and its outcome in one line for people, if the tool defines one; never for the model.
    pub display: Option<String>,
    /// Search text of the call for transcripts, if the tool defines one; never for the model.
    pub transcript: Option<String>,
    /// Standard error of the tool, with invalid UTF-8 replaced; for people, never for the model.
    pub log: String,
    /// Fault of the host behind the error; for the operator, never for the model.
    pub fault: Option<Error>,
    /// Figures, grants and denials of the call.
    pub receipt: Receipt,
}

impl ToolResult {
    /// Returns the text for the model: one JSON line, an object with `error` for a failed call, or the text of a text
    /// answer.
    pub fn content(&self) -> Cow<'_, str> {
        match &self.outcome {
            Ok(line) if self.form == Form::Text => match serde_json::from_str(line) {
                Ok(text) => Cow::Owned(text),
                Err(_) => Cow::Borrowed(line),
            },
            Ok(line) => Cow::Borrowed(line),
            Err(error) => Cow::Owned(error.content()),
        }
    }

    /// Returns the answer as one JSON line, even if it is text.
    pub fn line(&self) -> Cow<'_, str> {
        match &self.outcome {
            Ok(line) => Cow::Borrowed(line),
            Err(error) => Cow::Owned(error.content()),
        }
    }

    /// Creates a result with nothing but an outcome.
    pub(crate) fn bare(call_id: String, name: String, outcome: Result<String, ToolError>, receipt: Receipt) -> Self {
        Self {
            call_id,
            name,
            outcome,
            form: Form::Json,
            media: Vec::new(),
            shown: Vec::new(),
            display: None,
            transcript: None,
            log: String::new(),
            fault: None,
            receipt,
        }
    }

    /// Creates the acknowledgement of a call that continues in the background; its record is written when it ends.
    pub(crate) fn acknowledged(call_id: String, name: String, line: String) -> Self {
        let mut receipt = Receipt::begun(call_id.clone(), String::new(), name.clone());
        receipt.outcome = crate::error::Outcome::Ok;
        Self::bare(call_id, name, Ok(line), receipt)
    }

    /// Creates the result of a call that was cancelled in the background; its record is written separately.
    pub(crate) fn cancelled(call_id: String, name: String, why: ToolError) -> Self {
        let mut receipt = Receipt::begun(call_id.clone(), String::new(), name.clone());
        receipt.outcome = why.outcome;
        Self::bare(call_id, name, Err(why), receipt)
    }

    /// Returns `true` if the call failed.
    pub fn is_error(&self) -> bool {
        self.outcome.is_err()
    }
}
