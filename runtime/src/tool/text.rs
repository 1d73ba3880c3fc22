//! Tools that take text: in a format of their own, where the model's API has a word for it, else in the one field of an
//! object.

use serde::Serialize;
use serde_json::{Value, json};

use super::word::words;

/// How a tool takes text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextInput {
    /// The grammar that the text follows, where it follows one.
    pub grammar: Option<Grammar>,
    /// The one field of the object that carries the text where an API has objects alone.
    pub field: String,
    /// What a model is told of that field.
    pub description: Option<String>,
}

/// A grammar that a server can hold a model to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grammar {
    /// Its language.
    pub syntax: Syntax,
    /// The grammar.
    pub definition: String,
}

words! {
    /// The language of a grammar.
    Syntax {
        /// A context-free grammar in the form of the parser generator Lark.
        Lark = "lark",
        /// A regular expression.
        Regex = "regex",
    }
}

impl TextInput {
    /// The name of the field where none is chosen.
    pub const FIELD: &'static str = "input";

    /// The schema of the object that carries the text.
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
