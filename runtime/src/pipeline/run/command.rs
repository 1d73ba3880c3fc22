//! Runs a command: arguments on standard input, one line of JSON on standard output. A failure is the error object that the
//! command writes to standard error, or its text, wrapped once.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, MAX_ERROR_LEN, Pipeline, unless_cancelled};
use crate::sandbox::{GuestInput, GuestOutput, Program};
use crate::schema;
use crate::tool::Body;

use super::epilogue::{RefusalsBefore, finish};
use super::wasi_extras::wasi_extras;
use super::{Answer, RunInput};

/// Runs a command.
pub(super) async fn run(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    program: &Program,
    RunInput { checked, credentials, limits }: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Answer, ToolError> {
    let argv = match &execution.tool.body {
        Body::Command { argv, .. } => argv.as_slice(),
        _ => &[],
    };
    let stdin = Bytes::from(checked.text.clone());
    let grant = &execution.prepared.grant;
    let provided = wasi_extras(pipeline, execution, program, scope);
    let before = RefusalsBefore::count(&recorder.usage);
    let call = GuestInput { argv, stdin, grant, credentials, limits, extras: provided };
    let run = pipeline.sandbox.run(program, call, &recorder.usage);
    let GuestOutput { result: exit, stdout, stderr } = unless_cancelled(scope.turn, pin!(run)).await?;
    let stderr = recorder.decode(stderr);
    let exit = finish(exit, &stderr, scope, recorder, |exit, recorder| {
        recorder.set_exit(*exit);
        stdout.len()
    })?;
    let answer = answer(exit, recorder.decode(stdout), &stderr);
    Ok(answer.map_err(|error| before.explain(error, &recorder.usage)))
}

/// Returns the answer of a command; `None` if it wrote none.
///
/// # Errors
///
/// [`Outcome::Failed`] for a non-zero exit code, [`Outcome::BadResult`] for output that is not one line of JSON.
fn answer(exit: i32, mut text: String, stderr: &str) -> Answer {
    if exit != 0 {
        return Err(failure(exit, stderr));
    }
    let bad = |message: String| ToolError::new(Outcome::BadResult, message);
    let line = text.trim_matches(schema::JSON_SPACE);
    if line.is_empty() {
        return Ok(None);
    }
    if [b'\n', b'\r'].iter().any(|end| line.as_bytes().contains(end)) {
        return Err(bad("tool answered with several lines where one line of JSON is required".into()));
    }
    schema::check_line(line).map_err(|error| bad(format!("tool answered with something other than JSON: {error}")))?;
    let (length, start) = (line.len(), text.len() - text.trim_start_matches(schema::JSON_SPACE).len());
    text.truncate(start + length);
    text.drain(..start);
    Ok(Some(text))
}

/// Returns the error of a command that failed.
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

/// Returns the message of an error object on one line, `{"error": …}`.
pub(super) fn own_error(text: &str) -> Option<String> {
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
