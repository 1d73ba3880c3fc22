//! Calls of tools: the object `tools`, the calls that wait for the host, and their results.

use std::collections::HashMap;
use std::rc::Rc;

use boa_engine::builtins::promise::ResolvingFunctions;
use boa_engine::object::FunctionObjectBuilder;
use boa_engine::object::builtins::JsPromise;
use boa_engine::property::PropertyDescriptor;
use boa_engine::{Context, JsNativeError, JsObject, JsResult, JsString, JsValue, NativeFunction, js_string};

use crate::json::{self, Refusal, Writer};
use crate::memory;
use crate::realm::{self, Shared};
use code_guest::tools::{Tool, Tools};

/// Call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Identifier.
    pub(crate) id: u32,
    /// Name of the tool.
    pub(crate) tool: String,
    /// Text of a JSON object.
    pub(crate) arguments: String,
}

/// Reason why a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The tool failed.
    Failed,
    /// The call was refused.
    Refused,
    /// The call took too long.
    Timeout,
    /// The arguments are not valid.
    Invalid,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Invalid => "invalid",
        }
    }
}

/// Outcome of a call: JSON text, or the reason and message of its failure.
pub(crate) type Outcome = Result<String, (Reason, String)>;

/// Call without a result.
struct Waiting {
    /// Functions that settle its promise.
    functions: ResolvingFunctions,
    /// Place of the call.
    place: Option<String>,
}

/// Calls of a program.
#[derive(Default)]
pub(crate) struct Calls {
    tools: Rc<Tools>,
    /// Maximum bytes of the arguments of a call.
    value: usize,
    /// Maximum number of calls.
    most: usize,
    /// Calls so far.
    made: usize,
    /// Identifier of the last call of the session.
    last: u32,
    /// Calls that the host does not have yet.
    held: Vec<Call>,
    /// Calls without a result.
    waiting: HashMap<u32, Waiting>,
}

impl Calls {
    /// Starts a program with its tools and limits.
    pub(crate) fn start(&mut self, tools: Tools, value: usize, most: usize) {
        *self = Self { tools: Rc::new(tools), value, most, last: self.last, ..Self::default() };
    }

    /// Forgets the calls of a program that ended.
    pub(crate) fn end(&mut self) {
        self.held.clear();
        self.waiting.clear();
    }

    /// Takes the calls that the host does not have yet.
    pub(crate) fn take(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.held)
    }

    /// Returns `true` if the host has a call that it did not answer.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns `true` if the host has a call of this identifier that it did not answer.
    pub(crate) fn waits_for(&self, id: u32) -> bool {
        self.waiting.contains_key(&id)
    }
}

/// Defines the global object `tools`.
///
/// # Errors
/// An error of the engine: an earlier program made the variable one that cannot be replaced.
pub(crate) fn define(tools: &Tools, context: &mut Context) -> JsResult<()> {
    let object = JsObject::with_null_proto();
    for name in tools.names() {
        let key = JsString::from(name);
        let function = NativeFunction::from_copy_closure_with_captures(
            |_, arguments, name, context| call(name, arguments, context),
            key.clone(),
        );
        let function = FunctionObjectBuilder::new(context.realm(), function).name(key.clone()).length(1).build();
        let property =
            PropertyDescriptor::builder().value(function).writable(false).enumerable(true).configurable(false);
        object.define_property_or_throw(key, property, context)?;
    }
    object.set_integrity_level(boa_engine::object::IntegrityLevel::Frozen, context)?;
    realm::global(context, js_string!("tools"), object)
}

/// Calls a tool: returns the promise of its result.
fn call(name: &JsString, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    memory::relieve();
    let name = name.to_std_string_lossy();
    let shared = Shared::of(context);
    let (tools, value) = {
        let calls = shared.calls.borrow();
        (calls.tools.clone(), calls.value)
    };
    let text = match tools.get(&name) {
        Some(tool) => written(tool, arguments, value, context),
        // A function of an earlier program of the session.
        None => Err(Refusal::Reason(tools.unknown(&name))),
    };
    let (promise, functions) = JsPromise::new_pending(context);
    match text {
        Ok(arguments) => {
            let mut calls = shared.calls.borrow_mut();
            if calls.made >= calls.most {
                return Err(shared.stop(format!("the program made more than {} tool calls", calls.most)));
            }
            calls.made += 1;
            calls.last = calls.last.wrapping_add(1);
            let id = calls.last;
            calls.held.push(Call { id, tool: name, arguments });
            let place = place(context);
            calls.waiting.insert(id, Waiting { functions, place });
        }
        Err(Refusal::Reason(message)) => {
            let error = JsNativeError::typ().with_message(message);
            let error = error.into_opaque(context);
            functions.reject.call(&JsValue::undefined(), &[error.into()], context)?;
        }
        Err(Refusal::Thrown(error)) => {
            let error = error.into_opaque(context)?;
            functions.reject.call(&JsValue::undefined(), &[error], context)?;
        }
    }
    Ok(promise.into())
}

/// Writes the arguments of a call.
fn written(tool: &Tool, arguments: &[JsValue], limit: usize, context: &mut Context) -> Result<String, Refusal> {
    let reason = |problem: String| Refusal::Reason(format!("tools.{} {problem}", tool.name));
    if let [_, extra, ..] = arguments
        && !extra.is_undefined()
    {
        return Err(reason("takes one object of arguments, such as `{ name: value }`".to_owned()));
    }
    let text = match arguments.first() {
        None => "{}".to_owned(),
        Some(value) if value.is_undefined() => "{}".to_owned(),
        Some(value) if !json::is_plain(value) => {
            let kind = json::kind(value);
            return Err(reason(format!("takes one object of arguments, such as `{{ name: value }}`, not {kind}")));
        }
        Some(value) => Writer::new(limit).write(value, context).map_err(|refusal| match refusal {
            Refusal::Reason(problem) => reason(format!("cannot be called: an argument {problem}")),
            thrown => thrown,
        })?,
    };
    match text.starts_with('{') {
        true => Ok(text),
        false => Err(reason("takes one object of arguments: `toJSON` returned something else".to_owned())),
    }
}

/// Settles the promise of a call.
///
/// # Errors
/// An error that ends the program.
pub(crate) fn settle(
    id: u32,
    result: Result<JsValue, (Reason, String)>,
    tool_error: &JsObject,
    context: &mut Context,
) -> JsResult<()> {
    let waiting = Shared::of(context).calls.borrow_mut().waiting.remove(&id);
    let Some(Waiting { functions, place }) = waiting else { return Ok(()) };
    let (settle, value) = match result {
        Ok(value) => (functions.resolve, value),
        Err((reason, message)) => {
            let arguments = [JsString::from(message).into(), JsString::from(reason.name()).into()];
            let error = tool_error.construct(&arguments, None, context)?;
            // The error is made while no function of the program runs: its place is that of the call.
            if let Some(stack) = place {
                let stack =
                    PropertyDescriptor::builder().value(JsString::from(stack)).writable(true).configurable(true);
                error.define_property_or_throw(js_string!("stack"), stack, context)?;
            }
            (functions.reject, error.into())
        }
    };
    settle.call(&JsValue::undefined(), &[value], context).map(drop)
}

/// Place of the call that runs, in the form of the engine's tracebacks.
fn place(context: &Context) -> Option<String> {
    let place = context.stack_trace().next()?.position();
    let name = match place.function_name.is_empty() {
        true => "<main>".to_owned(),
        false => place.function_name.to_std_string_lossy(),
    };
    let position = place.position?;
    Some(format!("    at {name} ({}:{}:{})", place.path, position.line_number(), position.column_number()))
}
