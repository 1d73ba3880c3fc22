//! Failures of programs: what a thrown value or an error of the engine says, in the form of the contract.

use boa_engine::builtins::error::Error;
use boa_engine::error::{EngineError, RuntimeLimitError};
use boa_engine::{Context, JsError, JsObject, JsString, JsValue};

use crate::guards::Originals;
use crate::inspect::{Inspector, own_text};
use crate::program::Program;

/// Kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The program was not started.
    Invalid,
    /// An exception that the program did not catch.
    Uncaught,
    /// A limit was reached.
    Limit,
    /// The host did what the contract does not allow.
    Misuse,
}

/// Entry of a traceback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column in characters, from 1.
    pub(crate) column: u32,
    /// Name of the function.
    pub(crate) function: Option<String>,
    /// Source line.
    pub(crate) source: Option<String>,
}

/// Failed program.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Kind.
    pub(crate) kind: Kind,
    /// Type of the exception.
    pub(crate) exception: String,
    /// Message.
    pub(crate) message: String,
    /// Traceback, outermost entry first.
    pub(crate) traceback: Vec<Frame>,
}

/// Entries of a traceback that are kept at each end.
const KEPT_FRAMES: usize = 10;
/// Characters of a source line that are kept.
const KEPT_SOURCE: usize = 200;
/// Characters of the name of an exception or a function that are kept.
const KEPT_NAME: usize = 100;
/// Characters of a message that are kept.
const KEPT_MESSAGE: usize = 4_000;

/// Names that other systems have, and what to do without them.
const ABSENT: [(&str, &str); 9] = [
    ("setTimeout", "there are no timers"),
    ("setInterval", "there are no timers"),
    ("setImmediate", "there are no timers"),
    ("require", "there are no modules"),
    ("process", "there is no system"),
    ("Buffer", "there is no system"),
    ("fetch", "there is no network: call a tool"),
    ("structuredClone", "copy with `JSON.parse(JSON.stringify(value))`"),
    ("Intl", "there are no locales"),
];

impl Failure {
    /// Creates the failure of a host.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self { kind: Kind::Misuse, exception: "Misuse".to_owned(), message: message.into(), traceback: Vec::new() }
    }

    /// Creates the failure of a program that does not parse.
    pub(crate) fn invalid(message: &str, line: u32, column: u32, source: &str) -> Self {
        let frame = Frame { line, column, function: None, source: source_line(source, line) };
        Self {
            kind: Kind::Invalid,
            exception: "SyntaxError".to_owned(),
            message: cut(message, KEPT_MESSAGE),
            traceback: if line > 0 { vec![frame] } else { Vec::new() },
        }
    }

    /// Creates the failure of a program that waits for nothing.
    pub(crate) fn unsettled() -> Self {
        Self {
            kind: Kind::Uncaught,
            exception: "Error".to_owned(),
            message:
                "the program waits for a promise that nothing can settle, or its functions call each other too deeply"
                    .to_owned(),
            traceback: Vec::new(),
        }
    }

    /// Creates the failure of a program that reached a limit of this crate.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self { kind: Kind::Limit, exception: "RangeError".to_owned(), message: message.into(), traceback: Vec::new() }
    }

    /// Creates the failure of a program that did not catch a value.
    pub(crate) fn thrown(value: &JsValue, program: &Program, context: &mut Context) -> Self {
        let (exception, message) = match value.as_object() {
            Some(error) if error.is::<Error>() => described(&error),
            _ => {
                let shown = Inspector::new(KEPT_MESSAGE).show(value, context);
                (value.type_of().to_owned(), shown.map_or_else(|_| String::new(), |(text, _)| text))
            }
        };
        let stack = value.as_object().and_then(|error| {
            if let Some(stack) = own_text(&error, "stack") {
                return Some(stack);
            }
            let stack = Originals::of(context).stack.call(&error.into(), &[], context);
            Some(stack.ok()?.as_string()?.to_std_string_lossy())
        });
        let stack = stack.unwrap_or_default();
        let absent = ABSENT.iter().find(|(name, _)| message.starts_with(name) && exception == "ReferenceError");
        let message = absent.map_or(message.clone(), |(_, advice)| format!("{message}: {advice}"));
        Self {
            kind: Kind::Uncaught,
            exception: cut(&exception, KEPT_NAME),
            message: cut(&message, KEPT_MESSAGE),
            traceback: traceback(&stack, program),
        }
    }

    /// Creates the failure of a program that the engine stopped. `stopped` is the limit of this crate, if there was one.
    pub(crate) fn stopped(error: &JsError, stopped: Option<String>, program: &Program) -> Self {
        let message = match (stopped, error.as_engine()) {
            (Some(message), _) => message,
            (None, Some(EngineError::RuntimeLimit(RuntimeLimitError::LoopIteration))) => {
                "too many loop turns".to_owned()
            }
            (None, Some(EngineError::RuntimeLimit(_))) => "Maximum call stack size exceeded".to_owned(),
            (None, _) => "the engine failed, or the functions of the program call each other too deeply".to_owned(),
        };
        Self { traceback: traceback(&error.to_string(), program), ..Self::limit(message) }
    }
}

/// Name and message of an error, without running the program: a getter of it is not asked.
pub(crate) fn described(error: &JsObject) -> (String, String) {
    let find = |name: &str| {
        let key = JsString::from(name).into();
        let mut object = Some(error.clone());
        // The chain is the program's: it may be long, but has no cycle.
        for _ in 0..16 {
            let current = object?;
            if let Some(property) = current.borrow().properties().get(&key) {
                return property.value()?.as_string();
            }
            object = current.prototype();
        }
        None
    };
    let text =
        |name: &str, most: usize| find(name).map(|text| text.slice(0, text.len().min(most)).to_std_string_lossy());
    let exception = text("name", KEPT_NAME).filter(|name| !name.is_empty()).unwrap_or_else(|| "Error".to_owned());
    (exception, text("message", 2 * KEPT_MESSAGE).unwrap_or_default())
}

/// Entries of the engine's text of a stack: lines such as `    at name (program:1:2)`, innermost first.
fn traceback(stack: &str, program: &Program) -> Vec<Frame> {
    let mut frames: Vec<Frame> = stack.lines().filter_map(|line| frame(line, program)).collect();
    frames.reverse();
    let count = frames.len();
    let kept = frames.into_iter().enumerate().filter(|(index, _)| *index < KEPT_FRAMES || index + KEPT_FRAMES >= count);
    kept.map(|(_, frame)| frame).collect()
}

fn frame(line: &str, program: &Program) -> Option<Frame> {
    let (function, place) = line.strip_prefix("    at ")?.strip_suffix(')')?.rsplit_once(" (")?;
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let (line, column, source) = match name == program.path {
        true => {
            let (line, column) = program.place(line, column)?;
            (line, column, source_line(&program.source, line))
        }
        // A function of an earlier program of the session.
        false if name.starts_with(Program::PATH) => (u32::saturating_sub(line, 1), column, None),
        false => return None,
    };
    let function = Some(function).filter(|name| *name != "<main>").map(|name| cut(name, KEPT_NAME));
    Some(Frame { line, column, function, source })
}

fn source_line(source: &str, line: u32) -> Option<String> {
    let line = source.lines().nth(line.checked_sub(1)? as usize)?;
    Some(cut(line.trim(), KEPT_SOURCE))
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
