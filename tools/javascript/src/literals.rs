//! Literal arguments against JSON Schemas: finds the part of an expression that can be no value of its schema. Only what the
//! source says is judged: an expression that is computed is never a mistake here.

use boa_engine::ast::expression::Expression;
use boa_engine::ast::expression::literal::{LiteralKind, ObjectLiteral, PropertyDefinition, TemplateElement};
use boa_engine::ast::expression::operator::unary::UnaryOp;
use boa_engine::ast::property::PropertyName;
use boa_engine::ast::{Position, Spanned as _};
use boa_engine::interner::{Interner, Sym};
use jiter::JsonValue;

use code_guest::tools::{member, text};

/// Mistake in a literal.
pub(crate) struct Mistake {
    /// Position.
    pub(crate) start: Position,
    /// Reason of the refusal, such as "must be an integer, not a string".
    pub(crate) message: String,
}

/// Value as the source states it.
enum Literal<'a> {
    Null,
    Bool(bool),
    Number(f64),
    /// Text; none if a template computes it.
    Text(Option<String>),
    /// Kind of a value that JSON does not have.
    Other(&'static str),
    Array(&'a [Option<Expression>]),
    Object(&'a ObjectLiteral),
}

impl Literal<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(value) if value.fract() == 0.0 => "an integer",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Other(kind) => kind,
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    fn is(&self, kind: &str) -> bool {
        match kind {
            "null" => matches!(self, Self::Null),
            "boolean" => matches!(self, Self::Bool(_)),
            "integer" => matches!(self, Self::Number(value) if value.fract() == 0.0),
            "number" => matches!(self, Self::Number(_)),
            "string" => matches!(self, Self::Text(_)),
            "array" => matches!(self, Self::Array(_)),
            "object" => matches!(self, Self::Object(_)),
            _ => true,
        }
    }

    /// Returns `true` if this is the given JSON value; none if the source does not say.
    fn equals(&self, value: &JsonValue<'_>) -> Option<bool> {
        Some(match (self, value) {
            (Self::Array(_) | Self::Object(_) | Self::Text(None), _) | (Self::Number(_), JsonValue::BigInt(_)) => {
                return None;
            }
            (Self::Null, JsonValue::Null) => true,
            (Self::Bool(left), JsonValue::Bool(right)) => left == right,
            (Self::Number(left), JsonValue::Int(right)) => *left == *right as f64,
            (Self::Number(left), JsonValue::Float(right)) => left == right,
            (Self::Text(Some(left)), JsonValue::Str(right)) => left == right,
            _ => false,
        })
    }
}

/// Finds the first mistake of a value.
pub(crate) fn mistake(schema: &JsonValue<'_>, expression: &Expression, interner: &Interner) -> Option<Mistake> {
    // `a ? b : c`: both have to fit.
    if let Expression::Conditional(choice) = expression.flatten() {
        return mistake(schema, choice.if_true(), interner).or_else(|| mistake(schema, choice.if_false(), interner));
    }
    let literal = literal(expression, interner)?;
    let wrong = |message: String| Some(Mistake { start: expression.span().start(), message });
    if let Literal::Other(kind) = literal {
        return wrong(format!("is {kind}, which JSON does not have"));
    }
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
            let mut mistakes = branches.iter().map(|branch| mistake(branch, expression, interner));
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
            items.iter().flatten().find_map(|item| mistake(schema, item, interner))
        }
        Literal::Object(object) => members(schema, object, expression.span().start(), interner),
        _ => None,
    }
}

/// Mistakes in an object: values of known keys, unknown keys of a closed schema, and missing keys.
fn members(schema: &JsonValue<'_>, object: &ObjectLiteral, start: Position, interner: &Interner) -> Option<Mistake> {
    let members = Members::new(object, interner);
    for (name, at, value) in &members.named {
        let property = member(schema, "properties").and_then(|properties| member(properties, name));
        if let (Some(property), Some(value)) = (property, value)
            && let Some(inner) = mistake(property, value, interner)
        {
            return Some(Mistake { start: inner.start, message: format!("`{name}` {}", inner.message) });
        }
        let closed = matches!(member(schema, "additionalProperties"), Some(JsonValue::Bool(false)));
        if property.is_none() && closed && member(schema, "patternProperties").is_none() {
            return Some(Mistake { start: *at, message: format!("has no key `{name}`") });
        }
    }
    let Some(JsonValue::Array(required)) = member(schema, "required") else { return None };
    let missing = required.iter().filter_map(text).find(|name| !members.has(name))?;
    Some(Mistake { start, message: format!("needs the key `{missing}`") })
}

