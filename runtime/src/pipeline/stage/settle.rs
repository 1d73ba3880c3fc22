//! End of effects that a call has held back: somebody is asked once about all of them, and they are committed together, or dropped.

use std::path::Path;

use serde_json::Value;
use tokio::task::spawn_blocking;
use toolcrib_staging::{Change, CommitError, Stage};

use crate::call::{Behavior, Decision, HeldChanges, HeldEnd, Reason};
use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, HeldEffects, Pipeline};
use crate::policy::{ApprovalAnswer, StagedEffects};
use crate::schema::CheckedArguments;

use super::ask::{Question, ask_person, denial};

/// Member of a tool's own error that says how many changes were dropped.
const DROPPED: &str = "changes";
/// Maximum number of paths that an error names.
const MAX_NAMED: usize = 5;

/// Ends the effects of a call. The effects of a failed call are dropped.
///
/// # Errors
///
/// The error of the call, [`Outcome::Denied`] if nobody agrees, or [`Outcome::Failed`] if the changes conflict with those of others or
/// cannot be made. Nothing is changed then, unless the error says so.
pub(crate) async fn settle(
    pipeline: &Pipeline,
    call: (&Execution<'_>, &CheckedArguments),
    (held, answer): (HeldEffects, Result<String, ToolError>),
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    let stage = held.stage().clone();
    let changes = match on_a_thread(move || stage.changes()).await {
        Ok(Ok(changes)) => changes,
        Ok(Err(error)) => return Err(unreadable(&error.to_string(), recorder)),
        Err(why) => return Err(unreadable(why, recorder)),
    };
    if changes.is_empty() {
        return answer;
    }
    let (rule, count) = (held.rule().to_string(), changes.len());
    let end = |recorder: &mut CallRecorder<'_>, end| {
        recorder.set_held(HeldChanges { changes: count as u64, rule: rule.clone(), end });
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            end(recorder, HeldEnd::Dropped);
            return Err(with_dropped(error, count));
        }
    };
    if let Some(conflicts) = conflicts(held.stage(), &changes) {
        end(recorder, HeldEnd::Conflict);
        return Err(conflicting(&conflicts));
    }
    let asked = Decision::new(Behavior::Ask, Reason::Rule, rule.clone());
    let sent = match recorder.usage.requests().summary() {
        Some(own) => {
            held.effects().sent.add(&own);
            held.effects().sent.lines()
        }
        None => held.effects().sent.lines(),
    };
    let effects = StagedEffects { stage: held.stage(), changes: &changes, sent: &sent };
    let question = Question { decision: &asked, preview: None, flow: None, approval: None, effects: Some(effects) };
    let reason = match ask_person(pipeline, call, question, scope, recorder).await? {
        ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always => Reason::Once,
        answer => {
            let (held_end, reason, message) = match answer {
                ApprovalAnswer::No | ApprovalAnswer::NoBecause(_) => {
                    let denied = format!("the user denied the changes of this call, and {}", dropped(count));
                    (HeldEnd::Refused, Reason::Refused, denial(&denied, answer))
                }
                _ => {
                    let message = format!(
                        "the changes of this call require approval, but no one is available to ask: {}",
                        dropped(count)
                    );
                    (HeldEnd::Unanswered, Reason::Nobody, message)
                }
            };
            end(recorder, held_end);
            recorder.decide(Decision::new(Behavior::Deny, reason, rule.clone()));
            return Err(ToolError::new(Outcome::Denied, message));
        }
    };
    recorder.decide(Decision::new(Behavior::Allow, reason, rule.clone()));
    let committed = commit(pipeline, held, recorder).await;
    end(recorder, committed.as_ref().map_or_else(|(end, _)| *end, |()| HeldEnd::Committed));
    committed.map(|()| answer).map_err(|(_, error)| error)
}

