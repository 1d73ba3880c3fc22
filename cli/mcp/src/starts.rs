//! Starts of running calls: some calls become tasks once their tools run, and one that was never allowed had no effect.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use toolcrib::call::Behavior;
use toolcrib::observe::{Event, EventKind};

/// Observed calls, by the call's identifier.
#[derive(Debug, Default)]
pub(super) struct Starts(Mutex<HashMap<String, Weak<Observed>>>);

/// Start of one call.
#[derive(Debug, Clone)]
pub(super) struct Start(Arc<Observed>);

#[derive(Debug)]
struct Observed {
    starts: Arc<Starts>,
    call: String,
    was_allowed: AtomicBool,
    has_started: AtomicBool,
    started: Notify,
}

impl Starts {
    /// Observes the start of a call from now on.
    pub(super) fn of(self: &Arc<Self>, call: &str) -> Start {
        let observed = Arc::new(Observed {
            starts: self.clone(),
            call: call.to_owned(),
            was_allowed: AtomicBool::new(false),
            has_started: AtomicBool::new(false),
            started: Notify::new(),
        });
        self.calls().insert(call.to_owned(), Arc::downgrade(&observed));
        Start(observed)
    }

    /// Records an event that may be the decision about a call or its start.
    pub(super) fn record(&self, event: &Event<'_>) {
        match &event.kind {
            EventKind::Decided(decision) if decision.behavior == Behavior::Allow => self.report(event.call_id, false),
            EventKind::Started(_) => self.report(event.call_id, true),
            _ => {}
        }
    }

    fn report(&self, call: &str, has_started: bool) {
        let observed = self.calls().get(call).and_then(Weak::upgrade);
        let Some(observed) = observed else { return };
        observed.was_allowed.store(true, SeqCst);
        if has_started {
            observed.has_started.store(true, SeqCst);
            observed.started.notify_waiters();
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Weak<Observed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Start {
    /// Returns `true` once the call is allowed: from then on it can have an effect, also in the background or by an agent.
    pub(super) fn was_allowed(&self) -> bool {
        self.0.was_allowed.load(SeqCst)
    }

    /// Waits until the tool of the call runs; forever if the call ends before.
    pub(super) async fn reached(&self) {
        loop {
            let started = self.0.started.notified();
            if self.0.has_started.load(SeqCst) {
                return;
            }
            started.await;
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.starts.calls().remove(&self.call);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_start_is_reported_to_its_call_alone_and_a_call_that_nobody_observes_is_forgotten() {
        let starts = Arc::new(Starts::default());
        let (first, second) = (starts.of("mcp_1"), starts.of("mcp_2"));
        starts.report("mcp_1", false);
        assert!(first.was_allowed() && first.reached().now_or_never().is_none());
        starts.report("mcp_1", true);
        assert!(first.reached().now_or_never().is_some());
        assert!(second.reached().now_or_never().is_none() && !second.was_allowed());
        drop((first, second));
        assert!(starts.calls().is_empty());
        starts.report("mcp_2", true);
    }
}
