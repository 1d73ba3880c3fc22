//! The check of JSON arguments against a function's types. The first mismatch is reported with its place, the value found and
//! the value expected. Nothing is built or copied.

use std::collections::HashSet;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use toolcrib_foundation::text;

use crate::tool::typed::{Cases, Field, Function, Integer, Type};

use super::{ERROR, INFINITE, NEGATIVE_INFINITE, NOT_A_NUMBER, OK, SOME};

/// Maximum values in the arguments of a call. Each element, each field (also an absent one) and each byte of a `list<u8>` counts
/// as one. Of a field, each [`NAME_BYTES`] of its name count as one too, because the name is copied.
pub(super) const MAX_VALUES: usize = 1 << 18;
const NAME_BYTES: usize = 40;
/// Maximum magnitude with exact doubles: a double represents every whole number up to it.
pub(in crate::schema) const MAX_EXACT: f64 = (1_u64 << 53) as f64;

/// Checks the arguments of a function.
///
/// # Errors
///
/// One sentence about the first mismatch, such as `$.items[3].size: 70000 does not fit u16`.
pub(crate) fn check(function: &Function, arguments: &Map<String, Value>) -> Result<(), String> {
    let mut budget = MAX_VALUES;
    members(&function.params, arguments, "argument", &mut budget).map_err(Mismatch::into_message)
}

/// A mismatch with its place, the innermost step first.
struct Mismatch {
    message: String,
    path: Vec<Step>,
}

enum Step {
    Member(String),
    Item(usize),
}

impl Mismatch {
    fn new(message: String) -> Self {
        Self { message, path: Vec::new() }
    }

    fn at(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }

    fn into_message(self) -> String {
        let mut place = "$".to_owned();
        for step in self.path.iter().rev() {
            let _ = match step {
                Step::Member(name) if is_plain(name) => write!(place, ".{name}"),
                Step::Member(name) => write!(place, "[{}]", shown(&Value::String(name.clone()))),
                Step::Item(index) => write!(place, "[{index}]"),
            };
        }
        format!("{place}: {}", self.message)
    }
}

