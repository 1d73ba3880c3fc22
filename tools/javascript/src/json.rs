//! JSON and values of programs: reads the text of a result into a value, and writes values as text. What JSON cannot say (NaN,
//! functions, promises) is refused with a message for the program's author, instead of `null` or `{}`.

use std::collections::HashSet;
use std::fmt::Write;

use boa_engine::builtins::error::Error;
use boa_engine::object::builtins::{
    JsArray, JsArrayBuffer, JsDataView, JsMap, JsPromise, JsRegExp, JsSet, JsTypedArray,
};
use boa_engine::property::PropertyKey;
use boa_engine::{Context, JsError, JsObject, JsResult, JsString, JsValue, JsVariant, js_string};
use jiter::JsonValue;

use crate::guards::Originals;

/// Deepest nesting of a value, in both directions.
pub(crate) const MAX_DEPTH: usize = 128;

/// Reads JSON text. A key that occurs twice is an error if the text is `strict`, else its last value counts.
///
/// # Errors
/// The reason why the text cannot be read.
pub(crate) fn read(text: &str, strict: bool, context: &mut Context) -> Result<JsValue, String> {
    let value =
        JsonValue::parse(text.as_bytes(), false).map_err(|error| format!("is not JSON: {}", error.error_type))?;
    read_value(&value, 0, strict, context)
}

fn read_value(value: &JsonValue<'_>, depth: usize, strict: bool, context: &mut Context) -> Result<JsValue, String> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    Ok(match value {
        JsonValue::Null => JsValue::null(),
        JsonValue::Bool(value) => JsValue::from(*value),
        JsonValue::Int(value) => JsValue::from(*value as f64),
        // Digits beyond 2^53 are lost, as with `JSON.parse`.
        JsonValue::BigInt(value) => JsValue::from(value.to_string().parse::<f64>().unwrap_or(f64::NAN)),
        JsonValue::Float(value) => JsValue::from(*value),
        JsonValue::Str(value) => JsString::from(value.as_ref()).into(),
        JsonValue::Array(items) => {
            let items: Vec<JsValue> =
                items.iter().map(|item| read_value(item, depth + 1, strict, context)).collect::<Result<_, _>>()?;
            JsArray::from_iter(items, context).into()
        }
        JsonValue::Object(entries) => {
            let object = JsObject::with_object_proto(context.intrinsics());
            let mut keys = HashSet::new();
            for (key, value) in entries.iter() {
                if strict && !keys.insert(key.as_ref()) {
                    return Err(format!("has the key {key:?} twice"));
                }
                let value = read_value(value, depth + 1, strict, context)?;
                // Also `__proto__` is a key like any other.
                object
                    .create_data_property(JsString::from(key.as_ref()), value, context)
                    .map_err(|error| format!("cannot be read: {error}"))?;
            }
            object.into()
        }
    })
}

/// Reason why a value was not written.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The value has no JSON form.
    Reason(String),
    /// A getter or `toJSON` of the program failed.
    Thrown(JsError),
}

impl From<JsError> for Refusal {
    fn from(error: JsError) -> Self {
        Self::Thrown(error)
    }
}

/// Writes JSON text up to a limit.
pub(crate) struct Writer {
    text: String,
    limit: usize,
    /// Objects around the current value.
    around: Vec<JsObject>,
}

