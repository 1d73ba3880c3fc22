//! A call and its result: what every door turns its own protocol into, and back.

use std::borrow::Cow;

use serde::Serialize;

use crate::error::{Error, Outcome, ToolError};

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

    /// Whether the call failed.
    pub fn is_error(&self) -> bool {
        self.outcome.is_err()
    }
}

/// What a call used, was granted and was denied. The same figures go to the caller and to the audit log.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The identifier of the call.
    pub call_id: String,
    /// The name that was called.
    pub tool: String,
    /// SHA-256 of the program, as `sha256:HEX`, where one was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How the call ended.
    pub outcome: Outcome,
    /// The program's exit code, where it ran to an end.
    pub exit: Option<i32>,
    /// Wall-clock milliseconds, from the door's call to the end.
    pub ms: f64,
    /// Milliseconds of processor time that the guest and its host calls used on the calling thread.
    pub cpu_ms: f64,
    /// Units of fuel used, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// The most bytes that memories and tables held together.
    pub peak_memory_bytes: u64,
    /// Bytes of arguments given to the guest.
    pub stdin_bytes: u64,
    /// Bytes that the guest wrote to standard output, up to the cap.
    pub stdout_bytes: u64,
    /// Bytes that the guest wrote to standard error, up to the cap.
    pub stderr_bytes: u64,
    /// Whether output was cut at its cap.
    pub truncated: bool,
    /// Names of the environment variables passed on; never their values.
    pub env_keys: Vec<String>,
    /// What was granted, as `read:FOLDER` or `write:FOLDER`.
    pub granted: Vec<String>,
    /// What was asked for or tried and not granted.
    pub denied: Vec<Denial>,
}

/// Something that a tool asked for or tried and did not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    /// The capability, as `read:PATH`, `write:PATH` or `env:NAME`; a path is the guest's own.
    pub capability: String,
    /// The flag that would have allowed it, where one would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}
