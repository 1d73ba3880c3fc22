//! Spellings of arguments whose meaning is certain, and that tools do not take: a whole number with a zero fraction or
//! an exponent for an integer, as JSON Schema allows it, and `null` for an optional argument that has no null. They are
//! replaced before anything judges the arguments, so that rules, hooks and the tool see the same value. For a function,
//! a number of single precision is replaced by the one that it receives. All other bytes stay.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::tool::typed::{Field, Function, Type};

use super::members::Members;
use super::typed;

/// Maximum depth of a schema below which arguments are mended.
const MAX_DEPTH: usize = 16;

/// Part of a schema that says how arguments are mended. Only what holds for certain is known: `properties`, `items` and `type`.
#[derive(Debug, Default)]
pub(super) struct Shape {
    is_integer: bool,
    /// `true` for a number that the tool receives in single precision.
    is_single: bool,
    items: Option<Box<Shape>>,
    members: HashMap<String, Member>,
}

#[derive(Debug, Default)]
struct Member {
    shape: Shape,
    /// `true` if `null` means that the member is left out.
    omits_null: bool,
}

impl Shape {
    /// Reads a schema; `None` if nothing can be mended by it.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        Self::at(schema, MAX_DEPTH)
    }

    /// Returns the shape of a function's schema with what its types state.
    pub(super) fn of_function(schema: Option<Self>, function: &Function) -> Self {
        let mut shape = schema.unwrap_or_default();
        shape.merge(Self { members: Self::members_of(&function.params, MAX_DEPTH), ..Self::default() });
        shape
    }

    fn of_type(ty: &Type, depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let shape = match ty {
            Type::Integer(_) => Self { is_integer: true, ..Self::default() },
            Type::F32 => Self { is_single: true, ..Self::default() },
            Type::Option(inner) if !inner.takes_null() => return Self::of_type(inner, depth),
            Type::List(item) => Self { items: Self::of_type(item, depth).map(Box::new), ..Self::default() },
            Type::Record(record) => Self { members: Self::members_of(&record.fields, depth), ..Self::default() },
            _ => return None,
        };
        shape.is_useful().then_some(shape)
    }

    fn members_of(fields: &[Field], depth: usize) -> HashMap<String, Member> {
        let member = |field: &Field| {
            let shape = Self::of_type(&field.ty, depth)?;
            Some((field.name.clone(), Member { shape, omits_null: false }))
        };
        fields.iter().filter_map(member).collect()
    }

    fn merge(&mut self, other: Self) {
        self.is_integer |= other.is_integer;
        self.is_single |= other.is_single;
        match (&mut self.items, other.items) {
            (Some(items), Some(other)) => items.merge(*other),
            (None, items) => self.items = items,
            _ => {}
        }
        for (name, member) in other.members {
            self.members.entry(name).or_default().shape.merge(member.shape);
        }
    }

    /// Returns `true` if something can be mended.
    fn is_useful(&self) -> bool {
        self.is_integer || self.is_single || self.items.is_some() || !self.members.is_empty()
    }

    fn at(schema: &Value, depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let has_type = |name: &str| match &schema["type"] {
            Value::String(one) => one == name,
            Value::Array(several) => several.iter().any(|one| one == name),
            _ => false,
        };
        let required: HashSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let member = |(name, schema): (&String, &Value)| {
            let omits_null = !required.contains(name.as_str()) && refuses_null(schema);
            let shape = Self::at(schema, depth);
            (omits_null || shape.is_some())
                .then(|| (name.clone(), Member { shape: shape.unwrap_or_default(), omits_null }))
        };
        let shape = Self {
            is_integer: has_type("integer") && !has_type("number"),
            is_single: false,
            items: schema.get("items").and_then(|items| Self::at(items, depth)).map(Box::new),
            members: schema["properties"].as_object().into_iter().flatten().filter_map(member).collect(),
        };
        shape.is_useful().then_some(shape)
    }

    /// Returns the text of arguments with all spellings replaced; `None` if there are none.
    pub(super) fn mend(&self, value: &Value, text: &str) -> Option<String> {
        if !self.applies(value) {
            return None;
        }
        let mut mended = String::with_capacity(text.len());
        self.write(text, &mut mended)?;
        Some(mended)
    }

    /// Returns `true` if a value has a spelling to replace.
    fn applies(&self, value: &Value) -> bool {
        match value {
            Value::Number(number) if self.is_single => single(number.as_f64()).is_some(),
            Value::Number(number) => self.is_integer && number.is_f64() && whole(number.as_f64()).is_some(),
            Value::Array(items) => {
                self.items.as_ref().is_some_and(|shape| items.iter().any(|item| shape.applies(item)))
            }
            Value::Object(members) => self.members.iter().any(|(name, member)| {
                members.get(name).is_some_and(|value| match value {
                    Value::Null => member.omits_null,
                    value => member.shape.applies(value),
                })
            }),
            _ => false,
        }
    }

    /// Writes a JSON text with its spellings replaced; `None` if it cannot be read.
    fn write(&self, text: &str, to: &mut String) -> Option<()> {
        match text.as_bytes().first()? {
            b'{' if !self.members.is_empty() => {
                let Members(members) = serde_json::from_str(text).ok()?;
                let kept = members.iter().filter(|(name, raw)| {
                    !(raw.get() == "null" && self.members.get(name).is_some_and(|member| member.omits_null))
                });
                to.push('{');
                for (at, (name, raw)) in kept.enumerate() {
                    to.push_str(if at == 0 { "" } else { "," });
                    to.push_str(&Value::from(name.as_str()).to_string());
                    to.push(':');
                    match self.members.get(name) {
                        Some(member) => member.shape.write(raw.get(), to)?,
                        None => to.push_str(raw.get()),
                    }
                }
                to.push('}');
            }
            b'[' if self.items.is_some() => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                to.push('[');
                for (at, item) in items.iter().enumerate() {
                    to.push_str(if at == 0 { "" } else { "," });
                    self.items.as_ref()?.write(item.get(), to)?;
                }
                to.push(']');
            }
            b'-' | b'0'..=b'9' if self.is_single => match single(text.parse().ok()) {
                Some(received) => to.push_str(&received),
                None => to.push_str(text),
            },
            b'-' | b'0'..=b'9' if self.is_integer => match whole(text.parse().ok()).filter(|_| !is_plain(text)) {
                Some(number) => to.push_str(&number.to_string()),
                None => to.push_str(text),
            },
            _ => to.push_str(text),
        }
        Some(())
    }
}

