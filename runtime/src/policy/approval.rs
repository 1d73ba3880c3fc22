//! Asking a person about a call.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::tool::Tool;

/// Somebody who can be asked about a call.
pub trait Approver: Send + Sync {
    /// Asks. The call waits, under its own invocation id, until this answers; other calls go on.
    fn ask<'a>(&'a self, question: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer>;
}

/// What a person is asked. All of it but the rule comes from outside and may try to deceive.
#[derive(Debug)]
pub struct ApprovalRequest<'a> {
    /// The call's identifier in every record.
    pub invocation: &'a str,
    /// The tool, with its facts and its risk.
    pub tool: &'a Tool,
    /// The arguments that it would get, as JSON text.
    pub arguments: &'a str,
    /// What the call is about to do, in the tool's own words or its record's: a stranger's, if the tool is.
    pub preview: Option<&'a str>,
    /// What it is granted.
    pub granted: &'a [String],
    /// Why the question is asked.
    pub rests_on: &'a str,
    /// What an answer for longer than this call would be about; absent where each call has to be agreed to.
    pub approval: Option<&'a Approval>,
}

/// Consent for longer than one call: calls of one tool, as it was defined and with one grant, that one rule asks about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Approval {
    /// The tool's name.
    pub tool: String,
    /// The digest of its program: a changed program is asked about again.
    pub digest: String,
    /// The digest of the rest of its definition: fixed arguments, description, schema, requests, limits, and the file of
    /// its source. `None`, as earlier versions stored it, matches no call.
    #[serde(default)]
    pub definition: Option<String>,
    /// The rule that asks, as it was written.
    pub rule: String,
    /// What the tool is granted: with another grant it is asked about again.
    #[serde(default)]
    pub granted: Vec<String>,
}

/// What a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// This call may run.
    Once,
    /// It and others like it may run in this session.
    Session,
    /// It and others like it may run, now and later. Whoever answers this remembers it, in [`Approvals`](super::Approvals)
    /// or elsewhere, and tells the next runtime; see [`Builder::approvals`](crate::Builder::approvals).
    Always,
    /// No.
    No,
    /// There is nobody.
    Nobody,
}
