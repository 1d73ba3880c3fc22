//! Approval of calls by a person.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::staging::{Change, Stage};
use crate::tool::Tool;

/// Source of approvals: a person behind a terminal or another interface.
pub trait Approver: Send + Sync {
    /// Requests an approval. The call waits until the answer, while other calls continue.
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer>;

    /// Returns `true` if somebody can answer a request of the present call. Otherwise rules that are limited to such calls
    /// ([`Rule::where_answered`](super::Rule::where_answered)) ask nothing.
    fn can_answer(&self) -> bool {
        true
    }
}

/// Request for an approval. All fields except the digests and the rule come from outside and may be deceptive.
#[derive(Debug)]
#[non_exhaustive]
pub struct ApprovalRequest<'a> {
    /// ID of the call in all records.
    pub invocation: &'a str,
    /// Identifier of the call that its caller chose, shortened to the maximum length in a record; empty if it chose none.
    pub call_id: &'a str,
    /// ID of the call that makes this one; `None` for a call of the caller itself.
    pub parent: Option<&'a str>,
    /// Caller that the call states, as in [`ToolCall::caller`](crate::ToolCall::caller).
    pub caller: Option<&'a str>,
    /// Owner of the session, as in [`Approval::owner`].
    pub owner: Option<&'a str>,
    /// The tool, with its facts and its risk.
    pub tool: &'a Tool,
    /// Digest of its program, as in [`Approval::digest`]; empty if the host itself runs the tool.
    pub digest: &'a str,
    /// Digest of its remaining definition, as in [`Approval::definition`].
    pub definition: &'a str,
    /// Arguments of the call, as JSON text.
    pub arguments: &'a str,
    /// Preview of the call, as written by the tool or its author; not trustworthy unless the tool is.
    pub preview: Option<&'a str>,
    /// One line about the call, rendered from the tool's definition; not trustworthy unless the tool is.
    pub summary: Option<&'a str>,
    /// Permissions that the tool is granted.
    pub granted: &'a [String],
    /// Name of the stage that would hold back what the call writes.
    pub stage: Option<&'a str>,
    /// Effects that the ended call and the calls below it have held back, if they are asked about. An allowed call commits them.
    pub effects: Option<&'a StagedEffects<'a>>,
    /// Explanation of the flow, if a rule about flows asks.
    pub flow: Option<&'a str>,
    /// Parts of the request that rules withhold from the model. A client that shows it to a person can show it to its model too.
    pub withheld: Withheld,
    /// Rule or reason that requires the approval.
    pub rests_on: &'a str,
    /// Scope of an approval for the session or permanently; `None` if each call requires its own approval.
    pub approval: Option<&'a Approval>,
}

/// Effects that a call and the calls below it have held back.
#[derive(Debug)]
#[non_exhaustive]
pub struct StagedEffects<'a> {
    /// Stage that holds the changes.
    pub stage: &'a Stage,
    /// All changes, none of them in conflict.
    pub changes: &'a [Change],
    /// Requests that were sent, a line for each method and host, as in [`SentRequests::lines`](crate::observe::SentRequests::lines).
    pub sent: &'a [String],
    /// Requests that wait for the same answer. They are sent in this order after the changes are made, until one fails.
    pub held: &'a [&'a HeldRequest],
}

/// Request that waits for an answer. Secrets are inserted when it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldRequest {
    /// Method, such as `POST`.
    pub method: String,
    /// Absolute URL, as the guest wrote it.
    pub url: String,
    /// Headers of the guest.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Parts of a request that rules withhold from the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// None: no rule withholds an answer.
    Nothing,
    /// Contents of files and folders that the arguments do not have.
    Contents,
    /// The arguments, which have an answer that a rule withholds, and everything about them.
    Arguments,
}

/// Approval for more than one call: the calls of one tool, with one definition and one grant, that one rule asks about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Approval {
    /// Name of the tool.
    pub tool: String,
    /// Digest of its program; a changed program requires a new approval.
    pub digest: String,
    /// Digest of its remaining definition: fixed arguments, description, schema, requests, limits, and the source file.
    /// `None` in approvals of earlier versions, which match no call.
    #[serde(default)]
    pub definition: Option<String>,
    /// Text of the rule that asks.
    pub rule: String,
    /// Permissions that the tool is granted; another grant requires a new approval.
    #[serde(default)]
    pub granted: Vec<String>,
    /// Owner of the session, as given to [`Runtime::owned_session`](crate::Runtime::owned_session): the approval is for calls of
    /// this owner alone. `None` for sessions without an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl Approval {
    /// Creates an approval without a definition and without permissions.
    pub fn new(tool: impl Into<String>, digest: impl Into<String>, rule: impl Into<String>) -> Self {
        let (tool, digest, rule) = (tool.into(), digest.into(), rule.into());
        Self { tool, digest, definition: None, rule, granted: Vec::new(), owner: None }
    }
}

/// Answer to an approval request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Allows this call.
    Once,
    /// Allows this call and others in the scope of the approval for this session.
    Session,
    /// Allows this call and others in the scope of the approval permanently. The approver stores the approval, in
    /// [`Approvals`](super::Approvals) or elsewhere, and passes it to the next runtime; see
    /// [`Builder::approvals`](crate::Builder::approvals).
    Always,
    /// An earlier answer covers the [`Approval`] of the request, and nobody was asked about this call. Other rules that ask about
    /// it are still to be answered.
    Earlier {
        /// `true` for a permanent approval.
        is_permanent: bool,
    },
    /// Denies this call.
    No,
    /// Denies this call and gives the model the reason, at most
    /// [`MAX_REASON_LEN`](ApprovalAnswer::MAX_REASON_LEN) characters of it on one line.
    NoBecause(String),
    /// Nobody is available to answer; the call is denied.
    Nobody,
}

impl ApprovalAnswer {
    /// Maximum length of a denial reason that the model gets, in characters.
    pub const MAX_REASON_LEN: usize = 1_000;
}
