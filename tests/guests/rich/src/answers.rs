//! Tools with unusual answers.

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Answer, Call, Error, FailureKind, Json, Part, Result, Schema, json, tool};

/// Picture of one grey dot.
const DOT: &[u8] = include_bytes!("dot.png");

/// Return a value as text.
#[tool(read_only, open_world = false, preview = echo_preview)]
pub(crate) fn echo(
    /// Value to return.
    value: String,
) -> String {
    value
}

fn echo_preview(call: &Call) -> Result<String> {
    Ok(format!("echo value='{}'", call.args::<echo>()?.value))
}

/// Sum of two numbers.
#[derive(Serialize, Schema)]
pub(crate) struct Sum {
    /// Value of the sum.
    sum: f64,
}

/// Add two numbers.
#[tool(output, read_only)]
pub(crate) fn add(a: f64, b: f64) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

/// Return numbers to the model and a picture to people.
#[tool]
pub(crate) fn picture() -> Result<Answer> {
    Ok(Answer::json(&json!({ "width": 1, "height": 1 }))?.show(Part::media("image/png", DOT).named("dot.png")))
}

/// Answer in parts of every kind.
#[tool]
pub(crate) fn blocks() -> Result<Answer> {
    Ok(Answer::text("a text")
        .and(Part::json(&json!({ "a": 1 }))?)
        .and(Part::media("image/png", DOT))
        .and(Part::link("https://example.com/more").named("more")))
}

/// Answer in the form of one provider.
#[tool]
pub(crate) fn native() -> Answer {
    Part::native("openai.chat_completions", &[json!({ "type": "text", "text": "native" })]).into()
}

/// Kind of failure.
#[derive(Deserialize, Schema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Invalid,
    NotFound,
    Conflict,
    Unavailable,
    Failed,
}

/// Fail in a chosen way.
#[tool]
pub(crate) fn fails(kind: Kind) -> Result<()> {
    let kind = match kind {
        Kind::Invalid => FailureKind::Invalid,
        Kind::NotFound => FailureKind::NotFound,
        Kind::Conflict => FailureKind::Conflict,
        Kind::Unavailable => FailureKind::Unavailable,
        Kind::Failed => FailureKind::Failed,
    };
    Err(Error::of(kind, "it fails, as it was told to").details(json!({ "told": true })))
}

/// Panic.
#[tool]
pub(crate) fn trap() {
    panic!("this tool always panics");
}
