//! The shapes of JSON values, and the words for them in messages.

use serde_json::{Map, Value};

/// The kind of a value, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The members of the object that a field has to hold.
pub(super) fn members(field: &str, value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(members) => Ok(members),
        other => Err(format!("{field} must be an object, found {}", kind(&other))),
    }
}
