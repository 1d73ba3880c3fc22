//! Messages between a client and the service: messages that wait to be sent, and request IDs. Two requests with one ID
//! would both run, and the first answer would be taken as the answer to either.

use std::collections::{HashSet, VecDeque};
use std::io;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use tokio::sync::watch;

use super::message::RefusedMessage;

/// Maximum number of messages that wait to be sent. Beyond it, nothing is read, so that a client that reads no answers fills no
/// memory.
pub(super) const MAX_UNSENT: usize = 1024;
/// Maximum number of cancelled requests whose IDs stay in use: most of the requests have ended long before.
const MAX_CANCELLED: usize = 1024;

/// Shared state of one client's messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic(watch::Sender<State>);

#[derive(Debug, Default)]
struct State {
    /// Number of messages that wait to be sent.
    unsent: usize,
    /// Identifiers of the requests that have no answer yet.
    unanswered: HashSet<RequestId>,
    /// Identifiers of cancelled requests, the latest last. They get no answer, but some still run, and the library would take the
    /// result of one for the answer to a later request with its identifier.
    cancelled: VecDeque<RequestId>,
    /// `true` once a message could not be sent.
    is_broken: bool,
}

impl Traffic {
    /// Remembers a request until it is answered or cancelled.
    ///
    /// # Errors
    ///
    /// A running request has the same ID.
    pub(super) fn receive(&self, message: &ClientJsonRpcMessage) -> Result<(), Box<RefusedMessage>> {
        match message {
            JsonRpcMessage::Request(request) => {
                let mut is_new = false;
                self.0.send_modify(|state| {
                    is_new = !state.cancelled.contains(&request.id) && state.unanswered.insert(request.id.clone());
                });
                let used = || ErrorData::invalid_request("a running request has the same identifier", None);
                is_new.then_some(()).ok_or_else(|| RefusedMessage::new(used(), Some(request.id.clone())))
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.0.send_modify(|state| state.cancel(id));
                }
                Ok(())
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(()),
        }
    }

    /// Frees the identifier of the request that a message answers.
    pub(super) fn answer(&self, message: &ServerJsonRpcMessage) {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = id {
            self.0.send_modify(|state| {
                state.unanswered.remove(id);
            });
        }
    }

    /// Counts a message as unsent until the future that sends it has ended or is dropped.
    pub(super) fn track(
        &self,
        sending: impl Future<Output = io::Result<()>> + Send + 'static,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let unsent = Unsent::new(self);
        async move {
            let sent = sending.await;
            if sent.is_err() {
                unsent.0.0.send_modify(|state| state.is_broken = true);
            }
            sent
        }
    }

    /// Waits until there is room for an answer; `false` if nothing can be sent any more.
    pub(super) async fn has_room(&self) -> bool {
        let mut states = self.0.subscribe();
        let state = states.wait_for(|state| state.is_broken || state.unsent < MAX_UNSENT).await;
        state.is_ok_and(|state| !state.is_broken)
    }

    /// Waits until every request is answered and every message sent, or nothing can be sent any more.
    pub(super) async fn settled(&self) {
        let mut states = self.0.subscribe();
        let is_settled = |state: &State| state.is_broken || (state.unanswered.is_empty() && state.unsent == 0);
        // The sender lives as long as `self`.
        let _ = states.wait_for(is_settled).await;
    }
}

impl State {
    fn cancel(&mut self, id: &RequestId) {
        if self.unanswered.remove(id) {
            self.cancelled.push_back(id.clone());
            if self.cancelled.len() > MAX_CANCELLED {
                self.cancelled.pop_front();
            }
        }
    }
}

/// Message that waits to be sent, until it is dropped.
struct Unsent(Traffic);

impl Unsent {
    fn new(all: &Traffic) -> Self {
        all.0.send_modify(|state| state.unsent += 1);
        Self(all.clone())
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.unsent -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt;
    use rmcp::model::ServerResult;
    use serde_json::{Value, json};

    use super::*;

    fn message(value: Value) -> ClientJsonRpcMessage {
        serde_json::from_value(value).unwrap()
    }

    fn ping(id: usize) -> ClientJsonRpcMessage {
        message(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    }

    fn cancelled(id: usize) -> ClientJsonRpcMessage {
        message(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
    }

    fn pong(id: i64) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::response(ServerResult::empty(()), RequestId::Number(id))
    }

    #[test]
    fn an_identifier_is_free_again_after_the_answer() {
        let traffic = Traffic::default();
        traffic.receive(&ping(1)).unwrap();
        assert!(traffic.receive(&ping(1)).is_err() && traffic.receive(&ping(2)).is_ok());
        traffic.answer(&pong(1));
        traffic.receive(&ping(1)).unwrap();
    }

    #[test]
    fn the_identifier_of_a_cancelled_request_stays_in_use_and_nothing_waits_for_it() {
        let traffic = Traffic::default();
        traffic.receive(&cancelled(1)).unwrap();
        traffic.receive(&ping(1)).unwrap();
        assert!(traffic.settled().now_or_never().is_none());
        traffic.receive(&cancelled(1)).unwrap();
        assert!(traffic.settled().now_or_never().is_some());
        assert!(traffic.receive(&ping(1)).is_err());
        for id in 2..MAX_CANCELLED + 2 {
            traffic.receive(&ping(id)).unwrap();
            traffic.receive(&cancelled(id)).unwrap();
        }
        assert!(traffic.receive(&ping(1)).is_ok() && traffic.receive(&ping(2)).is_err());
        assert_eq!(traffic.0.borrow().cancelled.len(), MAX_CANCELLED);
    }

    #[tokio::test]
    async fn messages_settle_when_they_are_sent_or_nothing_can_be_sent() {
        let traffic = Traffic::default();
        let sending = traffic.track(pending());
        assert!(traffic.settled().now_or_never().is_none());
        drop(sending);
        assert!(traffic.settled().now_or_never().is_some() && traffic.has_room().await);
        traffic.receive(&ping(1)).unwrap();
        traffic.track(async { Err(io::ErrorKind::BrokenPipe.into()) }).await.unwrap_err();
        assert!(traffic.settled().now_or_never().is_some() && !traffic.has_room().await);
    }
}
