//! Waits for the turn of a call in its step and for its place, and starts it.

use std::time::Instant;

use crate::error::ToolError;
use crate::observe::EventKind;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, Permit, Pipeline, unless_cancelled};
use crate::schema::CheckedArguments;
use crate::tool::Limits;

/// A call that may run now.
pub(crate) struct Scheduled<'p> {
    /// Limits of the run.
    pub(crate) limits: Limits,
    /// End of the run.
    pub(crate) until: Instant,
    /// `true` if the time of the step ends before the tool's deadline.
    pub(crate) is_shortened: bool,
    pub(crate) permit: Permit<'p>,
}

/// Waits until a call may run.
///
/// # Errors
///
/// The error of a call that is cancelled or has no time or output left.
pub(crate) async fn schedule<'p>(
    pipeline: &'p Pipeline,
    execution: &Execution<'p>,
    checked: &CheckedArguments,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Scheduled<'p>, ToolError> {
    let prepared = execution.prepared;
    recorder.set_program(execution.digest(), checked.text.len());
    recorder.emit(EventKind::Queued);
    let since = Instant::now();
    let remaining = recorder.remaining(&prepared.limits)?;
    let waited = async {
        if let Some(turn) = scope.turn {
            turn.begin().await?;
        }
        let since = Instant::now();
        let permit = pipeline.concurrency.acquire(prepared, scope.memory, &remaining, scope.depth);
        let permit = unless_cancelled(scope.turn, permit).await??;
        // The wait for a place counts against the deadline, the wait for the turn does not.
        let limits = Limits { deadline: remaining.deadline.saturating_sub(since.elapsed()), ..remaining };
        let shared = scope.turn.map_or(Ok(limits), |turn| turn.share(&limits))?;
        Ok::<_, ToolError>((shared, shared.deadline < limits.deadline, permit))
    };
    let waited = waited.await;
    recorder.budget.add_wait(since);
    let (limits, is_shortened, permit) = waited?;
    let until = Instant::now() + limits.deadline;
    recorder.budget.set_end(until);
    recorder.emit(EventKind::Started(&checked.value));
    // Requests of hooks do not explain a failure of the tool.
    recorder.usage.requests().clear_latest();
    Ok(Scheduled { limits, until, is_shortened, permit })
}
