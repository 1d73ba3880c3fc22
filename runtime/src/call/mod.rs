//! A call and its result: what every door turns its own protocol into, and back.

mod availability;
mod decision;
mod flag;
mod part;
mod receipt;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::error::{Error, ToolError};

pub use availability::Availability;
pub use decision::{Behavior, Decision, Reason};
pub use flag::Flag;
pub use part::{Form, Link, Media, Part};
pub(crate) use receipt::pasted;
pub use receipt::{Denial, Exchange, Execution, HookNote, Mutation, NetworkUse, Persisted, Receipt, Written};

/// A call of a tool, as a model or a person made it. Nothing in it is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The caller's identifier, returned with the result.
    pub id: String,
    /// The name of the tool; empty where the call has none.
    pub name: String,
    /// The arguments as JSON text, of which empty means `{}`; or the text itself.
    pub arguments: String,
    /// Which of the two.
    pub payload: Payload,
    /// The format of a text in the caller's word, where it has one.
    pub format: Option<String>,
    /// What the caller says about the payload.
    pub metadata: Map<String, Value>,
    /// What the caller adds to what surrounds the call. The host's own keys stay as they are.
    pub context: Map<String, Value>,
    /// The reason for which its arguments could not be read, if they could not: such a call ends as one with bad arguments.
    pub unreadable: Option<String>,
}

/// What a call carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Payload {
    /// One JSON object.
    #[default]
    Object,
    /// Text in a format of the tool's own.
    Text,
}

impl ToolCall {
    /// A call of `name` with JSON text as arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            payload: Payload::Object,
            format: None,
            metadata: Map::new(),
            context: Map::new(),
            unreadable: None,
        }
    }

    /// A call of `name` with text, for a tool that takes text.
    pub fn text(id: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { payload: Payload::Text, ..Self::new(id, name, text) }
    }
}

/// The end of a call.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The identifier of the call.
    pub call_id: String,
    /// The name that was called.
    pub name: String,
    /// One line of JSON for the model, or the error it may see.
    pub outcome: Result<String, ToolError>,
    /// How that line is meant.
    pub form: Form,
    /// The media of the answer, for models that see or hear; the line names each of them.
    pub media: Vec<Media>,
    /// What people are shown of the answer; never for the model.
    pub shown: Vec<Part>,
    /// The call and its end in one line for people, where the tool's record says how; never for the model.
    pub display: Option<String>,
    /// The words under which a transcript finds the call, where the tool's record says how; never for the model.
    pub transcript: Option<String>,
    /// What the tool wrote to standard error, invalid UTF-8 replaced; for people, never for the model.
    pub log: String,
    /// The fault of the host behind the error, where there is one; for the operator, never for the model.
    pub fault: Option<Error>,
    /// What the call used, was granted and was denied.
    pub receipt: Receipt,
}

impl ToolResult {
    /// What the model gets as text: one line of JSON, an object with `error` where the call failed; of an answer that is text
    /// the text itself.
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

    /// The same as one line of JSON, whatever it is.
    pub fn line(&self) -> Cow<'_, str> {
        match &self.outcome {
            Ok(line) => Cow::Borrowed(line),
            Err(error) => Cow::Owned(error.content()),
        }
    }

    /// A result that nothing but its outcome is known of.
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

    /// The answer to a call that goes on: what it comes to is signed for when it ends.
    pub(crate) fn acknowledged(call_id: String, name: String, told: String) -> Self {
        let mut receipt = Receipt::begun(call_id.clone(), String::new(), name.clone());
        receipt.outcome = crate::error::Outcome::Ok;
        Self::bare(call_id, name, Ok(told), receipt)
    }

    /// The answer to a call that was given up while it went on; what it came to is signed for by itself.
    pub(crate) fn cancelled(call_id: String, name: String, why: ToolError) -> Self {
        let receipt = Receipt::begun(call_id.clone(), String::new(), name.clone());
        Self::bare(call_id, name, Err(why), receipt)
    }

    /// Whether the call failed.
    pub fn is_error(&self) -> bool {
        self.outcome.is_err()
    }
}
