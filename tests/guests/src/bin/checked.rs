//! Echoes, and checks its arguments itself: `span` must not be longer than `most`. With `spin` its check never ends;
//! with `peek` the check tries to see a file and a variable.

use std::process::ExitCode;

use toolcrib_guest::Value;

mod bindings {
    #![allow(unsafe_code, missing_docs, unreachable_pub, reason = "generated")]
    wit_bindgen::generate!({
        inline: "
            package toolcrib:tool@0.1.0;
            interface validate { check: func(arguments: string) -> result<_, string>; }
            world checks { export validate; }
        ",
        world: "checks",
    });
    use super::Checked;
    export!(Checked);
}

struct Checked;

impl bindings::exports::toolcrib::tool::validate::Guest for Checked {
    fn check(arguments: String) -> Result<(), String> {
        let value: serde_json::Value = serde_json::from_str(&arguments).map_err(|error| error.to_string())?;
        if value["spin"] == true {
            loop {
                std::hint::black_box(&value);
            }
        }
        if value["peek"] == true {
            let file = std::fs::read_to_string("notes.md").is_ok();
            let variable = std::env::var("PEEKED").is_ok();
            return Err(format!("file {file}, variable {variable}"));
        }
        match (value["span"].as_u64(), value["most"].as_u64()) {
            (Some(span), Some(most)) if span > most => Err(format!("a span of {span} is more than {most}")),
            _ => Ok(()),
        }
    }
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Value| Ok(args))
}
