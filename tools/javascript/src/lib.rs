//! Interpreter of JavaScript programs as a guest: implements the WIT package `toolcrib:code` for JavaScript. Connects the
//! contract with the modules here, and owns the session of the instance.

mod calls;
mod check;
mod failure;
mod guards;
#[cfg_attr(not(target_arch = "wasm32"), path = "no_image.rs")]
mod image;
mod inspect;
mod json;
mod literals;
mod memory;
mod nesting;
mod program;
mod realm;
mod session;

mod bindings {
    #![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
    wit_bindgen::generate!({ path: "../../wit/code", world: "code" });
    use super::Interpreter;
    export!(Interpreter);
}

use std::cell::RefCell;

use bindings::exports::toolcrib::code::interpreter::{CallResult, Description, Guest, Limits, Problem, Program, Step};
use bindings::toolcrib::code::types;
use calls::Reason;
use code_guest::tools::Tools;
use failure::{Failure, Kind};
use session::Session;

thread_local! {
    /// Session, from the first program on.
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Part of the language that programs may use, for a model.
const GUIDE: &str = include_str!("../guide.txt");
/// Version of the engine in `Cargo.toml`.
const ENGINE: &str = "boa 0.22.0";

struct Interpreter;

impl Guest for Interpreter {
    fn describe() -> Description {
        Description {
            language: "javascript".to_owned(),
            version: "2024".to_owned(),
            implementation: ENGINE.to_owned(),
            guide: GUIDE.trim_end().to_owned(),
        }
    }

    fn check(program: Program) -> Vec<Problem> {
        match tools(&program) {
            Ok(tools) => check::check(&program.source, &tools)
                .into_iter()
                .map(|problem| Problem { line: problem.line, column: problem.column, message: problem.message })
                .collect(),
            Err(message) => vec![Problem { line: 0, column: 0, message }],
        }
    }

    fn run(program: Program, limits: Limits) -> Step {
        let tools = match tools(&program) {
            Ok(tools) => tools,
            Err(message) => return step(session::Step::Failed(Failure::misuse(message)), None),
        };
        let limits = session::Limits {
            memory: limits.memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            recursion: limits.recursion as usize,
            printed: limits.printed as usize,
            value: limits.value as usize,
            calls: limits.calls as usize,
        };
        with_session(|session| session.run(&program.source, tools, limits))
    }

    fn resume(results: Vec<CallResult>) -> Step {
        let results = results
            .into_iter()
            .map(|result| (result.id, result.outcome.map_err(|failure| (reason(failure.reason), failure.message))))
            .collect();
        with_session(|session| session.resume(results))
    }

    fn save() -> Result<Vec<u8>, String> {
        match SESSION.with_borrow(|session| session.as_ref().map(Session::is_idle)) {
            None => Ok(Vec::new()),
            Some(true) => {
                // What no variable leads to is no part of the session.
                boa_engine::gc::force_collect();
                image::save()
            }
            Some(false) => Err("a program is paused, or reached a limit".to_owned()),
        }
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        if state.is_empty() { Ok(()) } else { image::restore(state) }
    }
}

/// Runs a part of a program in the session of the instance.
fn with_session(part: impl FnOnce(&mut Session) -> session::Step) -> Step {
    SESSION.with_borrow_mut(|session| {
        if session.is_none() {
            match Session::new() {
                Ok(created) => *session = Some(created),
                Err(message) => return step(session::Step::Failed(Failure::limit(message)), None),
            }
        }
        match session {
            Some(session) => step(part(session), Some(session)),
            None => step(session::Step::Failed(Failure::misuse("there is no session")), None),
        }
    })
}

fn tools(program: &Program) -> Result<Tools, String> {
    Tools::new(program.tools.iter().map(|tool| (tool.name.as_str(), tool.schema.as_str())))
}

fn reason(reason: types::Reason) -> Reason {
    match reason {
        types::Reason::Failed => Reason::Failed,
        types::Reason::Refused => Reason::Refused,
        types::Reason::Timeout => Reason::Timeout,
        types::Reason::Invalid => Reason::Invalid,
    }
}

/// Step in the form of the contract, with the printed text if it is the last one.
fn step(step: session::Step, session: Option<&Session>) -> Step {
    let output = || {
        let (text, dropped) = session.map(Session::take_output).unwrap_or_default();
        types::Output { text, dropped }
    };
    match step {
        session::Step::Calls(calls) => Step::Calls(
            calls
                .into_iter()
                .map(|call| types::Call { id: call.id, tool: call.tool, arguments: call.arguments })
                .collect(),
        ),
        session::Step::Finished(value, shown) => {
            let form = if shown { types::Form::Shown } else { types::Form::Json };
            Step::Finished(types::Completion { value, form, output: output() })
        }
        session::Step::Failed(failure) => Step::Failed(types::Failure {
            kind: match failure.kind {
                Kind::Invalid => types::FailureKind::Invalid,
                Kind::Uncaught => types::FailureKind::Uncaught,
                Kind::Limit => types::FailureKind::Limit,
                Kind::Misuse => types::FailureKind::Misuse,
            },
            exception: failure.exception,
            message: failure.message,
            traceback: failure
                .traceback
                .into_iter()
                .map(|frame| types::Frame {
                    line: frame.line,
                    column: frame.column,
                    function: frame.function,
                    source: frame.source,
                })
                .collect(),
            output: match failure.kind {
                // The program may still be paused, and keeps what it printed.
                Kind::Misuse => types::Output { text: String::new(), dropped: 0 },
                _ => output(),
            },
        }),
    }
}
