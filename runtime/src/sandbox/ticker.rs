//! The clock behind deadlines: one thread that advances the engine's epoch while calls run, and waits while none do.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::Engine;

/// How often a guest that computes is looked at, and so how late its deadline may be noticed.
const TICK: Duration = Duration::from_millis(5);

pub(super) struct Ticker(Arc<Shared>);

/// Epochs advance for as long as one of these is held.
pub(super) struct Ticking<'a>(&'a Shared);

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

    /// Waits until there is a call; false when the ticker has ended.
    fn wait(&self) -> bool {
        let mut state = self.state();
        while state.calls == 0 && !state.ended {
            state.waiting = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting = false;
        }
        !state.ended
    }
}

impl Ticker {
    /// Starts the thread.
    pub(super) fn start(engine: Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new().name("toolcrib-epoch".into());
        thread.spawn({
            let shared = shared.clone();
            move || {
                while shared.wait() {
                    thread::sleep(TICK);
                    engine.increment_epoch();
                }
            }
        })?;
        Ok(Self(shared))
    }

    pub(super) fn tick(&self) -> Ticking<'_> {
        let mut state = self.0.state();
        state.calls += 1;
        if state.waiting {
            self.0.changed.notify_one();
        }
        Ticking(&self.0)
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.state().calls -= 1;
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.changed.notify_one();
    }
}
