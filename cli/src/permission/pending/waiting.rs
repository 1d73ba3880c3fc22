//! An approver for runs without a terminal: a call waits until a person answers in another terminal, or until its time is over.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approvals, Approver};

use crate::render;

use super::{PendingApprover, PendingCalls, WaitingCallback};

/// Interval between two looks at the file of pending calls.
const INTERVAL: Duration = Duration::from_millis(500);

/// Waits for answers of the command line.
pub(crate) struct WaitingApprover {
    pending: PendingApprover,
    /// Calls that are in the file, by their ID in all records.
    recorded: Arc<Mutex<HashSet<String>>>,
    /// Name of this run in the file. No other run has it, and no other client has a name with a colon behind a space.
    client: String,
    max_wait: Duration,
}

impl WaitingApprover {
    /// Creates an approver that waits at most `max_wait` for each answer. Permanent approvals are in `approvals`.
    pub(crate) fn new(calls: PendingCalls, approvals: Option<Approvals>, max_wait: Duration) -> Self {
        let client = format!("a run: process {}", std::process::id());
        let recorded = Arc::<Mutex<HashSet<String>>>::default();
        let known = recorded.clone();
        let on_waiting: WaitingCallback = Arc::new(move |invocation, id| {
            known.lock().unwrap_or_else(PoisonError::into_inner).insert(invocation.to_owned());
            render::hint(&format!(
                "a call waits for approval: `toolcrib approvals pending {id}` shows it, and `toolcrib approvals allow {id}` \
                 or `deny {id}` answers"
            ));
        });
        Self {
            pending: PendingApprover::new(calls, approvals, client.as_str(), on_waiting),
            recorded,
            client,
            max_wait,
        }
    }

    async fn answer(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let until = Instant::now() + self.max_wait;
        let answer = self.pending.answer(&request, &self.client, &self.client).await;
        let is_recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner).remove(request.invocation);
        if !is_recorded {
            // It has an answer, or the file cannot be used, which was reported.
            return answer;
        }
        while Instant::now() < until {
            tokio::time::sleep(INTERVAL.min(until.saturating_duration_since(Instant::now()))).await;
            if let Some(answer) = self.pending.stored(&request, &self.client).await {
                return answer;
            }
        }
        self.pending.withdraw(&request, &self.client).await;
        ApprovalAnswer::Nobody
    }
}

impl Approver for WaitingApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(request).boxed()
    }
}
