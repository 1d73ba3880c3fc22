//! Reads a tool's secrets when its call may run, and masks them in the end of the call.

use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Outcome, ToolError};
use crate::pipeline::prepared::PreparedTool;
use crate::pipeline::prepared::compute::aside;
use crate::pipeline::recorder::{CallRecorder, redact as masks};
use crate::pipeline::state::{CallScope, Pipeline, unless_cancelled};
use crate::policy::Credentials;
use crate::schema;

/// Returns the values of a tool's secrets, read once for all calls until one ends; `None` if it is granted none.
///
/// # Errors
///
/// [`Outcome::Denied`] if a secret is not available: the tool does not run without it. [`Outcome::Deadline`] if the store
/// takes longer than the call may.
pub(crate) async fn credentials(
    pipeline: &Pipeline,
    prepared: &PreparedTool,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Option<Arc<Credentials>>, ToolError> {
    if prepared.grant.secrets().is_empty() {
        return Ok(None);
    }
    let known = prepared.credentials.try_lock().ok().and_then(|known| known.clone());
    if let Some(known) = known.filter(|known| known.are_current()) {
        return Ok(Some(known));
    }
    Box::pin(opened(pipeline, prepared, None, scope, recorder)).await
}

/// Returns the values of a tool's secrets in place of those that a server has `refused`; `None` if there are no others.
///
/// # Errors
///
/// See [`credentials`].
pub(crate) async fn renewed(
    pipeline: &Pipeline,
    prepared: &PreparedTool,
    refused: &Arc<Credentials>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Option<Arc<Credentials>>, ToolError> {
    Box::pin(opened(pipeline, prepared, Some(refused), scope, recorder)).await
}

async fn opened(
    pipeline: &Pipeline,
    prepared: &PreparedTool,
    refused: Option<&Arc<Credentials>>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Option<Arc<Credentials>>, ToolError> {
    let since = Instant::now();
    let remaining = recorder.remaining(&prepared.limits)?.deadline;
    let opened = async {
        // Only one call reads them at a time.
        let mut known = prepared.credentials.lock().await;
        let is_known = |known: &Arc<Credentials>| {
            known.are_current() && refused.is_none_or(|refused| !Arc::ptr_eq(refused, known))
        };
        if known.as_ref().is_none_or(|known| !is_known(known)) {
            match open(pipeline, prepared, refused).await? {
                None => return Ok(None),
                opened => *known = opened,
            }
        }
        Ok(known.clone())
    };
    let opened = unless_cancelled(scope.turn, tokio::time::timeout(remaining, opened)).await?;
    // A store can ask a person to unlock it; that time counts against the deadline of the call.
    recorder.budget.spend(since.elapsed());
    let opened = opened.map_err(|_| ToolError::new(Outcome::Deadline, "tool timed out waiting for its secrets"))?;
    opened.map_err(|fault| recorder.fault(fault))
}

async fn open(
    pipeline: &Pipeline,
    prepared: &PreparedTool,
    refused: Option<&Arc<Credentials>>,
) -> Result<Option<Arc<Credentials>>, Error> {
    let granted = prepared.grant.secrets().to_vec();
    let name = granted.first().map(|request| request.name.clone()).unwrap_or_default();
    let missing = |reason: &str| Error::Secret { name: name.clone(), reason: reason.to_owned() };
    let secrets = pipeline.secrets.clone().ok_or_else(|| missing("no secret store is configured"))?;
    let refused = refused.cloned();
    let open = move || match refused {
        Some(refused) if !secrets.renew(&refused)? => Ok(None),
        _ => secrets.open(&granted).map(Arc::new).map(Some),
    };
    tokio::task::spawn_blocking(open).await.map_err(|_| missing("the secret store failed"))?
}

/// Masks the secrets in the end of a call, on a blocking thread for a large answer.
///
/// # Errors
///
/// The error of the call, masked; [`Outcome::Denied`] for an answer with a secret that no mask can remove.
pub(crate) async fn redact(
    pipeline: &Pipeline,
    ended: Result<String, ToolError>,
    prepared: &PreparedTool,
    recorder: &CallRecorder<'_>,
) -> Result<String, ToolError> {
    let is_large = ended.as_ref().is_ok_and(|line| line.len() > schema::MAX_INLINE_BYTES);
    let Some(secrets) = pipeline.secrets.as_ref().filter(|secrets| is_large && secrets.scanner().is_some()) else {
        return masks::redacted(pipeline.secrets.as_ref(), ended);
    };
    let secrets = secrets.clone();
    let job = aside(recorder.budget.end(&prepared.limits), move || masks::redacted(Some(&secrets), ended));
    let late = || ToolError::new(Outcome::Deadline, "tool timed out while its answer was searched for secrets");
    Box::pin(job).await.unwrap_or_else(|| Err(late()))
}
