//! Approvals of calls that other agents make. The user answers, through the client or on the command line; the model can
//! neither answer nor grant.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, ElicitationSchema};
use rmcp::service::Peer;
use serde_json::{Value, json};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approvals, Approver};
use toolcrib_settings::permission::{
    PendingApprover, PendingCalls, Waiting, WaitingCallback, announce, is_denial, key, request_text,
};

use super::caller::{Answer, Caller, Channel, OpenQuestion};
use super::dialogue::Dialogue;

/// Maximum wait for the user of a client.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Addition to a client's name in the names of its background tasks.
const BACKGROUND: &str = "in the background: it no longer waits";
/// Member of an answer that allows the call.
const ALLOW: &str = "allow";

/// Asks the user of the client that made the call.
pub struct AgentApprover {
    /// Answers of the command line; `None` if the user has no home directory.
    pending: Option<PendingApprover>,
    /// Waiting for these answers; `None` if a call is refused until one is there.
    waiting: Option<Waiting>,
    /// `true` if the user answers on the command line alone.
    answers_elsewhere: bool,
}

impl AgentApprover {
    /// Creates an approver. Calls that wait for the command line are in `pending`, each for `max_wait` before it is refused;
    /// permanent approvals are in `approvals`. With `answers_elsewhere`, the user chose the command line for all answers.
    pub fn new(
        pending: Option<PendingCalls>,
        approvals: Option<Approvals>,
        max_wait: Option<Duration>,
        answers_elsewhere: bool,
    ) -> Self {
        let waits = max_wait.is_some();
        let leave_open: WaitingCallback = Arc::new(move |invocation, id| {
            if let Some(caller) = Caller::present() {
                caller.leave_open(invocation, OpenQuestion::Pending(id.to_owned()));
                if waits && !matches!(caller.channel, Channel::Request { .. }) {
                    announce(id);
                }
            }
        });
        let waiting = pending.as_ref().zip(max_wait).map(|(calls, max_wait)| Waiting::new(calls, max_wait));
        Self {
            pending: pending.map(|calls| PendingApprover::new(calls, approvals, "", leave_open)),
            waiting,
            answers_elsewhere,
        }
    }

    async fn answer(&self, request: ApprovalRequest<'_>) -> ApprovalAnswer {
        let Some(caller) = Caller::present() else {
            // A task in the background: its client no longer waits.
            let client = format!("{}, {BACKGROUND}", request.caller.unwrap_or_default());
            return self.on_command_line(&request, &client, request.owner.unwrap_or(&client)).await;
        };
        match &caller.channel {
            Channel::CommandLine => self.elsewhere(&request, &caller).await,
            Channel::Request { client, closing } => {
                let answer = async {
                    if closing.is_cancelled() {
                        return Answer::None;
                    }
                    tokio::select! {
                        biased;
                        // It may have come just before the end of the input.
                        answer = ask(client, &request) => answer,
                        () = closing.cancelled() => Answer::None,
                    }
                };
                self.while_waiting(&request, &caller, answer).await
            }
            Channel::Repetition { program: Some(program), .. }
                if request.parent.is_some() || request.effects.is_some() =>
            {
                self.while_paused(&request, &caller, program).await
            }
            Channel::Repetition { agreed, refusal, .. } => {
                // An answer to one question is no answer to another, nor to one about a tool that has changed.
                let digest = key(&request, &caller.client);
                if agreed.contains(&digest) {
                    return ApprovalAnswer::Once;
                }
                if let Some(answer) = self.stored(&request, &caller.client).await {
                    return answer;
                }
                match (refusal, message(&request)) {
                    (Some(Answer::Denied), _) => ApprovalAnswer::No,
                    (None, Some(message)) => {
                        caller.leave_open(request.invocation, OpenQuestion::Input { message, digest });
                        ApprovalAnswer::Nobody
                    }
                    _ => self.elsewhere(&request, &caller).await,
                }
            }
        }
    }

    /// Asks a client for its answer while the call waits. The call waits for the command line too, because a client may give up
    /// before its user answers.
    async fn while_waiting(
        &self,
        request: &ApprovalRequest<'_>,
        caller: &Caller,
        answer: impl Future<Output = Answer>,
    ) -> ApprovalAnswer {
        let before = self.on_command_line(request, &caller.client, &caller.owner()).await;
        if before != ApprovalAnswer::Nobody {
            return before;
        }
        let answer = match answer.await {
            Answer::Allowed => ApprovalAnswer::Once,
            Answer::Denied => ApprovalAnswer::No,
            Answer::None => return ApprovalAnswer::Nobody,
        };
        caller.close(request.invocation);
        let elsewhere = match &self.pending {
            Some(pending) => pending.withdraw(request, &caller.client).await,
            None => None,
        };
        // A denial holds, wherever it was given.
        match elsewhere {
            Some(denial) if is_denial(&denial) => denial,
            _ => answer,
        }
    }

