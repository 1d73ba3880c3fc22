//! Execution of a script: the code of the module first, then its entry. Every call has a fresh module; only the frozen
//! built-ins outlive a call.

use std::future::ready;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use starlark::PrintHandler;
use starlark::environment::Module;
use starlark::eval::Evaluator;
use starlark::syntax::AstModule;
use starlark::values::Value;

use crate::bindings::exports::toolcrib::script::interpreter::{Entry, Problem, Script};
use crate::{dialect, globals, json, modules};

/// Maximum nested calls. A call takes some of the sandbox's stack, and a trap has no line and no column.
pub(crate) const MAX_CALLS: usize = 128;

/// Input of one call of an entry.
pub(crate) enum Input {
    /// JSON object for `run`.
    Arguments(String),
    /// Name of an event and its JSON text for `handle`.
    Event { name: String, payload: String },
}

/// Calls `run` with a JSON object and returns the JSON text of its result.
pub(crate) fn run(script: Script, arguments: String) -> Result<String, Problem> {
    at_once(call(script, Entry::Run, ready(Input::Arguments(arguments))))
}

/// Calls `handle` with an event if the condition holds, and returns the JSON text of its result.
pub(crate) fn handle(
    script: Script,
    when: Option<&str>,
    name: String,
    payload: String,
) -> Result<Option<String>, Problem> {
    if let Some(when) = when
        && !holds(dialect::expression(when)?, &name, &payload)?
    {
        return Ok(None);
    }
    at_once(call(script, Entry::Handle, ready(Input::Event { name, payload }))).map(Some)
}

/// Message for a script without its entry.
pub(crate) fn missing(script: &Script, entry: Entry) -> String {
    let (kind, entry) = names(entry);
    format!("{kind} script \"{}\" must define a '{entry}' function", script.name)
}

/// Message for a script with an entry that is not a function.
pub(crate) fn no_function(script: &Script, entry: Entry) -> String {
    let (kind, entry) = names(entry);
    format!("{kind} script \"{}\": '{entry}' must be a function", script.name)
}

/// Kind of definition for an entry, and the name of the function that it must define.
pub(crate) fn names(entry: Entry) -> (&'static str, &'static str) {
    match entry {
        Entry::Run => ("tool", "run"),
        Entry::Handle => ("hook", "handle"),
    }
}

/// Reads a script, waits for the input, and calls the entry with it.
pub(crate) async fn call(script: Script, entry: Entry, input: impl Future<Output = Input>) -> Result<String, Problem> {
    let parsed = dialect::parse(&script.name, &script.source)?;
    if let Some(problem) = dialect::loads(&parsed).into_iter().next() {
        return Err(problem);
    }
    Module::with_temp_heap_async(async |module| {
        let mut eval = evaluator(&module)?;
        eval.eval_module(parsed, globals::get())?;
        let name = names(entry).1;
        let function = module.get(name).ok_or_else(|| Problem::whole(missing(&script, entry)))?;
        if function.get_type() != "function" {
            return Err(Problem::whole(no_function(&script, entry)));
        }
        // The name and the text are parameters, which an image does not hold.
        drop(script);
        let returned = match input.await {
            Input::Arguments(arguments) => {
                let arguments = decode(&eval, "arguments", &arguments)?;
                eval.eval_function(function, &[arguments], &[])?
            }
            Input::Event { name, payload } => {
                let payload = decode(&eval, "payload", &payload)?;
                eval.eval_function(function, &[eval.heap().alloc(name), payload], &[])?
            }
        };
        json::encode(returned).map_err(|error| Problem::whole(format!("{name} returned {error}")))
    })
    .await
}

/// Result of a call that has its input.
fn at_once<T>(call: impl Future<Output = T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("a call waits only for its input"),
    }
}

