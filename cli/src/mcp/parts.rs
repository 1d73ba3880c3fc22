//! Parts that running calls show, delivered to the request that made the call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolcrib::call::Part;
use toolcrib::observe::{Event, EventKind, Observer};

/// Requests that listen to the parts of their calls, by the identifier of the call.
#[derive(Debug, Default)]
pub(crate) struct PartListeners(Mutex<HashMap<String, UnboundedSender<Part>>>);

/// Parts of one call. Dropping it ends the delivery.
pub(super) struct Parts {
    listeners: Arc<PartListeners>,
    call: String,
    receiver: UnboundedReceiver<Part>,
}

impl PartListeners {
    /// Starts the delivery of the parts of a call. The runtime bounds the number of parts.
    pub(super) fn listen(self: &Arc<Self>, call: &str) -> Parts {
        let (sender, receiver) = unbounded_channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(call.to_owned(), sender);
        Parts { listeners: self.clone(), call: call.to_owned(), receiver }
    }
}

impl Observer for PartListeners {
    fn observe(&self, event: &Event<'_>) {
        let EventKind::Part { part, .. } = &event.kind else { return };
        let listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listeners.get(event.call_id) {
            // Fails only after the request has ended.
            let _ = listener.send((*part).clone());
        }
    }
}

impl Parts {
    /// Awaits the next part.
    pub(super) async fn next(&mut self) -> Option<Part> {
        self.receiver.recv().await
    }

    /// Returns the next part that has arrived.
    pub(super) fn ready(&mut self) -> Option<Part> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.listeners.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.call);
    }
}
