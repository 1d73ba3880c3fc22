//! What a record says about single arguments: rules over their values, and which of them name files or hosts.

use serde::Serialize;
use serde_json::{Map, Value};

use super::fact::Stated;
use super::word::words;

/// A rule over values that a schema cannot express. It holds where an argument that it names is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueRule {
    /// The argument, as a JSON pointer such as `/start`.
    pub field: String,
    /// How it has to compare.
    pub is: Comparison,
    /// With what: another argument (`{"field": "/end"}`) or a value.
    pub than: Operand,
    /// What the model is told of a breach; absent, the rule itself.
    pub message: Option<String>,
}

/// What a value is compared with.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operand {
    /// Another argument, as a JSON pointer.
    Field(String),
    /// A value.
    #[serde(untagged)]
    Value(Value),
}

words! {
    /// How two values compare: numbers by size, strings by their text.
    Comparison {
        /// The same value.
        Equal = "==",
        /// Not the same value.
        NotEqual = "!=",
        /// Smaller.
        Less = "<",
        /// Smaller or the same.
        AtMost = "<=",
        /// Larger.
        More = ">",
        /// Larger or the same.
        AtLeast = ">=",
    }
    /// What a tool would do with what an argument names.
    Use {
        /// Read a file or folder.
        Read = "read",
        /// Create, change or delete a file or folder.
        Write = "write",
        /// Connect to a host, named by itself or by a URL.
        Connect = "connect",
    }
}

/// An argument that names a file or a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// The argument, as a JSON pointer such as `/path`; an array there names several.
    pub field: String,
    /// What the tool would do with it.
    pub r#use: Use,
}

impl Stated for ValueRule {
    const WANTED: &'static str = "an object with `field`, `is` and `than`";
    const WANTED_SEVERAL: &'static str = "an array of objects with `field` (a JSON pointer), `is` (`==`, `!=`, `<`, `<=`, `>` or `>=`) and `than` (a value, or an object with `field`)";

    fn read(value: Value) -> Option<Self> {
        let mut fields = object(value)?;
        let rule = Self {
            field: pointer(fields.remove("field")?)?,
            is: Comparison::read(fields.remove("is")?)?,
            than: match fields.remove("than")? {
                Value::Object(mut other) => Operand::Field(pointer(other.remove("field")?)?),
                value @ (Value::Number(_) | Value::String(_) | Value::Bool(_) | Value::Null) => Operand::Value(value),
                Value::Array(_) => return None,
            },
            message: match fields.remove("message") {
                Some(message) => Some(String::read(message)?),
                None => None,
            },
        };
        fields.is_empty().then_some(rule)
    }
}

impl Stated for Resource {
    const WANTED: &'static str = "an object with `field` and `use`";
    const WANTED_SEVERAL: &'static str =
        "an array of objects with `field` (a JSON pointer) and `use` (`read`, `write` or `connect`)";

    fn read(value: Value) -> Option<Self> {
        let mut fields = object(value)?;
        let resource = Self { field: pointer(fields.remove("field")?)?, r#use: Use::read(fields.remove("use")?)? };
        fields.is_empty().then_some(resource)
    }
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn pointer(value: Value) -> Option<String> {
    String::read(value).filter(|pointer| pointer.starts_with('/'))
}