impl Writer {
    /// Creates a writer whose text has at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { text: String::new(), limit, around: Vec::new() }
    }

    /// Writes one value.
    ///
    /// # Errors
    /// The reason why the value has no JSON form.
    pub(crate) fn write(mut self, value: &JsValue, context: &mut Context) -> Result<String, Refusal> {
        if value.is_undefined() {
            return Ok("null".to_owned());
        }
        self.value(value, js_string!(), context)?;
        Ok(self.text)
    }

    fn value(&mut self, value: &JsValue, key: JsString, context: &mut Context) -> Result<(), Refusal> {
        match value.variant() {
            JsVariant::Null | JsVariant::Undefined => self.raw("null"),
            JsVariant::Boolean(value) => self.raw(if value { "true" } else { "false" }),
            JsVariant::Integer32(value) => self.raw(&value.to_string()),
            JsVariant::Float64(number) if number.is_finite() => {
                let text = value.to_string(context)?;
                self.raw(&text.to_std_string_lossy())
            }
            JsVariant::Float64(number) => {
                let shown = if number.is_nan() { "NaN" } else { "Infinity" };
                refuse(format!("is {shown}, which JSON has no number for"))
            }
            JsVariant::String(text) => self.string(&text),
            JsVariant::BigInt(_) => refuse("is a BigInt: pass `Number(value)` or `String(value)`".to_owned()),
            JsVariant::Symbol(_) => refuse("is a symbol, which has no JSON form".to_owned()),
            JsVariant::Object(object) => self.object(&object, key, context),
        }
    }

    fn object(&mut self, object: &JsObject, key: JsString, context: &mut Context) -> Result<(), Refusal> {
        if self.around.iter().any(|other| JsObject::equals(other, object)) {
            return refuse("contains itself".to_owned());
        }
        if self.around.len() >= MAX_DEPTH {
            return refuse(too_deep());
        }
        self.around.push(object.clone());
        let convert = object.get(js_string!("toJSON"), context)?;
        if let Some(convert) = convert.as_callable() {
            let value = convert.call(&object.clone().into(), &[key.into()], context)?;
            match value.as_object() {
                Some(other) if !JsObject::equals(&other, object) => self.members(&other, context)?,
                Some(_) => self.members(object, context)?,
                None => self.value(&value, js_string!(), context)?,
            }
        } else {
            self.members(object, context)?;
        }
        self.around.pop();
        Ok(())
    }

    fn members(&mut self, object: &JsObject, context: &mut Context) -> Result<(), Refusal> {
        if object.is_array() {
            return self.array(object, context);
        }
        let primitive = object
            .downcast_ref::<f64>()
            .map(|value| JsValue::from(*value))
            .or_else(|| object.downcast_ref::<bool>().map(|value| JsValue::from(*value)))
            .or_else(|| object.downcast_ref::<JsString>().map(|value| JsValue::from(value.clone())));
        if let Some(primitive) = primitive {
            return self.value(&primitive, js_string!(), context);
        }
        if let Some(kind) = special(object) {
            return refuse(format!("is {kind}"));
        }
        self.raw("{")?;
        let mut first = true;
        for key in keys(object, context)? {
            let value = object.get(PropertyKey::from(key.clone()), context)?;
            // As with `JSON.stringify`, such a member is left out.
            if value.is_undefined() {
                continue;
            }
            if !first {
                self.raw(",")?;
            }
            first = false;
            self.string(&key)?;
            self.raw(":")?;
            self.value(&value, key, context)?;
        }
        self.raw("}")
    }

    fn array(&mut self, object: &JsObject, context: &mut Context) -> Result<(), Refusal> {
        let length = object.get(js_string!("length"), context)?.to_length(context)?;
        // Every item takes a byte and a comma.
        if length > self.limit as u64 {
            return Err(self.too_long());
        }
        self.raw("[")?;
        for index in 0..length {
            if index > 0 {
                self.raw(",")?;
            }
            let item = object.get(index, context)?;
            self.value(&item, js_string!(), context)?;
        }
        self.raw("]")
    }

    fn string(&mut self, text: &JsString) -> Result<(), Refusal> {
        if text.len() > self.limit - self.text.len() {
            return Err(self.too_long());
        }
        let Ok(text) = text.to_std_string() else {
            return refuse("is text with half of a surrogate pair: use `text.toWellFormed()`".to_owned());
        };
        let mut quoted = String::with_capacity(text.len() + 2);
        quote(&mut quoted, &text);
        self.raw(&quoted)
    }

    fn raw(&mut self, text: &str) -> Result<(), Refusal> {
        if self.text.len() + text.len() > self.limit {
            return Err(self.too_long());
        }
        self.text.push_str(text);
        Ok(())
    }

    fn too_long(&self) -> Refusal {
        Refusal::Reason(format!("is longer than {} bytes as JSON", self.limit))
    }
}

fn refuse<T>(message: String) -> Result<T, Refusal> {
    Err(Refusal::Reason(message))
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

/// Returns the names of the members of an object that a list of its members shows.
///
/// # Errors
/// An error of a proxy of the program.
pub(crate) fn keys(object: &JsObject, context: &mut Context) -> JsResult<Vec<JsString>> {
    let list = Originals::of(context).keys.call(&JsValue::undefined(), &[object.clone().into()], context)?;
    let Some(list) = list.as_object() else { return Ok(Vec::new()) };
    let length = list.get(js_string!("length"), context)?.to_length(context)?;
    (0..length).map(|index| list.get(index, context)?.to_string(context)).collect()
}

/// Returns `true` if a value is an object of named values.
pub(crate) fn is_plain(value: &JsValue) -> bool {
    value.as_object().is_some_and(|object| !object.is_array() && special(&object).is_none())
}

/// Returns the kind of a value in a message.
pub(crate) fn kind(value: &JsValue) -> &'static str {
    match value.variant() {
        JsVariant::Null => "null",
        JsVariant::Undefined => "undefined",
        JsVariant::Boolean(_) => "a boolean",
        JsVariant::String(_) => "a string",
        JsVariant::Float64(_) | JsVariant::Integer32(_) => "a number",
        JsVariant::BigInt(_) => "a BigInt",
        JsVariant::Symbol(_) => "a symbol",
        JsVariant::Object(object) if object.is_array() => "an array",
        JsVariant::Object(object) => special(&object).unwrap_or("an object"),
    }
}

/// Returns the kind of an object whose members are not its contents.
fn special(object: &JsObject) -> Option<&'static str> {
    let is = |result: bool, kind: &'static str| result.then_some(kind);
    is(object.is_callable(), "a function")
        .or_else(|| is(JsPromise::from_object(object.clone()).is_ok(), "a promise: use `await`"))
        .or_else(|| is(JsMap::from_object(object.clone()).is_ok(), "a Map: use `Object.fromEntries(map)`"))
        .or_else(|| is(JsSet::from_object(object.clone()).is_ok(), "a Set: use `[...set]`"))
        .or_else(|| is(object.is::<Error>(), "an error: use its `message`"))
        .or_else(|| is(JsRegExp::from_object(object.clone()).is_ok(), "a regular expression: use its `source`"))
        .or_else(|| is(JsTypedArray::from_object(object.clone()).is_ok(), "a typed array: use `Array.from(array)`"))
        .or_else(|| is(JsArrayBuffer::from_object(object.clone()).is_ok(), "an ArrayBuffer, which has no JSON form"))
        .or_else(|| is(JsDataView::from_object(object.clone()).is_ok(), "a DataView, which has no JSON form"))
}

fn too_deep() -> String {
    format!("is nested more than {MAX_DEPTH} deep")
}