/// `true` if the condition of a hook holds for an event.
pub(crate) fn holds(when: AstModule, event: &str, payload: &str) -> Result<bool, Problem> {
    Module::with_temp_heap(|module| {
        let mut eval = evaluator(&module)?;
        module.set("event", module.heap().alloc(event));
        module.set("payload", decode(&eval, "payload", payload)?);
        let value = eval.eval_module(when, globals::get()).map_err(|error| Problem::from(error).of("when"))?;
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
    // An instance lives for one call: collecting garbage would only cost time.
    eval.disable_gc();
    eval.set_max_callstack_size(MAX_CALLS).map_err(Problem::whole)?;
    eval.set_print_handler(&Lines);
    Ok(eval)
}

struct Lines;

impl PrintHandler for Lines {
    fn println(&self, text: &str) -> starlark::Result<()> {
        modules::write_line(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(source: &str) -> Script {
        Script { name: "t".to_owned(), source: source.to_owned() }
    }

    fn failed(source: &str) -> (u32, u32, String) {
        let problem = run(script(source), "{}".to_owned()).expect_err("it fails");
        (problem.line, problem.column, problem.message)
    }

    fn wrong(line: u32, column: u32, message: &str) -> (u32, u32, String) {
        (line, column, message.to_owned())
    }

    #[test]
    fn a_failure_has_its_own_words_and_its_place() {
        assert_eq!(failed("def run(args):\n    fail('no good')"), wrong(2, 5, "no good"));
        assert_eq!(failed("def run(args):\n    return args['b']"), wrong(2, 12, "Key `\"b\"` was not found"));
        assert_eq!(
            failed("def run(args)\n    return 1"),
            wrong(1, 14, "Parse error: unexpected new line, expected symbol ':'")
        );
    }

    #[test]
    fn a_script_must_define_its_entry() {
        assert_eq!(failed("x = 1"), wrong(0, 0, "tool script \"t\" must define a 'run' function"));
        assert_eq!(failed("run = 1"), wrong(0, 0, "tool script \"t\": 'run' must be a function"));
        let handled = handle(script("handle = 1"), None, "e".to_owned(), "{}".to_owned()).expect_err("no function");
        assert_eq!(handled.message, "hook script \"t\": 'handle' must be a function");
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        let whole = |message| wrong(0, 0, message);
        let returned = |value| failed(&format!("def run(args):\n    return {value}"));
        assert_eq!(returned("{1: 2}"), whole("run returned a dict with a key of type int; keys must be strings"));
        assert_eq!(returned("float('inf')"), whole("run returned inf, which JSON cannot hold; return a finite number"));
        assert_eq!(
            failed("def run(args):\n    a = []\n    a.append(a)\n    return a"),
            whole("run returned a value nested deeper than 128, or one that holds itself")
        );
        assert_eq!(
            returned("['x'] * (5 << 20)"),
            whole("run returned more than 16777216 bytes: the answer is larger than the limit")
        );
    }

    #[test]
    fn calls_that_nest_too_deep_end_in_a_message() {
        let (_, _, message) = failed("def f(n):\n    return f(n + 1)\n\ndef run(args):\n    return f(0)");
        assert_eq!(message, "calls are nested deeper than 128: recursion is not available; rewrite it as a loop");
    }

    #[test]
    fn a_condition_decides_whether_a_hook_is_asked() {
        let hook = || script("def handle(event, payload):\n    return block(event + payload['x'])");
        let event = || ("tool.pre".to_owned(), r#"{"x":"!"}"#.to_owned());
        let asked = |when| handle(hook(), when, event().0, event().1).map_err(|problem| problem.message);
        let blocked = Ok(Some(r#"{"action":"block","reason":"tool.pre!"}"#.to_owned()));
        assert_eq!(asked(None), blocked);
        assert_eq!(asked(Some("event == 'tool.pre' and 'x' in payload")), blocked);
        assert_eq!(asked(Some("event == 'tool.post'")), Ok(None));
        assert_eq!(
            asked(Some("payload['x']")),
            Err("when must be True or False, found \"!\" of type string".to_owned())
        );
        assert_eq!(asked(Some("payload['y']")), Err("when: Key `\"y\"` was not found".to_owned()));
        assert_eq!(asked(Some("x = 1")), Err("when: it must be one expression".to_owned()));
    }

    #[test]
    fn no_call_sees_what_another_left() {
        let counts = || script("seen = []\n\ndef run(args):\n    seen.append(1)\n    return len(seen)");
        assert_eq!(run(counts(), "{}".to_owned()).ok().as_deref(), Some("1"));
        assert_eq!(run(counts(), "{}".to_owned()).ok().as_deref(), Some("1"));
    }
}