/// Returns `true` if a value of this schema is certainly not null.
fn refuses_null(schema: &Value) -> bool {
    match &schema["type"] {
        Value::String(one) => one != "null",
        Value::Array(several) => several.iter().all(|one| one != "null"),
        _ => false,
    }
}

/// Returns `true` for the digits of an integer.
fn is_plain(number: &str) -> bool {
    number != "-0" && number.bytes().skip(1).all(|byte| byte.is_ascii_digit())
}

/// Returns a whole number without its fraction.
fn whole(number: Option<f64>) -> Option<i64> {
    let number = number.filter(|number| number.fract() == 0.0 && number.abs() <= typed::MAX_EXACT)?;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is in the range")]
    Some(number as i64)
}

/// Returns the shortest text of the number that a function receives in single precision, if that is another number.
fn single(number: Option<f64>) -> Option<String> {
    let number = number?;
    #[expect(clippy::cast_possible_truncation, reason = "the function receives the rounded number")]
    let received = number as f32;
    let text = format!("{received:?}");
    #[expect(clippy::float_cmp, reason = "any difference is one")]
    let differs = text.parse::<f64>().is_ok_and(|received| received != number);
    (received.is_finite() && differs).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::tool::typed::{Integer, Record};

    fn mended(schema: Value, text: &str) -> Option<String> {
        let value = serde_json::from_str(text).expect("JSON");
        Shape::of(&schema)?.mend(&value, text)
    }

    fn schema() -> Value {
        json!({
            "properties": {
                "n": {"type": "integer"},
                "f": {"type": "number"},
                "s": {"type": "string"},
                "r": {"type": "string"},
                "u": {"type": ["string", "null"]},
                "any": {},
                "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
            },
            "required": ["r"],
        })
    }

    #[test]
    fn a_whole_number_in_any_spelling_is_an_integer() {
        for (text, expected) in [
            (r#"{"n":1.0}"#, r#"{"n":1}"#),
            (r#"{ "n" : 4e15 , "f": 1.0}"#, r#"{"n":4000000000000000,"f":1.0}"#),
            (r#"{"n":-0.0}"#, r#"{"n":0}"#),
            (r#"{"n":-0}"#, r#"{"n":0}"#),
            (r#"{"n":-12.50e1}"#, r#"{"n":-125}"#),
            (r#"{"list":[{"n":1},{"n":2.0,"x":1.0}]}"#, r#"{"list":[{"n":1},{"n":2,"x":1.0}]}"#),
        ] {
            assert_eq!(mended(schema(), text).as_deref(), Some(expected), "{text}");
        }
        for text in [r#"{"n":1}"#, r#"{"n":1.5}"#, r#"{"f":1.0}"#, r#"{"n":1e17}"#, r#"{"n":"1.0"}"#, "{}"] {
            assert_eq!(mended(schema(), text), None, "{text}");
        }
    }

    #[test]
    fn a_function_is_judged_by_the_numbers_that_it_receives() {
        let field = |name: &str, ty| Field { name: name.to_owned(), docs: None, ty };
        let option = |ty| Type::Option(Arc::new(ty));
        let record = Record { docs: None, fields: vec![field("f", Type::F32)] };
        let params = vec![
            field("f", Type::F32),
            field("o", option(Type::F32)),
            field("d", Type::F64),
            field("n", option(Type::Integer(Integer::U32))),
            field("list", Type::List(Arc::new(Type::Record(Arc::new(record))))),
        ];
        let function = Function { interface: None, name: "f".to_owned(), docs: None, params, result: None };
        let mended = |text: &str| {
            let value = serde_json::from_str(text).expect("JSON");
            Shape::of_function(None, &function).mend(&value, text)
        };
        for (text, expected) in [
            (r#"{"f":16777217}"#, r#"{"f":16777216.0}"#),
            (r#"{"f":0.1000000001,"d":0.1000000001}"#, r#"{"f":0.1,"d":0.1000000001}"#),
            (r#"{"o":-1.00000001}"#, r#"{"o":-1.0}"#),
            (r#"{"f":1e-60}"#, r#"{"f":0.0}"#),
            (r#"{"n":3.0}"#, r#"{"n":3}"#),
            (r#"{"list":[{"f":0.5},{"f":0.50000001}]}"#, r#"{"list":[{"f":0.5},{"f":0.5}]}"#),
        ] {
            assert_eq!(mended(text).as_deref(), Some(expected), "{text}");
        }
        for text in [r#"{"f":0.1,"o":null,"n":null}"#, r#"{"f":"NaN","o":16777216,"d":16777217}"#, r#"{"f":1e300}"#] {
            assert_eq!(mended(text), None, "{text}");
        }
    }

    #[test]
    fn null_for_an_optional_argument_is_its_absence() {
        for (text, expected) in [
            (r#"{"s":null}"#, "{}"),
            (r#"{"s":null,"n":null,"r":"x"}"#, r#"{"r":"x"}"#),
            (r#"{"r":"ä\n","s":null,"any":null,"u":null}"#, r#"{"r":"ä\n","any":null,"u":null}"#),
            (r#"{"list":[{"n":null}]}"#, r#"{"list":[{}]}"#),
        ] {
            assert_eq!(mended(schema(), text).as_deref(), Some(expected), "{text}");
        }
        for text in [r#"{"r":null}"#, r#"{"u":null}"#, r#"{"any":null}"#, r#"{"other":null}"#, r#"{"list":[null]}"#] {
            assert_eq!(mended(schema(), text), None, "{text}");
        }
        let nested = json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "integer"}}});
        assert_eq!(mended(nested, r#"{"a":null}"#), None, "a reference is not followed");
    }

    #[test]
    fn arguments_below_the_maximum_depth_stay() {
        let nested = |depth: usize| {
            let schema = (1..depth).fold(json!({"type": "integer"}), |inner, _| json!({"properties": {"a": inner}}));
            let text = (1..depth).fold("1.0".to_owned(), |inner, _| format!(r#"{{"a":{inner}}}"#));
            mended(schema, &text)
        };
        assert!(nested(MAX_DEPTH).is_some_and(|text| !text.contains('.')));
        assert_eq!(nested(MAX_DEPTH + 1), None);
    }

    #[test]
    fn digits_that_no_number_has_stay_beside_what_is_mended() {
        let text = r#"{"f":0.10000000000000000555,"n":2.0,"any":123456789012345678901234567890}"#;
        let expected = r#"{"f":0.10000000000000000555,"n":2,"any":123456789012345678901234567890}"#;
        assert_eq!(mended(schema(), text).as_deref(), Some(expected));
    }
}
