//! EventKind a command's exit code and streams mean: one line of JSON is the answer; a failure is the tool's own error object
//! or its text, wrapped once.

use serde_json::Value;

use crate::error::{Outcome, ToolError};
use crate::sandbox::ScriptProblem;
use crate::schema;

/// The most characters of a plain error text that are passed on.
const MAX_ERROR_LEN: usize = 4096;
/// The most characters of what a tool's own check says.
const MAX_TEXT_LEN: usize = 2000;

/// Maps the end of a command: its answer, `None` where it wrote nothing.
///
/// # Errors
///
/// [`Outcome::Failed`] for a non-zero exit, [`Outcome::BadResult`] where standard output is not one line of JSON.
pub(super) fn answer(exit: i32, text: String, stderr: &str) -> Result<Option<String>, ToolError> {
    if exit != 0 {
        return Err(failure(exit, stderr));
    }
    let bad = |message: String| ToolError::new(Outcome::BadResult, message);
    let line = text.trim_matches(schema::JSON_SPACE);
    if line.is_empty() {
        return Ok(None);
    }
    if line.contains(['\n', '\r']) {
        return Err(bad("tool answered with several lines where one line of JSON is required".into()));
    }
    schema::check_line(line).map_err(|error| bad(format!("tool answered with something other than JSON: {error}")))?;
    Ok(Some(if line.len() == text.len() { text } else { line.to_owned() }))
}

/// Maps what a script returned. A dict with an `error` of its own is a failure that the script worded.
///
/// # Errors
///
/// [`Outcome::Failed`] where it failed, [`Outcome::BadResult`] where what came is no JSON.
pub(super) fn script_answer(answer: Result<Option<String>, ScriptProblem>) -> Result<Option<String>, ToolError> {
    let line = match answer {
        Ok(line) => line,
        Err(wrong) => {
            let message: String = wrong.message.chars().take(MAX_ERROR_LEN).collect();
            return Err(ToolError::new(Outcome::Failed, format!("tool error: {message}")));
        }
    };
    let Some(line) = line else { return Ok(None) };
    schema::check_line(&line).map_err(|error| {
        ToolError::new(Outcome::BadResult, format!("tool answered with something other than JSON: {error}"))
    })?;
    // `None`, `False`, nought and what is empty say that there is none.
    let none = ["", "null", "false", "0", "[]", "{}"];
    match own_error(&line) {
        Some(message) if !none.contains(&message.as_str()) => {
            Err(ToolError { outcome: Outcome::Failed, message, json: Some(line) })
        }
        _ => Ok(Some(line)),
    }
}

/// EventKind a tool's own check found.
pub(super) fn invalid(why: String) -> ToolError {
    let why: String = why.chars().take(MAX_TEXT_LEN).collect();
    ToolError::new(Outcome::BadArguments, format!("invalid values: {why}"))
}

fn failure(exit: i32, stderr: &str) -> ToolError {
    let text = stderr.trim();
    if let Some(message) = own_error(text) {
        return ToolError { outcome: Outcome::Failed, message, json: Some(text.to_owned()) };
    }
    let message = match text.char_indices().nth(MAX_ERROR_LEN) {
        _ if text.is_empty() => format!("tool failed with exit code {exit}"),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    ToolError::new(Outcome::Failed, message)
}

/// The message of an error object on one line, `{"error": …}`.
fn own_error(text: &str) -> Option<String> {
    if text.contains(['\n', '\r']) || !text.starts_with('{') {
        return None;
    }
    let value = schema::parse(text).ok()?;
    match value.get("error")? {
        Value::String(message) => Some(message.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(stdout: &str) -> Result<Option<String>, String> {
        answer(0, stdout.into(), "").map_err(|error| error.message)
    }

    #[test]
    fn one_line_is_kept_byte_for_byte() {
        let line = "{\"a\":  \"x  y\\n\\u001b\"}";
        assert_eq!(ok(&format!("{line}\n")).unwrap().unwrap(), line);
        assert_eq!(ok("").unwrap(), None);
        assert_eq!(ok(" \n").unwrap(), None);
    }

    #[test]
    fn what_is_not_one_line_of_json_is_refused() {
        for text in ["{}\n{}", "hello", "{", "NaN", "{\"a\":1} x", &"[".repeat(100_000)] {
            assert!(ok(text).is_err());
        }
    }

    #[test]
    fn a_failure_is_passed_on_or_wrapped_once() {
        let of = |stderr: &str| answer(1, "{}".into(), stderr).unwrap_err().content();
        assert_eq!(of("{\"error\":\"no such zone\",\"zone\":1}\n"), "{\"error\":\"no such zone\",\"zone\":1}");
        assert_eq!(of("plain \"text\"\n"), r#"{"error":"plain \"text\""}"#);
        assert_eq!(of(""), r#"{"error":"tool failed with exit code 1"}"#);
        assert_eq!(of("{\"other\":1}"), r#"{"error":"{\"other\":1}"}"#);
        assert!(of(&"é".repeat(10_000)).chars().count() < 5_000);
    }
}
