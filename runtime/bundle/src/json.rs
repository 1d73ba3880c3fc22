//! JSON documents of bundles: bounded, unambiguous reading and canonical writing.
//!
//! A document is checked as a whole before it is deserialized. Object keys that differ in ASCII case alone are refused, since
//! other OCI implementations match keys without regard to case and would read another value.

use serde::Serialize;
use serde::de::DeserializeOwned;
use toolcrib_foundation::json::{Fault, Limits, check_within};

/// Maximum nesting depth of arrays and objects in a document.
pub const MAX_JSON_DEPTH: usize = 32;
/// Maximum number of values in a document, counting arrays, objects and their elements.
pub const MAX_JSON_VALUES: usize = 200_000;

const LIMITS: Limits = Limits { depth: MAX_JSON_DEPTH, values: MAX_JSON_VALUES };

/// Reason why a JSON document is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Arrays and objects are nested too deeply.
    #[error("it is nested deeper than {MAX_JSON_DEPTH} levels")]
    TooDeep,
    /// The document has too many values.
    #[error("it has more than {MAX_JSON_VALUES} values")]
    TooManyValues,
    /// An object has two keys that are equal without regard to ASCII case.
    #[error("key {key:?} occurs twice in one object")]
    DuplicateKey {
        /// The first 80 characters of the second key.
        key: String,
    },
    /// The document is no JSON, or has another structure.
    #[error("{message} at line {line} column {column}")]
    Invalid {
        /// Reason, with at most 200 characters of the document.
        message: String,
        /// Line of the position, from 1.
        line: usize,
        /// Column of the position in bytes, from 1.
        column: usize,
    },
}

impl From<serde_json::Error> for JsonError {
    /// Shortens the message, which quotes values of the document in full.
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let full = error.to_string();
        let message = full.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&full);
        Self::Invalid { message: message.chars().take(200).collect(), line, column }
    }
}

/// Reads `bytes` as one document of type `T`. Unknown fields are ignored.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonError> {
    check(bytes)?;
    Ok(serde_json::from_slice(bytes)?)
}

/// Writes `value` without white space, with the keys of every object sorted by their bytes.
pub(crate) fn write<T: Serialize>(value: &T) -> Result<Vec<u8>, JsonError> {
    let mut value = serde_json::to_value(value)?;
    value.sort_all_objects();
    Ok(serde_json::to_vec(&value)?)
}

/// Checks the depth and the number of values and keys in a document, without building it.
fn check(bytes: &[u8]) -> Result<(), JsonError> {
    check_within(bytes, LIMITS).map_err(|(fault, error)| match fault {
        Some(Fault::TooDeep(_)) => JsonError::TooDeep,
        Some(Fault::TooManyValues(_)) => JsonError::TooManyValues,
        Some(Fault::DuplicateKey(key)) => JsonError::DuplicateKey { key },
        _ => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read_value(text: &str) -> Result<Value, JsonError> {
        read(text.as_bytes())
    }

    #[test]
    fn keys_are_sorted_at_every_level() {
        let bytes = write(&json!({"b": [{"d": 1, "c": 2}], "a": "x"})).unwrap();
        assert_eq!(bytes, br#"{"a":"x","b":[{"c":2,"d":1}]}"#);
    }

    #[test]
    fn a_document_at_the_depth_limit_is_read_and_one_level_more_is_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read_value(&nested(MAX_JSON_DEPTH)).is_ok());
        assert!(matches!(read_value(&nested(MAX_JSON_DEPTH + 1)), Err(JsonError::TooDeep)));
        let objects = format!("{}1{}", r#"{"a":"#.repeat(MAX_JSON_DEPTH + 1), "}".repeat(MAX_JSON_DEPTH + 1));
        assert!(matches!(read_value(&objects), Err(JsonError::TooDeep)));
    }

    #[test]
    fn a_depth_bomb_is_refused_without_recursion() {
        assert!(matches!(read_value(&"[".repeat(1 << 22)), Err(JsonError::TooDeep)));
        assert!(matches!(read_value(&r#"{"a":"#.repeat(1 << 20)), Err(JsonError::TooDeep)));
    }

    #[test]
    fn too_many_values_are_refused() {
        let list = |count: usize| format!("[{}]", vec!["0"; count].join(","));
        assert!(read_value(&list(MAX_JSON_VALUES - 1)).is_ok());
        assert!(matches!(read_value(&list(MAX_JSON_VALUES)), Err(JsonError::TooManyValues)));
    }

    #[test]
    fn a_key_that_occurs_twice_is_refused_without_regard_to_case() {
        for text in [r#"{"size":1,"size":2}"#, r#"{"size":1,"Size":2}"#, r#"{"a":[{"x":1,"\u0078":2}]}"#] {
            assert!(matches!(read_value(text), Err(JsonError::DuplicateKey { .. })), "{text}");
        }
    }

    #[test]
    fn text_after_or_instead_of_a_document_is_refused() {
        for text in ["", " ", "{} {}", "{}x", "{\"a\":1,}", "\u{feff}{}", "NaN", "{\"a\":\"\n\"}"] {
            assert!(matches!(read_value(text), Err(JsonError::Invalid { .. })), "{text:?}");
        }
        assert!(read::<Value>(b"\"\xff\"").is_err());
    }

    #[test]
    fn a_message_quotes_a_bounded_part_of_the_document() {
        let error = read::<u32>(format!("\n\"{}\"", "x".repeat(1 << 20)).as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with("invalid type: string \"xx") && error.ends_with(" at line 2 column 1048578"),
            "{error}"
        );
        assert!(error.len() < 300);
    }
}
