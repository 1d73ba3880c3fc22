//! Schedules the calls of one step: concurrency-safe calls in parallel, the rest alone, in order. It also shares the
//! step's time and output among its calls, and cancels the siblings of a failed call. It runs nothing.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
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
    /// Maximum number of calls per step; further ones are refused.
    pub calls: usize,
    /// Maximum wall-clock time of a step's calls together.
    pub time: Option<Duration>,
    /// Maximum total bytes of a step's answers.
    pub output: Option<usize>,
    /// Maximum number of calls in all steps that wait for a permit at once; further ones are refused.
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
    calls: Mutex<Calls>,
    /// One per call: wakes the futures of the call after a change for it.
    changed: Box<[Notify]>,
    /// End of the step's time, without the time that users took for their answers.
    until: Option<Instant>,
    /// Time that people took for their answers, in nanoseconds.
    asked: AtomicU64,
    /// `true` once the step was interrupted: a program that runs makes no further call.
    is_interrupted: AtomicBool,
    output: Option<AtomicUsize>,
}

/// Slots of a step, and the first calls that others wait for. These indices only grow, because a call never leaves the
/// state `Ended` and is never undecided again.
#[derive(Debug)]
struct Calls {
    slots: Vec<Slot>,
    /// Index of the first call that has not ended.
    ended: usize,
    /// Index of the first exclusive call that has not ended.
    barrier: usize,
    /// Index of the first call that is neither decided nor ended.
    undecided: usize,
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

impl Calls {
    /// Returns `true` if no earlier call runs or waits that this call may not run beside.
    fn may_begin(&self, at: usize) -> bool {
        at <= if self.slots[at].exclusive { self.ended } else { self.barrier }
    }

    /// Moves the indices over the calls that have ended or were decided. Returns the calls that may go on now and could
    /// not before, each once in the life of the step for its beginning and once for the decisions before it.
    fn advance(&mut self) -> Vec<usize> {
        let slots = &self.slots;
        let skip = |from: usize, passes: fn(&Slot) -> bool| {
            from + slots[from..].iter().take_while(|slot| passes(slot)).count()
        };
        let ended = skip(self.ended, |slot| slot.state == SlotState::Ended);
        let barrier = skip(self.barrier, |slot| !slot.exclusive || slot.state == SlotState::Ended);
        let undecided = skip(self.undecided, |slot| slot.decided || slot.state == SlotState::Ended);
        let passed = |from: usize, to: usize| from + 1..slots.len().min(to + 1);
        let alone = passed(self.ended, ended).filter(|at| *at == ended && slots[*at].exclusive);
        let beside = passed(self.barrier, barrier).filter(|at| !slots[*at].exclusive);
        let begin = alone.chain(beside).filter(|at| slots[*at].state == SlotState::Waits);
        let woken = begin.chain(passed(self.undecided, undecided)).collect();
        (self.ended, self.barrier, self.undecided) = (ended, barrier, undecided);
        woken
    }

    /// Cancels the calls that have to end because the call at `at` failed, and returns them.
    fn cancel_siblings(&mut self, at: usize) -> Vec<usize> {
        let (policy, label) = (self.slots[at].failure, self.slots[at].label.clone());
        let (from, why) = match policy {
            SiblingFailure::Ignore => return Vec::new(),
            SiblingFailure::CancelSiblings => (0, "is of the same step"),
            SiblingFailure::CancelDependent => (at + 1, "had to wait for it"),
        };
        // A call depends on the calls that it waits for, and on those that they waited for.
        let mut exclusive = self.slots[at].exclusive;
        let mut cancelled = Vec::new();
        for (other, slot) in self.slots.iter_mut().enumerate().skip(from).filter(|(other, _)| *other != at) {
            let hit = policy == SiblingFailure::CancelSiblings || exclusive || slot.exclusive;
            if hit && matches!(slot.state, SlotState::Waits | SlotState::Runs) {
                exclusive |= slot.exclusive;
                slot.state = SlotState::Cancelled(format!("cancelled: {label} failed, and this call {why}"));
                cancelled.push(other);
            }
        }
        cancelled
    }
}

impl StepSchedule {
    /// Creates the schedule of a step.
    pub(crate) fn new(slots: Vec<Slot>, scheduler: &Scheduler) -> Arc<Self> {
        let changed = slots.iter().map(|_| Notify::new()).collect();
        let mut calls = Calls { slots, ended: 0, barrier: 0, undecided: 0 };
        calls.advance();
        Arc::new(Self {
            calls: Mutex::new(calls),
            changed,
            until: scheduler.time.and_then(|time| Instant::now().checked_add(time)),
            asked: AtomicU64::new(0),
            is_interrupted: AtomicBool::new(false),
            output: scheduler.output.map(AtomicUsize::new),
        })
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change, and wakes the calls that it returns. A wake only makes a call look at the schedule again, so one
    /// that is dropped instead keeps nothing from the others.
    fn change(&self, change: impl FnOnce(&mut Calls) -> Vec<usize>) {
        let woken = change(&mut self.calls());
        woken.into_iter().for_each(|at| self.changed[at].notify_waiters());
    }

    /// Waits in the call at an index until `find` returns a value.
    async fn wait_until<T>(&self, at: usize, mut find: impl FnMut(&mut Calls) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed[at].notified());
            // Every change for the call after this line wakes this future.
            changed.as_mut().enable();
            if let Some(found) = find(&mut self.calls()) {
                return found;
            }
            changed.await;
        }
    }

