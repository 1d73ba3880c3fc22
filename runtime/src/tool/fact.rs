//! Fact about a tool with its basis. A fact that is neither declared nor inferred has its safe default.

use serde::Serialize;
use serde_json::Value;

/// Basis of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Declared by the source of the tool.
    Declared,
    /// Inferred from the bytes of the component or from the sandbox's rules.
    Inferred,
    /// Neither declared nor inferred: the safe default.
    Default,
}

/// Value with its basis.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fact<T> {
    /// Value of the fact.
    pub value: T,
    /// Basis of the value.
    pub basis: Basis,
}

impl<T> Fact<T> {
    /// Creates a fact with a default value.
    pub fn default(value: T) -> Self {
        Self { value, basis: Basis::Default }
    }

    /// Creates a fact that the source of the tool declares.
    pub fn declared(value: T) -> Self {
        Self { value, basis: Basis::Declared }
    }

    /// Replaces the value with an inferred one, unless the value is declared.
    pub fn infer(&mut self, value: T) {
        if self.basis != Basis::Declared {
            *self = Self { value, basis: Basis::Inferred };
        }
    }

    /// Replaces the value with an inferred one, even if the value is declared.
    pub fn prove(&mut self, value: T) {
        *self = Self { value, basis: Basis::Inferred };
    }
}

/// Row in the table of facts, for display and export.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Partition of the fact.
    pub partition: &'static str,
    /// Name of the fact in the Agent Tool interface.
    pub field: &'static str,
    /// Value as JSON.
    pub value: Value,
    /// Basis of the value.
    pub basis: Basis,
}

/// Type of a fact's value, with its JSON form in a source.
pub(crate) trait FactValue: Sized {
    /// Description of the expected JSON, for messages.
    const EXPECTED: &'static str;
    /// Description for an array of such values, for messages.
    const EXPECTED_ARRAY: &'static str = "an array";

    /// Reads a value from JSON; `None` if the JSON has another type.
    fn read(value: Value) -> Option<Self>;
}

impl FactValue for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(value),
            // Agent Tool records may contain the word. Any other text is an expression that only the runtime of the
            // record could evaluate.
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl FactValue for String {
    const EXPECTED: &'static str = "a string";
    const EXPECTED_ARRAY: &'static str = "an array of strings";

    fn read(value: Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl FactValue for usize {
    const EXPECTED: &'static str = "a positive whole number";

    fn read(value: Value) -> Option<Self> {
        value.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0)
    }
}

impl FactValue for Value {
    const EXPECTED: &'static str = "an object";

    fn read(value: Value) -> Option<Self> {
        value.is_object().then_some(value)
    }
}

impl<T: FactValue> FactValue for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(value: Value) -> Option<Self> {
        T::read(value).map(Some)
    }
}

impl<T: FactValue> FactValue for Vec<T> {
    const EXPECTED: &'static str = T::EXPECTED_ARRAY;

    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Array(items) => items.into_iter().map(T::read).collect(),
            _ => None,
        }
    }
}
