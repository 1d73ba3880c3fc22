//! Interpreter of scripts as a guest: implements the WIT package `wit/script` for the Starlark language. Connects the
//! contract with the modules here, and owns the state that a snapshot of the component keeps; knows no tool and no
//! hook.

mod check;
mod dialect;
mod evaluate;
mod globals;
mod json;
mod modules;
mod problem;

mod bindings {
    #![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
    wit_bindgen::generate!({ path: "../../wit/script", world: "interpreter-guest" });
    use super::Interpreter;
    export!(Interpreter);
}

use bindings::exports::toolcrib::script::interpreter::{Entry, Guest, Problem, Script};

struct Interpreter;

impl Guest for Interpreter {
    fn check(script: Script, entry: Entry, when: Option<String>) -> Vec<Problem> {
        check::check(&script, entry, when.as_deref())
    }

    fn run(script: Script, arguments: String) -> Result<String, Problem> {
        evaluate::run(&script, &arguments)
    }

    fn handle(script: Script, when: Option<String>, event: String, payload: String) -> Result<Option<String>, Problem> {
        evaluate::handle(&script, when.as_deref(), &event, &payload)
    }
}

/// Entry point of the snapshot: creates everything that no call changes. The only import that it calls is
/// `wasi:random/insecure-seed`.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "the name is the one that the snapshot's maker calls")]
#[unsafe(export_name = "wizer-initialize")]
extern "C" fn initialize() {
    wit_bindgen::rt::run_ctors_once();
    globals::warm();
}
