//! Progress notices for one request.

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;

use super::progress::{Progress, ProgressParts};

/// Receiver of a call's progress.
pub(super) struct Receiver {
    pub(super) peer: Peer<RoleServer>,
    pub(super) token: ProgressToken,
}

/// Progress of one call. A client that reads slowly gets the latest state instead of each.
pub(super) struct Report {
    progress: Option<Receiver>,
    /// Last reported number, which only grows; `None` before the first.
    last: Option<f64>,
    sending: Option<BoxFuture<'static, ()>>,
    waiting: Option<(f64, Option<f64>)>,
}

impl Report {
    /// Creates the report for a receiver; without one, nothing is sent.
    pub(super) fn new(progress: Option<Receiver>) -> Self {
        Self { progress, last: None, sending: None, waiting: None }
    }

    /// Reports progress.
    pub(super) fn add(&mut self, (done, total): Progress) {
        let number = |value: u64| value as f64;
        let done = number(done);
        if self.last.is_none_or(|last| done > last) && self.progress.is_some() {
            self.last = Some(done);
            self.waiting = Some((done, total.map(number)));
            self.start();
        }
    }

    /// Starts to send the latest state, unless one is being sent.
    fn start(&mut self) {
        let (Some(Receiver { peer, token }), None) = (&self.progress, &self.sending) else { return };
        let Some((done, total)) = self.waiting.take() else { return };
        let mut state = ProgressNotificationParam::new(token.clone(), done);
        state.total = total;
        let peer = peer.clone();
        // A client that no longer listens misses progress only.
        self.sending = Some(async move { drop(peer.notify_progress(state).await) }.boxed());
    }

    /// Waits until a state was sent; forever if none is being sent.
    pub(super) async fn sent(&mut self) {
        match &mut self.sending {
            Some(sending) => sending.await,
            None => std::future::pending().await,
        }
        self.sending = None;
        self.start();
    }

    /// Reports the progress that a call has shown until its end, and waits until the latest state was sent.
    pub(super) async fn finish(&mut self, parts: Option<ProgressParts>) {
        if let Some(mut parts) = parts {
            while let Some(progress) = parts.ready() {
                self.add(progress);
            }
        }
        while self.sending.is_some() {
            self.sent().await;
        }
    }
}
