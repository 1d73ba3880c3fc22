//! Runs the script of a tool in the interpreter.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::services::CallServices;
use crate::pipeline::state::{CallScope, Execution, MAX_ERROR_LEN, Pipeline, unless_cancelled};
use crate::policy::Grant;
use crate::sandbox::{
    EntryPoint, GuestInput, GuestOutput, Interpreter, ScriptCall, ScriptProblem, ScriptSource, WasiExtras,
};
use crate::schema;
use crate::tool::Script;

use super::command::own_error;
use super::epilogue::{denied_if, finish};
use super::{Answer, RunInput};

/// Runs a script.
pub(super) async fn run(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    (interpreter, script): (&Arc<Interpreter>, &Script),
    input: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Answer, ToolError> {
    let Execution { tool, prepared, .. } = execution;
    let source = pipeline.interpreters.source(interpreter, prepared, (&tool.name, script), EntryPoint::Run, None);
    let source = (script, source, &*tool.origin.path);
    run_source(pipeline, execution, &execution.grant, (interpreter, source), input, scope, recorder).await
}

/// Runs a script in one form, which is read from a file, with a grant.
pub(super) async fn run_source(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    grant: &Arc<Grant>,
    (interpreter, (script, source, file)): (&Arc<Interpreter>, (&Script, ScriptSource<'_>, &Path)),
    RunInput { checked, credentials, limits }: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Answer, ToolError> {
    let tool = execution.tool;
    let services = CallServices::for_tool_script(pipeline, (tool, grant), scope, limits, &recorder.usage);
    let provided = WasiExtras::default();
    let call = GuestInput { argv: &[], stdin: Bytes::new(), grant, credentials, limits, extras: provided };
    let act = ScriptCall::Run { arguments: &checked.text };
    let run = pipeline.sandbox.interpret(interpreter, source, act, call, Some(services), &recorder.usage);
    let GuestOutput { result: answer, stderr, .. } = unless_cancelled(scope.turn, pin!(run)).await?;
    let mut log = recorder.decode(stderr);
    if let Ok(Err(wrong)) = &answer {
        log.push_str(&located(wrong, script, file));
    }
    let written = |answer: &Result<Option<String>, ScriptProblem>| answer.as_ref().ok()?.as_ref().map(String::len);
    let answer = finish(answer, &log, scope, recorder, |answer, _| written(answer).unwrap_or_default())?;
    // A script cannot continue after a refusal: the refusal explains its failure.
    let refused = answer.is_err() && !recorder.usage.refusals().is_empty();
    Ok(map(answer).map_err(|error| denied_if(refused, error)))
}

/// Maps the value that a script returned. A dict with a non-empty `error` is a failure.
///
/// # Errors
///
/// [`Outcome::Failed`] for a failure, [`Outcome::BadResult`] for a value that is not JSON.
fn map(answer: Result<Option<String>, ScriptProblem>) -> Answer {
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
    // `None`, `False`, zero and empty values mean that there is no error.
    let empty = ["", "null", "false", "0", "[]", "{}"];
    match own_error(&line) {
        Some(message) if !empty.contains(&message.as_str()) => {
            Err(ToolError { outcome: Outcome::Failed, message, json: Some(line) })
        }
        _ => Ok(Some(line)),
    }
}

/// Returns the error of a script with its location in the file, for people.
fn located(wrong: &ScriptProblem, script: &Script, file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match wrong.place().map(|place| script.in_file(place).map_or((place, " of the script"), |place| (place, ""))) {
        Some((place, scope)) => format!("{name}:{}:{}{scope}: {}\n", place.line, place.column, wrong.message),
        None => format!("{name}: {}\n", wrong.message),
    }
}
