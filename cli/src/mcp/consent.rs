//! Approvals of calls that other agents make. The user answers, through the client or on the command line; the model can
//! neither answer nor grant.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use rmcp::service::Peer;
use serde_json::{Value, json};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver};
use toolcrib::source::digest;

use crate::permission::{PendingCalls, PendingOutcome, request_text};
use crate::render;

use super::caller::{Caller, Channel, OpenQuestion};

/// Maximum wait for the user of a client.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Member of an answer that allows the call.
const ALLOW: &str = "allow";

/// Asks the user of the client that made the call.
pub(crate) struct AgentApprover {
    /// Calls that wait for an answer on the command line; `None` if the user has no home directory.
    pending: Option<PendingCalls>,
}

impl AgentApprover {
    pub(crate) fn new(pending: Option<PendingCalls>) -> Self {
        Self { pending }
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
            Channel::CommandLine => self.wait_for_command(&caller, &request).await,
        }
    }

    /// Looks for an answer that was given on the command line, or records the call for one.
    async fn wait_for_command(&self, caller: &Caller, request: &ApprovalRequest<'_>) -> ApprovalAnswer {
        let Some(pending) = &self.pending else { return ApprovalAnswer::Nobody };
        match pending.ask(request, &format!("{} ({})", caller.client, caller.identity)).await {
            Ok(PendingOutcome::Allowed) => ApprovalAnswer::Once,
            Ok(PendingOutcome::Denied) => ApprovalAnswer::No,
            Ok(PendingOutcome::Waiting { id }) => {
                caller.leave_open(OpenQuestion::Pending(id));
                ApprovalAnswer::Nobody
            }
            Err(error) => {
                render::warning(&format!("an approval cannot be asked for: {}", render::message(&error)));
                ApprovalAnswer::Nobody
            }
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
