//! Calls that wait while a person answers in another terminal or in the console: for how long, and the approver of runs without a
//! terminal.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Handle;
use toolcrib::policy::{Approval, ApprovalAnswer, ApprovalRequest, Approvals, Approver};
use toolcrib_base::render;
use toolcrib_base::short_id;

use super::waiter::Waiter;
use super::{PendingApprover, PendingCall, PendingCalls, WaitingCallback};

/// Waiting of one process.
pub struct Waiting {
    /// Maximum time for an answer.
    max_wait: Duration,
    /// File of the calls, beside which the lock is; `None` for calls that servers share.
    file: Option<PathBuf>,
    /// Lock of this process, taken for its first call that waits.
    waiter: OnceLock<Option<Waiter>>,
    /// Approvals for the sessions of clients, also for their calls that wait already.
    approved: Mutex<HashSet<(String, Approval)>>,
}

impl Waiting {
    /// Creates the waiting for answers to `calls`.
    pub fn new(calls: &PendingCalls, max_wait: Duration) -> Self {
        let file = (!calls.is_shared()).then(|| calls.path().to_path_buf());
        Self { max_wait, file, waiter: OnceLock::new(), approved: Mutex::default() }
    }

    pub(super) fn max_wait(&self) -> Duration {
        self.max_wait
    }

    /// Takes the lock, if it is not taken yet. Returns its name, and the end of a wait that begins now.
    pub(super) fn hold(&self) -> (Option<String>, Timestamp) {
        let waiter = self.waiter.get_or_init(|| Waiter::hold(self.file.as_deref()?)).as_ref();
        let wait = SignedDuration::try_from(self.max_wait).ok();
        let deadline = wait.and_then(|wait| Timestamp::now().checked_add(wait).ok()).unwrap_or(Timestamp::MAX);
        (waiter.map(|waiter| waiter.name().to_owned()), deadline)
    }

    /// Remembers an approval for the session of a client.
    pub(super) fn approve(&self, client: &str, approval: Option<&Approval>) {
        let Some(approval) = approval else { return };
        self.approved().insert((client.to_owned(), approval.clone()));
    }

    /// Returns `true` if an approval for the session of a client covers a call.
    pub(super) fn approves(&self, client: &str, approval: Option<&Approval>) -> bool {
        let approved = self.approved();
        !approved.is_empty() && approval.is_some_and(|one| approved.contains(&(client.to_owned(), one.clone())))
    }

    fn approved(&self) -> MutexGuard<'_, HashSet<(String, Approval)>> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Call for which this process waits. Once it is dropped, also with a call that is cancelled, the call waits to be repeated.
pub(super) struct Held {
    calls: PendingCalls,
    /// `None` once the call has its answer.
    key: Option<String>,
}

impl Held {
    pub(super) fn new(calls: PendingCalls, key: String) -> Self {
        Self { calls, key: Some(key) }
    }

    /// The call has its answer.
    pub(super) fn forget(mut self) {
        self.key = None;
    }

    /// Lets the call wait to be repeated, and waits until it does.
    pub(super) async fn release(mut self) {
        let (calls, Some(key)) = (self.calls.clone(), self.key.take()) else { return };
        // A call that stays as it was is forgotten with this process.
        let _ = tokio::task::spawn_blocking(move || calls.release(&key)).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(key), Ok(handle)) = (self.key.take(), Handle::try_current()) else { return };
        let calls = self.calls.clone();
        handle.spawn_blocking(move || calls.release(&key));
    }
}

/// Beginning of a run's name as a client, before its ID. No other client has a name with a colon behind a space.
const RUN_CLIENT: &str = "a run: ";

impl PendingCall {
    /// Returns the ID of the run that waits for the answer; `None` if another client does.
    pub fn run_id(&self) -> Option<String> {
        let (id, _) = self.client.strip_prefix(RUN_CLIENT)?.split_once(", ")?;
        short_id::parse(id).filter(|parsed| parsed == id)
    }
}

/// Tells the user that a call waits under an identifier.
pub fn announce(id: &str) {
    render::hint(&format!(
        "a call waits for approval: `toolcrib approvals pending {id}` shows it, and `toolcrib approvals allow {id}` or \
         `deny {id}` answers"
    ));
}

/// Waits for answers to the calls of a run.
pub struct WaitingApprover {
    pending: PendingApprover,
    waiting: Waiting,
    /// Name of this run in the file. No other run has it, and no other client has a name with a colon behind a space.
    client: String,
}

impl WaitingApprover {
    /// Creates an approver for a run, which waits at most `max_wait` for each answer. Permanent approvals are in `approvals`.
    pub fn new(calls: PendingCalls, approvals: Option<Approvals>, max_wait: Duration, run: &str) -> Self {
        // Processes of several containers have the same numbers.
        let process = format!("process {}, {:016x}", std::process::id(), rand::random::<u64>());
        let client = format!("{RUN_CLIENT}{run}, {process}");
        let waiting = Waiting::new(&calls, max_wait);
        let on_waiting: WaitingCallback = Arc::new(|_invocation, id| announce(id));
        Self { pending: PendingApprover::new(calls, approvals, client.as_str(), on_waiting), waiting, client }
    }

    async fn answer(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        match self.pending.wait(&request, &self.client, &self.client, &self.waiting).await {
            Some(answer) => answer,
            None => self.pending.withdraw(&request, &self.client).await.unwrap_or(ApprovalAnswer::Nobody),
        }
    }
}

impl Approver for WaitingApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(request).boxed()
    }
}
