//! Runs a script: the module's own code first, then its entry. Every call gets a fresh module; what outlives a call is the
//! frozen built-ins alone.

use std::io::Write;

use starlark::PrintHandler;
use starlark::environment::Module;
use starlark::eval::Evaluator;
use starlark::values::Value;

use crate::bindings::exports::toolcrib::script::interpreter::{Entry, Problem, Script};
use crate::{dialect, globals, json};

/// Calls that may be open at once. A call takes some of the sandbox's stack, and a trap has no line and no column.
pub(crate) const MAX_CALLS: usize = 128;

/// Calls `run` with a JSON object and gives the JSON of what it returned.
pub(crate) fn run(script: &Script, arguments: &str) -> Result<String, Problem> {
    call(script, Entry::Run, |eval, function| {
        let arguments = decode(eval, "arguments", arguments)?;
        Ok(eval.eval_function(function, &[arguments], &[])?)
    })
}

/// Calls `handle` with an event where the condition holds, and gives the JSON of what it returned.
pub(crate) fn handle(
    script: &Script,
    when: Option<&str>,
    event: &str,
    payload: &str,
) -> Result<Option<String>, Problem> {
    if let Some(when) = when
        && !holds(when, event, payload)?
    {
        return Ok(None);
    }
    let returned = call(script, Entry::Handle, |eval, function| {
        let payload = decode(eval, "payload", payload)?;
        Ok(eval.eval_function(function, &[eval.heap().alloc(event), payload], &[])?)
    })?;
    Ok(Some(returned))
}

/// What a script without its entry is told.
pub(crate) fn missing(script: &Script, entry: Entry) -> String {
    let (kind, entry) = names(entry);
    format!("{kind} script \"{}\" must define a '{entry}' function", script.name)
}

/// What a script is told whose entry is something else.
pub(crate) fn no_function(script: &Script, entry: Entry) -> String {
    let (kind, entry) = names(entry);
    format!("{kind} script \"{}\": '{entry}' must be a function", script.name)
}

/// What is described by such a script, and the name that it must define.
pub(crate) fn names(entry: Entry) -> (&'static str, &'static str) {
    match entry {
        Entry::Run => ("tool", "run"),
        Entry::Handle => ("hook", "handle"),
    }
}

fn call(
    script: &Script,
    entry: Entry,
    enter: impl for<'v> FnOnce(&mut Evaluator<'v, '_, '_>, Value<'v>) -> Result<Value<'v>, Problem>,
) -> Result<String, Problem> {
    let parsed = dialect::parse(&script.name, &script.source)?;
    if let Some(problem) = dialect::loads(&parsed).into_iter().next() {
        return Err(problem);
    }
    Module::with_temp_heap(|module| {
        let mut eval = evaluator(&module)?;
        eval.eval_module(parsed, globals::get())?;
        let name = names(entry).1;
        let function = module.get(name).ok_or_else(|| Problem::whole(missing(script, entry)))?;
        if function.get_type() != "function" {
            return Err(Problem::whole(no_function(script, entry)));
        }
        let returned = enter(&mut eval, function)?;
        json::encode(returned).map_err(|error| Problem::whole(format!("{name} returned {error}")))
    })
}

/// Whether a hook's condition holds for an event.
fn holds(when: &str, event: &str, payload: &str) -> Result<bool, Problem> {
    let parsed = dialect::expression(when)?;
    Module::with_temp_heap(|module| {
        let mut eval = evaluator(&module)?;
        module.set("event", module.heap().alloc(event));
        module.set("payload", decode(&eval, "payload", payload)?);
        let value = eval.eval_module(parsed, globals::get()).map_err(|error| Problem::from(error).of("when"))?;
        value.unpack_bool().ok_or_else(|| {
            Problem::whole(format!("when must be True or False, found {} of type {}", shown(value), value.get_type()))
        })
    })
}

fn shown(value: Value) -> String {
    value.to_repr().chars().take(100).collect()
}

fn decode<'v>(eval: &Evaluator<'v, '_, '_>, what: &str, text: &str) -> Result<Value<'v>, Problem> {
    json::decode(text, eval.heap()).map_err(|error| Problem::whole(format!("{what}: {error}")))
}

fn evaluator<'v, 'a>(module: &'a Module<'v>) -> Result<Evaluator<'v, 'a, 'a>, Problem> {
    let mut eval = Evaluator::new(module);
    // An instance lives for one call: collecting would only cost time.
    eval.disable_gc();
    eval.set_max_callstack_size(MAX_CALLS).map_err(Problem::whole)?;
    eval.set_print_handler(&Lines);
    Ok(eval)
}

struct Lines;

impl PrintHandler for Lines {
    fn println(&self, text: &str) -> starlark::Result<()> {
        line(text);
        Ok(())
    }
}

/// Writes a line to standard error in one piece. That nobody reads it is no fault of the script.
pub(crate) fn line(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
