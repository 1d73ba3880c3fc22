//! Tool `calculate`: evaluates an arithmetic expression.

mod check;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use fend_core::{Context, Interrupt};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use toolcrib_guest::{Error, error};

const MAX_EXPRESSION_BYTES: usize = 1000;
const MAX_RESULT_BYTES: usize = 10_000;
const MAX_DIGITS: u32 = 100;
const DEFAULT_DIGITS: u32 = 15;
/// Prefix of a rounded result of the library.
const ROUNDED: &str = "approx. ";
const MAX_TIME: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    expression: String,
    digits: Option<u32>,
}

#[derive(Serialize)]
struct Output {
    expression: String,
    /// Result with its unit, if it has one.
    result: String,
    /// Result as a JSON number, if it is a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<Number>,
    /// `true` if the result is rounded.
    rounded: bool,
}

/// Interrupts an evaluation that takes too long.
struct Deadline(Instant);

impl Interrupt for Deadline {
    fn should_interrupt(&self) -> bool {
        Instant::now() > self.0
    }
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { expression, digits } = args;
    if expression.len() > MAX_EXPRESSION_BYTES {
        return Err(error!("the expression is over the limit of {MAX_EXPRESSION_BYTES} bytes"));
    }
    if let Some(digits) = digits.filter(|digits| !(1..=MAX_DIGITS).contains(digits)) {
        return Err(error!("digits `{digits}` is not between 1 and {MAX_DIGITS}"));
    }
    check::check(&expression).map_err(|problem| error!("`{expression}`: {problem}"))?;
    let rounding = format!("{expression} to {} sf", digits.unwrap_or(DEFAULT_DIGITS));
    let mut text = evaluate(if digits.is_some() { &rounding } else { &expression })
        .map_err(|problem| error!("`{expression}`: {}", check::dangling(&expression).unwrap_or(problem)))?;
    // By default the library rounds to ten places.
    if text.starts_with(ROUNDED)
        && !check::says_how_to_round(&expression)
        && let Ok(longer) = evaluate(&rounding)
    {
        text = longer;
    }
    if text.is_empty() {
        return Err(error!("`{expression}` has no value"));
    }
    if text.len() > MAX_RESULT_BYTES {
        return Err(error!(
            "the result has {} characters, over the limit of {MAX_RESULT_BYTES}; ask for fewer with `digits`",
            text.len()
        ));
    }
    let (result, rounded) = match text.strip_prefix(ROUNDED) {
        Some(result) => (result.to_string(), true),
        None => (text, false),
    };
    Ok(Output { expression, number: number(&result), rounded, result })
}

/// Evaluates an expression and returns the library's text.
fn evaluate(source: &str) -> Result<String, String> {
    let deadline = Deadline(Instant::now() + MAX_TIME);
    let evaluated =
        fend_core::evaluate_with_interrupt(source, &mut Context::new(), &deadline).map_err(|problem| match problem
            .as_str()
        {
            "interrupted" => format!("it takes longer than {} seconds", MAX_TIME.as_secs()),
            _ => problem,
        })?;
    Ok(evaluated.get_main_result().to_string())
}

/// Converts a result into a number; an integer stays an integer as long as no digit is lost.
fn number(result: &str) -> Option<Number> {
    if let Ok(integer) = result.parse::<i64>() {
        return Some(integer.into());
    }
    result.parse().ok().and_then(Number::from_f64)
}
