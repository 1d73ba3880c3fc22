//! What a call uses, counted while it runs. The counters outlive the call's future, so that a call cut short still has
//! figures for its record.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use wasmtime::ResourceLimiter;

use crate::call::{Denial, Execution};
use crate::error::{Outcome, ToolError};
use crate::tool::{Access, Limits};

use super::files::OverQuota;
use super::network::Ledger;

/// The most denials and the most programs of one call that are told.
const MAX_TOLD: usize = 16;
/// The most bytes kept of a path that was denied.
const MAX_PATH_LEN: usize = 256;

/// The figures of one call.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) peak_memory: AtomicU64,
    pub(crate) processor_nanos: AtomicU64,
    pub(crate) fuel: AtomicU64,
    pub(crate) stdout: AtomicU64,
    pub(crate) stderr: AtomicU64,
    /// Output was cut at its cap.
    pub(crate) truncated: AtomicBool,
    /// Memory or a table was refused: what fails afterwards, fails for that reason.
    pub(crate) memory_refused: AtomicBool,
    /// Bytes written to files, with the holes before them; see [`Limits::disk_bytes`].
    pub(crate) disk_bytes: AtomicU64,
    /// Files, folders and links made.
    pub(crate) disk_entries: AtomicU64,
    /// What was used up first of what the call may add to its folders: what fails afterwards, fails for that reason.
    pub(super) over_quota: OnceLock<OverQuota>,
    /// The guest looked for its folders, or for something in one, and it has none.
    without_folders: AtomicBool,
    denials: Mutex<Vec<(Access, String)>>,
    refusals: Mutex<Vec<Denial>>,
    executed: Mutex<Vec<Execution>>,
    pub(crate) executions: AtomicU64,
    added: Mutex<Vec<String>>,
    pub(crate) delegated: AtomicU64,
    /// Parts that were shown while the call ran, and those that were not.
    pub(crate) parts: AtomicU64,
    pub(crate) dropped_parts: AtomicU64,
    /// Other tools that it called, and questions to the model with the tokens that they cost.
    pub(crate) calls: AtomicU64,
    pub(crate) completions: AtomicU64,
    pub(crate) tokens: AtomicU64,
    ledger: Ledger,
    /// The usage of the call, where this is the usage of a program that a script of it runs.
    call: Option<Arc<Usage>>,
}

impl Usage {
    /// The usage of a program or a hook that runs for this call: its memory, its output, its fuel and its end are its own, and
    /// what a call may do to the world is counted together.
    pub(crate) fn within(call: &Arc<Self>) -> Arc<Self> {
        let call = call.call.as_ref().unwrap_or(call);
        Arc::new(Self { call: Some(call.clone()), ..Self::default() })
    }

    /// The usage that counts for the whole call.
    pub(crate) fn whole(&self) -> &Self {
        self.call.as_deref().unwrap_or(self)
    }

