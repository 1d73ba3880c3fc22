//! Literal arguments against JSON Schemas: finds the part of an expression that can be no value of its schema. Only what the
//! source says is judged: an expression that is computed is never a mistake here.

use jiter::JsonValue;
use ruff_python_ast::{DictItem, Expr, Number, UnaryOp};
use ruff_text_size::{Ranged as _, TextRange};

use code_guest::tools::{member, text};

/// Mistake in a literal.
pub(crate) struct Mistake {
    /// Position.
    pub(crate) range: TextRange,
    /// Reason of the refusal, such as "must be an integer, not a string".
    pub(crate) message: String,
}

/// Value as the source states it.
enum Literal<'a> {
    Null,
    Bool(bool),
    Integer(Option<i64>),
    Float(f64),
    Text(String),
    Bytes,
    Set,
    Array(&'a [Expr]),
    Object(&'a [DictItem]),
}

impl Literal<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Null => "None",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::Bytes => "bytes",
            Self::Set => "a set",
            Self::Array(_) => "a list",
            Self::Object(_) => "a dict",
        }
    }

    fn is(&self, kind: &str) -> bool {
        match kind {
            "null" => matches!(self, Self::Null),
            "boolean" => matches!(self, Self::Bool(_)),
            "integer" => match self {
                Self::Integer(_) => true,
                Self::Float(value) => value.fract() == 0.0,
                _ => false,
            },
            "number" => matches!(self, Self::Integer(_) | Self::Float(_)),
            "string" => matches!(self, Self::Text(_)),
            // A set of values is an array in JSON.
            "array" => matches!(self, Self::Array(_) | Self::Set),
            "object" => matches!(self, Self::Object(_)),
            _ => true,
        }
    }

    /// Returns `true` if this is the given JSON value; none if the source does not say.
    fn equals(&self, value: &JsonValue<'_>) -> Option<bool> {
        Some(match (self, value) {
            (Self::Array(_) | Self::Object(_) | Self::Set | Self::Integer(None), _) => return None,
            (Self::Null, JsonValue::Null) => true,
            (Self::Bool(left), JsonValue::Bool(right)) => left == right,
            (Self::Integer(Some(left)), JsonValue::Int(right)) => left == right,
            (Self::Integer(Some(left)), JsonValue::Float(right)) => *left as f64 == *right,
            (Self::Float(left), JsonValue::Float(right)) => left == right,
            (Self::Float(left), JsonValue::Int(right)) => *left == *right as f64,
            (Self::Text(left), JsonValue::Str(right)) => left == right,
            _ => false,
        })
    }
}

/// Finds the first mistake of an argument.
pub(crate) fn mistake(schema: &JsonValue<'_>, expression: &Expr) -> Option<Mistake> {
    // `a if b else c`: both have to fit.
    if let Expr::If(choice) = expression {
        return mistake(schema, &choice.body).or_else(|| mistake(schema, &choice.orelse));
    }
    let literal = literal(expression)?;
    let wrong = |message: String| Some(Mistake { range: expression.range(), message });
    if let Some(kinds) = member(schema, "type").map(kinds)
        && !kinds.is_empty()
        && !kinds.iter().any(|kind| literal.is(kind))
    {
        let expected = kinds.iter().map(|kind| shown_kind(kind)).collect::<Vec<_>>().join(" or ");
        return wrong(format!("must be {expected}, not {}", literal.name()));
    }
    if let Some(JsonValue::Array(values)) = member(schema, "enum")
        && values.iter().all(|value| literal.equals(value) == Some(false))
    {
        let values = values.iter().take(12).map(shown).collect::<Vec<_>>().join(", ");
        return wrong(format!("must be one of {values}"));
    }
    if let Some(value) = member(schema, "const")
        && literal.equals(value) == Some(false)
    {
        return wrong(format!("must be {}", shown(value)));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(JsonValue::Array(branches)) = member(schema, key) {
            let mut mistakes = branches.iter().map(|branch| mistake(branch, expression));
            // The mistake of the first branch stands for all of them.
            if let Some(Some(first)) = mistakes.next()
                && mistakes.all(|other| other.is_some())
            {
                return Some(first);
            }
        }
    }
    match literal {
        Literal::Array(items) => {
            let schema = member(schema, "items")?;
            items.iter().find_map(|item| mistake(schema, item))
        }
        Literal::Object(items) => entries(schema, items, expression.range()),
        _ => None,
    }
}

