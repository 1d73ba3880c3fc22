//! Withholds answers from the model, as rules about flows demand: it gets a reference, which it can pass to other calls.

use serde_json::json;

use crate::call::{Behavior, Persisted, Reason};
use crate::error::{Error, Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Pipeline};
use crate::policy::Rule;
use crate::tool::{Persistence, Tool};

use super::result::framed;

/// Stores an answer that a rule withholds, and returns its reference for the model.
///
/// # Errors
///
/// [`Outcome::Denied`] if there is no store, and [`Outcome::BadResult`] if the answer cannot be stored.
pub(super) async fn withhold(
    pipeline: &Pipeline,
    (tool, rule): (&Tool, &Rule),
    answer: String,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    let pattern = rule.pattern().as_str().to_owned();
    recorder.set_withheld(pattern.clone());
    let strategy = tool.interface.result.persistence_policy_ref.value;
    if matches!(strategy, Persistence::NeverPersist | Persistence::DropWithReason) {
        let note = "a rule withholds this answer from the model, and the tool does not let it be stored";
        return Ok(framed("withheld", json!({"note": note, "rule": pattern}), None));
    }
    let Some(results) = scope.results(pipeline) else {
        let message = format!("`{pattern}` withholds the answer, and no result store is configured for it");
        return Err(ToolError::new(Outcome::Denied, message));
    };
    let (flow, name, invocation) = (&recorder.usage.flow, tool.name.clone(), recorder.invocation().to_owned());
    let (label, written) = (flow.of_answer(), serde_json::to_value(flow.label().without_sources()).ok());
    let bytes = answer.len();
    let put = move || results.put_labelled(&name, &invocation, written, answer.as_bytes());
    let lost = || ToolError::new(Outcome::BadResult, "the answer is withheld and could not be stored");
    let stored = tokio::task::spawn_blocking(put).await.map_err(|_| lost())?;
    let reference = stored.map_err(|fault: Error| {
        recorder.fault(fault);
        lost()
    })?;
    let reference = reference.reference;
    // Its length could be chosen to say something.
    let line = framed(
        "withheld",
        json!({
            "note": "a rule withholds this answer from the model; pass it to another call as an argument, written \
                     {\"$result\": REFERENCE}, with a JSON pointer in \"path\" for a part of it",
            "rule": pattern,
            "reference": reference,
        }),
        None,
    );
    scope.memory.note_stored(reference.clone(), label);
    recorder.set_persisted(Persisted {
        strategy: Persistence::RefOnly,
        reference: Some(reference),
        bytes: bytes as u64,
        shown_bytes: line.len() as u64,
    });
    Ok(line)
}

/// Ends the flow of a call to the model: a withheld error loses its message, and the label of everything else belongs to the
/// conversation from now on.
pub(crate) fn disclose(
    ended: Result<String, ToolError>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    if scope.parent.is_some() {
        return ended;
    }
    let flow = &recorder.usage.flow;
    match (flow.withholding(), ended) {
        (Some(rule), Err(error)) => {
            let pattern = rule.pattern().as_str().to_owned();
            let is_plain = recorder.is_withheld() || is_of_host(&error, recorder);
            let error = if is_plain { error } else { concealed(&error, &pattern) };
            recorder.set_withheld(pattern);
            Err(error)
        }
        (_, ended) => {
            if !recorder.is_withheld() {
                flow.disclose();
            }
            ended
        }
    }
}

/// Returns `true` for an error in words of the host and people alone.
fn is_of_host(error: &ToolError, recorder: &CallRecorder<'_>) -> bool {
    let is_decided = || {
        recorder.decision().is_some_and(|decision| {
            decision.behavior == Behavior::Deny
                && matches!(decision.reason, Reason::Rule | Reason::Refused | Reason::Nobody)
        })
    };
    error.outcome == Outcome::Cancelled || error.outcome == Outcome::Denied && is_decided()
}

fn concealed(error: &ToolError, pattern: &str) -> ToolError {
    let message = format!("the call ended with `{}`, and `{pattern}` withholds the message", error.outcome);
    ToolError::new(error.outcome, message)
}
