//! Runs computations over untrusted data: short ones at once, long ones on a blocking thread with a deadline.

use std::time::{Duration, Instant};

use tokio::time::timeout_at;

use crate::schema::{self, Clock};

/// Maximum time of work beside a call: a claim, a preview, the patterns of a hook, the masks of arguments for the record.
pub(crate) const MAX_SIDE_TIME: Duration = Duration::from_secs(1);

/// Runs a short computation on the calling thread. Returns `None` if there are too many `bytes` or it takes too long; the
/// caller then runs it [`aside`].
pub(crate) fn at_once<T>(bytes: usize, job: impl FnOnce() -> T) -> Option<T> {
    if bytes > schema::MAX_INLINE_BYTES {
        return None;
    }
    schema::with_clock(&Clock::inline(), job).ok()
}

/// Runs a computation on a blocking thread until `until`; dropping the future stops it too. Returns `None` if it was
/// stopped.
pub(crate) async fn aside<T: Send + 'static>(until: Instant, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (clock, _waiting) = Clock::until(until);
    let job = tokio::task::spawn_blocking(move || schema::with_clock(&clock, job));
    // The job stops itself; the time-out is for a job for which no thread was free.
    timeout_at(until.into(), job).await.ok()?.ok()?.ok()
}
