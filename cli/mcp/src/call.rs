//! Performs a client's call: progress is passed on, a cancellation stops the guest, and the runtime gives the result.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio_util::sync::CancellationToken;
use toolcrib::tool::{Basis, Interrupt};
use toolcrib::{ToolCall, ToolResult};
use toolcrib_base::interrupt;

use super::caller::Caller;
use super::progress::{Progress, ProgressParts};
use super::publication::Published;

/// Maximum length of a client's name in a record, in characters.
const MAX_CLIENT_LEN: usize = 128;
/// Maximum time in which a tool that must end finishes its call when the server ends.
pub(super) const MAX_FINISH: Duration = Duration::from_secs(5);

/// Receiver of a call's progress.
pub(super) struct Receiver {
    pub(super) peer: Peer<RoleServer>,
    pub(super) token: ProgressToken,
}

/// Reasons to stop a call.
pub(super) struct Stop {
    /// The client cancelled it. A tool that states that it must end is not stopped then.
    pub(super) cancelled: CancellationToken,
    /// The server ends. A tool that states that it must end may finish.
    pub(super) stopping: CancellationToken,
    /// The client sends nothing more, or the server begins to end.
    pub(super) closing: CancellationToken,
    /// Number of calls that were stopped since.
    pub(super) unfinished: Arc<AtomicUsize>,
}

impl Stop {
    /// Waits for a reason to stop.
    async fn requested(&self, must_end: bool) {
        let ending = async {
            self.stopping.cancelled().await;
            if must_end {
                let _ = tokio::time::timeout(MAX_FINISH, interrupt::hard_stop()).await;
            }
        };
        tokio::select! {
            () = ending => {}
            () = self.cancelled.cancelled(), if !must_end => {}
        }
    }
}

/// Performs a call of a tool by its name in the runtime. Returns `None` if it was stopped, with its guest. The call leaves a record
/// also if the future is dropped before it is polled.
pub(super) fn perform(
    published: &Published,
    name: String,
    arguments: String,
    caller: Arc<Caller>,
    progress: Option<Receiver>,
    stop: Stop,
) -> impl Future<Output = Option<ToolResult>> + Send + 'static {
    let id = format!("mcp_{:016x}", rand::random::<u64>());
    let mut call = ToolCall::new(&id, &name, arguments);
    call.caller = Some(caller.client.chars().take(MAX_CLIENT_LEN).collect());
    call.trace = caller.trace;
    let must_end = published.runtime.tool(&name).is_some_and(|tool| {
        let behavior = &tool.interface.execution.interrupt_behavior;
        behavior.value == Interrupt::Block && behavior.basis == Basis::Declared
    });
    let parts = progress.is_some().then(|| published.parts.listen(&id));
    // In a box: the library moves the future of a request several times, and each function around the call would double it.
    let work = published.session(&caller.identity).call(call).boxed();
    async move { awaited(caller.perform(work), must_end, (progress, parts), stop).await }
}

/// Awaits a call, unless it is stopped.
async fn awaited(
    work: impl Future<Output = ToolResult>,
    must_end: bool,
    (progress, mut parts): (Option<Receiver>, Option<ProgressParts>),
    stop: Stop,
) -> Option<ToolResult> {
    let mut report = Report { progress, last: None, sending: None, waiting: None };
    let (mut work, mut stopped) = (pin!(work), pin!(stop.requested(must_end)));
    let result = loop {
        tokio::select! {
            biased;
            () = &mut stopped => {
                if stop.closing.is_cancelled() {
                    stop.unfinished.fetch_add(1, Relaxed);
                }
                return None;
            }
            Some(progress) = next(&mut parts) => report.add(progress),
            () = report.sent() => {}
            result = &mut work => break result,
        }
    };
    // The result ends the stream of the request: the last progress precedes it.
    tokio::select! {
        () = stop.stopping.cancelled() => {}
        () = stop.cancelled.cancelled() => {}
        () = report.finish(parts) => {}
    }
    Some(result)
}

/// Awaits the next progress; forever if nobody listens.
async fn next(parts: &mut Option<ProgressParts>) -> Option<Progress> {
    match parts {
        Some(parts) => parts.next().await,
        None => std::future::pending().await,
    }
}

/// Progress of one call. A client that reads slowly gets the latest state instead of each.
struct Report {
    progress: Option<Receiver>,
    /// Last reported number, which only grows; `None` before the first.
    last: Option<f64>,
    sending: Option<BoxFuture<'static, ()>>,
    waiting: Option<(f64, Option<f64>)>,
}

impl Report {
    /// Reports progress.
    fn add(&mut self, (done, total): Progress) {
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
    async fn sent(&mut self) {
        match &mut self.sending {
            Some(sending) => sending.await,
            None => std::future::pending().await,
        }
        self.sending = None;
        self.start();
    }

    /// Reports the progress that a call has shown until its end, and waits until the latest state was sent.
    async fn finish(&mut self, parts: Option<ProgressParts>) {
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
