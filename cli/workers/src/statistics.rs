//! Counts of a worker since its start.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// Counts of a worker.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    answered: AtomicU64,
    refused: AtomicU64,
    busy: AtomicU64,
    ended: AtomicU64,
    in_flight: AtomicU64,
    busy_nanoseconds: AtomicU64,
    is_draining: AtomicBool,
}

/// Counts at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Calls with a result, including errors of the tool.
    pub(crate) answered: u64,
    /// Offers and calls that the policy of the worker refused.
    pub(crate) refused: u64,
    /// Offers without a free place.
    pub(crate) busy: u64,
    /// Calls that their callers ended, or never started.
    pub(crate) ended: u64,
    /// Calls that run.
    pub(crate) in_flight: u64,
    /// Nanoseconds of all calls together.
    pub(crate) nanoseconds: u64,
    /// `true` if the worker takes no more calls.
    pub(crate) is_draining: bool,
}

/// End of an offer or a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEnd {
    Answered,
    Refused,
    Busy,
    Ended,
}

impl Statistics {
    /// Counts a running call until the guard is dropped.
    pub(crate) fn run(&self) -> RunningCall<'_> {
        self.in_flight.fetch_add(1, Relaxed);
        RunningCall(self)
    }

    /// Counts an end.
    pub(crate) fn count(&self, end: CallEnd) {
        let counter = match end {
            CallEnd::Answered => &self.answered,
            CallEnd::Refused => &self.refused,
            CallEnd::Busy => &self.busy,
            CallEnd::Ended => &self.ended,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts the time of a call.
    pub(crate) fn spend(&self, time: Duration) {
        self.busy_nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Notes that the worker takes no more calls.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Relaxed);
    }

    /// Returns the counts.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            answered: self.answered.load(Relaxed),
            refused: self.refused.load(Relaxed),
            busy: self.busy.load(Relaxed),
            ended: self.ended.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
            nanoseconds: self.busy_nanoseconds.load(Relaxed),
            is_draining: self.is_draining.load(Relaxed),
        }
    }
}

/// Running call of a count.
pub(crate) struct RunningCall<'a>(&'a Statistics);

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}
