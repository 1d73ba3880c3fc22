//! JSON and values of programs: reads the text of a result into a value, and writes values as text. Integers are exact at
//! any size. What JSON cannot say (NaN, bytes, functions) is refused with a message for the program's author.

use std::collections::HashSet;
use std::fmt::Write;

use jiter::JsonValue;
use monty_types::MontyObject;

/// Deepest nesting of a value, in both directions.
pub(crate) const MAX_DEPTH: usize = 128;

/// Reads the JSON text of a result.
///
/// # Errors
/// The reason why the text is not JSON that the contract allows.
pub(crate) fn read(text: &str) -> Result<MontyObject, String> {
    let value =
        JsonValue::parse(text.as_bytes(), false).map_err(|error| format!("is not JSON: {}", error.error_type))?;
    object(value, 0)
}

fn object(value: JsonValue<'_>, depth: usize) -> Result<MontyObject, String> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    Ok(match value {
        JsonValue::Null => MontyObject::None,
        JsonValue::Bool(value) => MontyObject::Bool(value),
        JsonValue::Int(value) => MontyObject::Int(value),
        JsonValue::BigInt(value) => MontyObject::BigInt(value),
        JsonValue::Float(value) => MontyObject::Float(value),
        JsonValue::Str(value) => MontyObject::String(value.into_owned()),
        JsonValue::Array(items) => {
            MontyObject::List(items.iter().map(|item| object(item.clone(), depth + 1)).collect::<Result<_, _>>()?)
        }
        JsonValue::Object(entries) => {
            let mut keys = HashSet::with_capacity(entries.len());
            let mut pairs = Vec::with_capacity(entries.len());
            for (key, value) in entries.iter() {
                if !keys.insert(key.as_ref()) {
                    return Err(format!("has the key {key:?} twice"));
                }
                pairs.push((MontyObject::String(key.to_string()), object(value.clone(), depth + 1)?));
            }
            MontyObject::dict(pairs)
        }
    })
}

/// Writes JSON text up to a limit.
pub(crate) struct Writer {
    text: String,
    limit: usize,
}

impl Writer {
    /// Creates a writer whose text has at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { text: String::new(), limit }
    }

    /// Writes an object of named values.
    ///
    /// # Errors
    /// The reason why the object has no JSON form.
    pub(crate) fn object<'a>(
        mut self,
        entries: impl IntoIterator<Item = (&'a str, &'a MontyObject)>,
    ) -> Result<String, String> {
        self.raw("{")?;
        for (index, (name, value)) in entries.into_iter().enumerate() {
            self.entry(index, name)?;
            self.value(value, 1).map_err(|problem| format!("argument `{name}` {problem}"))?;
        }
        self.raw("}")?;
        Ok(self.text)
    }

    /// Writes one value.
    ///
    /// # Errors
    /// The reason why the value has no JSON form.
    pub(crate) fn write(mut self, value: &MontyObject) -> Result<String, String> {
        self.value(value, 0)?;
        Ok(self.text)
    }

    fn value(&mut self, value: &MontyObject, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        match value {
            MontyObject::None => self.raw("null"),
            MontyObject::Bool(true) => self.raw("true"),
            MontyObject::Bool(false) => self.raw("false"),
            MontyObject::Int(value) => self.raw(&value.to_string()),
            MontyObject::BigInt(value) => {
                // The decimal form is costly to make: refused by its size first. A digit has more than 3.3 bits.
                if value.bits() / 4 > self.limit as u64 {
                    return Err(self.too_long());
                }
                self.raw(&value.to_string())
            }
            // `{:?}` is the shortest text that reads back as the same number, and always JSON for finite numbers.
            MontyObject::Float(value) if value.is_finite() => self.raw(&format!("{value:?}")),
            MontyObject::Float(value) => Err(format!("is {}, which JSON has no number for", shown_float(*value))),
            MontyObject::String(text) | MontyObject::Path(text) => self.string(text),
            MontyObject::List(items)
            | MontyObject::Tuple(items)
            | MontyObject::Set(items)
            | MontyObject::FrozenSet(items) => self.array(items, depth),
            MontyObject::NamedTuple { field_names, values, .. } => {
                self.raw("{")?;
                for (index, (name, value)) in field_names.iter().zip(values).enumerate() {
                    self.entry(index, name)?;
                    self.value(value, depth + 1)?;
                }
                self.raw("}")
            }
            MontyObject::Dict(pairs) => self.pairs(pairs, depth),
            MontyObject::ClassInstance(instance) if instance.class_type.is_dataclass => {
                self.pairs(&instance.attrs, depth)
            }
            MontyObject::Date(_) | MontyObject::DateTime(_) | MontyObject::Time(_) => {
                Err("is a date or a time: pass its `isoformat()`".to_owned())
            }
            MontyObject::Bytes(_) => Err("is bytes: pass text, such as `data.decode()` or Base64".to_owned()),
            MontyObject::Cycle(..) => Err("contains itself".to_owned()),
            other => Err(format!("is `{}`, which has no JSON form", other.type_name())),
        }
    }

    fn array(&mut self, items: &[MontyObject], depth: usize) -> Result<(), String> {
        self.raw("[")?;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.raw(",")?;
            }
            self.value(item, depth + 1)?;
        }
        self.raw("]")
    }

    fn pairs<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = &'a (MontyObject, MontyObject)>,
        depth: usize,
    ) -> Result<(), String> {
        let mut keys = HashSet::new();
        self.raw("{")?;
        for (index, (key, value)) in pairs.into_iter().enumerate() {
            let key = key_text(key)?;
            self.entry(index, &key)?;
            self.value(value, depth + 1)?;
            if let Some(key) = keys.replace(key) {
                return Err(format!("has two keys that are {key:?} in JSON"));
            }
        }
        self.raw("}")
    }

    fn entry(&mut self, index: usize, name: &str) -> Result<(), String> {
        if index > 0 {
            self.raw(",")?;
        }
        self.string(name)?;
        self.raw(":")
    }

    fn string(&mut self, text: &str) -> Result<(), String> {
        if text.len() > self.limit {
            return Err(self.too_long());
        }
        let mut quoted = String::with_capacity(text.len() + 2);
        quote(&mut quoted, text);
        self.raw(&quoted)
    }

    fn raw(&mut self, text: &str) -> Result<(), String> {
        if self.text.len() + text.len() > self.limit {
            return Err(self.too_long());
        }
        self.text.push_str(text);
        Ok(())
    }

    fn too_long(&self) -> String {
        format!("is longer than {} bytes as JSON", self.limit)
    }
}

