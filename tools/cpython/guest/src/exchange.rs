//! Exchange between the contract and the Python code of the interpreter. That code sends requests: a name and pairs of texts,
//! for which it gets pairs of texts, by the function of its build (module `python`).

#![allow(unsafe_code, reason = "CPython passes addresses")]

use std::cell::RefCell;
use std::mem::take;

use crate::bindings::exports::toolcrib::code::interpreter::{Limits, Problem, Program, Step};
use crate::bindings::toolcrib::code::calls;
use crate::bindings::toolcrib::code::types::{
    Call, CallFailure, Completion, Failure, FailureKind, Form, Frame, Output, Reason,
};
use crate::{python, session, system};

/// Python code of the interpreter.
pub(crate) const CODE: &str = concat!(
    include_str!("../../python/values.py"),
    python::requests!(),
    include_str!("../../python/tools.py"),
    include_str!("../../python/awaited.py"),
    include_str!("../../python/checks.py"),
    include_str!("../../python/runs.py"),
);
/// Task of one start of CPython.
pub(crate) enum Job {
    /// Check a program.
    Check(Program),
    /// Run a program.
    Run(Program, Limits),
}

/// End of a task.
#[derive(Default)]
pub(crate) struct Ended {
    /// Problems of a program that was checked.
    pub(crate) problems: Vec<Problem>,
    /// Last step of a program that ran.
    pub(crate) step: Option<Step>,
}

/// Pairs of texts.
type Pairs = Vec<(String, String)>;

