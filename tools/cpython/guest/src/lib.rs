//! System of CPython as an interpreter of programs. This crate and a published build of CPython become one module with one
//! memory: CPython calls the functions of [`system`] in place of WASI, and [`exchange`] carries programs, calls and results
//! between its own Python code (the folder `python`) and the contract `toolcrib:code`.
#![cfg(target_arch = "wasm32")]

mod allocator;
mod exchange;
mod files;
#[path = "../../language.rs"]
#[allow(dead_code, reason = "each build has one language")]
mod language;
#[cfg_attr(feature = "numeric", path = "numeric.rs")]
#[cfg_attr(not(feature = "numeric"), path = "plain.rs")]
mod python;
mod session;
mod system;

mod bindings {
    #![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
    wit_bindgen::generate!({
        path: [
            "../../../wit/command/deps/io.wit",
            "../../../wit/command/deps/clocks.wit",
            "../../../wit/command/deps/filesystem.wit",
            "../../../wit/command/deps/random.wit",
            "../../../wit/command/deps/cli.wit",
            "../../../wit/code",
        ],
        inline: "package toolcrib:cpython;
            world cpython {
                import wasi:clocks/wall-clock@0.2.12;
                import wasi:clocks/monotonic-clock@0.2.12;
                import wasi:cli/exit@0.2.12;
                import wasi:random/random@0.2.12;
                include toolcrib:code/blocking-code@0.1.0;
            }",
        world: "toolcrib:cpython/cpython",
        generate_all,
    });
    use super::Interpreter;
    export!(Interpreter);
}

use bindings::exports::toolcrib::code::interpreter::{CallResult, Description, Guest, Limits, Problem, Program, Step};
use bindings::toolcrib::code::types::{Failure, FailureKind, Output};
use exchange::Job;

struct Interpreter;

impl Guest for Interpreter {
    fn describe() -> Description {
        let language = if cfg!(feature = "numeric") { language::NUMERIC } else { language::PLAIN };
        Description {
            language: language.name.to_owned(),
            version: language.version.to_owned(),
            implementation: language.implementation.to_owned(),
            guide: language.guide.to_owned(),
        }
    }

    fn check(program: Program) -> Vec<Problem> {
        exchange::run(Job::Check(program)).problems
    }

    fn run(program: Program, limits: Limits) -> Step {
        if exchange::is_over() {
            return failed("a limit was reached: the session cannot run another program");
        }
        let ended = exchange::run(Job::Run(program, limits));
        ended.step.unwrap_or_else(|| failed("the interpreter ended without a result"))
    }

    fn resume(_: Vec<CallResult>) -> Step {
        failed("no program is paused")
    }

    fn save() -> Result<Vec<u8>, String> {
        match exchange::is_over() {
            true => Err("a limit was reached".to_owned()),
            false => session::save(),
        }
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        session::restore(state)
    }
}

fn failed(message: &str) -> Step {
    Step::Failed(Failure {
        kind: FailureKind::Misuse,
        exception: "InterpreterError".to_owned(),
        message: message.to_owned(),
        traceback: Vec::new(),
        output: Output { text: String::new(), dropped: 0 },
    })
}
