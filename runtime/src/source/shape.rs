//! Types of JSON values, and their names in messages.

use serde_json::{Map, Value};

/// Returns the type of a value with an article, for messages.
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

/// Returns the members of the object in a field.
///
/// # Errors
///
/// Fails if the value is not an object.
pub(super) fn members(field: &str, value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(members) => Ok(members),
        other => Err(format!("{field} must be an object, found {}", kind(&other))),
    }
}
