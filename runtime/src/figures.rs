//! Figures of this process: the work beside the calls, and the calls at this moment, over all runtimes. A program that serves others
//! can show them; nothing here decides anything.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counts of this process. Those that are not of this moment only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessFigures {
    /// Programs that were compiled.
    pub compiled: u64,
    /// Compilations that failed.
    pub compile_failures: u64,
    /// Time of all compilations.
    pub compile_time: Duration,
    /// Programs whose code was in the cache.
    pub cache_hits: u64,
    /// Programs whose code was not in the cache.
    pub cache_misses: u64,
    /// Sandboxes at this moment, each with the instances of one program.
    pub sandboxes: u64,
    /// Calls that wait for their turn at this moment.
    pub waiting_calls: u64,
    /// Records that were written to audit logs.
    pub records: u64,
    /// Records that could not be written.
    pub lost_records: u64,
    /// Records that wait for a writer at this moment.
    pub waiting_records: u64,
}

pub(crate) static COMPILED: Figure = Figure::new();
pub(crate) static COMPILE_FAILURES: Figure = Figure::new();
/// Nanoseconds of all compilations.
pub(crate) static COMPILE_TIME: Figure = Figure::new();
pub(crate) static CACHE_HITS: Figure = Figure::new();
pub(crate) static CACHE_MISSES: Figure = Figure::new();
pub(crate) static SANDBOXES: Figure = Figure::new();
pub(crate) static WAITING_CALLS: Figure = Figure::new();
pub(crate) static RECORDS: Figure = Figure::new();
pub(crate) static LOST_RECORDS: Figure = Figure::new();
pub(crate) static WAITING_RECORDS: Figure = Figure::new();

/// A count.
#[derive(Debug)]
pub(crate) struct Figure(AtomicU64);

/// One thing of a count of this moment. Dropping it ends the thing.
#[derive(Debug)]
pub(crate) struct Present(&'static Figure);

impl Figure {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub(crate) fn subtract(&self, count: u64) {
        self.0.fetch_sub(count, Relaxed);
    }

    /// Counts one thing until the result is dropped.
    pub(crate) fn enter(&'static self) -> Present {
        self.add(1);
        Present(self)
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.subtract(1);
    }
}

impl ProcessFigures {
    /// Reads the figures of this process.
    pub fn read() -> Self {
        Self {
            compiled: COMPILED.get(),
            compile_failures: COMPILE_FAILURES.get(),
            compile_time: Duration::from_nanos(COMPILE_TIME.get()),
            cache_hits: CACHE_HITS.get(),
            cache_misses: CACHE_MISSES.get(),
            sandboxes: SANDBOXES.get(),
            waiting_calls: WAITING_CALLS.get(),
            records: RECORDS.get(),
            lost_records: LOST_RECORDS.get(),
            waiting_records: WAITING_RECORDS.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_present_counts_until_it_is_dropped() {
        static FIGURE: Figure = Figure::new();
        let present = [FIGURE.enter(), FIGURE.enter()];
        assert_eq!(FIGURE.get(), 2);
        drop(present);
        assert_eq!(FIGURE.get(), 0);
    }
}
