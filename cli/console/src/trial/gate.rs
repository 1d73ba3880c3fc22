//! Places where a tried call stops until a click: the question from a rule or the tool, and the start of a call that is
//! allowed without a question. The call decides nothing here; a click lets it go on or ends it.

use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use toolcrib::call::{Behavior, Reason};
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver};
use toolcrib_settings::permission::PendingCall;

use super::desk::{MAX_WAIT, QuestionKind, Trial, Trials};

/// Client of the questions.
const CLIENT: &str = "console";

/// Observes the calls of one session: the one that is tried, and those that it makes.
pub(super) struct Gate {
    trials: Trials,
    trial: Arc<Trial>,
    /// Invocation of the call that is tried.
    first: OnceLock<String>,
}

impl Gate {
    pub(super) fn new(trials: Trials, trial: Arc<Trial>) -> Self {
        Self { trials, trial, first: OnceLock::new() }
    }

    /// Stops an allowed call before it starts, until a click lets it go on or its step is cancelled.
    fn hold(&self) {
        let trial = &self.trial;
        let (sender, go) = oneshot::channel();
        let number = trial.ask(QuestionKind::Held(sender));
        let clicked = async {
            tokio::select! {
                // Nothing is sent: the other end is dropped.
                _ = go => {}
                () = tokio::time::sleep(MAX_WAIT) => trial.stop.cancel(),
                () = trial.stop.cancelled() => {}
            }
            if trial.stop.is_cancelled() {
                trial.cancelled.cancelled().await;
            }
        };
        let _asked = Asked { trial, number };
        tokio::task::block_in_place(|| Handle::current().block_on(clicked));
    }
}

/// Question that is open as long as this, also if its call goes away.
struct Asked<'a> {
    trial: &'a Trial,
    number: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        drop(self.trial.take(self.number));
    }
}

impl Observer for Gate {
    fn observe(&self, event: &Event<'_>) {
        let invocation = event.invocation;
        if let EventKind::Received(_) = event.kind {
            // The first call of the session is the one that is tried.
            let _ = self.first.set(invocation.to_owned());
            self.trials.invocations().insert(invocation.to_owned(), self.trial.clone());
            return;
        }
        if let EventKind::Ended(_) = event.kind {
            self.trials.invocations().remove(invocation);
        }
        if self.first.get().is_none_or(|first| first != invocation) {
            return;
        }
        match &event.kind {
            EventKind::Authorizing(arguments) => {
                // Whole, so that the page counts what it leaves out.
                let text = arguments.to_string();
                self.trial.change(|state| state.arguments = Some(text));
            }
            EventKind::Preview(text) => self.trial.change(|state| state.preview = Some((*text).to_owned())),
            EventKind::Decided(decision) => {
                self.trial.change(|state| state.decision = Some((*decision).clone()));
                // A person has just answered a call that needed it.
                if decision.behavior == Behavior::Allow && decision.reason != Reason::Once {
                    self.hold();
                }
            }
            EventKind::Started(_) => self.trial.change(|state| state.started = Some(std::time::Instant::now())),
            EventKind::Part { number, part } => self.trial.change(|state| {
                state.parts = *number;
                state.shown.add(part);
            }),
            _ => {}
        }
    }
}

impl Approver for Trials {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        async move {
            let trial = self.invocations().get(request.invocation).cloned();
            let (Some(trial), Ok(call)) = (trial, PendingCall::new(&request, CLIENT, CLIENT)) else {
                return ApprovalAnswer::Nobody;
            };
            let (sender, answer) = oneshot::channel();
            let number = trial.ask(QuestionKind::Asked(Box::new(call), sender));
            let _asked = Asked { trial: &trial, number };
            let answer = tokio::time::timeout(MAX_WAIT, answer).await;
            answer.ok().and_then(Result::ok).unwrap_or(ApprovalAnswer::Nobody)
        }
        .boxed()
    }
}
