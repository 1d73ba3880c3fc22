//! The turns of the calls of one step: those that are safe beside others go together, each of the rest alone and in
//! order. It also holds what the calls of a step share, and cancels those whose sibling has failed. It runs nothing.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::error::{Outcome, ToolError};
use crate::tool::{Limits, SiblingFailure};

/// How the calls of one step go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduler {
    /// EventKind the failure of a call means to the others, where its tool does not say.
    pub sibling_failure: SiblingFailure,
    /// The most calls of one step; further ones are refused.
    pub calls: usize,
    /// The wall-clock time that they may take together.
    pub time: Option<Duration>,
    /// The bytes that they may answer together.
    pub output: Option<usize>,
    /// The most calls of all steps that wait for a slot at once; further ones are refused.
    pub queue: usize,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self { sibling_failure: SiblingFailure::Ignore, calls: 128, time: None, output: None, queue: 256 }
    }
}

/// The turns of one step.
#[derive(Debug)]
pub(super) struct Gate {
    places: Mutex<Vec<Place>>,
    changed: Notify,
    until: Option<Instant>,
    output: Option<AtomicUsize>,
}

/// A call in its step.
#[derive(Debug)]
pub(super) struct Place {
    /// EventKind the model is told of it where it takes others with it.
    pub(super) label: String,
    /// Whether it may not run beside others.
    pub(super) exclusive: bool,
    /// Whether somebody who interrupts stops it where it stands.
    pub(super) may_be_cut: bool,
    pub(super) failure: SiblingFailure,
    pub(super) state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Waits,
    Runs,
    /// It is to end, for this reason.
    Cancelled(String),
    Ended,
}

impl Gate {
    pub(super) fn new(places: Vec<Place>, scheduler: &Scheduler) -> Arc<Self> {
        Arc::new(Self {
            places: Mutex::new(places),
            changed: Notify::new(),
            until: scheduler.time.and_then(|time| Instant::now().checked_add(time)),
            output: scheduler.output.map(AtomicUsize::new),
        })
    }

    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` finds something.
    async fn until<T>(&self, mut look: impl FnMut(&mut Vec<Place>) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Whoever changes something after this line wakes us.
            changed.as_mut().enable();
            if let Some(found) = look(&mut self.places()) {
                return found;
            }
            changed.await;
        }
    }

    /// Cancels what has not started, and what runs and may be cut; with `all`, the rest too.
    pub(super) fn interrupt(&self, all: bool) {
        for place in self.places().iter_mut() {
            let cut = match place.state {
                State::Waits => true,
                State::Runs => place.may_be_cut || all,
                State::Cancelled(_) | State::Ended => false,
            };
            if cut {
                place.state = State::Cancelled("interrupted before the call ended".to_owned());
            }
        }
        self.changed.notify_waiters();
    }

    /// The calls that run and may not be cut.
    pub(super) fn held(&self) -> Vec<String> {
        let places = self.places();
        let held = places.iter().filter(|place| place.state == State::Runs && !place.may_be_cut);
        held.map(|place| place.label.clone()).collect()
    }

    fn end(&self, at: usize, failed: bool) {
        let mut places = self.places();
        let label = places[at].label.clone();
        if failed && places[at].state != State::Ended {
            let policy = places[at].failure;
            let mut gone = vec![false; places.len()];
            gone[at] = true;
            for other in 0..places.len() {
                let hit = match policy {
                    SiblingFailure::Ignore => false,
                    SiblingFailure::CancelSiblings => other != at,
                    // A call depends on those that it waits for, and so on those that they waited for.
                    SiblingFailure::CancelDependent => {
                        (0..other).any(|one| gone[one] && (places[one].exclusive || places[other].exclusive))
                    }
                };
                if hit && matches!(places[other].state, State::Waits | State::Runs) {
                    gone[other] = true;
                    let why = match policy {
                        SiblingFailure::CancelDependent => "had to wait for it",
                        _ => "is of the same step",
                    };
                    places[other].state = State::Cancelled(format!("cancelled: {label} failed, and this call {why}"));
                }
            }
        }
        places[at].state = State::Ended;
        drop(places);
        self.changed.notify_waiters();
    }
}

/// The place of one call. Dropping it ends the call for those that wait for it.
#[derive(Debug)]
pub(crate) struct Turn {
    gate: Arc<Gate>,
    at: usize,
}

impl Turn {
    pub(super) fn new(gate: Arc<Gate>, at: usize) -> Self {
        Self { gate, at }
    }

    /// Waits until the calls that have to end first have ended.
    ///
    /// # Errors
    ///
    /// [`Outcome::Cancelled`] where the call is cancelled meanwhile.
    pub(super) async fn come(&self) -> Result<(), ToolError> {
        let come = self.gate.until(|places| {
            if let State::Cancelled(why) = &places[self.at].state {
                return Some(Err(ToolError::new(Outcome::Cancelled, why.clone())));
            }
            let alone = places[self.at].exclusive;
            let free = places[..self.at].iter().all(|place| place.state == State::Ended || !(alone || place.exclusive));
            free.then(|| {
                places[self.at].state = State::Runs;
                Ok(())
            })
        });
        come.await
    }

    /// Waits until the call is cancelled, and gives what the model is told.
    pub(super) async fn cancelled(&self) -> ToolError {
        let why = self.gate.until(|places| match &places[self.at].state {
            State::Cancelled(why) => Some(why.clone()),
            _ => None,
        });
        ToolError::new(Outcome::Cancelled, why.await)
    }

    /// EventKind is left of `limits` when the step's own are shared among its calls.
    ///
    /// # Errors
    ///
    /// [`Outcome::Deadline`] or [`Outcome::OutputLimit`] where nothing is left.
    pub(super) fn share(&self, limits: &Limits) -> Result<Limits, ToolError> {
        let mut limits = *limits;
        if let Some(until) = self.gate.until {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ToolError::new(Outcome::Deadline, "the time of this step is used up"));
            }
            limits.deadline = limits.deadline.min(left);
        }
        if let Some(output) = &self.gate.output {
            let left = output.load(Relaxed);
            if left == 0 {
                return Err(ToolError::new(Outcome::OutputLimit, "the output of this step is used up"));
            }
            limits.stdout = limits.stdout.min(left);
        }
        Ok(limits)
    }

    /// Takes what a call wrote from what its step may write.
    ///
    /// # Errors
    ///
    /// [`Outcome::OutputLimit`] where calls beside it have left too little.
    pub(super) fn spend(&self, bytes: usize) -> Result<(), ToolError> {
        let Some(output) = &self.gate.output else { return Ok(()) };
        let spent = output.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        spent.map(|_| ()).map_err(|_| ToolError::new(Outcome::OutputLimit, "the output of this step is used up"))
    }

    /// Ends the call for those that wait for it.
    pub(super) fn end(&self, failed: bool) {
        self.gate.end(self.at, failed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.gate.end(self.at, false);
    }
}
