//! Values as text, as a console shows them: nested up to a depth, and cut at a size. No getter of the program runs.

use boa_engine::builtins::error::Error;
use boa_engine::builtins::promise::PromiseState;
use boa_engine::object::builtins::{JsDate, JsMap, JsPromise, JsRegExp, JsSet};
use boa_engine::property::PropertyKey;
use boa_engine::{Context, JsObject, JsResult, JsString, JsValue, JsVariant, js_string};

use crate::failure;
use crate::json::{keys, quote};

/// Deepest value that is shown.
const MAX_DEPTH: usize = 6;
/// Items of a list, and members of an object, that are shown.
const MAX_ITEMS: u64 = 100;

/// Text of a value.
pub(crate) struct Inspector {
    text: String,
    /// Bytes that were cut.
    dropped: usize,
    limit: usize,
    around: Vec<JsObject>,
}

impl Inspector {
    /// Creates a text of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { text: String::new(), dropped: 0, limit, around: Vec::new() }
    }

    /// Shows a value: its text, and the number of bytes that were cut.
    ///
    /// # Errors
    /// An error of a proxy of the program.
    pub(crate) fn show(mut self, value: &JsValue, context: &mut Context) -> JsResult<(String, usize)> {
        self.value(value, context)?;
        Ok((self.text, self.dropped))
    }

    fn write(&mut self, text: &str) {
        let room = if self.dropped > 0 { 0 } else { self.limit - self.text.len() };
        let kept = text.floor_char_boundary(room);
        self.text.push_str(&text[..kept]);
        self.dropped += text.len() - kept;
    }

    fn value(&mut self, value: &JsValue, context: &mut Context) -> JsResult<()> {
        match value.variant() {
            JsVariant::String(text) => self.string(&text),
            JsVariant::BigInt(value) => {
                // The decimal form of a large number takes long to make: 1,000 digits are enough.
                let shown = value.to_f64().abs() < 1e300;
                self.write(&if shown { format!("{value}n") } else { "a large BigInt".to_owned() });
            }
            JsVariant::Symbol(symbol) => self.write(&symbol.descriptive_string().to_std_string_lossy()),
            JsVariant::Object(object) => self.object(&object, context)?,
            JsVariant::Float64(number) if number == 0.0 && number.is_sign_negative() => self.write("-0"),
            _ => {
                let text = value.to_string(context)?;
                self.write(&text.to_std_string_lossy());
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &JsString) {
        // What is cut anyway is not even quoted.
        let start = text.slice(0, text.len().min(self.limit));
        let mut quoted = String::new();
        quote(&mut quoted, &start.to_std_string_lossy());
        self.write(&quoted);
        self.dropped += text.len() - start.len();
    }

    fn object(&mut self, object: &JsObject, context: &mut Context) -> JsResult<()> {
        if self.around.iter().any(|other| JsObject::equals(other, object)) {
            self.write("[Circular]");
            return Ok(());
        }
        let name = class_name(object);
        if self.around.len() >= MAX_DEPTH {
            self.write(&if object.is_array() {
                "[Array]".to_owned()
            } else {
                format!("[{}]", name.as_deref().unwrap_or("Object"))
            });
            return Ok(());
        }
        // What is cut anyway is not looked at.
        if self.dropped > 0 {
            return Ok(());
        }
        self.around.push(object.clone());
        let shown = self.contents(object, name.as_deref(), context);
        self.around.pop();
        shown
    }

    fn contents(&mut self, object: &JsObject, name: Option<&str>, context: &mut Context) -> JsResult<()> {
        if object.is_callable() {
            let name = own_text(object, "name").filter(|name| !name.is_empty());
            self.write(&name.map_or("[Function]".to_owned(), |name| format!("[Function: {name}]")));
        } else if object.is_array() {
            self.array(object, context)?;
        } else if object.is::<Error>() {
            let (exception, message) = failure::described(object);
            self.write(&if message.is_empty() { exception } else { format!("{exception}: {message}") });
        } else if let Ok(promise) = JsPromise::from_object(object.clone()) {
            self.write("Promise { ");
            match promise.state() {
                PromiseState::Pending => self.write("<pending>"),
                PromiseState::Fulfilled(value) => self.value(&value, context)?,
                PromiseState::Rejected(value) => {
                    self.write("<rejected> ");
                    self.value(&value, context)?;
                }
            }
            self.write(" }");
        } else if let Ok(date) = JsDate::from_object(object.clone()) {
            let text = date.to_iso_string(context).ok().and_then(|text| text.as_string());
            self.write(&text.map_or("Invalid Date".to_owned(), |text| text.to_std_string_lossy()));
        } else if let Ok(map) = JsMap::from_object(object.clone()) {
            let mut entries = Vec::new();
            map.for_each_native(|key, value| {
                entries.push((key, value));
                Ok(())
            })?;
            self.write(&format!("Map({}) ", entries.len()));
            self.list('{', entries.len() as u64, '}', context, |inspector, index, context| {
                let (key, value) = &entries[index as usize];
                inspector.value(key, context)?;
                inspector.write(" => ");
                inspector.value(value, context)
            })?;
        } else if let Ok(set) = JsSet::from_object(object.clone()) {
            let mut items = Vec::new();
            set.for_each_native(|item| {
                items.push(item);
                Ok(())
            })?;
            self.write(&format!("Set({}) ", items.len()));
            self.list('{', items.len() as u64, '}', context, |inspector, index, context| {
                inspector.value(&items[index as usize], context)
            })?;
        } else if JsRegExp::from_object(object.clone()).is_ok() {
            let source = object.get(js_string!("source"), context)?.to_string(context)?;
            let flags = object.get(js_string!("flags"), context)?.to_string(context)?;
            self.write(&format!("/{}/{}", source.to_std_string_lossy(), flags.to_std_string_lossy()));
        } else {
            if let Some(name) = name.filter(|name| *name != "Object") {
                self.write(&format!("{name} "));
            }
            self.members(object, context)?;
        }
        Ok(())
    }

    fn array(&mut self, object: &JsObject, context: &mut Context) -> JsResult<()> {
        let length = object.get(js_string!("length"), context)?.to_length(context)?;
        self.list('[', length, ']', context, |inspector, index, context| {
            let item = object.get(index, context)?;
            inspector.value(&item, context)
        })
    }

    fn members(&mut self, object: &JsObject, context: &mut Context) -> JsResult<()> {
        let keys = keys(object, context)?;
        self.list('{', keys.len() as u64, '}', context, |inspector, index, context| {
            let key = &keys[index as usize];
            let text = key.to_std_string_lossy();
            match is_identifier(&text) {
                true => inspector.write(&text),
                false => inspector.string(key),
            }
            inspector.write(": ");
            let property = object.borrow().properties().get(&PropertyKey::from(key.clone()));
            match property {
                Some(property) if property.is_accessor_descriptor() => {
                    inspector.write("[Getter]");
                    Ok(())
                }
                Some(property) => inspector.value(property.value().unwrap_or(&JsValue::undefined()), context),
                // A proxy has its members elsewhere.
                None => {
                    let value = object.get(PropertyKey::from(key.clone()), context)?;
                    inspector.value(&value, context)
                }
            }
        })
    }

    fn list(
        &mut self,
        open: char,
        count: u64,
        close: char,
        context: &mut Context,
        mut item: impl FnMut(&mut Self, u64, &mut Context) -> JsResult<()>,
    ) -> JsResult<()> {
        if count == 0 {
            self.write(&format!("{open}{close}"));
            return Ok(());
        }
        self.write(&format!("{open} "));
        for index in 0..count.min(MAX_ITEMS) {
            if index > 0 {
                self.write(", ");
            }
            item(self, index, context)?;
        }
        if count > MAX_ITEMS {
            self.write(&format!(", ... {} more", count - MAX_ITEMS));
        }
        self.write(&format!(" {close}"));
        Ok(())
    }
}

fn is_identifier(text: &str) -> bool {
    let part = |character: char| character.is_alphanumeric() || character == '_' || character == '$';
    text.chars().all(part) && text.chars().next().is_some_and(|first| !first.is_numeric())
}

/// Text of a property of the object itself, if it is plain data.
pub(crate) fn own_text(object: &JsObject, name: &str) -> Option<String> {
    let property = object.borrow().properties().get(&JsString::from(name).into())?;
    Some(property.value()?.as_string()?.to_std_string_lossy())
}

/// Name of the class of an object, without running the program.
fn class_name(object: &JsObject) -> Option<String> {
    let Some(prototype) = object.prototype() else { return Some("[Object: null prototype]".to_owned()) };
    let constructor = prototype.borrow().properties().get(&js_string!("constructor").into())?;
    own_text(&constructor.value()?.as_object()?, "name").filter(|name| !name.is_empty())
}
