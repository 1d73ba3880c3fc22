//! Strict parsing of untrusted JSON: at most 127 levels deep, no duplicate keys in an object, no number beyond the range
//! of a double, no lone surrogates, no trailing data.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Maximum number of characters of a key in a message.
const MAX_KEY_LEN: usize = 256;

/// Parses a text into a value.
///
/// # Errors
///
/// The error of the parser if the text is not JSON or violates a rule of this module.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str::<StrictValue>(text).map(|strict| strict.0)
}

/// Checks a text by the same rules except that for duplicate keys, without building a value.
///
/// # Errors
///
/// The error of the parser if the text is not JSON or violates a rule of this module.
pub fn check_line(text: &str) -> serde_json::Result<()> {
    serde_json::from_str::<SyntaxOnly>(text).map(|_| ())
}

/// Value that deserializes by the rules of this module, alone or as a part of another type.
#[derive(Debug)]
pub struct StrictValue(Value);

impl StrictValue {
    /// Returns the value.
    pub fn value(self) -> Value {
        self.0
    }
}

impl<'de> Deserialize<'de> for StrictValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Build;
        impl<'de> Visitor<'de> for Build {
            type Value = StrictValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<StrictValue, E> {
                Ok(StrictValue(Value::Null))
            }
            fn visit_bool<E>(self, value: bool) -> Result<StrictValue, E> {
                Ok(StrictValue(Value::Bool(value)))
            }
            fn visit_i64<E>(self, value: i64) -> Result<StrictValue, E> {
                Ok(StrictValue(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<StrictValue, E> {
                Ok(StrictValue(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<StrictValue, E> {
                Ok(StrictValue(Number::from_f64(value).map_or(Value::Null, Value::Number)))
            }
            fn visit_str<E>(self, value: &str) -> Result<StrictValue, E> {
                Ok(StrictValue(Value::String(value.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<StrictValue, A::Error> {
                let mut array = Vec::new();
                while let Some(StrictValue(item)) = items.next_element()? {
                    array.push(item);
                }
                Ok(StrictValue(Value::Array(array)))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<StrictValue, A::Error> {
                let mut object = Map::new();
                while let Some((key, StrictValue(value))) = entries.next_entry::<String, StrictValue>()? {
                    if object.contains_key(&key) {
                        let key: String = key.chars().take(MAX_KEY_LEN).collect();
                        return Err(A::Error::custom(format_args!("key {key:?} occurs twice in one object")));
                    }
                    object.insert(key, value);
                }
                Ok(StrictValue(Value::Object(object)))
            }
        }
        deserializer.deserialize_any(Build)
    }
}

/// Returns the type of a value with an article, for messages.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Value that is checked and not built.
struct SyntaxOnly;

impl<'de> Deserialize<'de> for SyntaxOnly {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;
        impl<'de> Visitor<'de> for Walk {
            type Value = SyntaxOnly;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<SyntaxOnly, E> {
                Ok(SyntaxOnly)
            }
            fn visit_bool<E>(self, _: bool) -> Result<SyntaxOnly, E> {
                Ok(SyntaxOnly)
            }
            fn visit_i64<E>(self, _: i64) -> Result<SyntaxOnly, E> {
                Ok(SyntaxOnly)
            }
            fn visit_u64<E>(self, _: u64) -> Result<SyntaxOnly, E> {
                Ok(SyntaxOnly)
            }
            fn visit_f64<E>(self, _: f64) -> Result<SyntaxOnly, E> {
                Ok(SyntaxOnly)
            }
            fn visit_str<E>(self, _: &str) -> Result<SyntaxOnly, E> {
                Ok(SyntaxOnly)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<SyntaxOnly, A::Error> {
                while items.next_element::<SyntaxOnly>()?.is_some() {}
                Ok(SyntaxOnly)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<SyntaxOnly, A::Error> {
                while entries.next_entry::<SyntaxOnly, SyntaxOnly>()?.is_some() {}
                Ok(SyntaxOnly)
            }
        }
        deserializer.deserialize_any(Walk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dark_corners_have_one_behaviour() {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        for text in ["NaN", "1e999", r#""\ud800""#, "1 2", "", "nul", &deep(128), &deep(100_000)] {
            assert!(parse(text).is_err(), "{}", &text[..text.len().min(20)]);
            assert!(check_line(text).is_err(), "{}", &text[..text.len().min(20)]);
        }
        for text in ["null", "-0.5e-3", r#""\ud83d\ude00""#, r#"{"a":[1,{"b":"c"}]}"#, &deep(127)] {
            assert!(parse(text).is_ok() && check_line(text).is_ok(), "{}", &text[..text.len().min(20)]);
        }
    }

    #[test]
    fn a_key_twice_is_refused_in_arguments() {
        assert!(parse(r#"{"path":"a","path":"../b"}"#).unwrap_err().to_string().contains("\"path\" occurs twice"));
    }
}
