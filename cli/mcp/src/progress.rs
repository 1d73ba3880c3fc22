//! Events of running calls: the progress for the request that waits, which is a tool's own or the number of a program's ended calls,
//! and the charges.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolcrib::call::Part;
use toolcrib::observe::{Event, EventKind, Observer};

use super::charge::Charges;
use super::program_calls::ProgramCalls;
use super::starts::Starts;

/// Progress of a call: the finished parts, and their total if it is known.
pub(super) type Progress = (u64, Option<u64>);

/// Requests that listen to the progress of their calls, by the call's identifier.
#[derive(Debug, Default)]
pub struct ProgressListeners {
    requests: Mutex<HashMap<String, UnboundedSender<Progress>>>,
    pub(super) programs: Arc<ProgramCalls>,
    pub(super) charges: Arc<Charges>,
    pub(super) starts: Arc<Starts>,
}

/// Progress of one call. Dropping it ends the delivery.
pub(super) struct ProgressParts {
    listeners: Arc<ProgressListeners>,
    call: String,
    receiver: UnboundedReceiver<Progress>,
}

impl ProgressListeners {
    /// Starts the delivery of a call's progress. The runtime bounds the number of parts.
    pub(super) fn listen(self: &Arc<Self>, call: &str) -> ProgressParts {
        let (sender, receiver) = unbounded_channel();
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).insert(call.to_owned(), sender);
        ProgressParts { listeners: self.clone(), call: call.to_owned(), receiver }
    }
}

impl Observer for ProgressListeners {
    fn observe(&self, event: &Event<'_>) {
        self.charges.record(event);
        self.starts.record(event);
        let (call, progress) = match &event.kind {
            EventKind::Part { part: Part::Progress { done, total }, .. } => (event.call_id, (*done, *total)),
            _ => match self.programs.record(event) {
                Some((program, ended)) => (program, (ended, None)),
                None => return,
            },
        };
        let listeners = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listeners.get(call) {
            // Fails only after the request has ended.
            let _ = listener.send(progress);
        }
    }
}

impl ProgressParts {
    /// Awaits the next progress.
    pub(super) async fn next(&mut self) -> Option<Progress> {
        self.receiver.recv().await
    }

    /// Returns the next progress that has arrived.
    pub(super) fn ready(&mut self) -> Option<Progress> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for ProgressParts {
    fn drop(&mut self) {
        self.listeners.requests.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.call);
    }
}
