//! Tools with unusual steps before and after a call.

use serde::{Deserialize, Serialize};
use toolcrib_guest::{
    Answer, Call, Error, Opinion, Part, Payload, Preparation, Presentation, Result, error, progress, tool,
};

/// Count the bytes of a text.
#[tool(text(field = "input", lark = "start: /(.|\\n)+/", description = "Any text."), route = raw_route)]
pub(crate) fn raw(text: &str) -> String {
    format!("received {} bytes", text.len())
}

fn raw_route(call: &Call) -> Opinion {
    match (&call.name, &call.payload) {
        (None, Payload::Text(_)) => Opinion::Claims,
        _ => Opinion::NoOpinion,
    }
}

/// Tell the length of a span.
#[tool(validate = checked_validate)]
pub(crate) fn checked(
    /// Start and end of the span.
    span: (i64, i64),
    /// Maximum length of the span.
    #[arg(minimum = 1)]
    most: i64,
) -> String {
    format!("{} of {most}", span.1 - span.0)
}

fn checked_validate(call: &Call) -> Result<()> {
    let checked { span: (from, to), most } = call.args()?;
    match to.checked_sub(from) {
        Some(length) if length < 0 => Err(error!("the span ends at {to}, before it begins at {from}")),
        Some(length) if length <= most => Ok(()),
        _ => Err(error!("the span from {from} to {to} is longer than {most}")),
    }
}

/// Prepared value.
#[derive(Deserialize, Serialize)]
struct Prepared {
    token: String,
    /// Number that differs each time.
    number: u64,
}

/// Return the prepared value.
#[tool(prepare = prepared_prepare)]
pub(crate) fn prepared(call: &Call) -> Result<String> {
    let Prepared { token, number } = call.prepared()?;
    Ok(format!("{token} {number}"))
}

fn prepared_prepare(preparation: &Preparation) -> Result<Prepared> {
    #[derive(Deserialize)]
    struct Config {
        token: String,
    }
    let config: Option<Config> = preparation.config()?;
    let Config { token } = config.ok_or_else(|| Error::invalid("`config.token` is not set"))?;
    let number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    Ok(Prepared { token, number })
}

/// Answer in one word, and present it in four.
#[tool(present = worded_present)]
pub(crate) fn worded() -> &'static str {
    "answered"
}

fn worded_present(_call: &Call, outcome: Result<Answer>) -> Presentation {
    match outcome {
        Ok(_) => Presentation::new()
            .tell(Part::text("for the model"))
            .show(Part::text("for people"))
            .summary("in one line")
            .transcript("for a search"),
        Err(error) => Presentation::new().summary(error.to_string()),
    }
}

/// Show a part after the end of the call.
#[tool(present = late_present)]
pub(crate) fn part_after_end() -> &'static str {
    "over"
}

fn late_present(_call: &Call, outcome: Result<Answer>) -> Presentation {
    progress::text("too late");
    Presentation::of(outcome)
}

/// Run immediately, after a preview that never ends.
#[tool(preview = endless_preview)]
pub(crate) fn spin_preview() -> &'static str {
    "ran"
}

fn endless_preview(_call: &Call) -> Option<String> {
    let mut turns = 0_u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}
