//! Approvals of calls that other agents make. The user answers, through the client or on the command line; the model can
//! neither answer nor grant.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use rmcp::service::Peer;
use serde_json::{Value, json};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approvals, Approver};
use toolcrib::source::digest;

use crate::permission::{PendingApprover, PendingCalls, WaitingCallback, request_text};

use super::caller::{Caller, Channel, OpenQuestion};

/// Maximum wait for the user of a client.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Member of an answer that allows the call.
const ALLOW: &str = "allow";

/// Asks the user of the client that made the call.
pub(crate) struct AgentApprover {
    /// Answers of the command line; `None` if the user has no home directory.
    pending: Option<PendingApprover>,
}

impl AgentApprover {
    /// Creates an approver. Calls that wait for the command line are in `pending`; permanent approvals are in `approvals`.
    pub(crate) fn new(pending: Option<PendingCalls>, approvals: Option<Approvals>) -> Self {
        let leave_open: WaitingCallback = Arc::new(|_invocation, id| {
            if let Some(caller) = Caller::present() {
                caller.leave_open(OpenQuestion::Pending(id.to_owned()));
            }
        });
        Self { pending: pending.map(|calls| PendingApprover::new(calls, approvals, "", leave_open)) }
    }

    async fn answer(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        // A call in the background has no caller that waits.
        let Some(caller) = Caller::present() else { return ApprovalAnswer::Nobody };
        match &caller.channel {
            Channel::Request(peer) => ask(peer, message(&request)).await,
            Channel::Repetition { agreed, is_declined } => {
                let digest = question(&request);
                if agreed.contains(&digest) {
                    return ApprovalAnswer::Once;
                }
                if *is_declined {
                    return ApprovalAnswer::No;
                }
                caller.leave_open(OpenQuestion::Input { message: message(&request), digest });
                ApprovalAnswer::Nobody
            }
            Channel::CommandLine => match &self.pending {
                Some(pending) => pending.answer(request, &format!("{} ({})", caller.client, caller.identity)).await,
                None => ApprovalAnswer::Nobody,
            },
        }
    }
}

impl Approver for AgentApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(request).boxed()
    }
}

/// Formats a request for the user. Text from outside cannot imitate a line of the program.
fn message(request: &ApprovalRequest<'_>) -> String {
    format!("Allow this call?\n{}", request_text(request))
}

/// Digest of a question: an answer to one is no answer to another.
fn question(request: &ApprovalRequest<'_>) -> String {
    let approval = request.approval.map(|approval| json!(approval));
    let parts = json!([request.tool.name, request.arguments, request.rests_on, request.granted, approval]);
    digest(parts.to_string().as_bytes())
}

/// Creates the form of a question.
pub(super) fn form(message: String) -> Option<ElicitRequestParams> {
    let schema = ElicitationSchema::builder().required_bool(ALLOW).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema })
}

/// Returns `true` if the answer of a user allows the call.
pub(super) fn is_allowed(answer: &Value) -> bool {
    answer["action"] == "accept" && answer["content"][ALLOW] == json!(true)
}

async fn ask(peer: &Peer<RoleServer>, message: String) -> ApprovalAnswer {
    let Some(form) = form(message) else { return ApprovalAnswer::Nobody };
    match peer.create_elicitation_with_timeout(form, Some(MAX_WAIT)).await {
        Ok(ElicitResult { action: ElicitationAction::Accept, content: Some(content), .. }) => {
            if content[ALLOW] == json!(true) { ApprovalAnswer::Once } else { ApprovalAnswer::No }
        }
        Ok(_) => ApprovalAnswer::No,
        // The client ended, or nobody answered in time.
        Err(_) => ApprovalAnswer::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_explicit_agreement_allows() {
        assert!(is_allowed(&json!({"action": "accept", "content": {"allow": true}})));
        for answer in [
            json!(null),
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {"allow": "true"}}),
            json!({"action": "accept", "content": {"allow": false}}),
            json!({"action": "decline", "content": {"allow": true}}),
            json!({"content": {"allow": true}}),
            json!([{"action": "accept"}]),
        ] {
            assert!(!is_allowed(&answer), "{answer}");
        }
    }
}
