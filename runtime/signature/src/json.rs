//! Strict and bounded reading of JSON.
//!
//! Refuses documents over [`MAX_JSON_BYTES`], nesting over [`MAX_JSON_DEPTH`], repeated keys, trailing data and every
//! field that the reader did not ask for. The module knows nothing of signatures.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use toolcrib_foundation::json::{Limits, parse_within};

pub(crate) use toolcrib_foundation::json::kind;

use crate::error::{Error, excerpt};
use crate::limits::{MAX_JSON_BYTES, MAX_JSON_DEPTH, MAX_TEXT_BYTES};

/// A value takes a byte at least.
const LIMITS: Limits = Limits { depth: MAX_JSON_DEPTH, values: MAX_JSON_BYTES };

/// Reads one JSON object and nothing after it.
pub(crate) fn object(what: &'static str, bytes: &[u8]) -> Result<Object, Error> {
    Error::limit(format!("{what}, bytes"), bytes.len(), MAX_JSON_BYTES)?;
    let value = parse_within(bytes, LIMITS).map_err(|source| Error::Json { what, source })?;
    Object::new(what, String::new(), value)
}

/// Fields of a JSON object that are taken out one by one.
pub(crate) struct Object {
    what: &'static str,
    path: String,
    fields: Map<String, Value>,
}

impl Object {
    pub(crate) fn new(what: &'static str, path: String, value: Value) -> Result<Self, Error> {
        match value {
            Value::Object(fields) => Ok(Self { what, path, fields }),
            other => Err(Error::Field { what, field: path, expected: "an object".into(), found: kind(&other).into() }),
        }
    }

    /// Describes an unexpected value of the field `key`.
    pub(crate) fn unexpected(&self, key: &str, expected: impl Into<String>, found: impl Into<String>) -> Error {
        Error::Field { what: self.what, field: self.path_of(key), expected: expected.into(), found: found.into() }
    }

    fn path_of(&self, key: &str) -> String {
        let key = excerpt(key);
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        self.fields.shift_remove(key)
    }

    fn required<T>(&self, key: &str, value: Option<T>, expected: &str) -> Result<T, Error> {
        value.ok_or_else(|| self.unexpected(key, expected, "no such field"))
    }

