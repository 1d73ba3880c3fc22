//! What a call uses, counted while it runs. The counters outlive the call's future, so that a call cut short still has
//! figures for its record.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use wasmtime::ResourceLimiter;

use crate::tool::{Access, Limits};

use super::network::Ledger;

/// The most denials of one call that are kept.
const MOST_DENIALS: usize = 16;
/// The most bytes kept of a path that was denied.
const LONGEST_PATH: usize = 256;

/// The figures of one call.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) peak_memory: AtomicU64,
    pub(crate) processor_nanos: AtomicU64,
    pub(crate) fuel: AtomicU64,
    pub(crate) stdout: AtomicU64,
    pub(crate) stderr: AtomicU64,
    /// Output was cut at its cap.
    pub(crate) truncated: AtomicBool,
    /// Memory or a table was refused: what fails afterwards, fails for that reason.
    pub(crate) memory_refused: AtomicBool,
    denials: Mutex<Vec<(Access, String)>>,
    pub(crate) ledger: Ledger,
}

impl Meter {
    /// Notes a path that the grant refused, each once and no more than a few.
    pub(crate) fn denied(&self, access: Access, path: &str) {
        let mut denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        let path: String = path.chars().take(LONGEST_PATH).collect();
        if denials.len() < MOST_DENIALS && !denials.iter().any(|(_, known)| *known == path) {
            denials.push((access, path));
        }
    }

    /// The paths that the grant refused, as the guest named them.
    pub(crate) fn denials(&self) -> Vec<(Access, String)> {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Memories and tables of one call together, against one cap.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    pub(super) used: usize,
    /// What was taken last, given back if the growth then fails.
    pub(super) last: usize,
    pub(super) cap: usize,
    pub(super) meter: std::sync::Arc<Meter>,
}

impl MemoryBudget {
    fn take(&mut self, bytes: usize) -> bool {
        match self.used.checked_add(bytes).filter(|total| *total <= self.cap) {
            Some(total) => {
                (self.used, self.last) = (total, bytes);
                self.meter.peak_memory.fetch_max(total as u64, Relaxed);
                true
            }
            None => {
                self.last = 0;
                self.meter.memory_refused.store(true, Relaxed);
                false
            }
        }
    }

    /// The growth that was let through, or refused, did not happen.
    fn give_back(&mut self) {
        self.used = self.used.saturating_sub(std::mem::take(&mut self.last));
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, now: usize, wanted: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        Ok(most.is_none_or(|most| wanted <= most) && self.take(wanted.saturating_sub(now)))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.give_back();
        Ok(())
    }

    fn table_growing(&mut self, now: usize, wanted: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        let elements = wanted.saturating_sub(now);
        Ok(most.is_none_or(|most| wanted <= most) && self.take(elements.saturating_mul(size_of::<usize>())))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.give_back();
        Ok(())
    }

    fn instances(&self) -> usize {
        Limits::INSTANCES as usize
    }

    fn tables(&self) -> usize {
        Limits::TABLES as usize
    }

    fn memories(&self) -> usize {
        Limits::MEMORIES as usize
    }
}

/// A future whose time on the processor is counted: the thread's own clock before and after each poll.
pub(super) struct Metered<'a, F> {
    pub(super) inner: Pin<Box<F>>,
    pub(super) meter: &'a Meter,
}

impl<F: Future> Future for Metered<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let before = thread_time();
        let polled = self.inner.as_mut().poll(context);
        let used = thread_time().saturating_sub(before);
        self.meter.processor_nanos.fetch_add(used.as_nanos() as u64, Relaxed);
        polled
    }
}

#[cfg(unix)]
fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// Where threads have no clock of their own, the time that passed while the call was polled.
#[cfg(not(unix))]
fn thread_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
