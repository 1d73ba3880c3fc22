//! A fact about a tool, and where it is from. What nobody declared and nothing proves stands at its safe default.

use serde::Serialize;
use serde_json::Value;

/// Where a fact is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The tool's source says so.
    Declared,
    /// It follows from the component's bytes or from what the sandbox enforces.
    Inferred,
    /// Nobody says anything: the safe value.
    Default,
}

/// A value with its basis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact<T> {
    /// What holds.
    pub value: T,
    /// Why it holds.
    pub basis: Basis,
}

impl<T> Fact<T> {
    /// A fact that nobody stated.
    pub fn default(value: T) -> Self {
        Self { value, basis: Basis::Default }
    }

    /// Takes what was proven, unless the source says something itself.
    pub fn infer(&mut self, value: T) {
        if self.basis != Basis::Declared {
            *self = Self { value, basis: Basis::Inferred };
        }
    }

    /// Takes what was proven, whatever the source says.
    pub fn prove(&mut self, value: T) {
        *self = Self { value, basis: Basis::Inferred };
    }
}

/// A fact as it is shown and exported.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The partition it belongs to.
    pub partition: &'static str,
    /// Its name in the Agent Tool interface.
    pub field: &'static str,
    /// Its value as JSON.
    pub value: Value,
    /// Why it holds.
    pub basis: Basis,
}

/// A kind of value that a source can state in JSON.
pub(crate) trait Stated: Sized {
    /// What is wanted, for messages.
    const WANTED: &'static str;
    /// The same of an array of them.
    const WANTED_SEVERAL: &'static str = "an array";

    /// The value that the JSON is, if it is one.
    fn read(value: Value) -> Option<Self>;
}

impl Stated for bool {
    const WANTED: &'static str = "true or false";

    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(value),
            // Records may hold the word; another text is an expression that only its own runtime could evaluate.
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl Stated for String {
    const WANTED: &'static str = "a string";
    const WANTED_SEVERAL: &'static str = "an array of strings";

    fn read(value: Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl Stated for usize {
    const WANTED: &'static str = "a positive whole number";

    fn read(value: Value) -> Option<Self> {
        value.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0)
    }
}

impl Stated for Value {
    const WANTED: &'static str = "an object";

    fn read(value: Value) -> Option<Self> {
        value.is_object().then_some(value)
    }
}

impl<T: Stated> Stated for Option<T> {
    const WANTED: &'static str = T::WANTED;

    fn read(value: Value) -> Option<Self> {
        T::read(value).map(Some)
    }
}

impl<T: Stated> Stated for Vec<T> {
    const WANTED: &'static str = T::WANTED_SEVERAL;

    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Array(items) => items.into_iter().map(T::read).collect(),
            _ => None,
        }
    }
}
