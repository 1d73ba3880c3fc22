//! Calls that running programs make: the number of those that ended, which is a program's progress, and those that must end before
//! the program can be stopped.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use toolcrib::Tool;
use toolcrib::observe::{Event, EventKind};
use toolcrib::tool::{Basis, Interrupt};

/// Calls of one program.
#[derive(Debug, Default)]
struct Calls {
    ended: u64,
    /// Identifiers of the running calls that must end, on every level.
    must_end: HashSet<String>,
}

/// Running programs by the identifier of their call.
#[derive(Debug, Default)]
pub(super) struct ProgramCalls(Mutex<HashMap<String, watch::Sender<Calls>>>);

/// View of one program's calls. Dropping it ends the observation.
pub(super) struct ProgramView {
    programs: Arc<ProgramCalls>,
    call: String,
    calls: watch::Receiver<Calls>,
}

impl ProgramCalls {
    /// Observes the calls of a program from now on.
    pub(super) fn view(self: &Arc<Self>, call: &str) -> ProgramView {
        let (sender, calls) = watch::channel(Calls::default());
        self.programs().insert(call.to_owned(), sender);
        ProgramView { programs: self.clone(), call: call.to_owned(), calls }
    }

    /// Records an event. Returns the program and the number of its calls that have ended, if the event is such an end.
    pub(super) fn record<'a>(&self, event: &'a Event<'_>) -> Option<(&'a str, u64)> {
        let (program, number) = event.call_id.split_once('/')?;
        let must_end = match event.kind {
            EventKind::Started(_) => event.tool.is_some_and(must_end),
            EventKind::Ended(_) => false,
            _ => return None,
        };
        let programs = self.programs();
        let calls = programs.get(program)?;
        if must_end {
            calls.send_modify(|calls| calls.must_end.extend([event.call_id.to_owned()]));
        }
        if let EventKind::Started(_) = event.kind {
            return None;
        }
        // The calls of its calls are no progress of the program.
        let is_own = !number.contains('/');
        calls.send_modify(|calls| {
            calls.must_end.remove(event.call_id);
            calls.ended += u64::from(is_own);
        });
        is_own.then(|| (program, calls.borrow().ended))
    }

    fn programs(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<Calls>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgramView {
    /// Waits until no call runs that must end.
    pub(super) async fn may_stop(&self) {
        // Fails only after the observation has ended.
        let _ = self.calls.clone().wait_for(|calls| calls.must_end.is_empty()).await;
    }
}

impl Drop for ProgramView {
    fn drop(&mut self) {
        self.programs.programs().remove(&self.call);
    }
}

/// Returns `true` if a tool states that a cancellation must not stop it.
pub(super) fn must_end(tool: &Tool) -> bool {
    let behavior = &tool.interface.execution.interrupt_behavior;
    behavior.value == Interrupt::Block && behavior.basis == Basis::Declared
}