    /// Cancels the calls that have not started and the interruptible ones that run; with `all`, the rest too.
    pub(crate) fn interrupt(&self, all: bool) {
        self.is_interrupted.store(true, Relaxed);
        self.change(|calls| {
            let mut woken = Vec::new();
            for (at, slot) in calls.slots.iter_mut().enumerate() {
                let cancels = match slot.state {
                    SlotState::Waits => true,
                    SlotState::Runs => slot.interruptible || all,
                    SlotState::Cancelled(_) | SlotState::Ended => false,
                };
                if cancels {
                    slot.state = SlotState::Cancelled("interrupted before the call ended".to_owned());
                }
                // A call that goes on may wait for the interruption.
                if cancels || slot.state == SlotState::Runs {
                    woken.push(at);
                }
            }
            woken
        });
    }

    /// Returns the labels of the calls that run and are not interruptible.
    pub(crate) fn uninterruptible(&self) -> Vec<String> {
        let calls = self.calls();
        let running = calls.slots.iter().filter(|slot| slot.state == SlotState::Runs && !slot.interruptible);
        running.map(|slot| slot.label.clone()).collect()
    }

    fn end(&self, at: usize, failed: bool) {
        self.change(|calls| {
            let is_first = calls.slots[at].state != SlotState::Ended;
            let mut woken = if failed && is_first { calls.cancel_siblings(at) } else { Vec::new() };
            calls.slots[at].state = SlotState::Ended;
            woken.extend(calls.advance());
            woken
        });
    }
}

/// Turn of one call in its step. Dropping it ends the call for the calls that wait for it.
#[derive(Debug)]
pub(crate) struct Turn {
    schedule: Arc<StepSchedule>,
    at: usize,
}

impl Turn {
    /// Creates the call's turn at an index of the step.
    pub(crate) fn new(schedule: Arc<StepSchedule>, at: usize) -> Self {
        Self { schedule, at }
    }

    /// Waits until the calls that run before this one have ended.
    ///
    /// # Errors
    ///
    /// [`Outcome::Cancelled`] if the call is cancelled meanwhile.
    pub(crate) async fn begin(&self) -> Result<(), ToolError> {
        let begun = self.schedule.wait_until(self.at, |calls| {
            if let SlotState::Cancelled(why) = &calls.slots[self.at].state {
                return Some(Err(ToolError::new(Outcome::Cancelled, why.clone())));
            }
            calls.may_begin(self.at).then(|| {
                calls.slots[self.at].state = SlotState::Runs;
                Ok(())
            })
        });
        begun.await
    }

    /// Waits until it is decided about each earlier call of the step whether it may run, so that the user is asked in
    /// call order.
    pub(crate) async fn await_decisions(&self) {
        self.schedule.wait_until(self.at, |calls| (self.at <= calls.undecided).then_some(())).await;
    }

    /// Records that the call may run.
    pub(crate) fn decide(&self) {
        self.schedule.change(|calls| {
            calls.slots[self.at].decided = true;
            calls.advance()
        });
    }

    /// Adds the time since `since`, in which a person was asked, to the time of the step.
    pub(crate) fn add_wait(&self, since: Instant) {
        let waited = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.schedule.asked.fetch_add(waited, Relaxed);
    }

    /// Returns the time that is left to the step; `None` if it is not limited.
    pub(crate) fn left(&self) -> Option<Duration> {
        let asked = Duration::from_nanos(self.schedule.asked.load(Relaxed));
        Some((self.schedule.until? + asked).saturating_duration_since(Instant::now()))
    }

    /// Returns `true` once the step was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.schedule.is_interrupted.load(Relaxed)
    }

    /// Waits until the step is interrupted.
    pub(crate) async fn interrupted(&self) {
        self.schedule.wait_until(self.at, |_| self.is_interrupted().then_some(())).await;
    }

    /// Waits until the call is cancelled, and returns the error for the model.
    pub(crate) async fn cancelled(&self) -> ToolError {
        let why = self.schedule.wait_until(self.at, |calls| match &calls.slots[self.at].state {
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
        if let Some(left) = self.left() {
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

    /// Marks the call finished and wakes its dependents.
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

#[cfg(test)]
mod tests;
