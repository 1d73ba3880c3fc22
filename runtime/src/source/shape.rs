//! Types of JSON values, and their names in messages.

use serde_json::{Map, Value};

pub(super) use toolcrib_foundation::json::kind;

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
