//! Tool for version 1.0.0 of the contract, written by hand and without a descriptor: shows its input and returns it.

mod bindings {
    #![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
    wit_bindgen::generate!({ path: "wit", world: "tool" });
    use super::First;
    export!(First);
}

use bindings::exports::toolcrib::tool::call::Guest;
use bindings::toolcrib::tool::types::{Answer, Failure, Invocation, Part, Payload};
use bindings::toolcrib::tool::{log, progress};

struct First;

impl Guest for First {
    fn run(call: Invocation) -> Result<Answer, Failure> {
        log::log(log::Level::Info, "the first version still speaks");
        let given = match call.payload {
            Payload::Object(text) | Payload::Text(text) => text,
        };
        progress::show(&Part::Text(format!("given {given}")));
        Ok(Answer { content: vec![Part::Json(given)], display: Vec::new() })
    }
}
