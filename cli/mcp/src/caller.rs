//! The caller of a running call: the client, and its way to ask its user. It travels with the task of the call, so that an
//! approver finds it.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::service::Peer;
use tokio_util::sync::CancellationToken;
use toolcrib::call::TraceContext;
use toolcrib::flow::Label;

use super::access::Identity;
use super::dialogue::Dialogue;

/// Maximum number of questions that one call leaves open; further ones are in the list of the command line alone.
const MAX_OPEN: usize = 20;

tokio::task_local! {
    /// Caller of the call that this task performs.
    static CALLER: Arc<Caller>;
}

/// Client that made a call.
pub(super) struct Caller {
    /// Name of the client: its token or person, if it has one, and its name and version in its own words. Approvals belong to it, so
    /// no two tokens and no two people have the same one.
    pub(super) client: String,
    /// Holder of the client's token, who owns its conversation and its waiting calls.
    pub(super) holder: Arc<str>,
    has_token: bool,
    pub(super) channel: Channel,
    /// Trace that the client states for the call.
    pub(super) trace: Option<TraceContext>,
    /// Label of the arguments, as the client states it.
    pub(super) label: Option<Label>,
    /// Questions that were left open, by the ID of the call in all records.
    open: Mutex<Vec<(String, OpenQuestion)>>,
}

/// Way to ask the user of a client.
pub(super) enum Channel {
    /// A request to the client while the call waits.
    Request {
        client: Box<Peer<RoleServer>>,
        /// Cancelled when the client sends nothing more, or the server begins to end.
        closing: CancellationToken,
    },
    /// An answer of the server that requests input, after which the client repeats the call.
    Repetition {
        /// Digests of the questions that the user agreed to.
        agreed: Vec<String>,
        /// Answer to the last question if it was no agreement; `None` also if nothing was asked.
        refusal: Option<Answer>,
        /// Questions about the calls of a program, which waits for their answers.
        program: Option<Dialogue>,
    },
    /// The user's own command line.
    CommandLine,
}

/// Answer from a client's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Allowed,
    Denied,
    /// The client asked nobody, or the user dismissed the question.
    None,
}

/// Unanswered approval question of a refused call.
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
    /// Creates the caller of a request. `name` is the client's own name and version.
    pub(super) fn new(name: String, identity: &Identity, channel: Channel) -> Self {
        let Identity { name: token, holder, has_token, .. } = identity;
        // Without a token, the name cannot pass for one with a token.
        let client = if *has_token { format!("{token}: {name}") } else { name.replace(':', ";") };
        Self {
            client,
            holder: holder.clone(),
            has_token: *has_token,
            channel,
            trace: None,
            label: None,
            open: Mutex::default(),
        }
    }

    /// Sets the label of the arguments.
    pub(super) fn labelled(self, label: Option<Label>) -> Self {
        Self { label, ..self }
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

    /// Returns the owner of the client's waiting calls. Clients without a token share one for each server.
    pub(super) fn owner(&self) -> String {
        static SERVER: LazyLock<u64> = LazyLock::new(rand::random);
        match self.has_token {
            true => format!("token {}", self.holder),
            false => format!("server {:016x}", *SERVER),
        }
    }

    /// Leaves a question about a call open, in addition to those about other calls.
    pub(super) fn leave_open(&self, invocation: &str, question: OpenQuestion) {
        let mut open = self.open();
        open.retain(|(other, _)| other != invocation);
        if open.len() < MAX_OPEN {
            open.push((invocation.to_owned(), question));
        }
    }

    /// Closes the question about a call that has its answer.
    pub(super) fn close(&self, invocation: &str) {
        self.open().retain(|(other, _)| other != invocation);
    }

    /// Takes the questions that were left open.
    pub(super) fn take_open(&self) -> Vec<(String, OpenQuestion)> {
        std::mem::take(&mut self.open())
    }

    fn open(&self) -> MutexGuard<'_, Vec<(String, OpenQuestion)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