fn is_plain(name: &str) -> bool {
    name.len() <= text::MAX_SHOWN && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn value(ty: &Type, found: &Value, budget: &mut usize) -> Result<(), Mismatch> {
    spend(1, budget)?;
    match (ty, found) {
        (Type::Bool, Value::Bool(_)) | (Type::String, Value::String(_)) => Ok(()),
        (Type::Integer(integer), Value::Number(number)) => match fits(*integer, number) {
            Some(true) => Ok(()),
            Some(false) => Err(Mismatch::new(format!("{} does not fit {}", shown(found), integer.as_str()))),
            None => Err(mismatch(ty, found)),
        },
        (Type::F64, Value::Number(_)) => Ok(()),
        (Type::F32, Value::Number(number)) => match number.as_f64().is_some_and(|wide| (wide as f32).is_finite()) {
            true => Ok(()),
            false => Err(Mismatch::new(format!("{} does not fit f32", shown(found)))),
        },
        (Type::F32 | Type::F64, Value::String(word))
            if [NOT_A_NUMBER, INFINITE, NEGATIVE_INFINITE].contains(&word.as_str()) =>
        {
            Ok(())
        }
        (Type::Char, Value::String(text)) if text.chars().nth(1).is_none() && !text.is_empty() => Ok(()),
        (Type::Bytes, Value::String(text)) => {
            spend(text.len() / 4 * 3, budget)?;
            STANDARD.decode(text).map(drop).map_err(|error| Mismatch::new(format!("not base64 with padding: {error}")))
        }
        (Type::List(item), Value::Array(items)) => {
            items.iter().enumerate().try_for_each(|(index, found)| at_item(index, value(item, found, budget)))
        }
        (Type::Map(sides), _) => entries(ty, &sides.0, &sides.1, found, budget),
        (Type::Tuple(types), Value::Array(items)) => {
            let (wanted, count) = (types.len(), items.len());
            if wanted != count {
                return Err(Mismatch::new(format!("a tuple of {wanted} is expected, found {count} items")));
            }
            let each = types.iter().zip(items).enumerate();
            each.into_iter().try_for_each(|(index, (ty, found))| at_item(index, value(ty, found, budget)))
        }
        (Type::Record(record), Value::Object(fields)) => members(&record.fields, fields, "field", budget),
        (Type::Enum(cases), Value::String(name)) => check_name(cases, name),
        (Type::Flags(cases), Value::Array(set)) => {
            let mut seen = HashSet::with_capacity(set.len().min(cases.iter().count()));
            for (index, flag) in set.iter().enumerate() {
                let checked = match flag {
                    Value::String(name) => check_name(cases, name),
                    other => {
                        Err(Mismatch::new(format!("the name of a flag is expected, found {}", kind_or_value(other))))
                    }
                };
                at_item(index, checked.and_then(|()| spend(1, budget)))?;
                if !seen.insert(flag.as_str()) {
                    return at_item(index, Err(Mismatch::new(format!("{} occurs twice", shown(flag)))));
                }
            }
            Ok(())
        }
        (Type::Variant(cases), found) => {
            let find = |name: &str| cases.find(name).map(|case| (case.name.as_str(), case.ty.as_ref()));
            case(find, ty, found, budget)
        }
        (Type::Result(sides), found) => {
            let sides = [(OK, sides.0.as_ref()), (ERROR, sides.1.as_ref())];
            case(|wanted| sides.into_iter().find(|(name, _)| *name == wanted), ty, found, budget)
        }
        (Type::Option(_), Value::Null) => Ok(()),
        (Type::Option(inner), found) if inner.takes_null() => {
            case(|wanted| (wanted == SOME).then_some((SOME, Some(&**inner))), ty, found, budget)
        }
        (Type::Option(inner), found) => value(inner, found, budget),
        _ => Err(mismatch(ty, found)),
    }
}

/// Checks call parameters or record fields.
fn members(fields: &[Field], found: &Map<String, Value>, word: &str, budget: &mut usize) -> Result<(), Mismatch> {
    let mut seen = 0;
    for field in fields {
        spend(1 + field.name.len() / NAME_BYTES, budget)?;
        match found.get(&field.name) {
            Some(found) => {
                value(&field.ty, found, budget).map_err(|mismatch| mismatch.at(Step::Member(field.name.clone())))?;
                seen += 1;
            }
            None if field.ty.takes_null() => {}
            None => {
                let missing = Mismatch::new(format!("missing, {} is expected", expectation(&field.ty)));
                return Err(missing.at(Step::Member(field.name.clone())));
            }
        }
    }
    if seen == found.len() {
        return Ok(());
    }
    let is_unknown = |name: &&String| !fields.iter().any(|field| field.name == **name);
    match found.keys().find(is_unknown) {
        Some(name) => {
            let expected = alternatives(fields.iter().map(|field| field.name.as_str()));
            Err(Mismatch::new(format!("unknown {word}, {expected} is expected")).at(Step::Member(name.clone())))
        }
        None => Ok(()),
    }
}

/// Checks the entries of a map.
fn entries(ty: &Type, key: &Type, entry: &Type, found: &Value, budget: &mut usize) -> Result<(), Mismatch> {
    match (key, found) {
        (Type::String, Value::Object(found)) => found.iter().try_for_each(|(name, found)| {
            spend(1, budget)?;
            value(entry, found, budget).map_err(|mismatch| mismatch.at(Step::Member(name.clone())))
        }),
        (Type::String, _) => Err(mismatch(ty, found)),
        (_, Value::Array(pairs)) => pairs.iter().enumerate().try_for_each(|(index, pair)| {
            let pair = match pair.as_array().map(Vec::as_slice) {
                Some([first, second]) => {
                    at_item(0, value(key, first, budget)).and_then(|()| at_item(1, value(entry, second, budget)))
                }
                _ => Err(Mismatch::new(format!("a pair `[key, value]` is expected, found {}", kind_or_value(pair)))),
            };
            at_item(index, pair)
        }),
        _ => {
            Err(Mismatch::new(format!("an array of pairs `[key, value]` is expected, found {}", kind_or_value(found))))
        }
    }
}

/// Checks one of several cases: its name if it has no payload, else an object with it as the only member.
fn case<'a>(
    find: impl Fn(&str) -> Option<(&'a str, Option<&'a Type>)>,
    ty: &Type,
    found: &Value,
    budget: &mut usize,
) -> Result<(), Mismatch> {
    let unknown = |name: &str| {
        let found = shown(&Value::String(name.to_owned()));
        Mismatch::new(format!("unknown case {found}, {} is expected", expectation(ty)))
    };
    match found {
        Value::String(name) => match find(name) {
            Some((_, None)) => Ok(()),
            Some((name, Some(ty))) => {
                Err(Mismatch::new(format!("the case `{name}` carries {}: write {{\"{name}\": …}}", expectation(ty))))
            }
            None => Err(unknown(name)),
        },
        Value::Object(members) if members.len() == 1 => {
            let Some((name, found)) = members.iter().next() else { return Err(mismatch(ty, found)) };
            match find(name) {
                Some((_, Some(ty))) => {
                    value(ty, found, budget).map_err(|mismatch| mismatch.at(Step::Member(name.clone())))
                }
                Some((name, None)) => {
                    Err(Mismatch::new(format!("the case `{name}` carries nothing: write \"{name}\"")))
                }
                None => Err(unknown(name)),
            }
        }
        _ => Err(mismatch(ty, found)),
    }
}

