//! Masks the arguments of a call for its record.

use std::time::Instant;

use tokio::time::timeout_at;

use crate::audit::{CallArguments, LoggedArguments};
use crate::pipeline::prepared::compute::{MAX_SIDE_TIME, aside};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::Pipeline;

/// Masks the arguments of a call that has ended, on a blocking thread if they are large or take long. Arguments that take
/// longer than [`MAX_SIDE_TIME`] are represented by their size.
pub(crate) async fn log_arguments(pipeline: &Pipeline, recorder: &mut CallRecorder<'_>) {
    let Some(arguments) = recorder.arguments() else { return };
    let logged = match pipeline.audit.represent_at_once(arguments) {
        Some(logged) => logged,
        None => Box::pin(represent_aside(pipeline, arguments)).await.unwrap_or_else(|| arguments.size_alone()),
    };
    recorder.set_logged(logged);
}

/// Represents arguments on a blocking thread; `None` if that takes too long.
async fn represent_aside(pipeline: &Pipeline, arguments: &CallArguments) -> Option<LoggedArguments> {
    let until = Instant::now() + MAX_SIDE_TIME;
    let permit = timeout_at(until.into(), pipeline.maskings.clone().acquire_owned()).await.ok()?;
    let (audit, arguments) = (pipeline.audit.clone(), arguments.clone());
    // A job that nobody waits for any more keeps its permit to its end.
    let represent = move || {
        let _permit = permit;
        audit.represent(&arguments)
    };
    aside(until, represent).await
}
