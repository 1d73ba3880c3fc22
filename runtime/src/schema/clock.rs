//! Time limit for computations over untrusted data. A loop over such data counts its steps and stops if the time is over
//! or if the result is no longer needed.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Number of steps between two time checks: about 50 µs.
const STEPS_PER_CHECK: u32 = 1024;
/// Maximum duration of an inline computation. A longer computation is restarted on a blocking thread.
const MAX_INLINE: Duration = Duration::from_millis(1);

/// Limits of a computation.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    /// Deadline; if absent, [`MAX_INLINE`] after the first check of the time.
    deadline: Option<Instant>,
    is_cancelled: Option<Arc<AtomicBool>>,
    max_steps: u64,
}

/// Error of an interrupted computation. Its partial result is meaningless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted;

/// Guard that cancels a computation when it is dropped.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Clock {
    /// Creates a clock for an inline computation.
    pub(crate) fn inline() -> Self {
        Self { deadline: None, is_cancelled: None, max_steps: u64::MAX }
    }

    /// Creates a clock that runs until `deadline`, or until the guard is dropped.
    pub(crate) fn until(deadline: Instant) -> (Self, CancelOnDrop) {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let clock = Self { deadline: Some(deadline), is_cancelled: Some(is_cancelled.clone()), max_steps: u64::MAX };
        (clock, CancelOnDrop(is_cancelled))
    }

    fn is_over(&self) -> bool {
        self.is_cancelled.as_ref().is_some_and(|flag| flag.load(Relaxed))
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// State of a thread's current computation.
#[derive(Default)]
struct ThreadClock {
    clock: RefCell<Option<Clock>>,
    /// Remaining steps before the next check of the time.
    steps_left: Cell<u32>,
    steps: Cell<u64>,
    is_interrupted: Cell<bool>,
}

thread_local! {
    static CURRENT: ThreadClock = ThreadClock::default();
}

/// Guard that restores the state of the outer computation, also after a panic.
struct RestoreOnDrop {
    outer: (Option<Clock>, u32, u64, bool),
}

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        let (clock, steps_left, steps, is_interrupted) = std::mem::take(&mut self.outer);
        CURRENT.with(|current| {
            *current.clock.borrow_mut() = clock;
            current.steps_left.set(steps_left);
            current.steps.set(steps);
            current.is_interrupted.set(is_interrupted);
        });
    }
}

/// Runs a computation under a clock.
///
/// # Errors
///
/// [`Interrupted`] if the computation was interrupted.
pub(crate) fn with_clock<T>(clock: &Clock, compute: impl FnOnce() -> T) -> Result<T, Interrupted> {
    if clock.is_over() {
        return Err(Interrupted);
    }
    let _restore = CURRENT.with(|current| {
        let outer = current.clock.borrow_mut().replace(clock.clone());
        let steps_left =
            current.steps_left.replace(STEPS_PER_CHECK.min(u32::try_from(clock.max_steps).unwrap_or(STEPS_PER_CHECK)));
        RestoreOnDrop { outer: (outer, steps_left, current.steps.replace(0), current.is_interrupted.replace(false)) }
    });
    let computed = compute();
    if is_interrupted() { Err(Interrupted) } else { Ok(computed) }
}

/// Runs a computation under the current clock, for at most this number of steps.
///
/// # Errors
///
/// [`Interrupted`] if the computation was interrupted.
pub(super) fn with_step_limit<T>(max_steps: u64, compute: impl FnOnce() -> T) -> Result<T, Interrupted> {
    let clock = CURRENT.with(|current| current.clock.borrow().clone());
    let clock = clock.unwrap_or(Clock { deadline: None, is_cancelled: None, max_steps });
    // An inline clock whose time was not checked yet starts again here, which is harmless.
    with_clock(&Clock { max_steps, ..clock }, compute)
}

/// Returns `true` if the current computation of this thread was interrupted.
pub(crate) fn is_interrupted() -> bool {
    CURRENT.with(|current| current.is_interrupted.get())
}

/// Counts steps of the current computation. If it returns `false`, the caller must return as soon as possible, with any
/// value.
pub(crate) fn step(steps: usize) -> bool {
    CURRENT.with(|current| {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match current.steps_left.get().checked_sub(steps) {
            Some(steps_left) => {
                current.steps_left.set(steps_left);
                true
            }
            None => current.check_time(steps),
        }
    })
}

impl ThreadClock {
    #[cold]
    fn check_time(&self, steps: u32) -> bool {
        let mut clock = self.clock.borrow_mut();
        let Some(clock) = clock.as_mut() else { return true };
        if self.is_interrupted.get() {
            return false;
        }
        let deadline = *clock.deadline.get_or_insert_with(|| Instant::now() + MAX_INLINE);
        self.steps.set(self.steps.get() + u64::from(STEPS_PER_CHECK.max(steps)));
        let is_over = self.steps.get() > clock.max_steps || Instant::now() >= deadline || clock.is_over();
        self.is_interrupted.set(is_over);
        self.steps_left.set(if is_over { 0 } else { STEPS_PER_CHECK });
        !is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_stops_when_its_time_is_over_or_nobody_waits() {
        let endless = || while step(1) {};
        assert_eq!(with_clock(&Clock::inline(), endless), Err(Interrupted));
        let (clock, guard) = Clock::until(Instant::now() + Duration::from_secs(3600));
        let thread = std::thread::spawn(move || with_clock(&clock, endless));
        drop(guard);
        assert_eq!(thread.join().unwrap(), Err(Interrupted));
        let (clock, _guard) = Clock::until(Instant::now() + Duration::from_millis(20));
        assert_eq!(with_clock(&clock, endless), Err(Interrupted));
        assert_eq!(with_clock(&clock, || ()), Err(Interrupted), "its time is over before it begins");
    }

    #[test]
    fn a_computation_within_another_ends_with_it_and_leaves_it_as_it_was() {
        let (clock, _guard) = Clock::until(Instant::now() + Duration::from_secs(3600));
        let outer = with_clock(&clock, || {
            assert_eq!(with_step_limit(10_000, || while step(1) {}), Err(Interrupted));
            step(usize::MAX)
        });
        assert_eq!(outer, Ok(true));
        assert!(step(usize::MAX), "outside of a computation nothing is counted");
    }
}