#[derive(Default)]
struct State {
    job: Option<Job>,
    ended: Ended,
    /// Identifier of the next call.
    next: u32,
    /// Number of calls that the program may make.
    left: u32,
    max: u32,
    /// `true` once a program reached a limit.
    is_over: bool,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Runs a task to its end.
pub(crate) fn run(job: Job) -> Ended {
    let printed = match &job {
        Job::Check(_) => 0,
        Job::Run(_, limits) => limits.printed,
    };
    system::start(printed as usize);
    STATE.with_borrow_mut(|state| {
        state.max = if let Job::Run(_, limits) = &job { limits.calls } else { 0 };
        state.left = state.max;
        state.job = Some(job);
        state.ended = Ended::default();
    });
    python::run();
    STATE.with_borrow_mut(|state| take(&mut state.ended))
}

/// Returns `true` once a program reached a limit.
pub(crate) fn is_over() -> bool {
    STATE.with_borrow(|state| state.is_over)
}

/// Loads the Python code of the interpreter, for the snapshot that each program starts from.
#[unsafe(export_name = "wizer-initialize")]
extern "C" fn initialize() {
    session::begin();
    assert!(python::load(), "the Python code of the interpreter cannot be loaded");
    session::remember();
}

/// Response to a request of the Python code, as bytes; an error for bytes that are no request, or one of HTTP.
pub(crate) fn respond(request: &[u8]) -> Result<Vec<u8>, Refusal> {
    let (name, pairs) = read(request).ok_or(Refusal::Invalid)?;
    answer(&name, pairs).map(|pairs| encode(&pairs)).ok_or(Refusal::Network)
}

/// Reason why a request has no response.
pub(crate) enum Refusal {
    /// The bytes are no request.
    Invalid,
    /// Programs have no network.
    Network,
}

/// Reads a request: name, address, number of pairs, pairs, body; each text after its length.
fn read(mut bytes: &[u8]) -> Option<(String, Pairs)> {
    fn number(bytes: &mut &[u8]) -> Option<usize> {
        let (number, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u32::from_le_bytes(*number) as usize)
    }
    fn text(bytes: &mut &[u8]) -> Option<String> {
        let length = number(bytes)?;
        let (text, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    }
    let name = text(&mut bytes)?;
    text(&mut bytes)?;
    let count = number(&mut bytes)?;
    let pairs = (0..count).map(|_| Some((text(&mut bytes)?, text(&mut bytes)?))).collect::<Option<_>>()?;
    Some((name, pairs))
}

/// Encodes a response: status, number of pairs, pairs, body.
fn encode(pairs: &[(String, String)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let number = |bytes: &mut Vec<u8>, number: usize| bytes.extend((number as u32).to_le_bytes());
    number(&mut bytes, 0);
    number(&mut bytes, pairs.len());
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        number(&mut bytes, text.len());
        bytes.extend(text.as_bytes());
    }
    number(&mut bytes, 0);
    bytes
}

/// Answers a request of the Python code; `None` for one of HTTP.
fn answer(name: &str, pairs: Pairs) -> Option<Pairs> {
    let pairs = match name {
        "code" => vec![pair("code", CODE)],
        "job" => STATE.with_borrow_mut(|state| state.job.take()).map(describe).unwrap_or_default(),
        "calls" => make(pairs),
        "problems" | "finished" | "failed" => {
            STATE.with_borrow_mut(|state| match name {
                "problems" => state.ended.problems = problems(pairs),
                "finished" => state.ended.step = Some(finished(pairs)),
                _ => state.ended.step = Some(failed(pairs)),
            });
            Vec::new()
        }
        _ => return None,
    };
    Some(pairs)
}

/// Describes a task for the Python code.
fn describe(job: Job) -> Pairs {
    let (kind, program, limits) = match job {
        Job::Check(program) => ("check", program, None),
        Job::Run(program, limits) => ("run", program, Some(limits)),
    };
    let mut pairs = vec![pair("kind", kind), ("source".to_owned(), program.source)];
    if let Some(limits) = limits {
        pairs.push(("recursion".to_owned(), limits.recursion.to_string()));
        pairs.push(("value".to_owned(), limits.value.to_string()));
    }
    for tool in program.tools {
        pairs.extend([("tool".to_owned(), tool.name), ("schema".to_owned(), tool.schema)]);
    }
    pairs
}

/// Makes calls: pairs of a tool and its arguments become pairs of a kind and a text.
fn make(pairs: Pairs) -> Pairs {
    let count = pairs.len();
    if count == 0 {
        return Vec::new();
    }
    let first = STATE.with_borrow_mut(|state| {
        state.left = state.left.checked_sub(count as u32)?;
        let first = state.next;
        state.next += count as u32;
        Some(first)
    });
    let Some(first) = first else {
        let max = STATE.with_borrow_mut(|state| {
            state.is_over = true;
            state.max
        });
        return vec![pair("limit", &format!("the program made more than {max} calls"))];
    };
    let calls: Vec<_> = (first..).zip(pairs).map(|(id, (tool, arguments))| Call { id, tool, arguments }).collect();
    let mut results = calls::make(&calls);
    results.sort_by_key(|result| result.id);
    let kind = |reason| match reason {
        Reason::Failed | Reason::Invalid => "failed",
        Reason::Refused => "refused",
        Reason::Timeout => "timeout",
    };
    let answer = |outcome| match outcome {
        Ok(text) => ("ok".to_owned(), text),
        Err(CallFailure { reason, message }) => (kind(reason).to_owned(), message),
    };
    results.into_iter().map(|result| answer(result.outcome)).collect()
}

fn problems(pairs: Pairs) -> Vec<Problem> {
    let problem = |(place, message): (String, String)| {
        let (line, column) = place.split_once(':').unwrap_or_default();
        Problem { line: line.parse().unwrap_or(0), column: column.parse().unwrap_or(0), message }
    };
    pairs.into_iter().map(problem).collect()
}

fn finished(pairs: Pairs) -> Step {
    let (form, value) = pairs.into_iter().next().unwrap_or_default();
    let form = if form == "json" { Form::Json } else { Form::Shown };
    Step::Finished(Completion { value, form, output: output() })
}

/// Reads a failure: kind, exception, message, and the entries of the traceback.
fn failed(pairs: Pairs) -> Step {
    let mut failure = Failure {
        kind: FailureKind::Uncaught,
        exception: String::new(),
        message: String::new(),
        traceback: Vec::new(),
        output: output(),
    };
    for (name, value) in pairs {
        match name.as_str() {
            "kind" if value == "limit" => failure.kind = FailureKind::Limit,
            "kind" if value == "invalid" => failure.kind = FailureKind::Invalid,
            "kind" => (),
            "exception" => failure.exception = value,
            "message" => failure.message = value,
            _ => {
                let mut parts = name.splitn(3, ':');
                let mut number = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
                let (line, column) = (number(), number());
                let function = parts.next().filter(|name| !name.is_empty() && *name != "<module>").map(str::to_owned);
                let source = (!value.is_empty()).then_some(value);
                failure.traceback.push(Frame { line, column, function, source });
            }
        }
    }
    Step::Failed(failure)
}

fn output() -> Output {
    let (text, dropped) = system::take_printed();
    Output { text, dropped }
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
