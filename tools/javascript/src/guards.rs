//! Functions of the language that are replaced: those of which one call can need more memory than there is, or more stack.
//! Nothing can stop the engine inside of such a call, so that the instance would end without a message.

use std::rc::Rc;

use boa_engine::object::{FunctionObjectBuilder, JsObject};
use boa_engine::property::PropertyDescriptor;
use boa_engine::{Context, JsArgs as _, JsNativeError, JsResult, JsString, JsValue, NativeFunction, js_string};

use crate::json;
use crate::memory;
use crate::realm::Shared;

/// Functions of the language before a program can replace them.
pub(crate) struct Originals {
    /// `Object.keys`.
    pub(crate) keys: JsObject,
    /// Getter of `Error.prototype.stack`.
    pub(crate) stack: JsObject,
}

impl Originals {
    /// Returns the functions of a context.
    pub(crate) fn of(context: &Context) -> Rc<Self> {
        context.get_data::<Rc<Self>>().cloned().unwrap_or_else(|| {
            let nothing = JsObject::with_null_proto();
            Rc::new(Self { keys: nothing.clone(), stack: nothing })
        })
    }
}

/// Maximum nesting of the text that `JSON.parse` reads.
const MAX_NESTING: usize = 128;

/// Bytes that a call needs at most, from its `this` value and its arguments.
type Need = fn(&JsValue, &[JsValue], &mut Context) -> JsResult<f64>;

/// Installs the replaced functions.
///
/// # Errors
/// An error of the engine, which no state of this crate causes.
pub(crate) fn install(context: &mut Context) -> JsResult<()> {
    let intrinsics = context.intrinsics().constructors();
    let (array, string) = (intrinsics.array().prototype(), intrinsics.string().prototype());
    let (array_class, object_class) = (intrinsics.array().constructor(), intrinsics.object().constructor());
    let error = intrinsics.error().prototype();
    let json = context.intrinsics().objects().json();
    let stack = error.borrow().properties().get(&js_string!("stack").into());
    let stack = stack.and_then(|stack| stack.get().and_then(JsValue::as_object));
    let keys = object_class.get(js_string!("keys"), context)?.as_object();
    if let (Some(keys), Some(stack)) = (keys, stack) {
        context.insert_data(Rc::new(Originals { keys, stack }));
    }
    let guarded: [(&JsObject, &[&'static str], Need); 4] = [
        (&string, &["repeat"], repeated),
        (&string, &["padStart", "padEnd"], padded),
        (&array, &["fill", "join", "sort", "toSorted", "toReversed"], items),
        // One call makes a large array of which nothing but its small head counts as garbage.
        (&array, &["map", "filter", "slice", "concat", "flat", "flatMap"], nothing),
    ];
    for (object, names, need) in guarded {
        for name in names {
            guard(object, name, need, context)?;
        }
    }
    guard(&array_class, "from", copied, context)?;
    guard(&string, "split", nothing, context)?;
    replace(&json, "parse", NativeFunction::from_copy_closure_with_captures, parse, context)
}

/// Replaces a function by one that stops the program if the call would need too much memory.
fn guard(object: &JsObject, name: &'static str, need: Need, context: &mut Context) -> JsResult<()> {
    let call = move |this: &JsValue, arguments: &[JsValue], original: &JsObject, context: &mut Context| {
        memory::relieve();
        let need = need(this, arguments, context)?;
        if need > memory::left() as f64 {
            return Err(Shared::of(context).stop(format!("`{name}` would need {need} bytes of memory")));
        }
        original.call(this, arguments, context)
    };
    replace(object, name, NativeFunction::from_copy_closure_with_captures, call, context)
}

/// Replaces a function by one that gets the original.
fn replace<F>(
    object: &JsObject,
    name: &'static str,
    function: fn(F, JsObject) -> NativeFunction,
    call: F,
    context: &mut Context,
) -> JsResult<()> {
    let key = JsString::from(name);
    let Some(original) = object.get(key.clone(), context)?.as_object() else { return Ok(()) };
    let length = original.get(js_string!("length"), context)?.to_length(context)? as usize;
    let function =
        FunctionObjectBuilder::new(context.realm(), function(call, original)).name(key.clone()).length(length);
    let property =
        PropertyDescriptor::builder().value(function.build()).writable(true).enumerable(false).configurable(true);
    object.define_property_or_throw(key, property, context).map(drop)
}

fn nothing(_: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<f64> {
    Ok(0.0)
}

/// Bytes of a repeated text. The engine keeps a text that is no Latin-1 in two bytes a character.
fn repeated(this: &JsValue, arguments: &[JsValue], _: &mut Context) -> JsResult<f64> {
    let length = this.as_string().map_or(0, |text| bytes(&text));
    Ok(length as f64 * number(arguments.get_or_undefined(0)))
}

fn padded(_: &JsValue, arguments: &[JsValue], _: &mut Context) -> JsResult<f64> {
    Ok(2.0 * number(arguments.get_or_undefined(0)))
}

/// Bytes of the items of an array: at least one for each.
fn items(this: &JsValue, _: &[JsValue], _: &mut Context) -> JsResult<f64> {
    Ok(length(this))
}

fn copied(_: &JsValue, arguments: &[JsValue], _: &mut Context) -> JsResult<f64> {
    Ok(length(arguments.get_or_undefined(0)))
}

/// Length of an array, or of an object with such a property. No getter and no proxy is asked.
fn length(value: &JsValue) -> f64 {
    let property = value.as_object().and_then(|object| object.borrow().properties().get(&js_string!("length").into()));
    property.and_then(|property| property.value().map(number)).unwrap_or(0.0)
}

fn number(value: &JsValue) -> f64 {
    value.as_number().filter(|number| number.is_finite()).unwrap_or(0.0)
}

fn bytes(text: &JsString) -> usize {
    text.len() * if text.as_str().is_latin1() { 1 } else { 2 }
}

/// `JSON.parse`, faster than the engine's and without its recursion.
fn parse(this: &JsValue, arguments: &[JsValue], original: &JsObject, context: &mut Context) -> JsResult<JsValue> {
    memory::relieve();
    let text = arguments.get_or_undefined(0).to_string(context)?;
    let plain = text.to_std_string().ok();
    if arguments.get_or_undefined(1).is_undefined()
        && let Some(plain) = &plain
        && let Ok(value) = json::read(plain, false, context)
    {
        return Ok(value);
    }
    if nesting(text.iter()) > MAX_NESTING {
        let message = format!("JSON text is nested more than {MAX_NESTING} deep");
        return Err(JsNativeError::syntax().with_message(message).into());
    }
    let arguments = [text.into(), arguments.get_or_undefined(1).clone()];
    original.call(this, &arguments, context)
}

/// Largest number of open brackets in a text, also of those in strings.
fn nesting(text: impl Iterator<Item = u16>) -> usize {
    let mut open = 0_usize;
    let mut most = 0;
    for unit in text {
        match u8::try_from(unit) {
            Ok(b'[' | b'{') => open += 1,
            Ok(b']' | b'}') => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}
