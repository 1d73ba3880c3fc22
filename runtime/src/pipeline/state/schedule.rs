//! Schedules the calls of one step: concurrency-safe calls in parallel, the rest alone, in order. It also shares the
//! step's time and output among its calls, and cancels the siblings of a failed call. It runs nothing.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::error::{Outcome, ToolError};
use crate::tool::{Limits, SiblingFailure};

/// Settings for the calls of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduler {
    /// Effect of a failed call on its siblings, for tools that declare none.
    pub sibling_failure: SiblingFailure,
    /// Maximum number of calls of one step; further ones are refused.
    pub calls: usize,
    /// Maximum wall-clock time of all calls of a step together.
    pub time: Option<Duration>,
    /// Maximum bytes of all answers of a step together.
    pub output: Option<usize>,
    /// Maximum number of calls of all steps that wait for a permit at once; further ones are refused.
    pub queue: usize,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self { sibling_failure: SiblingFailure::Ignore, calls: 128, time: None, output: None, queue: 256 }
    }
}

/// Schedule of one step.
#[derive(Debug)]
pub(crate) struct StepSchedule {
    slots: Mutex<Vec<Slot>>,
    changed: Notify,
    /// End of the time of the step, without the time that people took for their answers.
    until: Option<Instant>,
    /// Time that people took for their answers, in nanoseconds.
    asked: AtomicU64,
    output: Option<AtomicUsize>,
}

/// Slot of one call in its step.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Name of the call in messages about its failure.
    pub(crate) label: String,
    /// `true` if the call runs alone.
    pub(crate) exclusive: bool,
    /// `true` if an interruption stops the running call.
    pub(crate) interruptible: bool,
    pub(crate) failure: SiblingFailure,
    /// `true` once it is decided whether the call may run.
    pub(crate) decided: bool,
    pub(crate) state: SlotState,
}

/// State of a call in its step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotState {
    Waits,
    Runs,
    /// The call has to end for this reason.
    Cancelled(String),
    Ended,
}

impl StepSchedule {
    /// Creates the schedule of a step.
    pub(crate) fn new(slots: Vec<Slot>, scheduler: &Scheduler) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::new(slots),
            changed: Notify::new(),
            until: scheduler.time.and_then(|time| Instant::now().checked_add(time)),
            asked: AtomicU64::new(0),
            output: scheduler.output.map(AtomicUsize::new),
        })
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `find` returns a value.
    async fn wait_until<T>(&self, mut find: impl FnMut(&mut Vec<Slot>) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Every change after this line wakes this future.
            changed.as_mut().enable();
            if let Some(found) = find(&mut self.slots()) {
                return found;
            }
            changed.await;
        }
    }

    /// Cancels the calls that have not started and the interruptible ones that run; with `all`, the rest too.
    pub(crate) fn interrupt(&self, all: bool) {
        for slot in self.slots().iter_mut() {
            let cancels = match slot.state {
                SlotState::Waits => true,
                SlotState::Runs => slot.interruptible || all,
                SlotState::Cancelled(_) | SlotState::Ended => false,
            };
            if cancels {
                slot.state = SlotState::Cancelled("interrupted before the call ended".to_owned());
            }
        }
        self.changed.notify_waiters();
    }

    /// Returns the labels of the calls that run and are not interruptible.
    pub(crate) fn uninterruptible(&self) -> Vec<String> {
        let slots = self.slots();
        let running = slots.iter().filter(|slot| slot.state == SlotState::Runs && !slot.interruptible);
        running.map(|slot| slot.label.clone()).collect()
    }

    fn end(&self, at: usize, failed: bool) {
        let mut slots = self.slots();
        let label = slots[at].label.clone();
        if failed && slots[at].state != SlotState::Ended {
            let policy = slots[at].failure;
            let mut gone = vec![false; slots.len()];
            gone[at] = true;
            for other in 0..slots.len() {
                let hit = match policy {
                    SiblingFailure::Ignore => false,
                    SiblingFailure::CancelSiblings => other != at,
                    // A call depends on the calls that it waits for, and on those that they waited for.
                    SiblingFailure::CancelDependent => {
                        (0..other).any(|one| gone[one] && (slots[one].exclusive || slots[other].exclusive))
                    }
                };
                if hit && matches!(slots[other].state, SlotState::Waits | SlotState::Runs) {
                    gone[other] = true;
                    let why = match policy {
                        SiblingFailure::CancelDependent => "had to wait for it",
                        _ => "is of the same step",
                    };
                    slots[other].state =
                        SlotState::Cancelled(format!("cancelled: {label} failed, and this call {why}"));
                }
            }
        }
        slots[at].state = SlotState::Ended;
        drop(slots);
        self.changed.notify_waiters();
    }
}