/// Commits the changes of a call, with a record of their own.
async fn commit(
    pipeline: &Pipeline,
    held: HeldEffects,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), (HeldEnd, ToolError)> {
    let _committing = pipeline.committing.lock().await;
    let (stage, name) = (held.stage().clone(), held.stage().name().to_owned());
    let record = pipeline.record.as_ref().map(|record| record.of_commit(&name));
    let committed = on_a_thread(move || {
        let committed = stage.commit(false, record.as_ref(), &mut |_, _| {});
        (committed, record.map_or(0, |record| record.lost()))
    });
    let (committed, lost) = committed.await.map_err(|why| (HeldEnd::Incomplete, failed(why)))?;
    if lost > 0 {
        recorder.warn(format!("{lost} of the committed changes cannot be taken back"));
    }
    let (path, why) = match committed {
        Ok(_) => {
            held.keep();
            return Ok(());
        }
        Err(CommitError::Conflict(path, _)) if has_changed_nothing(held.stage()) => {
            return Err((HeldEnd::Conflict, conflicting(&[shown(held.stage(), &path)])));
        }
        Err(CommitError::Conflict(path, _)) => (path, "others have changed it meanwhile".to_owned()),
        Err(CommitError::System(path, error)) => (path, error.to_string()),
    };
    let message = format!(
        "the changes of this call were committed only in part: `{}`: {why}; the user can finish it with `toolcrib stage commit \
         {name}`",
        shown(held.stage(), &path)
    );
    if held.stage().is_committing() {
        held.keep();
        return Err((HeldEnd::Incomplete, failed(&message)));
    }
    Err((
        HeldEnd::Dropped,
        failed(&format!("the changes of this call cannot be committed: {why}: nothing was changed")),
    ))
}

/// Returns `true` if the commit of a stage has not begun, or stopped at its first step.
fn has_changed_nothing(stage: &Stage) -> bool {
    match stage.progress() {
        Ok(None) => true,
        Ok(Some((0, _))) => stage.clean().is_ok(),
        _ => false,
    }
}

/// Runs work on the disk on a thread for it.
async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, &'static str> {
    spawn_blocking(work).await.map_err(|_| "the host failed")
}

/// Lists changes that others prevent; `None` if there are none.
fn conflicts(stage: &Stage, changes: &[Change]) -> Option<Vec<String>> {
    let lost = stage.lost().iter().map(|lost| shown(stage, Path::new(lost)));
    let conflicts = changes.iter().filter(|change| change.conflict.is_some());
    let all: Vec<String> = lost.chain(conflicts.map(|change| shown(stage, &change.path))).collect();
    (!all.is_empty()).then_some(all)
}

fn conflicting(paths: &[String]) -> ToolError {
    let named: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| format!("`{path}`")).collect();
    let more = if paths.len() > MAX_NAMED { format!(" and {} more", paths.len() - MAX_NAMED) } else { String::new() };
    failed(&format!(
        "others have changed {}{more} since this call read or wrote it: nothing was changed; call the tool again",
        named.join(", ")
    ))
}

fn unreadable(why: &str, recorder: &mut CallRecorder<'_>) -> ToolError {
    recorder.log(&format!("stage: {why}\n"));
    failed("the changes of this call cannot be read: nothing was changed")
}

fn failed(message: &str) -> ToolError {
    ToolError::new(Outcome::Failed, message)
}

/// Returns the path of a change below its granted folder: where that is on the host is nothing for a model.
fn shown(stage: &Stage, path: &Path) -> String {
    let below = stage.folders().into_iter().filter_map(|folder| Some(path.strip_prefix(folder).ok()?.to_owned()));
    let shortest = below.min_by_key(|path| path.components().count());
    let path = shortest.unwrap_or_else(|| path.file_name().map(Into::into).unwrap_or_default());
    path.display().to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Adds the dropped changes to the error of a call.
fn with_dropped(error: ToolError, changes: usize) -> ToolError {
    let message = format!("{}; {}", error.message, dropped(changes));
    let json = error.json.map(|json| match serde_json::from_str::<Value>(&json) {
        Ok(Value::Object(mut members)) if !members.contains_key(DROPPED) => {
            members.insert(DROPPED.to_owned(), dropped(changes).into());
            Value::Object(members).to_string()
        }
        _ => json,
    });
    ToolError { message, json, ..error }
}

/// Words how many changes were dropped.
fn dropped(changes: usize) -> String {
    if changes == 1 { "1 change was dropped".to_owned() } else { format!("{changes} changes were dropped") }
}