    /// Takes an optional text of at most `max` bytes.
    pub(crate) fn optional_text(&mut self, key: &str, max: usize) -> Result<Option<String>, Error> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => {
                Error::limit(format!("{}: `{}`, bytes", self.what, self.path_of(key)), text.len(), max)?;
                Ok(Some(text))
            }
            Some(other) => Err(self.unexpected(key, "a string", kind(&other))),
        }
    }

    /// Takes a text of at most `max` bytes.
    pub(crate) fn text(&mut self, key: &str, max: usize) -> Result<String, Error> {
        let text = self.optional_text(key, max)?;
        self.required(key, text, "a string")
    }

    /// Takes a text that must equal `expected`.
    pub(crate) fn constant(&mut self, key: &str, expected: &str) -> Result<(), Error> {
        let text = self.text(key, MAX_TEXT_BYTES)?;
        if text == expected {
            return Ok(());
        }
        Err(self.unexpected(key, format!("`{expected}`"), format!("`{}`", excerpt(&text))))
    }

    /// Takes canonical padded base64 of at most `max` decoded bytes.
    pub(crate) fn bytes(&mut self, key: &str, max: usize) -> Result<Vec<u8>, Error> {
        let text = self.text(key, MAX_JSON_BYTES)?;
        let bytes = STANDARD.decode(&text).map_err(|error| self.unexpected(key, "padded base64", error.to_string()))?;
        Error::limit(format!("{}: `{}`, bytes", self.what, self.path_of(key)), bytes.len(), max)?;
        Ok(bytes)
    }

    /// Takes an optional object.
    pub(crate) fn optional_object(&mut self, key: &str) -> Result<Option<Self>, Error> {
        let path = self.path_of(key);
        self.take(key).map(|value| Self::new(self.what, path, value)).transpose()
    }

    /// Takes an object.
    pub(crate) fn object(&mut self, key: &str) -> Result<Self, Error> {
        let object = self.optional_object(key)?;
        self.required(key, object, "an object")
    }

    /// Takes an array of at most `max` values; a missing array is empty.
    pub(crate) fn array(&mut self, key: &str, max: usize) -> Result<Vec<Value>, Error> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => {
                Error::limit(format!("{}: `{}`, entries", self.what, self.path_of(key)), values.len(), max)?;
                Ok(values)
            }
            Some(other) => Err(self.unexpected(key, "an array", kind(&other))),
        }
    }

    /// Takes an array of at most `max` objects; a missing array is empty.
    pub(crate) fn objects(&mut self, key: &str, max: usize) -> Result<Vec<Self>, Error> {
        let path = self.path_of(key);
        let values = self.array(key, max)?;
        values.into_iter().enumerate().map(|(i, value)| Self::new(self.what, format!("{path}[{i}]"), value)).collect()
    }

    /// Takes every remaining field.
    pub(crate) fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.fields)
    }

    /// Refuses the object when it has a field that nobody took.
    pub(crate) fn finish(self) -> Result<(), Error> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(key) => Err(self.unexpected(key, "no such field", "an unknown field")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match object("test", text.as_bytes()) {
            Err(Error::Json { source, .. }) => source.to_string(),
            other => panic!("expected a JSON error, found {:?}", other.map(|_| ())),
        }
    }

    #[test]
    fn repeated_keys_are_refused_at_any_depth() {
        assert!(refused(r#"{"a":1,"a":1}"#).contains("key \"a\" occurs twice"));
        assert!(refused(r#"{"a":[{"b":1,"\u0062":2}]}"#).contains("key \"b\" occurs twice"));
    }

    #[test]
    fn trailing_data_is_refused() {
        assert!(refused("{} {}").contains("trailing"));
        assert!(refused("{}\0").contains("trailing"));
    }

    #[test]
    fn nesting_beyond_the_limit_is_refused() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(object("test", nested(MAX_JSON_DEPTH - 1).as_bytes()).is_ok());
        assert!(refused(&nested(MAX_JSON_DEPTH)).contains("nested deeper"));
        assert!(refused(&nested(100_000)).contains("nested deeper"));
    }

    #[test]
    fn a_document_beyond_the_limit_is_refused_before_it_is_parsed() {
        let text = format!("{{{}", " ".repeat(MAX_JSON_BYTES));
        assert!(
            matches!(object("test", text.as_bytes()), Err(Error::Limit { max, .. }) if max == MAX_JSON_BYTES as u64)
        );
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_named() {
        let mut fields = object("test", br#"{"a":{"b":1},"c":"x"}"#).unwrap();
        let inner = fields.object("a").unwrap();
        assert_eq!(
            inner.finish().unwrap_err().to_string(),
            "test: field `a.b`: expected no such field, found an unknown field"
        );
        assert_eq!(
            fields.object("c").err().unwrap().to_string(),
            "test: field `c`: expected an object, found a string"
        );
        assert_eq!(
            fields.text("d", 1).unwrap_err().to_string(),
            "test: field `d`: expected a string, found no such field"
        );
    }

    #[test]
    fn base64_must_be_padded_and_canonical() {
        for text in ["YQ", "YR==", "YQ==\\n", "_w=="] {
            let document = format!(r#"{{"a":"{text}"}}"#);
            assert!(object("test", document.as_bytes()).unwrap().bytes("a", 10).is_err(), "{text}");
        }
        assert_eq!(object("test", br#"{"a":"YQ=="}"#).unwrap().bytes("a", 1).unwrap(), b"a");
        assert!(matches!(object("test", br#"{"a":"YWE="}"#).unwrap().bytes("a", 1), Err(Error::Limit { .. })));
    }
}
