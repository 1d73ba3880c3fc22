//! Runs a call at an embedder's worker, in place of this process.

use std::pin::pin;
use std::sync::PoisonError;

use serde_json::Value;
use tokio::time::timeout_at;
use toolcrib_foundation::text::prefix;

use crate::call::{Form, Part};
use crate::error::{Outcome, ToolError};
use crate::flow::{Label, Mark};
use crate::pipeline::recorder::{CallRecorder, ToolOutput};
use crate::pipeline::stage::{Scheduled, display, model_content};
use crate::pipeline::state::{CallScope, Execution, MAX_ERROR_LEN, Pipeline, unless_cancelled};
use crate::sandbox::{GuestMedia, GuestPart};
use crate::schema::CheckedArguments;
use crate::worker::{WorkerAnswer, WorkerCall, Workers};

use super::epilogue::finish;
use super::parts::show_while;
use super::{Answer, Finished};

/// Name of a worker that stated none, in labels.
const NAMELESS: &str = "unknown";

/// Runs a scheduled call at a worker.
///
/// # Errors
///
/// The error that stopped the call, or the reason why no worker answered.
pub(crate) async fn run_at_worker(
    (pipeline, workers): (&Pipeline, &dyn Workers),
    execution: &Execution<'_>,
    checked: &CheckedArguments,
    Scheduled { limits, until, permit: _permit, .. }: Scheduled<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Finished, ToolError> {
    if recorder.usage.holds_requests() {
        let why = "a rule holds back the requests of this call until it ends, which no worker can do; a rule without `at the end` \
                   asks before the call";
        return Err(ToolError::new(Outcome::Denied, why));
    }
    let (invocation, trace) = (recorder.invocation().to_owned(), recorder.trace());
    let named = (execution.tool.name.as_str(), execution.digest());
    let (call, mut reports) = WorkerCall::new(&invocation, named, &checked.text, (until, limits.stdout), trace);
    let calling = pin!(timeout_at(until.into(), workers.call(call)));
    let ended = show_while(&mut reports.progress, recorder, unless_cancelled(scope.turn, calling)).await;
    let worker = reports.accepted.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(worker) = &worker {
        recorder.set_worker(worker);
    }
    // Also a worker that did not accept the call may have chosen words of the error.
    mark(worker.as_deref().unwrap_or(NAMELESS), recorder);
    let late = || ToolError::new(Outcome::Deadline, "no worker answered the call in time");
    let answer = ended?.unwrap_or_else(|_| Err(late()));
    let counted = answer.and_then(|answer| {
        recorder.usage.count_answer(bytes(&answer), limits.stdout)?;
        Ok(answer)
    });
    let log = counted.as_ref().map(|answer| prefix(&answer.log, limits.stderr)).unwrap_or_default();
    let answer = finish(counted, &log, scope, recorder, |answer, _| bytes(answer))?;
    let worker = worker.unwrap_or_default();
    let answer = answer_of(answer, &worker, recorder);
    let mut output = answer.1;
    output.redact(pipeline.secrets.as_ref())?;
    recorder.set_output(output);
    Ok(Finished::Tool(answer.0))
}

/// Marks the answer as text of a stranger: the host has not seen what it depends on.
fn mark(worker: &str, recorder: &CallRecorder<'_>) {
    let mut label = Label::default();
    label.mark(&Mark::Untrusted, &format!("worker:{worker}").into());
    recorder.usage.flow.join(&label);
}

/// Returns the size of an answer, as it counts against the output limit.
fn bytes(answer: &WorkerAnswer) -> usize {
    let line = answer.outcome.as_ref().map_or_else(
        |error| error.message.len() + error.json.as_ref().map_or(0, String::len),
        |line| line.as_ref().map_or(0, String::len),
    );
    answer.media.iter().fold(line, |sum, media| sum.saturating_add(media.data.len()))
}

/// Converts an answer, with the checks for the answer of a tool. An error that is not the tool's own names the worker.
fn answer_of(answer: WorkerAnswer, worker: &str, recorder: &mut CallRecorder<'_>) -> (Answer, ToolOutput) {
    let WorkerAnswer { outcome, form, media, log: _ } = answer;
    let line = match outcome {
        Ok(line) => line,
        Err(ToolError { outcome, message, json }) => {
            let message = match outcome {
                Outcome::Failed => message,
                _ => format!("at the worker `{worker}`: {message}"),
            };
            let outcome = if outcome == Outcome::Ok { Outcome::BadResult } else { outcome };
            let error = ToolError { outcome, message: prefix(&message, MAX_ERROR_LEN), json };
            return (Err(error), ToolOutput::default());
        }
    };
    // The text of a worker is as little known to be JSON as the text of a program.
    let content = match line.map(|line| model_content(vec![GuestPart::Json(line)])).transpose() {
        Ok(content) => content,
        Err(error) => return (Err(error), ToolOutput::default()),
    };
    let line = content.and_then(|content| content.line);
    let is_text = form == Form::Text && line.as_deref().is_some_and(is_json_text);
    let pieces = media.into_iter().map(|media| {
        let (mime_type, name) = (media.mime_type, media.name);
        GuestPart::Media(GuestMedia { mime_type, name, data: media.data.into() })
    });
    let parts = match display(pieces.collect()) {
        Ok(parts) => parts,
        Err(error) => return (Err(error), ToolOutput::default()),
    };
    let mut output = ToolOutput { form: if is_text { Form::Text } else { Form::Json }, ..ToolOutput::default() };
    for part in parts {
        match part {
            Part::Media(media) => output.media.push(media),
            _ => recorder.warn("the worker answered with media without a valid type, which are left out".to_owned()),
        }
    }
    (Ok(line), output)
}

fn is_json_text(line: &str) -> bool {
    matches!(serde_json::from_str(line), Ok(Value::String(_)))
}
