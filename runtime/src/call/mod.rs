//! A call and its result: what every door turns its own protocol into, and back.

mod decision;
mod flag;
mod receipt;

use std::borrow::Cow;

use crate::error::{Error, ToolError};

pub use decision::{Behavior, Decision, Reason};
pub use flag::Flag;
pub(crate) use receipt::pasted;
pub use receipt::{Denial, Exchange, Execution, HookNote, Mutation, NetworkUse, Persisted, Receipt, Written};

/// A call of a tool, as a model or a person made it. Nothing in it is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The caller's identifier, returned with the result.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as JSON text; empty means `{}`.
    pub arguments: String,
}

impl ToolCall {
    /// A call of `name` with JSON text as arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
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
    /// What the model gets: one line of JSON, an object with `error` where the call failed.
    pub fn content(&self) -> Cow<'_, str> {
        match &self.outcome {
            Ok(content) => Cow::Borrowed(content),
            Err(error) => Cow::Owned(error.content()),
        }
    }

    /// The answer to a call that goes on: what it comes to is signed for when it ends.
    pub(crate) fn acknowledged(call_id: String, name: String, told: String) -> Self {
        let mut receipt = Receipt::begun(call_id.clone(), String::new(), name.clone());
        receipt.outcome = crate::error::Outcome::Ok;
        let log = String::new();
        Self { call_id, name, outcome: Ok(told), display: None, transcript: None, log, fault: None, receipt }
    }

    /// The answer to a call that was given up while it went on; what it came to is signed for by itself.
    pub(crate) fn cancelled(call_id: String, name: String, why: ToolError) -> Self {
        let receipt = Receipt::begun(call_id.clone(), String::new(), name.clone());
        let log = String::new();
        Self { call_id, name, outcome: Err(why), display: None, transcript: None, log, fault: None, receipt }
    }

    /// Whether the call failed.
    pub fn is_error(&self) -> bool {
        self.outcome.is_err()
    }
}
