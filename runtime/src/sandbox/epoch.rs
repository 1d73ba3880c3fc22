//! The clock behind deadlines: one thread that advances the engine's epoch while calls run, and sleeps while there are
//! none.

use std::cell::LazyCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wasmtime::Engine;

use crate::tool::Limits;

/// Interval at which a computing guest is interrupted: its deadline is noticed at most this much later.
const TICK: Duration = Duration::from_millis(5);
/// Interval with many concurrent calls. They take turns of one tick, so that short ticks let each one run soon after
/// its deadline.
const MIN_TICK: Duration = Duration::from_millis(1);

pub(super) struct EpochTicker(Arc<Shared>);

/// Guard of a call: the epoch advances while at least one exists.
pub(super) struct TickGuard<'a>(&'a Shared);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    calls: usize,
    waiting: bool,
    ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a call and returns the number of calls; `None` after the ticker has ended.
    fn wait(&self) -> Option<usize> {
        let mut state = self.state();
        while state.calls == 0 && !state.ended {
            state.waiting = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting = false;
        }
        (!state.ended).then_some(state.calls)
    }
}

/// Returns the tick for this many calls on this many processors: a round of all calls takes no longer than the tick of
/// one, down to [`MIN_TICK`]. The number of processors is not needed for one call.
fn tick(calls: usize, processors: impl FnOnce() -> usize) -> Duration {
    let round = if calls <= 1 { 1 } else { calls.div_ceil(processors()) };
    let round = u32::try_from(round).unwrap_or(u32::MAX);
    (TICK / round.max(1)).max(MIN_TICK)
}

impl EpochTicker {
    /// Starts the thread.
    pub(super) fn start(engine: Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new().name("toolcrib-epoch".into());
        thread.spawn({
            let shared = shared.clone();
            move || {
                let processors = LazyCell::new(|| thread::available_parallelism().map_or(1, usize::from));
                while let Some(calls) = shared.wait() {
                    thread::sleep(tick(calls, || *processors));
                    engine.increment_epoch();
                }
            }
        })?;
        Ok(Self(shared))
    }

    pub(super) fn tick(&self) -> TickGuard<'_> {
        let mut state = self.0.state();
        state.calls += 1;
        if state.waiting {
            self.0.changed.notify_one();
        }
        TickGuard(&self.0)
    }
}

impl Drop for TickGuard<'_> {
    fn drop(&mut self) {
        self.0.state().calls -= 1;
    }
}

impl Drop for EpochTicker {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.changed.notify_one();
    }
}

/// Returns the time at which a call that starts now has to end.
pub(super) fn deadline(limits: &Limits) -> Instant {
    let now = Instant::now();
    now.checked_add(limits.deadline).unwrap_or(now + Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_calls_make_shorter_ticks_within_bounds() {
        let millis = |calls| tick(calls, || 2).as_micros();
        assert_eq!([1, 2, 4, 10, 1000].map(millis), [5000, 5000, 2500, 1000, 1000]);
    }
}
