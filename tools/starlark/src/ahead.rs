//! Scripts that are read ahead of their calls. Reading one leaves it in an instance, in which it waits for its input: the
//! image of this instance is given to every call of the script.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use starlark::syntax::AstModule;

use crate::bindings::exports::toolcrib::script::interpreter::{Entry, Problem, Script};
use crate::evaluate::{self, Input};
use crate::{dialect, image};

/// Script that waits for its input.
struct Waiting {
    call: Pin<Box<dyn Future<Output = Result<String, Problem>>>>,
    /// Parsed condition of a hook.
    when: Option<AstModule>,
}

thread_local! {
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
    static INPUT: Cell<Option<Input>> = const { Cell::new(None) };
}

/// Returns the image of a script that was read, up to the call of its entry.
pub(crate) fn read(script: Script, entry: Entry, when: Option<String>) -> Option<Vec<u8>> {
    image::of(move || begin(script, entry, when))
}

/// Reads a script; returns `true` if it waits for its input.
fn begin(script: Script, entry: Entry, when: Option<String>) -> bool {
    let Ok(when) = when.map(|when| dialect::expression(&when)).transpose() else { return false };
    let input = poll_fn(|_| INPUT.take().map_or(Poll::Pending, Poll::Ready));
    let mut waiting = Waiting { call: Box::pin(evaluate::call(script, entry, input)), when };
    let is_waiting = poll(&mut waiting).is_pending();
    WAITING.set(Some(waiting));
    is_waiting
}

fn poll(waiting: &mut Waiting) -> Poll<Result<String, Problem>> {
    waiting.call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Calls `run` of the script of an image.
pub(crate) fn run(arguments: String) -> Result<String, Problem> {
    go_on(Input::Arguments(arguments)).map(Option::unwrap_or_default)
}

/// Calls `handle` of the script of an image, if its condition holds.
pub(crate) fn handle(name: String, payload: String) -> Result<Option<String>, Problem> {
    go_on(Input::Event { name, payload })
}

fn go_on(input: Input) -> Result<Option<String>, Problem> {
    let nothing = || Problem::whole("the image holds no script");
    let mut waiting = WAITING.take().ok_or_else(nothing)?;
    if let (Some(when), Input::Event { name, payload }) = (waiting.when.take(), &input)
        && !evaluate::holds(when, name, payload)?
    {
        return Ok(None);
    }
    INPUT.set(Some(input));
    match poll(&mut waiting) {
        Poll::Ready(returned) => returned.map(Some),
        Poll::Pending => Err(nothing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(source: &str) -> Script {
        Script { name: "t".to_owned(), source: source.to_owned() }
    }

    #[test]
    fn a_script_that_was_read_goes_on_with_its_input() {
        let source = "seen = [1]\n\ndef run(args):\n    seen.append(args['x'])\n    return seen";
        assert!(begin(script(source), Entry::Run, None));
        assert_eq!(run(r#"{"x":2}"#.to_owned()).ok().as_deref(), Some("[1,2]"));
        assert!(run("{}".to_owned()).is_err_and(|problem| problem.message == "the image holds no script"));
    }

    #[test]
    fn an_error_after_the_input_has_its_place() {
        assert!(begin(script("def run(args):\n    return args['b']"), Entry::Run, None));
        let problem = run("{}".to_owned()).expect_err("there is no such key");
        assert_eq!((problem.line, problem.column), (2, 12));
        assert_eq!(problem.message, "Key `\"b\"` was not found");
    }

    #[test]
    fn a_script_with_a_problem_does_not_wait() {
        for source in ["def run(args)", "x = 1", "run = 1", "fail('no')", "load('a', 'b')\ndef run(args): pass"] {
            assert!(!begin(script(source), Entry::Run, None), "{source}");
        }
        assert!(!begin(script("def handle(event, payload): pass"), Entry::Handle, Some("1 +".to_owned())));
    }

    #[test]
    fn the_condition_of_a_hook_is_read_ahead_too() {
        let asked = |when: &str, payload: &str| {
            let source = "def handle(event, payload):\n    return block(event + payload['x'])";
            assert!(begin(script(source), Entry::Handle, Some(when.to_owned())));
            handle("tool.pre".to_owned(), payload.to_owned()).map_err(|problem| problem.message)
        };
        let blocked = r#"{"action":"block","reason":"tool.pre!"}"#;
        assert_eq!(asked("'x' in payload", r#"{"x":"!"}"#), Ok(Some(blocked.to_owned())));
        assert_eq!(asked("'x' in payload", "{}"), Ok(None));
        assert_eq!(asked("payload['y']", "{}"), Err("when: Key `\"y\"` was not found".to_owned()));
    }
}
