//! Epilogue of every run: log, leaked secrets, failed requests, progress, and the step's output.

use std::sync::atomic::Ordering::Relaxed;

use crate::call::Denial;
use crate::error::{Outcome, ToolError};
use crate::observe::EventKind;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::CallScope;
use crate::sandbox::Usage;

/// Ends a run. `bytes` records details of a complete run and returns the number of bytes that it wrote.
///
/// # Errors
///
/// [`Outcome::Denied`] if a response held a secret; the error that stopped the run, with a failed request as its reason;
/// [`Outcome::OutputLimit`] if the output of the step is used up.
pub(super) fn finish<T>(
    ended: Result<T, ToolError>,
    log: &str,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
    bytes: impl FnOnce(&T, &mut CallRecorder<'_>) -> usize,
) -> Result<T, ToolError> {
    recorder.log(log);
    refuse_leak(recorder)?;
    let ended = ended.map_err(|error| recorder.usage.requests().attribute(error))?;
    let bytes = bytes(&ended, recorder);
    recorder.emit(EventKind::Progress { bytes: bytes as u64 });
    if let Some(turn) = scope.turn {
        turn.spend(bytes)?;
    }
    Ok(ended)
}

/// Withholds the answer of a call that got a secret back in a response.
///
/// # Errors
///
/// [`Outcome::Denied`] if that happened.
pub(super) fn refuse_leak(recorder: &mut CallRecorder<'_>) -> Result<(), ToolError> {
    let Some(name) = recorder.usage.requests().leaked() else { return Ok(()) };
    recorder.deny(Denial { capability: format!("secret:{name}"), flag: None });
    Err(ToolError::new(Outcome::Denied, format!("a response held the secret `{name}`, so the answer is withheld")))
}

/// Returns the bytes that a component has answered so far.
pub(super) fn answered_bytes(usage: &Usage) -> usize {
    usize::try_from(usage.stdout.load(Relaxed)).unwrap_or(usize::MAX)
}

/// Number of refusals when a run starts, to find the failures that a refusal explains.
#[derive(Clone, Copy, Default)]
pub(super) struct RefusalsBefore(usize);

impl RefusalsBefore {
    /// Counts the refusals so far.
    pub(super) fn count(usage: &Usage) -> Self {
        Self(usage.refusals().len())
    }

    /// Returns the failure of a tool as denied if a refusal explains it, whatever the tool reports: one of a service, of its
    /// latest request, or of a path that its message names.
    pub(super) fn explain(self, error: ToolError, usage: &Usage) -> ToolError {
        if !matches!(error.outcome, Outcome::Failed | Outcome::Trap | Outcome::Upstream) {
            return error;
        }
        // An error without details gets its cause from the request later.
        let has_own_words = error.json.is_some() || error.outcome == Outcome::Upstream;
        let is_refused = usage.refusals().len() > self.0
            || has_own_words && usage.requests().is_latest_denied()
            || usage.denials().iter().any(|(_, path)| names(&error.message, path));
        denied_if(is_refused, error)
    }
}

/// Returns `true` if a message has a path that is no part of a longer word.
fn names(message: &str, path: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    !path.is_empty()
        && message.match_indices(path).any(|(start, path)| {
            !message[..start].ends_with(is_inside) && !message[start + path.len()..].starts_with(is_inside)
        })
}

/// Returns `error` as denied if a refusal `explains` it.
pub(super) fn denied_if(explains: bool, error: ToolError) -> ToolError {
    match explains {
        true => ToolError { outcome: Outcome::Denied, ..error },
        false => error,
    }
}
