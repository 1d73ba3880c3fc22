//! Asks a rich tool for a preview of its call, for observers and for the person who approves it.

use std::sync::Arc;
use std::time::Instant;

use toolcrib_foundation::text::{MAX_MESSAGE, prefix};

use crate::observe::EventKind;
use crate::pipeline::prepared::compute::MAX_SIDE_TIME;
use crate::pipeline::recorder::{CallRecorder, redact};
use crate::pipeline::state::{CallScope, Execution, Pipeline, RichRunner, payload};
use crate::sandbox::Usage;
use crate::schema::CheckedArguments;
use crate::tool::Limits;

/// Returns a preview of a call: the tool's own, or else the one that its definition renders. Returns `None`
/// without an observer and an approver.
pub(crate) async fn preview(
    pipeline: &Pipeline,
    execution: &Execution<'_>,
    checked: &CheckedArguments,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Option<String> {
    if !recorder.is_watched() && pipeline.approver.is_none() {
        return None;
    }
    let own = match execution.rich().filter(|runner| runner.rich.exports.preview) {
        None => None,
        Some(runner) => Box::pin(own_preview(pipeline, execution, runner, checked, scope, recorder)).await,
    };
    let text = own.filter(|text| !text.trim().is_empty()).or_else(|| recorder.rendered_preview());
    let text = prefix(&redact::masked(pipeline.secrets.as_ref(), text?), MAX_MESSAGE);
    recorder.emit(EventKind::Preview(&text));
    Some(text)
}

/// Runs the tool's own preview, without any grant and outside the time of the call.
async fn own_preview(
    pipeline: &Pipeline,
    Execution { tool, prepared: settled, .. }: &Execution<'_>,
    RichRunner { program, rich, invocation }: &RichRunner<'_>,
    checked: &CheckedArguments,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Option<String> {
    let since = Instant::now();
    let prepared = scope.memory.prepared(&pipeline.contexts.preparation_key(tool, rich, program));
    let invocation = invocation.with(rich, payload(tool, checked), prepared.as_deref());
    let limits = Limits { deadline: settled.limits.deadline.min(MAX_SIDE_TIME), ..settled.limits };
    let usage = Arc::new(Usage::default());
    let ended = match pipeline.concurrency.acquire(settled, scope.memory, &limits, scope.depth).await {
        Ok(_permits) => pipeline.sandbox.preview_rich(program, invocation, &limits, &usage).await,
        Err(busy) => Err(busy),
    };
    recorder.budget.add_wait(since);
    ended.unwrap_or_else(|error| {
        recorder.log(&format!("preview: {}\n", error.message));
        None
    })
}
