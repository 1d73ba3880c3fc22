//! Answers of the host to calls of tools, in the form of the interpreter.

use monty_types::{ExcType, ExtFunctionResult, MontyException, MontyObject};

use crate::json;

/// Reason why a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The tool failed, or the arguments are not valid.
    Failed,
    /// The call was refused.
    Refused,
    /// The call took too long.
    Timeout,
}

/// Outcome of a call: JSON text, or the reason and message of its failure.
pub(crate) type Outcome = Result<String, (Reason, String)>;

/// Answer of an outcome. A pending call gets a list of a code and a value or message, which `awaited::PRELUDE` reads; a plain
/// call gets its value, or raises.
///
/// # Errors
/// The reason why the text of a result cannot be used.
pub(crate) fn new(outcome: Outcome, pending: bool) -> Result<ExtFunctionResult, String> {
    Ok(match outcome {
        Ok(text) if pending => coded(0, json::read(&text)?),
        Ok(text) => ExtFunctionResult::Return(json::read(&text)?),
        Err((reason, message)) if pending => coded(code(reason), MontyObject::String(message)),
        Err((reason, message)) => ExtFunctionResult::Error(tool_error(reason, message)),
    })
}

/// Code of a failure in `awaited::PRELUDE`.
fn code(reason: Reason) -> i64 {
    match reason {
        Reason::Failed => 1,
        Reason::Refused => 2,
        Reason::Timeout => 3,
    }
}

fn coded(code: i64, value: MontyObject) -> ExtFunctionResult {
    ExtFunctionResult::Return(MontyObject::List(vec![MontyObject::Int(code), value]))
}

fn tool_error(reason: Reason, message: String) -> MontyException {
    let kind = match reason {
        Reason::Failed => ExcType::OSError,
        Reason::Refused => ExcType::PermissionError,
        Reason::Timeout => ExcType::TimeoutError,
    };
    MontyException::new(kind, Some(message))
}