/// Members of an object literal that the source states.
pub(crate) struct Members<'a> {
    /// Name, position and value of each; no value if it is not stated. A name occurs once.
    pub(crate) named: Vec<(String, Position, Option<&'a Expression>)>,
    /// `true` if there may be other members.
    pub(crate) open: bool,
}

impl<'a> Members<'a> {
    /// Reads an object literal.
    pub(crate) fn new(object: &'a ObjectLiteral, interner: &Interner) -> Self {
        let mut members = Self { named: Vec::new(), open: false };
        let resolve = |name: Sym| interner.resolve_expect(name).to_string();
        for property in object.properties() {
            let (name, at, value) = match property {
                PropertyDefinition::IdentifierReference(name) => (resolve(name.sym()), name.span().start(), None),
                PropertyDefinition::Property(PropertyName::Literal(name), value) => {
                    (resolve(name.sym()), name.span().start(), Some(value))
                }
                PropertyDefinition::Property(PropertyName::Computed(_), _) | PropertyDefinition::SpreadObject(_) => {
                    // It may replace every member before it.
                    members.open = true;
                    members.named.iter_mut().for_each(|(_, _, value)| *value = None);
                    continue;
                }
                PropertyDefinition::MethodDefinition(_) | PropertyDefinition::CoverInitializedName(..) => {
                    members.open = true;
                    continue;
                }
            };
            // It sets the prototype and is no member.
            if name == "__proto__" {
                members.open = true;
                continue;
            }
            match members.named.iter_mut().find(|(other, ..)| *other == name) {
                // The last value counts.
                Some(member) => member.2 = value,
                None => members.named.push((name, at, value)),
            }
        }
        members
    }

    /// Returns `true` if the object has, or may have, a member.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.open || self.named.iter().any(|(other, ..)| other == name)
    }
}

/// Returns the kind of an expression that is certainly no object.
pub(crate) fn no_object(expression: &Expression, interner: &Interner) -> Option<&'static str> {
    literal(expression, interner).filter(|literal| !matches!(literal, Literal::Object(_))).map(|literal| literal.name())
}

fn literal<'a>(expression: &'a Expression, interner: &Interner) -> Option<Literal<'a>> {
    let resolve = |name: Sym| interner.resolve_expect(name).to_string();
    Some(match expression.flatten() {
        Expression::Literal(literal) => match literal.kind() {
            LiteralKind::Null => Literal::Null,
            LiteralKind::Bool(value) => Literal::Bool(*value),
            LiteralKind::Int(value) => Literal::Number(f64::from(*value)),
            LiteralKind::Num(value) => Literal::Number(*value),
            LiteralKind::String(value) => Literal::Text(Some(resolve(*value))),
            LiteralKind::BigInt(_) => Literal::Other("a BigInt"),
            LiteralKind::Undefined => return None,
        },
        Expression::TemplateLiteral(template) => match template.elements() {
            [] => Literal::Text(Some(String::new())),
            [TemplateElement::String(value)] => Literal::Text(Some(resolve(*value))),
            _ => Literal::Text(None),
        },
        Expression::Unary(operation) if operation.op() == UnaryOp::Minus => {
            match literal(operation.target(), interner)? {
                Literal::Number(value) => Literal::Number(-value),
                _ => return None,
            }
        }
        Expression::ArrowFunction(_)
        | Expression::AsyncArrowFunction(_)
        | Expression::FunctionExpression(_)
        | Expression::AsyncFunctionExpression(_) => Literal::Other("a function"),
        Expression::RegExpLiteral(_) => Literal::Other("a regular expression"),
        Expression::ArrayLiteral(array) => Literal::Array(array.as_ref()),
        Expression::ObjectLiteral(object) => Literal::Object(object),
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
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

fn shown(value: &JsonValue<'_>) -> String {
    match value {
        JsonValue::Null => "null".to_owned(),
        JsonValue::Bool(value) => value.to_string(),
        JsonValue::Int(value) => value.to_string(),
        JsonValue::Float(value) => value.to_string(),
        JsonValue::Str(text) => format!("{text:?}"),
        _ => "another value".to_owned(),
    }
}