fn check_name(cases: &Cases, name: &str) -> Result<(), Mismatch> {
    cases.find(name).map(drop).ok_or_else(|| {
        let found = shown(&Value::String(name.to_owned()));
        Mismatch::new(format!("unknown name {found}, {} is expected", alternatives(cases.names())))
    })
}

/// Returns `true` if a number is a value of an integer type; `None` if it is no whole number.
fn fits(integer: Integer, number: &Number) -> Option<bool> {
    let (least, most) = integer.range();
    if let Some(whole) = number.as_i128() {
        return Some((i128::from(least)..=i128::from(most)).contains(&whole));
    }
    // A number that the parser may have rounded is not accepted.
    let wide = number.as_f64().filter(|wide| wide.fract() == 0.0 && wide.abs() <= MAX_EXACT)?;
    Some(wide >= least as f64 && wide < most as f64 + 1.0)
}

fn spend(values: usize, budget: &mut usize) -> Result<(), Mismatch> {
    match budget.checked_sub(values) {
        Some(left) => {
            *budget = left;
            Ok(())
        }
        None => Err(Mismatch::new(format!("more than {MAX_VALUES} values in the arguments of one call"))),
    }
}

fn at_item(index: usize, checked: Result<(), Mismatch>) -> Result<(), Mismatch> {
    checked.map_err(|mismatch| mismatch.at(Step::Item(index)))
}

fn mismatch(ty: &Type, found: &Value) -> Mismatch {
    Mismatch::new(format!("{} is expected, found {}", expectation(ty), kind_or_value(found)))
}

/// Describes the values of a type.
fn expectation(ty: &Type) -> String {
    match ty {
        Type::Bool => "true or false".to_owned(),
        Type::Integer(integer) => {
            let (least, most) = integer.range();
            format!("{} (a whole number from {least} to {most})", integer.as_str())
        }
        Type::F32 | Type::F64 => format!("{} (a number)", ty.as_str()),
        Type::Char => "a string of one character".to_owned(),
        Type::String => "a string".to_owned(),
        Type::Bytes => "a string of base64".to_owned(),
        Type::List(_) | Type::Tuple(_) => "an array".to_owned(),
        Type::Flags(cases) => {
            format!("an array of names, {}", alternatives(cases.names()))
        }
        Type::Enum(cases) => format!("a string, {}", alternatives(cases.names())),
        Type::Variant(cases) => format!("a case, {}", alternatives(cases.names())),
        Type::Result(_) => format!("a case, {}", alternatives([OK, ERROR].into_iter())),
        Type::Map(sides) if sides.0 != Type::String => "an array of pairs `[key, value]`".to_owned(),
        Type::Map(_) | Type::Record(_) => "an object".to_owned(),
        Type::Option(inner) if inner.takes_null() => format!("null or {{\"{SOME}\": …}}"),
        Type::Option(inner) => format!("null or {}", expectation(inner)),
    }
}

