//! Runs a rich tool: its preparation, the call, and its presentation. Only the preparation and the call have the grant, and
//! both follow the authorization.

use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::mpsc;
use toolcrib_foundation::text;

use crate::call::Part;
use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::{CallRecorder, ToolOutput};
use crate::pipeline::services::CallServices;
use crate::pipeline::stage::{ModelContent, display, model_content, tool_error};
use crate::pipeline::state::{CallScope, Execution, Pipeline, RichRunner, payload, unless_cancelled};
use crate::sandbox::{Answer as RichAnswer, GuestFailure, GuestInput, GuestOutput, HostServices, Presentation, Usage};
use crate::schema;
use crate::tool::Limits;

use super::epilogue::{RefusalsBefore, answered_bytes, finish, refuse_leak};
use super::parts::show_while;
use super::wasi_extras::wasi_extras;
use super::{Answer, RunInput};

/// Runs a rich tool.
pub(super) async fn run(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    runner: &RichRunner<'_>,
    RunInput { checked, credentials, limits }: RunInput<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Answer, ToolError> {
    let RichRunner { program, rich, invocation } = runner;
    let settled = execution.prepared;
    let (services, mut parts) = CallServices::for_component(pipeline, &execution.grant, program, scope, recorder);
    let provided = wasi_extras(pipeline, execution, program, scope);
    let granted = |limits| GuestInput {
        argv: &[],
        stdin: Bytes::new(),
        grant: &execution.grant,
        credentials,
        limits,
        extras: provided.clone(),
    };
    let prepared = match rich.exports.prepare {
        true => {
            let call = granted(&settled.limits);
            Some(prepare(pipeline, execution, runner, (call, services.clone(), &mut parts), scope, recorder).await?)
        }
        false => None,
    };
    let invocation = invocation.with(rich, payload(execution.tool, checked), prepared.as_deref());
    let (usage, since) = (recorder.usage.clone(), Instant::now());
    let run = pipeline.sandbox.run_rich(program, invocation.clone(), granted(limits), services, &usage);
    let GuestOutput { result: ended, stderr: log, .. } =
        show_while(&mut parts, recorder, unless_cancelled(scope.turn, pin!(run))).await?;
    let log = recorder.decode(log);
    let ended = finish(ended, &log, scope, recorder, |_, recorder| answered_bytes(&recorder.usage))?;
    let presentation = match rich.exports.present {
        true => {
            let deadline = limits.deadline.saturating_sub(since.elapsed());
            let used = usage.fuel.load(Relaxed);
            let fuel = limits.fuel.map(|fuel| fuel.saturating_sub(used));
            let limits = Limits { deadline, fuel, ..*limits };
            let presented = pipeline.sandbox.present_rich(program, (invocation, ended.as_ref()), &limits, &usage);
            // A failed presentation does not change the outcome of the call.
            let presented = unless_cancelled(scope.turn, pin!(presented)).await?;
            presented.map_err(|error| recorder.log(&format!("present: {}\n", error.message))).ok()
        }
        false => None,
    };
    let answer = map(pipeline, ended, presentation, recorder)?;
    Ok(answer.map_err(|error| RefusalsBefore::default().explain(error, &usage)))
}

/// Prepares the tool, once for a session.
async fn prepare(
    pipeline: &Arc<Pipeline>,
    execution: &Execution<'_>,
    RichRunner { program, rich, .. }: &RichRunner<'_>,
    (call, services, parts): (GuestInput<'_>, Arc<dyn HostServices>, &mut mpsc::Receiver<Part>),
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Arc<str>, ToolError> {
    let (tool, deadline) = (execution.tool, execution.prepared.limits.deadline);
    let since = Instant::now();
    // What it prepares is found by its later calls.
    recorder.usage.flow.join_shared();
    // A call outside a session prepares for itself, and so does one whose files may be dropped.
    let is_alone = scope.memory.is_open() || recorder.usage.effects.get().is_some();
    let cell = match is_alone {
        true => Arc::default(),
        false => scope.memory.preparation(pipeline.contexts.preparation_key(tool, rich, program)),
    };
    let (context, usage) = (pipeline.contexts.of_tool(&tool.name), Usage::within(&recorder.usage));
    let notes = Mutex::new(Vec::new());
    let preparation = cell.get_or_try_init(|| async {
        let input = (rich.tool.as_str(), context.as_str());
        let outcome = pipeline.sandbox.prepare_rich(program, input, call, services, &usage).await;
        notes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&outcome.stderr);
        prepared_state(outcome)
    });
    // Another call may be preparing, and may fail.
    let ended = {
        let preparation = pin!(tokio::time::timeout(deadline, preparation));
        show_while(parts, recorder, unless_cancelled(scope.turn, preparation)).await
    };
    // The preparation has a deadline of its own.
    recorder.budget.add_wait(since);
    let notes = recorder.decode(notes.into_inner().unwrap_or_else(PoisonError::into_inner));
    recorder.log(&notes);
    refuse_leak(recorder)?;
    let late = |_| ToolError::new(Outcome::Deadline, "tool timed out while it was prepared");
    Ok(ended?.map_err(late)??.clone())
}

/// Returns the state that a tool has prepared.
fn prepared_state(outcome: GuestOutput<Result<String, GuestFailure>>) -> Result<Arc<str>, ToolError> {
    let unprepared = |why: &str| format!("the tool could not be prepared: {why}");
    match outcome.result {
        Err(error) => Err(ToolError::new(error.outcome, unprepared(&error.message))),
        Ok(Err(failure)) => {
            let error = tool_error(failure, None);
            Err(ToolError::new(error.outcome, unprepared(&error.message)))
        }
        Ok(Ok(state)) => match schema::parse(&state) {
            Ok(_) => Ok(state.into()),
            Err(error) => {
                Err(ToolError::new(Outcome::BadResult, unprepared(&format!("it did not return JSON: {error}"))))
            }
        },
    }
}

/// Maps the outcome of a tool, and keeps its output for people with the recorder.
fn map(
    pipeline: &Pipeline,
    ended: Result<RichAnswer, GuestFailure>,
    presentation: Option<Presentation>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Answer, ToolError> {
    let (content, shown, summary, transcript) = match presentation {
        None => (None, None, None, None),
        Some(Presentation { content, display, summary, transcript }) => (content, Some(display), summary, transcript),
    };
    let one_line = |text: String| text::prefix(&text, text::MAX_MESSAGE);
    let mut output =
        ToolOutput { summary: summary.map(one_line), transcript: transcript.map(one_line), ..ToolOutput::default() };
    let answer = match ended {
        Ok(answer) => {
            output.shown = display(shown.unwrap_or(answer.display))?;
            let ModelContent { line, form, media } = model_content(content.unwrap_or(answer.content))?;
            (output.form, output.media) = (form, media);
            Ok(line)
        }
        Err(failure) => {
            output.shown = display(shown.unwrap_or_default())?;
            let message = content.map(model_content).transpose()?.and_then(|content| content.line);
            let message = message.map(|line| serde_json::from_str::<String>(&line).unwrap_or(line));
            Err(tool_error(failure, message))
        }
    };
    output.redact(pipeline.secrets.as_ref())?;
    recorder.set_output(output);
    Ok(answer)
}
