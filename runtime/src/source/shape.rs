//! The shapes of JSON values, and the words for them in messages.

use serde_json::{Map, Value};

pub(super) use toolcrib_component::json::kind;

/// The members of the object that a field has to hold.
pub(super) fn members(field: &str, value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(members) => Ok(members),
        other => Err(format!("{field} must be an object, found {}", kind(&other))),
    }
}