/// Turn of one call in its step. Dropping it ends the call for the calls that wait for it.
#[derive(Debug)]
pub(crate) struct Turn {
    schedule: Arc<StepSchedule>,
    at: usize,
}

impl Turn {
    /// Creates the turn of the call at an index of the step.
    pub(crate) fn new(schedule: Arc<StepSchedule>, at: usize) -> Self {
        Self { schedule, at }
    }

    /// Waits until the calls that run before this one have ended.
    ///
    /// # Errors
    ///
    /// [`Outcome::Cancelled`] if the call is cancelled meanwhile.
    pub(crate) async fn begin(&self) -> Result<(), ToolError> {
        let begun = self.schedule.wait_until(|slots| {
            if let SlotState::Cancelled(why) = &slots[self.at].state {
                return Some(Err(ToolError::new(Outcome::Cancelled, why.clone())));
            }
            let alone = slots[self.at].exclusive;
            let free = slots[..self.at].iter().all(|slot| slot.state == SlotState::Ended || !(alone || slot.exclusive));
            free.then(|| {
                slots[self.at].state = SlotState::Runs;
                Ok(())
            })
        });
        begun.await
    }

    /// Waits until it is decided about each earlier call of the step whether it may run, so that a person is asked in the
    /// order of the calls.
    pub(crate) async fn await_decisions(&self) {
        let is_decided = |slot: &Slot| slot.decided || slot.state == SlotState::Ended;
        self.schedule.wait_until(|slots| slots[..self.at].iter().all(is_decided).then_some(())).await;
    }

    /// Records that the call may run.
    pub(crate) fn decide(&self) {
        self.schedule.slots()[self.at].decided = true;
        self.schedule.changed.notify_waiters();
    }

    /// Adds the time since `since`, in which a person was asked, to the time of the step.
    pub(crate) fn add_wait(&self, since: Instant) {
        let waited = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.schedule.asked.fetch_add(waited, Relaxed);
    }

    /// Waits until the call is cancelled, and returns the error for the model.
    pub(crate) async fn cancelled(&self) -> ToolError {
        let why = self.schedule.wait_until(|slots| match &slots[self.at].state {
            SlotState::Cancelled(why) => Some(why.clone()),
            _ => None,
        });
        ToolError::new(Outcome::Cancelled, why.await)
    }

    /// Reduces `limits` to the remaining time and output of the step.
    ///
    /// # Errors
    ///
    /// [`Outcome::Deadline`] or [`Outcome::OutputLimit`] if nothing remains.
    pub(crate) fn share(&self, limits: &Limits) -> Result<Limits, ToolError> {
        let mut limits = *limits;
        if let Some(until) = self.schedule.until {
            let asked = Duration::from_nanos(self.schedule.asked.load(Relaxed));
            let left = (until + asked).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ToolError::new(Outcome::Deadline, "the time of this step is used up"));
            }
            limits.deadline = limits.deadline.min(left);
        }
        if let Some(output) = &self.schedule.output {
            let left = output.load(Relaxed);
            if left == 0 {
                return Err(ToolError::new(Outcome::OutputLimit, "the output of this step is used up"));
            }
            limits.stdout = limits.stdout.min(left);
        }
        Ok(limits)
    }

    /// Takes the bytes that a call wrote from the output of its step.
    ///
    /// # Errors
    ///
    /// [`Outcome::OutputLimit`] if its siblings have left too little.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), ToolError> {
        let Some(output) = &self.schedule.output else { return Ok(()) };
        let spent = output.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        spent.map(|_| ()).map_err(|_| ToolError::new(Outcome::OutputLimit, "the output of this step is used up"))
    }

    /// Ends the call for the calls that wait for it.
    pub(crate) fn end(&self, failed: bool) {
        self.schedule.end(self.at, failed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.schedule.end(self.at, false);
    }
}

/// Awaits `future`, or returns the error of its turn if that is cancelled first. The future is held twice, once as the argument,
/// so that a large one is pinned by the caller.
pub(crate) async fn unless_cancelled<T>(turn: Option<&Turn>, future: impl Future<Output = T>) -> Result<T, ToolError> {
    let Some(turn) = turn else { return Ok(future.await) };
    tokio::select! {
        biased;
        why = turn.cancelled() => Err(why),
        end = future => Ok(end),
    }
}
