//! The interpreter of scripts as a guest: what `wit/script` asks for, on the Starlark language. It owns the way
//! from that contract to the modules here, and the state that a snapshot of the component keeps; it knows no tool and
//! no hook.

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

/// What a snapshot of the component is taken after: everything that no call changes is made. Of the
/// imports it calls `wasi:random/insecure-seed` alone.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "the name is the one that the snapshot's maker calls")]
#[unsafe(export_name = "wizer-initialize")]
extern "C" fn initialize() {
    wit_bindgen::rt::run_ctors_once();
    globals::warm();
}