    /// The requests of the whole call.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.whole().ledger
    }

    /// Notes a path that the grant refused, each once and no more than a few.
    pub(crate) fn denied(&self, access: Access, path: &str) {
        let mut denials = locked(&self.whole().denials);
        let path: String = path.chars().take(MAX_PATH_LEN).collect();
        if denials.len() < MAX_TOLD && !denials.iter().any(|(_, known)| *known == path) {
            denials.push((access, path));
        }
    }

    /// Notes that the guest looked for a folder and has none.
    pub(crate) fn without_folders(&self) {
        self.whole().without_folders.store(true, Relaxed);
    }

    /// Returns true where it looked for one in vain.
    pub(crate) fn missed_folders(&self) -> bool {
        self.without_folders.load(Relaxed)
    }

    /// Notes something else that was refused, each once and no more than a few.
    pub(crate) fn refused(&self, denial: Denial) {
        let mut refusals = locked(&self.whole().refusals);
        if refusals.len() < MAX_TOLD && !refusals.contains(&denial) {
            refusals.push(denial);
        }
    }

    /// What was refused besides paths and requests.
    pub(crate) fn refusals(&self) -> Vec<Denial> {
        locked(&self.refusals).clone()
    }

    /// Notes a program that a script began to run, and gives its place among those that are told.
    pub(crate) fn began(&self, execution: Execution) -> Option<usize> {
        self.whole().executions.fetch_add(1, Relaxed);
        let mut executed = locked(&self.whole().executed);
        if executed.len() == MAX_TOLD {
            return None;
        }
        executed.push(execution);
        Some(executed.len() - 1)
    }

    /// Notes how a program ended.
    pub(crate) fn ended(&self, place: Option<usize>, end: impl FnOnce(&mut Execution)) {
        if let Some(place) = place {
            locked(&self.whole().executed).get_mut(place).map(end);
        }
    }

    /// The programs that scripts ran.
    pub(crate) fn executed(&self) -> Vec<Execution> {
        locked(&self.executed).clone()
    }

    /// Notes what a script added to its run, of which there is never much.
    pub(crate) fn added(&self, what: String) {
        locked(&self.whole().added).push(what);
    }

    /// What scripts added.
    pub(crate) fn additions(&self) -> Vec<String> {
        locked(&self.added).clone()
    }

    /// Counts a part that nobody is shown.
    pub(crate) fn dropped(&self) {
        self.whole().dropped_parts.fetch_add(1, Relaxed);
    }

    /// Counts an answer that is not written to a stream.
    ///
    /// # Errors
    ///
    /// [`Outcome::OutputLimit`] where it is larger than the cap.
    pub(super) fn answered(&self, bytes: usize, cap: usize) -> Result<(), ToolError> {
        self.stdout.fetch_add(bytes.min(cap) as u64, Relaxed);
        if bytes <= cap {
            return Ok(());
        }
        self.truncated.store(true, Relaxed);
        let message = format!("tool answered with more than {}", super::trap::Bytes(cap as u64));
        Err(ToolError::new(Outcome::OutputLimit, message))
    }

    /// The paths that the grant refused, as the guest named them.
    pub(crate) fn denials(&self) -> Vec<(Access, String)> {
        locked(&self.denials).clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memories and tables of one call together, against one cap. What was let through stays counted also where the engine
/// then could not grow: it tells of failures that it never asked about too, and taking back for those what an earlier
/// growth took would lift the cap.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    pub(super) used: usize,
    pub(super) cap: usize,
    pub(super) usage: Arc<Usage>,
}

impl MemoryBudget {
    /// Lets something grow from `now` to `wanted` units of this many bytes, where `most` is all that it was declared to
    /// become or its slot has room for.
    fn grows(&mut self, now: usize, wanted: usize, most: Option<usize>, unit: usize) -> bool {
        let bytes = wanted.saturating_sub(now).saturating_mul(unit);
        let total = self.used.checked_add(bytes).filter(|total| *total <= self.cap);
        match total.filter(|_| most.is_none_or(|most| wanted <= most)) {
            Some(total) => {
                self.used = total;
                self.usage.whole().peak_memory.fetch_max(total as u64, Relaxed);
                true
            }
            None => {
                self.usage.memory_refused.store(true, Relaxed);
                false
            }
        }
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, now: usize, wanted: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grows(now, wanted, most, 1))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.usage.memory_refused.store(true, Relaxed);
        Ok(())
    }

    fn table_growing(&mut self, now: usize, wanted: usize, most: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.grows(now, wanted, most, size_of::<usize>()))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.usage.memory_refused.store(true, Relaxed);
        Ok(())
    }

    fn instances(&self) -> usize {
        Limits::MAX_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        Limits::MAX_TABLES as usize
    }

    fn memories(&self) -> usize {
        Limits::MAX_MEMORIES as usize
    }
}

/// A future whose time on the processor is counted: the thread's own clock before and after each poll. Past its deadline
/// it gets no further turn, and is `None`.
pub(super) struct Metered<'a, F> {
    pub(super) inner: Pin<Box<F>>,
    pub(super) usage: &'a Usage,
    pub(super) deadline: Instant,
}

impl<F: Future> Future for Metered<'_, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Of many guests that compute, each would otherwise use a whole tick more to learn that its time is over.
        if Instant::now() >= self.deadline {
            return Poll::Ready(None);
        }
        let before = thread_time();
        let polled = self.inner.as_mut().poll(context);
        let used = thread_time().saturating_sub(before);
        self.usage.processor_nanos.fetch_add(used.as_nanos() as u64, Relaxed);
        polled.map(Some)
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
