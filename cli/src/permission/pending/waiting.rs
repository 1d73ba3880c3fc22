//! An approver for runs without a terminal: a call waits until a person answers in another terminal, or until its time is over.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approvals, Approver};

use crate::render;

use super::waiter::Waiter;
use super::{PendingApprover, PendingCalls, WaitingCallback};

/// Interval between two looks at the file of pending calls.
const INTERVAL: Duration = Duration::from_millis(500);

/// Waits for answers of the command line.
pub(crate) struct WaitingApprover {
    pending: PendingApprover,
    /// Calls that are in the file, by their ID in all records.
    recorded: Arc<Mutex<HashMap<String, Recorded>>>,
    /// Name of this run in the file. No other run has it, and no other client has a name with a colon behind a space.
    client: String,
    max_wait: Duration,
    /// File of the calls, beside which the lock is.
    file: PathBuf,
    /// Lock of this run, taken for its first call that waits.
    waiter: OnceLock<Option<Waiter>>,
}

/// A call in the file.
#[derive(Debug, Default)]
struct Recorded {
    /// Identifier that was announced.
    id: String,
    /// `true` if the last look found it without an answer.
    waits: bool,
}

impl WaitingApprover {
    /// Creates an approver that waits at most `max_wait` for each answer. Permanent approvals are in `approvals`.
    pub(crate) fn new(calls: PendingCalls, approvals: Option<Approvals>, max_wait: Duration) -> Self {
        // Processes of several containers have the same numbers.
        let client = format!("a run: process {}, {:016x}", std::process::id(), rand::random::<u64>());
        let recorded = Arc::<Mutex<HashMap<String, Recorded>>>::default();
        let known = recorded.clone();
        let on_waiting: WaitingCallback = Arc::new(move |invocation, id| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let call = known.entry(invocation.to_owned()).or_default();
            call.waits = true;
            if call.id != id {
                id.clone_into(&mut call.id);
                render::hint(&format!(
                    "a call waits for approval: `toolcrib approvals pending {id}` shows it, and \
                     `toolcrib approvals allow {id}` or `deny {id}` answers"
                ));
            }
        });
        let file = calls.path().to_path_buf();
        Self {
            file,
            waiter: OnceLock::new(),
            pending: PendingApprover::new(calls, approvals, client.as_str(), on_waiting),
            recorded,
            client,
            max_wait,
        }
    }

    async fn answer(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let until = Instant::now() + self.max_wait;
        let deadline =
            SignedDuration::try_from(self.max_wait).ok().and_then(|wait| Timestamp::now().checked_add(wait).ok());
        let deadline = deadline.unwrap_or(Timestamp::MAX);
        let waiter = self.waiter.get_or_init(|| Waiter::hold(&self.file));
        loop {
            // A call that another one of the same kind displaced, or the answer of which it used, waits again.
            let run = waiter.as_ref().map(|waiter| waiter.name().to_owned());
            let answer = self.pending.answer_run(&request, &self.client, (run, deadline)).await;
            if !self.waits(request.invocation) {
                // It has an answer, or the file cannot be used, which was reported.
                self.recorded().remove(request.invocation);
                return answer;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            tokio::time::sleep(INTERVAL.min(left)).await;
        }
        self.recorded().remove(request.invocation);
        self.pending.withdraw(&request, &self.client).await.unwrap_or(ApprovalAnswer::Nobody)
    }

    /// Returns `true` if the last look found a call without an answer.
    fn waits(&self, invocation: &str) -> bool {
        self.recorded().get_mut(invocation).is_some_and(|call| std::mem::take(&mut call.waits))
    }

    fn recorded(&self) -> MutexGuard<'_, HashMap<String, Recorded>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for WaitingApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(request).boxed()
    }
}
