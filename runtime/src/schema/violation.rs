//! Messages about errors in a schema and about values that violate it.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::clock::with_step_limit;
use super::metered::MeteredJson;

/// Maximum number of violations in one message.
const MAX_VIOLATIONS: usize = 5;
/// Maximum length of one violation in a message.
const MAX_VIOLATION_LEN: usize = 300;
/// Maximum number of steps for finding all violations; beyond it only the first is reported.
pub(super) const MAX_VIOLATION_STEPS: u64 = 200_000;
/// Maximum number of reported errors per schema.
const MAX_SCHEMA_ERRORS: usize = 100;

/// Error in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaError {
    /// JSON pointer to the invalid part of the schema; empty for the whole schema.
    pub(crate) pointer: String,
    message: String,
}

impl SchemaError {
    pub(super) fn of(error: &ValidationError<'_>) -> Self {
        Self { pointer: error.instance_path().to_string(), message: message(error) }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => write!(f, "schema: {}", self.message),
            pointer => write!(f, "schema: at `{pointer}`: {}", self.message),
        }
    }
}

/// Returns the parts of a schema that its meta-schema does not allow, up to a limit.
pub(crate) fn schema_errors(schema: &Value) -> Vec<SchemaError> {
    let Ok(standard) = jsonschema::meta::validator_for(schema) else { return Vec::new() };
    standard.iter_errors(schema).take(MAX_SCHEMA_ERRORS).map(|error| SchemaError::of(&error)).collect()
}

/// Describes the violations of a value that is invalid.
pub(super) fn describe_violations(validator: &jsonschema::Validator<MeteredJson>, value: &Value) -> String {
    let all = || describe(validator.iter_errors(value));
    let first = |_| validator.validate(value).err().map(|error| describe([error].into_iter()) + "; there may be more");
    let violations = with_step_limit(MAX_VIOLATION_STEPS, all).map_or_else(first, Some);
    violations.unwrap_or_default()
}

fn describe<'e>(errors: impl Iterator<Item = ValidationError<'e>>) -> String {
    let mut violations = Vec::new();
    let mut suffix = "";
    for error in errors {
        if violations.len() == MAX_VIOLATIONS {
            suffix = "; and more";
            break;
        }
        let text = match error.kind() {
            ValidationErrorKind::FalseSchema => "only the host may set this field".to_owned(),
            _ => message(&error),
        };
        let pointer = error.instance_path().to_string();
        let text = if pointer.is_empty() { text } else { format!("{pointer}: {text}") };
        violations.push(match text.char_indices().nth(MAX_VIOLATION_LEN) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        });
    }
    format!("{}{suffix}", violations.join("; "))
}

/// Returns the message of an error, without the value if that makes it too long.
fn message(error: &ValidationError<'_>) -> String {
    let text = error.to_string();
    if text.len() > MAX_VIOLATION_LEN { error.masked().to_string() } else { text }
}
