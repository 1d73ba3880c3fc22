//! Effects of a call that somebody has agreed to: the changes are committed, then the requests that waited are sent.

use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use toolcrib_staging::{Change, CommitError, Record, Stage, StageMark};

use crate::call::{HeldEnd, clipped};
use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, HeldEffects, Pipeline, unless_cancelled};
use crate::policy::HeldRequest;
use crate::sandbox::{SentRequest, WaitingRequest};

/// Maximum number of paths that an error names.
const MAX_NAMED: usize = 5;
/// Maximum time for all requests that waited.
const MAX_SENDING: Duration = Duration::from_secs(120);

/// Commits the changes of a call as they were at `mark`, with their own record. It goes on even if nobody waits for it.
pub(super) async fn commit(
    pipeline: &Pipeline,
    held: HeldEffects,
    mark: StageMark,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    let record = pipeline.record.as_ref().map(|record| record.of_commit(held.stage().name()));
    let committing = pipeline.committing.clone();
    let committed = on_a_thread(move || {
        let _committing = committing.lock().unwrap_or_else(PoisonError::into_inner);
        let committed = commit_now(&held, &mark, record.as_ref());
        Ok(committed.map(|()| record.map_or(0, |record| record.lost())))
    });
    let committed = committed.await.unwrap_or_else(|why| Err((HeldEnd::Incomplete, failed(&why))));
    let lost = committed.map_err(|(end, error)| {
        recorder.end_held(end);
        error
    })?;
    if lost > 0 {
        recorder.warn(format!("{lost} of the committed changes cannot be taken back"));
    }
    Ok(())
}

fn commit_now(held: &HeldEffects, mark: &StageMark, record: Option<&Arc<Record>>) -> Result<(), (HeldEnd, ToolError)> {
    let stage = held.stage();
    if !stage.mark().is_ok_and(|now| now == *mark) {
        let message = "the call still wrote while it was asked about: nothing was changed; call the tool again";
        return Err((HeldEnd::Conflict, failed(message)));
    }
    let (path, why) = match stage.clone().commit(false, record, &mut |_, _| {}) {
        Ok(_) => return Ok(()),
        Err(CommitError::Conflict(path, _)) if has_changed_nothing(stage) => {
            return Err((HeldEnd::Conflict, conflicting(&[shown(stage, &path)])));
        }
        Err(CommitError::Conflict(path, _)) => (path, "others have changed it meanwhile".to_owned()),
        Err(CommitError::System(path, error)) if has_changed_nothing(stage) => {
            let path = shown(stage, &path);
            let message =
                format!("the changes of this call cannot be committed: `{path}`: {error}; nothing was changed");
            return Err((HeldEnd::Dropped, failed(&message)));
        }
        Err(CommitError::System(path, error)) => (path, error.to_string()),
    };
    let (path, name) = (shown(stage, &path), stage.name());
    let message = format!(
        "the changes of this call were committed only in part: `{path}`: {why}; the user can finish it with `toolcrib stage commit \
         {name}`"
    );
    Err((HeldEnd::Incomplete, failed(&message)))
}

/// Returns `true` if the commit of a stage has not begun, or stopped at its first step and was taken back.
fn has_changed_nothing(stage: &Stage) -> bool {
    match stage.progress() {
        Ok(None) => true,
        Ok(Some((0, _))) => stage.clean().is_ok_and(|moved| moved.is_empty()) && stage.remove().is_ok(),
        _ => false,
    }
}

/// Runs work on the disk on a thread for it.
pub(super) async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.unwrap_or_else(|_| Err("the host failed".to_owned()))
}

/// Removes effects that are not made.
pub(super) async fn drop_on_a_thread(held: HeldEffects) {
    let _ = spawn_blocking(move || drop(held)).await;
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

/// Sends the requests that waited, in their order, until one fails. Each is recorded.
///
/// # Errors
///
/// [`Outcome::Failed`] with the request that failed and the number of those that were not sent.
pub(super) async fn send_waiting(
    waiting: Vec<WaitingRequest>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    let all = waiting.len();
    let until = tokio::time::Instant::now() + MAX_SENDING;
    for (number, request) in waiting.into_iter().enumerate() {
        let HeldRequest { method, url, .. } = &request.description;
        let name = format!("`{method} {}`", clipped(url));
        let (left, number) = (all - number - 1, number + 1);
        let failed = |why: &str| {
            let rest = format!("{left} after it {} not sent", if left == 1 { "was" } else { "were" });
            failed(&format!(
                "the changes of this call were made, and then request {number} of {all} failed: {name}: {why}; {rest}"
            ))
        };
        recorder.begin_sent(method, url);
        let sending = tokio::time::timeout_at(until, request.send());
        let SentRequest { exchange, secrets, error } = match unless_cancelled(scope.turn, pin!(sending)).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(_)) => return Err(failed("it took too long, and may have arrived")),
            Err(_) => return Err(failed("it was interrupted, and may have arrived")),
        };
        secrets.iter().for_each(|secret| recorder.usage.requests().carry(secret));
        let status = exchange.status;
        recorder.end_sent(exchange);
        match (error, status) {
            (Some(error), _) => return Err(failed(&error.to_string())),
            (None, Some(status @ 400..)) => {
                return Err(failed(&format!("the server answered with the status {status}")));
            }
            (None, _) => {}
        }
    }
    Ok(())
}