/// Writes a JSON string.
pub(crate) fn quote(target: &mut String, text: &str) {
    target.push('"');
    for character in text.chars() {
        match character {
            '"' => target.push_str("\\\""),
            '\\' => target.push_str("\\\\"),
            '\n' => target.push_str("\\n"),
            '\r' => target.push_str("\\r"),
            '\t' => target.push_str("\\t"),
            '\u{0}'..='\u{1f}' => {
                let _ = write!(target, "\\u{:04x}", u32::from(character));
            }
            other => target.push(other),
        }
    }
    target.push('"');
}

/// Key of a dict as the key of an object, like Python's `json`.
fn key_text(key: &MontyObject) -> Result<String, String> {
    match key {
        MontyObject::String(text) => Ok(text.clone()),
        MontyObject::Int(value) => Ok(value.to_string()),
        MontyObject::Bool(value) => Ok(value.to_string()),
        MontyObject::None => Ok("null".to_owned()),
        MontyObject::Float(value) if value.is_finite() => Ok(format!("{value:?}")),
        other => Err(format!("has a key of type `{}`: keys are strings", other.type_name())),
    }
}

fn shown_float(value: f64) -> &'static str {
    if value.is_nan() { "NaN" } else { "infinity" }
}

fn too_deep() -> String {
    format!("is nested more than {MAX_DEPTH} deep")
}

#[cfg(test)]
mod tests {
    use monty_types::MontyObject;

    use super::{Writer, read};

    fn round(text: &str) -> String {
        Writer::new(10_000).write(&read(text).expect("JSON")).expect("a value")
    }

    #[test]
    fn numbers_are_exact() {
        for text in ["9007199254740993", "123456789012345678901234567890", "-1", "1.5", "1e300", "0.1"] {
            assert_eq!(round(text), text);
        }
        assert!(read("NaN").is_err());
        assert!(Writer::new(99).write(&MontyObject::Float(f64::NAN)).is_err());
    }

    #[test]
    fn texts_and_keys_are_escaped() {
        let text = r#"{"a\"b":"\u0001\n€","b":[true,null,{}]}"#;
        assert_eq!(round(text), text);
        assert!(read(r#"{"a":1,"a":2}"#).is_err());
    }

    #[test]
    fn bounds_hold() {
        let deep = format!("{}{}", "[".repeat(140), "]".repeat(140));
        assert!(read(&deep).is_err());
        assert!(Writer::new(5).write(&MontyObject::String("123456".to_owned())).is_err());
        assert!(Writer::new(99).write(&MontyObject::Bytes(vec![1])).is_err());
    }
}
