//! Input for tools that take text: as free text where the model API supports it, else in one field of an object.

use serde::Serialize;
use serde_json::{Value, json};

use super::word::words;

/// Description of the text that a tool takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextInput {
    /// Grammar of the text, if it has one.
    pub grammar: Option<Grammar>,
    /// Field that carries the text for APIs that only support objects.
    pub field: String,
    /// Description of the field for the model.
    pub description: Option<String>,
}

/// Grammar that a model server can enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Grammar {
    /// Language of the grammar.
    pub syntax: Syntax,
    /// Text of the grammar.
    pub definition: String,
}

words! {
    /// Language of a grammar.
    Syntax {
        /// Context-free grammar in the format of the Lark parser generator.
        Lark = "lark",
        /// Regular expression.
        Regex = "regex",
    }
}

impl Grammar {
    /// Creates a grammar.
    pub fn new(syntax: Syntax, definition: impl Into<String>) -> Self {
        Self { syntax, definition: definition.into() }
    }
}

impl TextInput {
    /// Default name of the field.
    pub const DEFAULT_FIELD: &'static str = "input";

    /// Creates the description of a text without a grammar, carried in `field`.
    pub fn new(field: impl Into<String>) -> Self {
        Self { grammar: None, field: field.into(), description: None }
    }

    /// Returns `true` if a schema takes an object with the text alone.
    pub(crate) fn is_carried_by(&self, schema: &Value) -> bool {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &Value| name.as_str() == Some(self.field.as_str());
        schema["properties"][&self.field]["type"] == "string"
            && required.is_some_and(|names| !names.is_empty() && names.iter().all(is_required))
    }

    /// Returns `true` if a schema has the text and no other field.
    pub(crate) fn is_all_of(&self, schema: &Value) -> bool {
        schema["properties"].as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key(&self.field))
    }

    /// Returns the schema of the object that carries the text.
    pub fn schema(&self) -> Value {
        let mut field = json!({ "type": "string" });
        if let Some(description) = &self.description {
            field["description"] = json!(description);
        }
        let name = &self.field;
        json!({
            "type": "object",
            "properties": { name: field },
            "required": [name],
            "additionalProperties": false,
        })
    }
}