fn alternatives<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{}`", text::shown(name))).collect();
    match names.len() {
        0 => "none".to_owned(),
        1 => text::listed(names.into_iter()),
        _ => format!("one of {}", text::listed(names.into_iter())),
    }
}

fn kind_or_value(found: &Value) -> String {
    match found {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => shown(other),
    }
}

/// Returns a value, cut for a message.
fn shown(found: &Value) -> String {
    let text = match found {
        // Only the shown part of a long text is written.
        Value::String(text) => Value::String(text::prefix(text, text::MAX_SHOWN)).to_string(),
        other => other.to_string(),
    };
    text::shown(&text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use crate::tool::typed::{Case, Record};

    use super::*;

    fn function(ty: Type) -> Function {
        let params = vec![Field { name: "items".to_owned(), docs: None, ty }];
        Function { interface: None, name: "f".to_owned(), docs: None, params, result: None }
    }

    fn message(ty: Type, found: Value) -> String {
        check(&function(ty), json!({ "items": found }).as_object().unwrap()).unwrap_err()
    }

    fn cases(names: &[&str]) -> Arc<Cases> {
        let case = |name: &&str| Case { name: (*name).to_owned(), docs: None, ty: None };
        Arc::new(Cases::new(None, names.iter().map(case).collect()))
    }

    #[test]
    fn an_error_names_the_place_and_the_values_found_and_expected() {
        let size = Field { name: "size".to_owned(), docs: None, ty: Type::Integer(Integer::U16) };
        let item = Type::Record(Arc::new(Record { docs: None, fields: vec![size] }));
        let list = || Type::List(Arc::new(item.clone()));
        let four = |last: Value| json!([{"size": 1}, {"size": 2}, {"size": 3}, last]);
        assert_eq!(message(list(), four(json!({"size": 70000}))), "$.items[3].size: 70000 does not fit u16");
        for (found, wanted) in [
            (json!({"size": "x"}), "$.items[3].size: u16 (a whole number from 0 to 65535) is expected, found \"x\""),
            (json!({"size": 1.5}), "$.items[3].size: u16 (a whole number from 0 to 65535) is expected, found 1.5"),
            (json!({}), "$.items[3].size: missing, u16 (a whole number from 0 to 65535) is expected"),
            (json!({"size": 1, "b c": 2}), "$.items[3][\"b c\"]: unknown field, `size` is expected"),
            (json!([]), "$.items[3]: an object is expected, found an array"),
        ] {
            assert_eq!(message(list(), four(found)), wanted);
        }
        let missing = check(&function(Type::Bool), &Map::new()).unwrap_err();
        assert_eq!(missing, "$.items: missing, true or false is expected");
        let levels = || Type::Enum(cases(&["low", "high"]));
        assert_eq!(message(levels(), json!("mid")), "$.items: unknown name \"mid\", one of `low`, `high` is expected");
        let flags = Type::Flags(cases(&["low", "high"]));
        assert_eq!(message(flags, json!(["low", "low"])), "$.items[1]: \"low\" occurs twice");
        assert_eq!(message(levels(), json!(1)), "$.items: a string, one of `low`, `high` is expected, found 1");
        assert_eq!(message(Type::Char, json!("ab")), "$.items: a string of one character is expected, found \"ab\"");
        assert!(message(Type::Bytes, json!("%")).starts_with("$.items: not base64 with padding"));
        assert_eq!(message(Type::F32, json!(1e300)), "$.items: 1e+300 does not fit f32");
        let long = message(Type::Bool, json!("é".repeat(1000)));
        assert!(long.chars().count() < 150 && long.ends_with('…'), "{long}");
    }

    #[test]
    fn an_absent_field_counts_as_a_value() {
        let optional = |n| Field { name: format!("f{n}"), docs: None, ty: Type::Option(Arc::new(Type::Bool)) };
        let record = |count| Type::Record(Arc::new(Record { docs: None, fields: (0..count).map(optional).collect() }));
        let of = |count: usize| json!(vec![json!({}); count]);
        let list = Type::List(Arc::new(record(1000)));
        assert!(check(&function(list.clone()), json!({"items": of(250)}).as_object().unwrap()).is_ok());
        assert!(message(list, of(270)).contains("more than 262144 values"));
        let long = Field { name: "n".repeat(4000), docs: None, ty: Type::Option(Arc::new(Type::Bool)) };
        let list = Type::List(Arc::new(Type::Record(Arc::new(Record { docs: None, fields: vec![long] }))));
        assert!(message(list, of(3000)).contains("more than 262144 values"));
    }

    #[test]
    fn a_whole_number_that_was_rounded_is_not_taken() {
        let wide = || Type::Integer(Integer::S64);
        assert!(check(&function(wide()), json!({"items": 9_007_199_254_740_992_f64}).as_object().unwrap()).is_ok());
        assert!(message(wide(), json!(9_007_199_254_740_994_f64)).contains("is expected, found"));
    }

    #[test]
    fn no_more_values_are_taken_than_there_is_room_for() {
        let list = Type::List(Arc::new(Type::Bool));
        let of = |count: usize| json!({"items": vec![true; count]});
        // The argument and the list are two of them.
        assert_eq!(check(&function(list.clone()), of(MAX_VALUES - 2).as_object().unwrap()), Ok(()));
        let error = check(&function(list), of(MAX_VALUES - 1).as_object().unwrap()).unwrap_err();
        assert_eq!(error, "$.items[262142]: more than 262144 values in the arguments of one call");
        let bytes = message(Type::Bytes, json!("A".repeat(MAX_VALUES / 3 * 4 + 8)));
        assert_eq!(bytes, "$.items: more than 262144 values in the arguments of one call");
    }
}
