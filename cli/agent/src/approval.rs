//! Approvals in a run: its file names the calls that wait for one, and a question comes after the output of earlier
//! calls.

use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver};

use super::keeper::Keeper;
use crate::watch::ShownEvents;

/// Approver that records in the kept run which of its calls wait.
pub struct KeptApprover {
    inner: Arc<dyn Approver>,
    /// Keeper of the run, if it is kept, and its events, once it has begun.
    run: OnceLock<(Option<Keeper>, ShownEvents)>,
}

impl KeptApprover {
    /// Creates an approver that asks `inner`.
    pub fn new(inner: Arc<dyn Approver>) -> Arc<Self> {
        Arc::new(Self { inner, run: OnceLock::new() })
    }

    /// Sets the run, with its keeper if it is kept.
    pub fn begin(&self, keeper: Option<Keeper>, shown: ShownEvents) {
        // A run begins once.
        let _ = self.run.set((keeper, shown));
    }

    async fn answer(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        if let Some((keeper, shown)) = self.run.get() {
            keeper.iter().for_each(|keeper| keeper.asked(request.invocation));
            shown.all().await;
        }
        self.inner.ask(request).await
    }
}

impl Approver for KeptApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(request).boxed()
    }
}
