//! Declarations about single arguments: rules over their values, and resources that they name.

use serde::Serialize;
use serde_json::{Map, Value};

use super::fact::FactValue;
use super::word::words;

/// Rule over values that a schema cannot express. The rule holds if one of its arguments is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ValueRule {
    /// Argument as a JSON pointer such as `/start`.
    pub field: String,
    /// Required comparison.
    pub is: Comparison,
    /// Right-hand operand: another argument (`{"field": "/end"}`) or a value.
    pub than: Operand,
    /// Error message for the model; by default the rule itself.
    pub message: Option<String>,
}

/// Right-hand operand of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "lowercase")]
pub enum Operand {
    /// Another argument as a JSON pointer.
    Field(String),
    /// Constant.
    #[serde(untagged)]
    Value(Value),
}

words! {
    /// Comparison of two values: numbers by size, strings by their text.
    Comparison {
        /// Equal.
        Equal = "==",
        /// Not equal.
        NotEqual = "!=",
        /// Less.
        Less = "<",
        /// Less or equal.
        AtMost = "<=",
        /// Greater.
        More = ">",
        /// Greater or equal.
        AtLeast = ">=",
    }
    /// Use of a resource that an argument names.
    Use {
        /// Reading of a file or folder.
        Read = "read",
        /// Creation, change or deletion of a file or folder.
        Write = "write",
        /// Connection to a host, given by its name or by a URL.
        Connect = "connect",
    }
}

/// Argument that names a file or a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Resource {
    /// Argument as a JSON pointer such as `/path`; an array there names several resources.
    pub field: String,
    /// Use of the resource by the tool.
    pub r#use: Use,
}

impl FactValue for ValueRule {
    const EXPECTED: &'static str = "an object with `field`, `is` and `than`";
    const EXPECTED_ARRAY: &'static str = "an array of objects with `field` (a JSON pointer), `is` (`==`, `!=`, `<`, `<=`, `>` or `>=`) and `than` (a value, or an object with `field`)";

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

impl FactValue for Resource {
    const EXPECTED: &'static str = "an object with `field` and `use`";
    const EXPECTED_ARRAY: &'static str =
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
