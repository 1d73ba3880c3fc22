//! End of effects that a call has held back: somebody is asked once about all of them, and they are made together, or dropped.

use std::io;
use std::mem::replace;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;
use toolcrib_staging::{Change, Stage, StageMark};

use crate::call::{Behavior, Decision, HeldChanges, HeldEnd, Reason};
use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, HeldEffects, Pipeline};
use crate::policy::{ApprovalAnswer, HeldRequest, StagedEffects};
use crate::sandbox::WaitingRequest;
use crate::schema::CheckedArguments;

use super::ask::{Question, ask_person, denial};
use super::commit::{commit, conflicting, conflicts, drop_on_a_thread, failed, on_a_thread, send_waiting};

/// Member of a tool's own error that says how many changes were dropped.
const DROPPED: &str = "changes";
/// Maximum number of times that the changes are read while something is still written.
const MAX_READS: usize = 8;
/// Longest interval in which two writes can have the same time on a file system of Linux.
const TICK: Duration = Duration::from_millis(12);

/// Ends the effects of a call, which are dropped if it has failed.
///
/// # Errors
///
/// The error of the call, [`Outcome::Denied`] if nobody agrees, or [`Outcome::Failed`] if the changes conflict with those of others,
/// or cannot be made, or a request fails. Nothing is changed then, unless the error says so.
pub(crate) async fn settle(
    pipeline: &Pipeline,
    call: (&Execution<'_>, &CheckedArguments),
    (held, answer): (HeldEffects, Result<String, ToolError>),
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    let stage = held.stage().clone();
    let read = on_a_thread(move || read(&stage).map_err(|error| error.to_string())).await;
    let waiting = held.effects().requests.take();
    let (mark, changes) = match read {
        Ok((_, changes)) if changes.is_empty() && waiting.is_empty() => {
            drop_on_a_thread(held).await;
            return answer;
        }
        Ok(read) => read,
        Err(why) => {
            recorder.log(&format!("stage: {why}\n"));
            drop_on_a_thread(held).await;
            return Err(failed("the changes of this call cannot be read: nothing was changed"));
        }
    };
    let record = HeldChanges::begun((changes.len(), waiting.len()), held.rule().to_string());
    recorder.set_held(record.clone());
    let agreed = match answer {
        Ok(answer) => agree(pipeline, call, (&held, &changes, &waiting), scope, recorder).await.map(|()| answer),
        Err(error) => Err(with_dropped(error, &dropped(changes.len(), waiting.len()))),
    };
    let answer = match agreed {
        Ok(answer) => answer,
        Err(error) => {
            drop_on_a_thread(held).await;
            return Err(error);
        }
    };
    recorder.end_held(HeldEnd::Incomplete);
    match changes.is_empty() {
        true => drop_on_a_thread(held).await,
        false => commit(pipeline, held, mark, recorder).await?,
    }
    recorder.end_held(HeldEnd::Unsent);
    send_waiting(waiting, scope, recorder).await?;
    recorder.end_held(HeldEnd::Committed);
    Ok(answer)
}

/// Asks a person about the effects of a call.
///
/// # Errors
///
/// [`Outcome::Denied`] if nobody agrees, or [`Outcome::Failed`] if there is nothing to agree to, because others have changed the same.
async fn agree(
    pipeline: &Pipeline,
    call: (&Execution<'_>, &CheckedArguments),
    (held, changes, waiting): (&HeldEffects, &[Change], &[WaitingRequest]),
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    if let Some(conflicts) = conflicts(held.stage(), changes) {
        recorder.end_held(HeldEnd::Conflict);
        return Err(conflicting(&conflicts));
    }
    let effects = held.effects();
    // Its own receipt, which adds them for an answer above, comes later.
    if let Some(own) = recorder.usage.requests().summary() {
        effects.sent.add(&own);
    }
    let (rule, sent) = (held.rule().to_string(), effects.sent.lines());
    let waiting: Vec<&HeldRequest> = waiting.iter().map(|one| &one.description).collect();
    let flow = effects.flows.lock().unwrap_or_else(PoisonError::into_inner).join("; ");
    let asked = Decision::new(Behavior::Ask, Reason::Rule, rule.clone());
    let staged = StagedEffects { stage: held.stage(), changes, sent: &sent, held: &waiting };
    let flow = Some(flow.as_str()).filter(|flow| !flow.is_empty());
    let question = Question { decision: &asked, preview: None, flow, approval: None, effects: Some(staged) };
    let answer = ask_person(pipeline, call, question, scope, recorder).await?;
    let dropped = dropped(changes.len(), waiting.len());
    let (end, reason, message) = match answer {
        ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always => return Ok(()),
        ApprovalAnswer::No | ApprovalAnswer::NoBecause(_) => {
            let denied = format!("the user denied the changes of this call, and {dropped}");
            (HeldEnd::Refused, Reason::Refused, denial(&denied, answer))
        }
        ApprovalAnswer::Nobody | ApprovalAnswer::Earlier { .. } => {
            let nobody = "the changes of this call require approval, but no one is available to ask";
            (HeldEnd::Unanswered, Reason::Nobody, format!("{nobody}: {dropped}"))
        }
    };
    recorder.end_held(end);
    recorder.decide(Decision::new(Behavior::Deny, reason, rule));
    Err(ToolError::new(Outcome::Denied, message))
}

/// Reads the changes with the state of the stage that has them. What is written after it is not committed.
fn read(stage: &Stage) -> io::Result<(StageMark, Vec<Change>)> {
    let mut mark = stage.mark()?;
    for _ in 0..MAX_READS {
        let changes = stage.changes()?;
        if changes.is_empty() {
            return Ok((mark, changes));
        }
        std::thread::sleep(TICK);
        let before = replace(&mut mark, stage.mark()?);
        // Names of a file that were found are noted.
        if before == mark {
            return Ok((mark, changes));
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Adds the dropped changes to the error of a call.
fn with_dropped(error: ToolError, dropped: &str) -> ToolError {
    let message = format!("{}; {dropped}", error.message);
    let json = error.json.map(|json| match serde_json::from_str::<Value>(&json) {
        Ok(Value::Object(mut members)) if !members.contains_key(DROPPED) => {
            members.insert(DROPPED.to_owned(), dropped.into());
            Value::Object(members).to_string()
        }
        _ => json,
    });
    ToolError { message, json, ..error }
}

/// Words how many changes and requests were dropped.
fn dropped(changes: usize, requests: usize) -> String {
    let counted = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        count => Some(format!("{count} {word}s")),
    };
    let parts: Vec<String> = [counted(changes, "change"), counted(requests, "request")].into_iter().flatten().collect();
    let verb = if changes + requests == 1 { "was" } else { "were" };
    format!("{} {verb} dropped", parts.join(" and "))
}