/// Mistakes in a dict: values of known keys, unknown keys of a closed schema, and missing keys.
fn entries(schema: &JsonValue<'_>, items: &[DictItem], range: TextRange) -> Option<Mistake> {
    let mut names = Vec::with_capacity(items.len());
    for item in items {
        // `**other` may have any key.
        let key = item.key.as_ref()?;
        let Literal::Text(name) = literal(key)? else { return None };
        let property = member(schema, "properties").and_then(|properties| member(properties, &name));
        if let Some(property) = property
            && let Some(inner) = mistake(property, &item.value)
        {
            return Some(Mistake { range: inner.range, message: format!("`{name}` {}", inner.message) });
        }
        let closed = matches!(member(schema, "additionalProperties"), Some(JsonValue::Bool(false)));
        if property.is_none() && closed && member(schema, "patternProperties").is_none() {
            return Some(Mistake { range: key.range(), message: format!("has no key `{name}`") });
        }
        names.push(name);
    }
    let Some(JsonValue::Array(required)) = member(schema, "required") else { return None };
    let missing = required.iter().filter_map(text).find(|name| !names.iter().any(|given| given == name))?;
    Some(Mistake { range, message: format!("needs the key `{missing}`") })
}

fn literal(expression: &Expr) -> Option<Literal<'_>> {
    Some(match expression {
        Expr::NoneLiteral(_) => Literal::Null,
        Expr::BooleanLiteral(value) => Literal::Bool(value.value),
        Expr::StringLiteral(value) => Literal::Text(value.value.to_str().to_owned()),
        Expr::BytesLiteral(_) => Literal::Bytes,
        Expr::NumberLiteral(number) => match &number.value {
            Number::Int(value) => Literal::Integer(value.as_i64()),
            Number::Float(value) => Literal::Float(*value),
            Number::Complex { .. } => return None,
        },
        Expr::UnaryOp(operation) if operation.op == UnaryOp::USub => match literal(&operation.operand)? {
            Literal::Integer(value) => Literal::Integer(value.map(|value| -value)),
            Literal::Float(value) => Literal::Float(-value),
            _ => return None,
        },
        Expr::List(list) => Literal::Array(&list.elts),
        Expr::Tuple(tuple) => Literal::Array(&tuple.elts),
        Expr::Set(_) => Literal::Set,
        Expr::Dict(dict) => Literal::Object(&dict.items),
        _ => return None,
    })
}

fn kinds<'a>(value: &'a JsonValue<'_>) -> Vec<&'a str> {
    match value {
        JsonValue::Str(kind) => vec![kind],
        JsonValue::Array(kinds) => kinds.iter().filter_map(text).collect(),
        _ => Vec::new(),
    }
}

fn shown_kind(kind: &str) -> &str {
    match kind {
        "null" => "None",
        "boolean" => "True or False",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "a list",
        "object" => "a dict",
        other => other,
    }
}

fn shown(value: &JsonValue<'_>) -> String {
    match value {
        JsonValue::Null => "None".to_owned(),
        JsonValue::Bool(true) => "True".to_owned(),
        JsonValue::Bool(false) => "False".to_owned(),
        JsonValue::Int(value) => value.to_string(),
        JsonValue::Float(value) => value.to_string(),
        JsonValue::Str(text) => format!("{text:?}"),
        _ => "another value".to_owned(),
    }
}
