//! Approvals of a kept run: a call that waits for one has not begun, and the file of the run says so.

use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver};

use super::keeper::Keeper;

/// Approver that records in the kept run which of its calls wait, and which begin.
pub(crate) struct KeptApprover {
    inner: Arc<dyn Approver>,
    /// Keeper of the run, once it has begun.
    keeper: OnceLock<Keeper>,
}

impl KeptApprover {
    /// Creates an approver that asks `inner`.
    pub(crate) fn new(inner: Arc<dyn Approver>) -> Arc<Self> {
        Arc::new(Self { inner, keeper: OnceLock::new() })
    }

    /// Sets the keeper of the run, if the run is kept.
    pub(crate) fn keep(&self, keeper: Option<&Keeper>) {
        // A run begins once.
        keeper.into_iter().for_each(|keeper| drop(self.keeper.set(keeper.clone())));
    }

    async fn answer(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let invocation = request.invocation.to_owned();
        let waiting = self.keeper.get().filter(|keeper| keeper.asked(&invocation));
        let answer = self.inner.ask(request).await;
        let begins = matches!(answer, ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always);
        match waiting.filter(|_| begins).map(|keeper| keeper.begun(&invocation)) {
            // After a kill, the file would say that the call has not begun.
            Some(Err(error)) => ApprovalAnswer::NoBecause(format!("{error:#}")),
            _ => answer,
        }
    }
}

impl Approver for KeptApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(request).boxed()
    }
}