    /// Asks a client through an answer that requires input, while the program that makes the call is paused.
    async fn while_paused(&self, request: &ApprovalRequest<'_>, caller: &Caller, program: &Dialogue) -> ApprovalAnswer {
        if let Some(answer) = self.stored(request, &caller.client).await {
            return answer;
        }
        let Some(message) = message(request) else { return self.elsewhere(request, caller).await };
        match program.ask(message, number(request.call_id)).await {
            Some(Answer::Allowed) => ApprovalAnswer::Once,
            Some(Answer::Denied) => ApprovalAnswer::No,
            Some(Answer::None) => self.elsewhere(request, caller).await,
            // Its client did not come back.
            None => ApprovalAnswer::Nobody,
        }
    }

    /// Returns the answer that a person gave on the command line, if any.
    async fn stored(&self, request: &ApprovalRequest<'_>, client: &str) -> Option<ApprovalAnswer> {
        self.pending.as_ref()?.stored(request, client).await
    }

    /// Answers a request of a client that asks nobody, from the command line: at once, or once it has an answer.
    async fn elsewhere(&self, request: &ApprovalRequest<'_>, caller: &Caller) -> ApprovalAnswer {
        let (Some(pending), Some(waiting)) = (&self.pending, &self.waiting) else {
            return self.on_command_line(request, &caller.client, &caller.owner()).await;
        };
        let answer = pending.wait_or_leave(request, &caller.client, &caller.owner(), waiting).await;
        if answer != ApprovalAnswer::Nobody {
            caller.close(request.invocation);
        }
        match answer {
            // The waiting has noted it for this client. The session of the runtime may serve others too.
            ApprovalAnswer::Session => ApprovalAnswer::Once,
            answer => answer,
        }
    }

    /// Answers a request of a client from the command line.
    async fn on_command_line(&self, request: &ApprovalRequest<'_>, client: &str, owner: &str) -> ApprovalAnswer {
        match &self.pending {
            Some(pending) => pending.answer(request, client, owner).await,
            None => ApprovalAnswer::Nobody,
        }
    }
}

impl Approver for AgentApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.answer(request).boxed()
    }

    /// A client that cannot ask leaves the question open for the command line, which is an answer only where the user chose it.
    /// The client of a task in the background may have been able to ask.
    fn can_answer(&self) -> bool {
        let asks = |caller: Arc<Caller>| !matches!(caller.channel, Channel::CommandLine);
        self.answers_elsewhere || self.waiting.is_some() || Caller::present().is_none_or(asks)
    }
}

/// Formats a request for a client's user; `None` if the text would leave out a part of the call. Text from outside
/// cannot imitate a line of the program.
fn message(request: &ApprovalRequest<'_>) -> Option<String> {
    let question = match (request.effects, request.parent) {
        (Some(_), _) => "Make the changes of this call?",
        (None, None) => "Allow this call?",
        (None, Some(_)) => "Allow this call, which a running call makes?",
    };
    Some(format!("{question}\n{}", request_text(request)?))
}

/// Returns the number of a call, or of the call that led to it, among the calls of its program.
fn number(call_id: &str) -> Option<u32> {
    call_id.split('/').nth(1)?.parse().ok()
}

/// Creates the form of a question.
pub(super) fn form(message: String) -> Option<ElicitRequestParams> {
    let schema = ElicitationSchema::builder().required_bool(ALLOW).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema })
}

/// Reads the answer of a user. Only an explicit agreement allows.
pub(super) fn read(answer: &Value) -> Answer {
    match answer["action"].as_str() {
        Some("accept") if answer["content"][ALLOW] == json!(true) => Answer::Allowed,
        Some("accept" | "decline") => Answer::Denied,
        _ => Answer::None,
    }
}

async fn ask(peer: &Peer<RoleServer>, request: &ApprovalRequest<'_>) -> Answer {
    let Some(form) = message(request).and_then(form) else { return Answer::None };
    let answer = peer.create_elicitation_with_timeout(form, Some(MAX_WAIT)).await;
    // Without an answer, the client ended, cannot ask after all, or no one answered in time.
    answer.ok().and_then(|answer| serde_json::to_value(answer).ok()).map_or(Answer::None, |answer| read(&answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_explicit_agreement_allows() {
        assert_eq!(read(&json!({"action": "accept", "content": {"allow": true}})), Answer::Allowed);
        for answer in [
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {"allow": "true"}}),
            json!({"action": "accept", "content": {"allow": false}}),
            json!({"action": "decline", "content": {"allow": true}}),
        ] {
            assert_eq!(read(&answer), Answer::Denied, "{answer}");
        }
        for answer in [
            json!(null),
            json!({"content": {"allow": true}}),
            json!([{"action": "accept"}]),
            json!({"action": "cancel"}),
        ] {
            assert_eq!(read(&answer), Answer::None, "{answer}");
        }
    }
}
