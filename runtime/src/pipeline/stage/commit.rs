//! Effects of a call that somebody has agreed to: the changes are committed, then the requests that waited are sent.

use std::path::Path;
use std::time::Duration;

use tokio::task::spawn_blocking;
use toolcrib_staging::{Change, CommitError, Stage};

use crate::call::{Exchange, HeldEnd};
use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, HeldEffects, Pipeline, unless_cancelled};
use crate::sandbox::{SentRequest, WaitingRequest};

/// Maximum number of paths that an error names.
const MAX_NAMED: usize = 5;
/// Maximum time for all requests that waited.
const MAX_SENDING: Duration = Duration::from_secs(120);

/// Commits the changes of a call, with their own record.
pub(super) async fn commit(
    pipeline: &Pipeline,
    held: HeldEffects,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), (HeldEnd, ToolError)> {
    let _committing = pipeline.committing.lock().await;
    let (stage, name) = (held.stage().clone(), held.stage().name().to_owned());
    let record = pipeline.record.as_ref().map(|record| record.of_commit(&name));
    let committed = on_a_thread(move || {
        let committed = stage.commit(false, record.as_ref(), &mut |_, _| {});
        Ok((committed, record.map_or(0, |record| record.lost())))
    });
    let (committed, lost) = committed.await.map_err(|why| (HeldEnd::Incomplete, failed(&why)))?;
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
pub(super) async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.unwrap_or_else(|_| Err("the host failed".to_owned()))
}

/// Lists changes that others prevent; `None` if there are none.
pub(super) fn conflicts(stage: &Stage, changes: &[Change]) -> Option<Vec<String>> {
    let lost = stage.lost().iter().map(|lost| shown(stage, Path::new(lost)));
    let conflicts = changes.iter().filter(|change| change.conflict.is_some());
    let all: Vec<String> = lost.chain(conflicts.map(|change| shown(stage, &change.path))).collect();
    (!all.is_empty()).then_some(all)
}

pub(super) fn conflicting(paths: &[String]) -> ToolError {
    let named: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| format!("`{path}`")).collect();
    let more = if paths.len() > MAX_NAMED { format!(" and {} more", paths.len() - MAX_NAMED) } else { String::new() };
    failed(&format!(
        "others have changed {}{more} since this call read or wrote it: nothing was changed; call the tool again",
        named.join(", ")
    ))
}

pub(super) fn failed(message: &str) -> ToolError {
    ToolError::new(Outcome::Failed, message)
}

/// Returns the path of a change below its granted folder: where that is on the host is nothing for a model.
fn shown(stage: &Stage, path: &Path) -> String {
    let below = stage.folders().into_iter().filter_map(|folder| Some(path.strip_prefix(folder).ok()?.to_owned()));
    let shortest = below.min_by_key(|path| path.components().count());
    let path = shortest.unwrap_or_else(|| path.file_name().map(Into::into).unwrap_or_default());
    path.display().to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Sends the requests that waited, in their order, until one fails. Each is recorded in `sent`.
///
/// # Errors
///
/// [`Outcome::Failed`] with the request that failed and the number of those that were not sent.
pub(super) async fn send_waiting(
    waiting: Vec<WaitingRequest>,
    sent: &mut Vec<Exchange>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    let all = waiting.len();
    let until = tokio::time::Instant::now() + MAX_SENDING;
    for (number, request) in waiting.into_iter().enumerate() {
        let done = format!("{number} of {all} requests of this call were sent, after its changes were made");
        let sending = tokio::time::timeout_at(until, request.send());
        let ended = unless_cancelled(scope.turn, std::pin::pin!(sending)).await;
        let SentRequest { exchange, secrets, error } = match ended {
            Ok(Ok(ended)) => ended,
            Ok(Err(_)) => return Err(failed(&format!("{done}; the next one took too long, and may have been sent"))),
            Err(error) => {
                let message = format!("{}; {done}; the next one may have been sent", error.message);
                return Err(ToolError { message, ..error });
            }
        };
        secrets.iter().for_each(|secret| recorder.usage.requests().carry(secret));
        let (method, host, status) = (exchange.method.clone(), exchange.host.clone(), exchange.status);
        sent.push(exchange);
        let why = match (error, status) {
            (Some(error), _) => error.to_string(),
            (None, Some(status @ 400..)) => format!("the server answered with the status {status}"),
            (None, _) => continue,
        };
        let left = all - number - 1;
        return Err(failed(&format!("{done}; `{method} {host}`: {why}; {left} more were not sent")));
    }
    Ok(())
}
