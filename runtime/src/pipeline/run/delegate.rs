//! Delegates a call to another agent, as a hook decided.

use serde_json::Value;

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use crate::delegate::Task;
use crate::error::{Outcome, ToolError};
use crate::pipeline::prepared::PreparedTool;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::stage::quoted;
use crate::pipeline::state::{CallScope, Pipeline, unless_cancelled};

/// Delegates a call and returns the agent's answer.
pub(crate) async fn delegate(
    pipeline: &Pipeline,
    task: Value,
    prepared: &PreparedTool,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    let failed =
        |error: &dyn std::fmt::Display| ToolError::new(Outcome::Failed, format!("the call was delegated: {error}"));
    let memory = scope.memory;
    if let Some(rule) = recorder.usage.flow.withholding() {
        return Err(ToolError::new(Outcome::Denied, format!("no agent gets this call: `{}`", rule.pattern().as_str())));
    }
    // The agent sees what the call was given, and the call gets what the agent has seen.
    let labels = memory.labels_for_agent(&recorder.usage.flow.label());
    let task = Task::read(task, scope.depth + 1, &memory.agents, labels.clone(), memory.owner());
    let task = task.map_err(|error| failed(&error))?;
    let delegate = pipeline.delegate.as_ref().ok_or_else(|| failed(&"no agent is configured for delegation"))?;
    if let Some(turn) = scope.turn {
        turn.begin().await?;
    }
    recorder.usage.delegated.fetch_add(1, Relaxed);
    let remaining = recorder.remaining(&prepared.limits)?.deadline;
    let answer = tokio::time::timeout(remaining, delegate.delegate(task));
    let answer = unless_cancelled(scope.turn, answer).await?;
    let seen = labels.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    recorder.usage.flow.join(&seen);
    let late = |_| ToolError::new(Outcome::Deadline, "the agent to which the call was delegated timed out");
    answer.map_err(late)?.map(|answer| quoted(answer.to_string())).map_err(|error| failed(&error))
}
