//! Interpreter of Python programs as a guest: implements the WIT package `toolcrib:code` for Python. Connects the contract
//! with the modules here, and owns the session of the instance.

mod answer;
mod arguments;
mod awaited;
mod check;
mod failure;
mod hints;
mod json;
mod literals;
mod nesting;
mod output;
mod session;
mod system;

mod bindings {
    #![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
    wit_bindgen::generate!({ path: "../../wit/code", world: "code" });
    use super::Interpreter;
    export!(Interpreter);
}

use std::cell::RefCell;

use answer::Reason;
use bindings::exports::toolcrib::code::interpreter::{CallResult, Description, Guest, Limits, Problem, Program, Step};
use bindings::toolcrib::code::types;
use code_guest::tools::Tools;
use failure::{Failure, Kind};
use session::Session;

/// Counts the memory of values, so that a program that needs too much ends with a message before the instance does.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: monty_alloc::LimitedAllocator = monty_alloc::LimitedAllocator;

thread_local! {
    static SESSION: RefCell<Session> = RefCell::new(Session::new());
}

/// Part of the language that programs may use, for a model.
const GUIDE: &str = include_str!("../guide.txt");
/// The contract allows 2,000 characters, and every request of a model carries them.
const _: () = assert!(GUIDE.len() <= 2_000);

struct Interpreter;

impl Guest for Interpreter {
    fn describe() -> Description {
        Description {
            language: "python".to_owned(),
            version: "3.14".to_owned(),
            implementation: format!("monty {}", monty_types::MONTY_VERSION),
            guide: GUIDE.to_owned(),
        }
    }

    fn check(program: Program) -> Vec<Problem> {
        match tools(&program) {
            Ok(tools) => SESSION
                .with_borrow(|session| check::check(&program.source, &tools, session.functions().as_deref()))
                .into_iter()
                .map(|problem| Problem { line: problem.line, column: problem.column, message: problem.message })
                .collect(),
            Err(message) => vec![Problem { line: 0, column: 0, message }],
        }
    }

    fn run(program: Program, limits: Limits) -> Step {
        let tools = match tools(&program) {
            Ok(tools) => tools,
            Err(message) => return step(session::Step::Failed(Failure::misuse(message))),
        };
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let memory = limits.memory.map(size);
        // Without a ceiling of its own, so that one large allocation is counted before it ends the program: the ceiling is the
        // memory of the instance.
        #[cfg(target_arch = "wasm32")]
        if let Err(problem) = monty_alloc::set_limit(None, false) {
            return step(session::Step::Failed(Failure::misuse(problem)));
        }
        let limits = session::Limits {
            memory,
            recursion: limits.recursion as usize,
            printed: limits.printed as usize,
            value: limits.value as usize,
            calls: limits.calls as usize,
        };
        step(SESSION.with_borrow_mut(|session| session.run(&program.source, tools, limits)))
    }

    fn resume(results: Vec<CallResult>) -> Step {
        let results = results
            .into_iter()
            .map(|result| (result.id, result.outcome.map_err(|failure| (reason(failure.reason), failure.message))))
            .collect();
        step(SESSION.with_borrow_mut(|session| session.resume(results)))
    }

    fn save() -> Result<Vec<u8>, String> {
        SESSION.with_borrow(Session::save)
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        let restored = Session::restore(&state)?;
        SESSION.with_borrow_mut(|session| *session = restored);
        Ok(())
    }
}

fn tools(program: &Program) -> Result<Tools, String> {
    Tools::new(program.tools.iter().map(|tool| (tool.name.as_str(), tool.schema.as_str())))
}

fn reason(reason: types::Reason) -> Reason {
    match reason {
        types::Reason::Failed | types::Reason::Invalid => Reason::Failed,
        types::Reason::Refused => Reason::Refused,
        types::Reason::Timeout => Reason::Timeout,
    }
}

/// Step in the form of the contract, with the printed text if it is the last one.
fn step(step: session::Step) -> Step {
    let output = || {
        let (text, dropped) = SESSION.with_borrow_mut(|session| session.output.0.take());
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
