//! Limits the calls that run at once, per tool and in total, and the calls that wait.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::delegate::MAX_DEPTH;
use crate::error::{Outcome, ToolError};
use crate::figures::{Present, WAITING_CALLS};
use crate::pipeline::prepared::PreparedTool;
use crate::tool::Limits;

/// Permits of one running call: one from its tool and one from the runtime.
pub(crate) type Permits<'a> = [Option<SemaphorePermit<'a>>; 2];

/// Limits of concurrent and waiting calls.
pub(crate) struct Concurrency {
    /// Permits by depth: calls of a delegated agent take none from the agents that wait for it.
    running: [Semaphore; MAX_DEPTH as usize + 1],
    waiting: AtomicUsize,
    max_waiting: usize,
}

impl Concurrency {
    /// Creates the limits for `running` calls at once at each depth, and `max_waiting` waiting calls.
    pub(crate) fn new(running: u32, max_waiting: usize) -> Self {
        let running = std::array::from_fn(|_| Semaphore::new(running as usize));
        Self { running, waiting: AtomicUsize::new(0), max_waiting }
    }

    /// Waits for the permits of a call: the tool's own first, so that a tool that hangs leaves permits to the others. Below
    /// the first depth a call needs no permit of its tool, which its caller may hold.
    ///
    /// # Errors
    ///
    /// [`Outcome::Busy`] if too many calls wait, [`Outcome::Deadline`] if no permit is free in time.
    pub(crate) async fn acquire<'a>(
        &'a self,
        prepared: &'a PreparedTool,
        limits: &Limits,
        depth: u32,
    ) -> Result<Permits<'a>, ToolError> {
        let all = &self.running[(depth as usize).min(self.running.len() - 1)];
        let own = (depth == 0).then_some(&*prepared.permits);
        let free = || {
            let own = own.map(Semaphore::try_acquire).transpose().ok()?;
            Some([own, Some(all.try_acquire().ok()?)])
        };
        match free() {
            Some(permits) => Ok(permits),
            None => Box::pin(self.wait(own, all, limits)).await,
        }
    }

    async fn wait<'a>(
        &'a self,
        own: Option<&'a Semaphore>,
        all: &'a Semaphore,
        limits: &Limits,
    ) -> Result<Permits<'a>, ToolError> {
        let max = self.max_waiting;
        let _waiting = Waiting::among(&self.waiting, max)
            .ok_or_else(|| ToolError::new(Outcome::Busy, format!("{max} calls are already queued; try again later")))?;
        // An acquisition fails only on a closed semaphore, and neither is ever closed.
        let permits = async {
            let own = match own {
                Some(own) => own.acquire().await.ok(),
                None => None,
            };
            [own, all.acquire().await.ok()]
        };
        let permits = tokio::time::timeout(limits.deadline, permits).await;
        permits.map_err(|_| ToolError::new(Outcome::Deadline, "tool timed out waiting for its turn"))
    }
}

/// One of the calls that wait for a permit.
struct Waiting<'a>(&'a AtomicUsize, #[expect(dead_code, reason = "it counts until it is dropped")] Present);

impl<'a> Waiting<'a> {
    fn among(waiting: &'a AtomicUsize, max: usize) -> Option<Self> {
        let added = waiting.fetch_update(Relaxed, Relaxed, |count| (count < max).then_some(count + 1));
        added.is_ok().then(|| Self(waiting, WAITING_CALLS.enter()))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
