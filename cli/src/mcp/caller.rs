//! The caller of a running call: the client, and its way to ask its user. It travels with the task of the call, so that an
//! approver finds it.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::service::Peer;
use toolcrib::call::TraceContext;

tokio::task_local! {
    /// Caller of the call that this task performs.
    static CALLER: Arc<Caller>;
}

/// Client that made a call.
pub(super) struct Caller {
    /// Name and version of the client, as it calls itself.
    pub(super) client: String,
    /// Identity of the client for the server: the name of its token.
    pub(super) identity: String,
    pub(super) channel: Channel,
    /// Trace that the client states for the call.
    pub(super) trace: Option<TraceContext>,
    open: Mutex<Option<OpenQuestion>>,
}

/// Way to ask the user of a client.
pub(super) enum Channel {
    /// A request to the client while the call waits.
    Request(Box<Peer<RoleServer>>),
    /// An answer of the server that requests input, after which the client repeats the call.
    Repetition {
        /// Digests of the questions that the user agreed to.
        agreed: Vec<String>,
        /// `true` if the user declined the last question.
        is_declined: bool,
    },
    /// The user's own command line.
    CommandLine,
}

/// Question that a refused call leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OpenQuestion {
    /// The client can ask it and repeat the call.
    Input {
        /// Text for the user.
        message: String,
        /// Digest of the question.
        digest: String,
    },
    /// The user answers it on the command line, by this identifier.
    Pending(String),
}

impl Caller {
    pub(super) fn new(client: String, identity: String, channel: Channel) -> Self {
        Self { client, identity, channel, trace: None, open: Mutex::default() }
    }

    /// Sets the trace of the call.
    pub(super) fn traced(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// Returns the caller of the present task.
    pub(super) fn present() -> Option<Arc<Self>> {
        CALLER.try_with(Arc::clone).ok()
    }

    /// Performs a call for this caller.
    pub(super) async fn perform<F: Future>(self: &Arc<Self>, call: F) -> F::Output {
        CALLER.scope(self.clone(), call).await
    }

    /// Leaves a question open.
    pub(super) fn leave_open(&self, question: OpenQuestion) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(question);
    }

    /// Takes the question that was left open.
    pub(super) fn take_open(&self) -> Option<OpenQuestion> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
