//! Asks a person about a call, and words a denial for the model.

use std::future::pending;
use std::time::Instant;

use crate::call::{Decision, Flag};
use crate::error::{Outcome, ToolError};
use crate::observe::EventKind;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, Pipeline, unless_cancelled};
use crate::policy::{Approval, ApprovalAnswer, ApprovalRequest, StagedEffects, Withheld};
use crate::schema::CheckedArguments;

/// Question about a call, or about the effects that it has held back.
pub(super) struct Question<'a> {
    /// Decision that requires the question.
    pub(super) decision: &'a Decision,
    /// Preview of the call, if one exists.
    pub(super) preview: Option<&'a str>,
    /// Explanation of the flow.
    pub(super) flow: Option<&'a str>,
    /// Scope of an answer for more than this call.
    pub(super) approval: Option<&'a Approval>,
    /// Effects that the call has held back.
    pub(super) effects: Option<StagedEffects<'a>>,
}

/// Asks a person; without an approver, nobody is available. The call waits meanwhile.
///
/// # Errors
///
/// [`Outcome::Cancelled`](crate::error::Outcome::Cancelled) if the step was interrupted.
pub(super) async fn ask_person(
    pipeline: &Pipeline,
    (execution, checked): (&Execution<'_>, &CheckedArguments),
    question: Question<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<ApprovalAnswer, ToolError> {
    let Some(approver) = &pipeline.approver else { return Ok(ApprovalAnswer::Nobody) };
    let Question { decision, preview, flow, approval, effects } = question;
    recorder.emit(EventKind::ApprovalRequested(decision));
    let (tool, prepared) = (execution.tool, execution.prepared);
    let granted = prepared.grant.granted();
    let withheld = match (recorder.usage.flow.withholding(), pipeline.flows.may_withhold()) {
        (Some(_), _) => Withheld::Arguments,
        (None, true) => Withheld::Contents,
        (None, false) => Withheld::Nothing,
    };
    let summary = recorder.summary(&prepared.input.mask_sensitive(&checked.value));
    let (invocation, call_id) = (recorder.invocation().to_owned(), recorder.call_id().to_owned());
    let caller = recorder.caller().map(str::to_owned);
    let (since, at_end) = (Instant::now(), effects.is_some());
    let answer = approver.ask(ApprovalRequest {
        invocation: &invocation,
        call_id: &call_id,
        parent: scope.parent.map(|parent| parent.invocation),
        caller: caller.as_deref(),
        owner: scope.memory.owner().map(|owner| &**owner),
        tool,
        digest: execution.digest(),
        definition: prepared.definition(tool),
        arguments: &checked.text,
        preview,
        summary: summary.as_deref(),
        granted: &granted,
        stage: execution.grant.stage_name(),
        effects: effects.as_ref(),
        flow,
        withheld,
        rests_on: decision.rests_on.as_deref().unwrap_or_default(),
        approval,
    });
    let answer = tokio::select! {
        answer = unless_cancelled(scope.turn, answer) => answer,
        error = interrupted(scope), if at_end => Err(error),
    };
    recorder.budget.add_wait(since);
    if let Some(turn) = scope.turn {
        turn.add_wait(since);
    }
    answer
}

/// Waits until the step of a call is interrupted: its question at the end is one of a call that runs, which goes on otherwise.
async fn interrupted(scope: &CallScope<'_>) -> ToolError {
    match scope.turn.or(scope.turn_above) {
        Some(turn) => turn.interrupted().await,
        None => pending().await,
    }
    ToolError::new(Outcome::Cancelled, "interrupted at the question about the changes of this call, which were dropped")
}

/// Words a denial for the model, with the reason of the person. It is on one line, without control characters and at most
/// [`ApprovalAnswer::MAX_REASON_LEN`] characters long.
pub(super) fn denial(denied: &str, answer: ApprovalAnswer) -> String {
    let ApprovalAnswer::NoBecause(reason) = answer else { return denied.to_owned() };
    let inert: String = reason.chars().map(|c| if c.is_control() || is_invisible(c) { ' ' } else { c }).collect();
    let words: Vec<&str> = inert.split_whitespace().collect();
    let reason: String = words.join(" ").chars().take(ApprovalAnswer::MAX_REASON_LEN).collect();
    if reason.is_empty() { denied.to_owned() } else { format!("{denied}: {reason}") }
}

/// Returns `true` for a character that a reader does not see or that changes the order of others.
fn is_invisible(c: char) -> bool {
    Flag::unseen(None, c).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_denial_is_one_short_line() {
        let because = |reason: &str| denial("denied", ApprovalAnswer::NoBecause(reason.to_owned()));
        assert_eq!(because("use\n\tthe \u{1b}other\u{202e} one "), "denied: use the other one");
        for empty in ["", " \r\n", "\u{200b}"] {
            assert_eq!(because(empty), "denied");
        }
        let long = because(&"ž".repeat(ApprovalAnswer::MAX_REASON_LEN + 1));
        assert_eq!(long.matches('ž').count(), ApprovalAnswer::MAX_REASON_LEN);
    }
}
