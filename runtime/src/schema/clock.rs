//! How long the host may compute over what a stranger sent. Whatever loops over such a value counts its steps, and stops
//! when its time is over or nobody waits for the answer any more.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The steps between two looks at the time: some 50 µs of them.
const STEPS: u32 = 1024;
/// The longest computation among the calls of a runtime; what takes longer starts anew beside them.
const MAX_INLINE: Duration = Duration::from_millis(1);

/// The end of a computation.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    /// Absent, [`MAX_INLINE`] after the first look.
    until: Option<Instant>,
    gone: Option<Arc<AtomicBool>>,
    max_steps: u64,
}

/// The error of a computation that was stopped; what it came to so far means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late;

/// Stops a computation when it is dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Clock {
    /// A clock for a computation among the calls of a runtime.
    pub(crate) fn brief() -> Self {
        Self { until: None, gone: None, max_steps: u64::MAX }
    }

    /// A clock that runs until `until`, or until what comes with it is dropped.
    pub(crate) fn until(until: Instant) -> (Self, Waiting) {
        let gone = Arc::new(AtomicBool::new(false));
        let clock = Self { until: Some(until), gone: Some(gone.clone()), max_steps: u64::MAX };
        (clock, Waiting(gone))
    }

    fn is_over(&self) -> bool {
        self.gone.as_ref().is_some_and(|gone| gone.load(Relaxed)) || self.until.is_some_and(|at| Instant::now() >= at)
    }
}

/// The clock of the computation that a thread is in.
#[derive(Default)]
struct Running {
    clock: RefCell<Option<Clock>>,
    /// The steps until the next look.
    left: Cell<u32>,
    steps: Cell<u64>,
    is_late: Cell<bool>,
}

thread_local! {
    static RUNNING: Running = Running::default();
}

/// Leaves a computation, also where it panics.
struct Leave {
    before: (Option<Clock>, u32, u64, bool),
}

impl Drop for Leave {
    fn drop(&mut self) {
        let (clock, left, steps, is_late) = std::mem::take(&mut self.before);
        RUNNING.with(|running| {
            *running.clock.borrow_mut() = clock;
            running.left.set(left);
            running.steps.set(steps);
            running.is_late.set(is_late);
        });
    }
}

/// Computes under a clock.
///
/// # Errors
///
/// [`Late`] where the computation was stopped.
pub(crate) fn watched<T>(clock: &Clock, compute: impl FnOnce() -> T) -> Result<T, Late> {
    if clock.is_over() {
        return Err(Late);
    }
    let _leave = RUNNING.with(|running| {
        let before = running.clock.borrow_mut().replace(clock.clone());
        let left = running.left.replace(STEPS.min(u32::try_from(clock.max_steps).unwrap_or(STEPS)));
        Leave { before: (before, left, running.steps.replace(0), running.is_late.replace(false)) }
    });
    let computed = compute();
    if is_late() { Err(Late) } else { Ok(computed) }
}

/// Computes under the clock that is running, and for so many steps at most.
///
/// # Errors
///
/// [`Late`] where the computation was stopped.
pub(super) fn within_steps<T>(max_steps: u64, compute: impl FnOnce() -> T) -> Result<T, Late> {
    let clock = RUNNING.with(|running| running.clock.borrow().clone());
    let clock = clock.unwrap_or(Clock { until: None, gone: None, max_steps });
    // A clock that begins at its first look would begin anew here, which does no harm.
    watched(&Clock { max_steps, ..clock }, compute)
}

/// Returns true once the computation of this thread was stopped.
pub(crate) fn is_late() -> bool {
    RUNNING.with(|running| running.is_late.get())
}

/// Counts steps. Whoever gets `false` returns as soon as it can, with whatever.
pub(crate) fn step(steps: usize) -> bool {
    RUNNING.with(|running| {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match running.left.get().checked_sub(steps) {
            Some(left) => {
                running.left.set(left);
                true
            }
            None => running.look(steps),
        }
    })
}

impl Running {
    #[cold]
    fn look(&self, steps: u32) -> bool {
        let mut clock = self.clock.borrow_mut();
        let Some(clock) = clock.as_mut() else { return true };
        if self.is_late.get() {
            return false;
        }
        let until = *clock.until.get_or_insert_with(|| Instant::now() + MAX_INLINE);
        self.steps.set(self.steps.get() + u64::from(STEPS.max(steps)));
        let is_over = self.steps.get() > clock.max_steps || Instant::now() >= until || clock.is_over();
        self.is_late.set(is_over);
        self.left.set(if is_over { 0 } else { STEPS });
        !is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_stops_when_its_time_is_over_or_nobody_waits() {
        let endless = || while step(1) {};
        assert_eq!(watched(&Clock::brief(), endless), Err(Late));
        let (clock, waiting) = Clock::until(Instant::now() + Duration::from_secs(3600));
        let thread = std::thread::spawn(move || watched(&clock, endless));
        drop(waiting);
        assert_eq!(thread.join().unwrap(), Err(Late));
        let (clock, _waiting) = Clock::until(Instant::now() + Duration::from_millis(20));
        assert_eq!(watched(&clock, endless), Err(Late));
        assert_eq!(watched(&clock, || ()), Err(Late), "its time is over before it begins");
    }

    #[test]
    fn a_computation_within_another_ends_with_it_and_leaves_it_as_it_was() {
        let (clock, _waiting) = Clock::until(Instant::now() + Duration::from_secs(3600));
        let outer = watched(&clock, || {
            assert_eq!(within_steps(10_000, || while step(1) {}), Err(Late));
            step(usize::MAX)
        });
        assert_eq!(outer, Ok(true));
        assert!(step(usize::MAX), "outside of a computation nothing is counted");
    }
}
