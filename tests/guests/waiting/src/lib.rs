//! Interpreter of programs that waits for its calls. A program is a JSON array of steps: an array of calls to make at the same
//! time, each a pair of a tool and its arguments, `"spin"`, or a number of milliseconds to spin. Its value is the list of results. A program that begins with
//! `"early"` makes its calls while it is checked.

mod bindings {
    #![allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
    wit_bindgen::generate!({ path: "../../../wit/code", world: "blocking-code" });
    use super::Waiting;
    export!(Waiting);
}

use std::hint::black_box;
use std::time::{Duration, Instant};

use bindings::exports::toolcrib::code::interpreter::{CallResult, Description, Guest, Limits, Problem, Program, Step};
use bindings::toolcrib::code::calls;
use bindings::toolcrib::code::types::{Call, Completion, Form, Output, Reason};
use serde_json::{Value, json};

/// Description of the language, as its section has it.
#[allow(unsafe_code, reason = "a section of this name exists nowhere else")]
#[cfg_attr(target_arch = "wasm32", unsafe(link_section = "toolcrib:language"))]
#[used]
static LANGUAGE: [u8; 79] = *br#"{"language":"steps","version":"1","implementation":"waiting 1","guide":"steps"}"#;

struct Waiting;

impl Guest for Waiting {
    fn describe() -> Description {
        let text = |text: &str| text.to_owned();
        Description {
            language: text("steps"),
            version: text("1"),
            implementation: text("waiting 1"),
            guide: text("steps"),
        }
    }

    fn check(program: Program) -> Vec<Problem> {
        let steps = steps(&program);
        if steps.first().is_some_and(|step| step == "early") {
            make(&steps[1]);
        }
        Vec::new()
    }

    fn run(program: Program, _: Limits) -> Step {
        let results: Vec<Value> = steps(&program).iter().map(make).collect();
        let output = Output { text: String::new(), dropped: 0 };
        Step::Finished(Completion { value: Value::from(results).to_string(), form: Form::Json, output })
    }

    fn resume(_: Vec<CallResult>) -> Step {
        unreachable!("no program is paused")
    }

    fn save() -> Result<Vec<u8>, String> {
        Err("this interpreter keeps no session".to_owned())
    }

    fn restore(_: Vec<u8>) -> Result<(), String> {
        Self::save().map(drop)
    }
}

fn steps(program: &Program) -> Vec<Value> {
    serde_json::from_str(&program.source).unwrap_or_default()
}

/// Does one step.
fn make(step: &Value) -> Value {
    if step == "spin" {
        let mut turns = 0_u64;
        loop {
            turns = black_box(turns + 1);
        }
    }
    if let Some(milliseconds) = step.as_u64() {
        let end = Instant::now() + Duration::from_millis(milliseconds);
        while Instant::now() < end {}
        return Value::Null;
    }
    let calls: Vec<Call> = step.as_array().into_iter().flatten().enumerate().map(call).collect();
    let answers = calls::make(&calls).into_iter().map(|result| match result.outcome {
        Ok(text) => serde_json::from_str(&text).unwrap_or_default(),
        Err(failure) => json!({ "failed": name(failure.reason), "message": failure.message }),
    });
    answers.collect()
}

fn call((id, call): (usize, &Value)) -> Call {
    Call { id: id as u32, tool: call[0].as_str().unwrap_or_default().to_owned(), arguments: call[1].to_string() }
}

fn name(reason: Reason) -> &'static str {
    match reason {
        Reason::Failed => "failed",
        Reason::Refused => "refused",
        Reason::Timeout => "timeout",
        Reason::Invalid => "invalid",
    }
}
