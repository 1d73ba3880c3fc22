//! End of effects that a call has held back: somebody is asked once about all of them, and they are made together, or dropped.

use serde_json::Value;

use crate::call::{Behavior, Decision, HeldChanges, HeldEnd, Reason};
use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, HeldEffects, Pipeline};
use crate::policy::{ApprovalAnswer, StagedEffects};
use crate::sandbox::WaitingRequests;
use crate::schema::CheckedArguments;

use super::ask::{Question, ask_person, denial};
use super::commit::{commit, conflicting, conflicts, failed, on_a_thread, send_waiting};

/// Member of a tool's own error that says how many changes were dropped.
const DROPPED: &str = "changes";

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
    let changes = match on_a_thread(move || stage.changes().map_err(|error| error.to_string())).await {
        Ok(changes) => changes,
        Err(why) => {
            recorder.log(&format!("stage: {why}\n"));
            return Err(failed("the changes of this call cannot be read: nothing was changed"));
        }
    };
    let waiting = held.effects().requests.as_ref().map(WaitingRequests::describe).unwrap_or_default();
    if changes.is_empty() && waiting.is_empty() {
        return answer;
    }
    let rule = held.rule().to_string();
    let mut record = HeldChanges::begun((changes.len(), waiting.len()), rule.clone());
    let end = |recorder: &mut CallRecorder<'_>, end| recorder.set_held(HeldChanges { end, ..record.clone() });
    let dropped = dropped(changes.len(), waiting.len());
    end(recorder, HeldEnd::Dropped);
    let answer = answer.map_err(|error| with_dropped(error, &dropped))?;
    if let Some(conflicts) = conflicts(held.stage(), &changes) {
        end(recorder, HeldEnd::Conflict);
        return Err(conflicting(&conflicts));
    }
    if let Some(own) = recorder.usage.requests().summary() {
        held.effects().sent.add(&own);
    }
    let asked = Decision::new(Behavior::Ask, Reason::Rule, rule.clone());
    let sent = held.effects().sent.lines();
    let effects = StagedEffects { stage: held.stage(), changes: &changes, sent: &sent, held: &waiting };
    let question = Question { decision: &asked, preview: None, flow: None, approval: None, effects: Some(effects) };
    match ask_person(pipeline, call, question, scope, recorder).await? {
        ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always => {
            recorder.decide(Decision::new(Behavior::Allow, Reason::Once, rule));
        }
        answer => {
            let (held_end, reason, message) = match answer {
                ApprovalAnswer::No | ApprovalAnswer::NoBecause(_) => {
                    let denied = format!("the user denied the changes of this call, and {dropped}");
                    (HeldEnd::Refused, Reason::Refused, denial(&denied, answer))
                }
                _ => {
                    let nobody = "the changes of this call require approval, but no one is available to ask";
                    (HeldEnd::Unanswered, Reason::Nobody, format!("{nobody}: {dropped}"))
                }
            };
            end(recorder, held_end);
            recorder.decide(Decision::new(Behavior::Deny, reason, rule));
            return Err(ToolError::new(Outcome::Denied, message));
        }
    }
    end(recorder, HeldEnd::Incomplete);
    let effects = held.effects().clone();
    if !changes.is_empty() {
        let committed = commit(pipeline, held, recorder).await;
        committed.map_err(|(held_end, error)| {
            end(recorder, held_end);
            error
        })?;
    }
    let all_sent = match &effects.requests {
        Some(requests) => send_waiting(requests.take(), &mut record.sent, scope, recorder).await,
        None => Ok(()),
    };
    let held_end = if all_sent.is_ok() { HeldEnd::Committed } else { HeldEnd::Incomplete };
    recorder.set_held(HeldChanges { end: held_end, ..record });
    all_sent.map(|()| answer)
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
