//! An approver for servers without a terminal: a call waits in the file of pending calls, and is refused until a person has
//! answered in another terminal.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use toolcrib::policy::{Approval, ApprovalAnswer, ApprovalRequest, Approvals, Approver};
use toolcrib_base::render::{self, one_line};

use super::call::key;
use super::waiting::Held;
use super::{PendingCall, PendingCalls, PendingOutcome, Waiting};

/// Interval between two looks at the file of pending calls.
const INTERVAL: Duration = Duration::from_millis(500);

/// Receiver of the identifier of a waiting call: the ID of the call in all records, and the identifier that the person types.
pub type WaitingCallback = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Answers from the pending calls.
pub struct PendingApprover {
    calls: PendingCalls,
    /// File of permanent approvals. It is read for each question, so that a new approval holds without a restart.
    approvals: Option<Approvals>,
    client: Arc<str>,
    on_waiting: WaitingCallback,
}

impl PendingApprover {
    /// Creates an approver for the calls of a client. `on_waiting` receives the identifier of each call that is refused
    /// because it waits.
    pub fn new(
        calls: PendingCalls,
        approvals: Option<Approvals>,
        client: impl Into<Arc<str>>,
        on_waiting: WaitingCallback,
    ) -> Self {
        Self { calls, approvals, client: client.into(), on_waiting }
    }

    /// Answers a request of a client, by a name and an owner of their own. Without an answer, the call waits.
    pub async fn answer(&self, request: &ApprovalRequest<'_>, client: &str, owner: &str) -> ApprovalAnswer {
        match self.find(request, client, owner, |calls, call| calls.record(call).map(Some)).await {
            Some(PendingOutcome::Answer(answer)) => answer,
            Some(PendingOutcome::Waiting { id }) => {
                (self.on_waiting)(request.invocation, &id);
                ApprovalAnswer::Nobody
            }
            None => ApprovalAnswer::Nobody,
        }
    }

    /// Answers a request once a person has answered it; `None` if nobody did in time, or if the call was displaced meanwhile. The
    /// call waits in the file.
    pub(super) async fn wait(
        &self,
        request: &ApprovalRequest<'_>,
        client: &str,
        owner: &str,
        waiting: &Waiting,
    ) -> Option<ApprovalAnswer> {
        if waiting.approves(client, request.approval) {
            return Some(ApprovalAnswer::Earlier { is_permanent: false });
        }
        let until = Instant::now() + waiting.max_wait();
        let (run, deadline) = waiting.hold();
        let record = move |calls: &PendingCalls, call: PendingCall| calls.record(call.held_by(run, deadline)).map(Some);
        match self.find(request, client, owner, record).await {
            // The file cannot be used, which was reported.
            None => return Some(ApprovalAnswer::Nobody),
            Some(PendingOutcome::Answer(answer)) => return Some(self.settled(request, client, waiting, answer).await),
            Some(PendingOutcome::Waiting { id }) => (self.on_waiting)(request.invocation, &id),
        }
        let key: Arc<str> = key(request, client).into();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            tokio::time::sleep(INTERVAL.min(left)).await;
            if waiting.approves(client, request.approval) {
                return Some(
                    self.settled(request, client, waiting, ApprovalAnswer::Earlier { is_permanent: false }).await,
                );
            }
            match self.is_answered(request, key.clone()).await {
                Some(false) => {}
                Some(true) => {
                    if let Some(answer) = self.stored(request, client).await {
                        return Some(self.settled(request, client, waiting, answer).await);
                    }
                }
                // Another call of the client took its place, or its answer. It does not take a third call's answer.
                None => return None,
            }
        }
    }

    /// Returns `true` if a call that waits has an answer or a permanent approval, without a change of the file; `None` if it is
    /// no longer there. What cannot be read now may be readable later.
    async fn is_answered(&self, request: &ApprovalRequest<'_>, key: Arc<str>) -> Option<bool> {
        let approval = request.approval.cloned();
        let (calls, approvals) = (self.calls.clone(), self.approvals.clone());
        let look = move || match is_approved(approvals.as_ref(), approval.as_ref()) {
            Ok(true) => Some(true),
            _ => calls.is_answered(&key).unwrap_or(Some(false)),
        };
        tokio::task::spawn_blocking(look).await.unwrap_or(Some(false))
    }

    /// Ends the wait of a call with an answer. One that covers more calls than this one leaves this one in the file, and a denial
    /// that was given meanwhile holds.
    async fn settled(
        &self,
        request: &ApprovalRequest<'_>,
        client: &str,
        waiting: &Waiting,
        answer: ApprovalAnswer,
    ) -> ApprovalAnswer {
        if !matches!(answer, ApprovalAnswer::Once | ApprovalAnswer::Nobody)
            && !is_denial(&answer)
            && let Some(denial) = self.withdraw(request, client).await.filter(is_denial)
        {
            return denial;
        }
        if answer == ApprovalAnswer::Session {
            waiting.approve(client, request.approval);
        }
        answer
    }

    /// Answers a request as `PendingApprover::wait` does. A call without an answer, or of a client that gives up, waits to be
    /// repeated.
    pub async fn wait_or_leave(
        &self,
        request: &ApprovalRequest<'_>,
        client: &str,
        owner: &str,
        waiting: &Waiting,
    ) -> ApprovalAnswer {
        let held = Held::new(self.calls.clone(), key(request, client));
        match self.wait(request, client, owner, waiting).await {
            None | Some(ApprovalAnswer::Nobody) => {
                held.release().await;
                ApprovalAnswer::Nobody
            }
            Some(answer) => {
                held.forget();
                answer
            }
        }
    }

    /// Answers a request that a person has answered already; `None` if nobody did. The call does not wait.
    pub async fn stored(&self, request: &ApprovalRequest<'_>, client: &str) -> Option<ApprovalAnswer> {
        let take = |calls: &PendingCalls, call| Ok(calls.take(&call, false)?.map(PendingOutcome::Answer));
        self.find(request, client, "", take).await.and_then(PendingOutcome::answer)
    }

    /// Forgets a call that no longer waits; returns the answer that a person gave meanwhile, if any.
    pub async fn withdraw(&self, request: &ApprovalRequest<'_>, client: &str) -> Option<ApprovalAnswer> {
        // A call that stays is forgotten when its time is over.
        let take = |calls: &PendingCalls, call| Ok(calls.take(&call, true)?.map(PendingOutcome::Answer));
        self.change(request, client, "", take).await.and_then(PendingOutcome::answer)
    }

    /// Finds the state of a request: a permanent approval, or its call's state in the file.
    async fn find(
        &self,
        request: &ApprovalRequest<'_>,
        client: &str,
        owner: &str,
        find: impl FnOnce(&PendingCalls, PendingCall) -> anyhow::Result<Option<PendingOutcome>> + Send + 'static,
    ) -> Option<PendingOutcome> {
        let (approvals, approval) = (self.approvals.clone(), request.approval.cloned());
        let find =
            move |calls: &PendingCalls, call: PendingCall| match is_approved(approvals.as_ref(), approval.as_ref())? {
                true => Ok(Some(PendingOutcome::Answer(ApprovalAnswer::Earlier { is_permanent: true }))),
                false => find(calls, call),
            };
        self.change(request, client, owner, find).await
    }

    /// Changes the file for the call of a request. A failure is reported.
    async fn change(
        &self,
        request: &ApprovalRequest<'_>,
        client: &str,
        owner: &str,
        change: impl FnOnce(&PendingCalls, PendingCall) -> anyhow::Result<Option<PendingOutcome>> + Send + 'static,
    ) -> Option<PendingOutcome> {
        let changed = async {
            let (calls, call) = (self.calls.clone(), PendingCall::new(request, client, owner)?);
            tokio::task::spawn_blocking(move || change(&calls, call)).await?
        };
        match changed.await {
            Ok(found) => found,
            Err(error) => {
                let (tool, reason): (_, anyhow::Error) = (one_line(&request.tool.name), error);
                render::warning(&format!("a call of `{tool}` cannot wait for approval: {}", render::message(&reason)));
                None
            }
        }
    }
}

impl Approver for PendingApprover {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        async move { self.answer(&request, &self.client, &self.client).await }.boxed()
    }
}

/// Returns `true` for a denial, which holds wherever it was given.
pub fn is_denial(answer: &ApprovalAnswer) -> bool {
    matches!(answer, ApprovalAnswer::No | ApprovalAnswer::NoBecause(_))
}

/// Returns `true` if a permanent approval is stored.
fn is_approved(approvals: Option<&Approvals>, approval: Option<&Approval>) -> anyhow::Result<bool> {
    let (Some(approvals), Some(approval)) = (approvals, approval) else { return Ok(false) };
    Ok(approvals.read()?.iter().any(|stored| stored.approval() == *approval))
}

/// Message for a model about a call that waits under an identifier.
pub fn pending_refusal(id: &str) -> String {
    format!(
        "this call needs the approval of the user: ask them to run `toolcrib approvals allow {id}`, then repeat the call"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use serde_json::{Value, json};
    use tempfile::TempDir;
    use toolcrib::call::{Behavior, Reason};
    use toolcrib::policy::Rule;
    use toolcrib::{Audit, Policy, Runtime, ToolCall};

    use super::*;

    /// Ends at once.
    const END: &str = r#"(module
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (memory (export "memory") 1)
      (func (export "_start") (call $exit (i32.const 0))))"#;

    /// A server in a folder of its own, with one tool that a rule asks about.
    struct Server {
        folder: TempDir,
        waiting: Arc<Mutex<Vec<(String, String)>>>,
    }

    impl Server {
        fn new() -> Self {
            let server = Self { folder: tempfile::tempdir().unwrap(), waiting: Arc::default() };
            fs::create_dir_all(server.folder.path().join("tools/bin")).unwrap();
            fs::write(server.folder.path().join("tools/bin/t.wasm"), wat::parse_str(END).unwrap()).unwrap();
            server.describe("Removes a file", &json!({}));
            server
        }

        /// Writes the manifest with a description and more fields of the tool.
        fn describe(&self, description: &str, more: &Value) {
            let mut tool = json!({"name": "t", "description": description, "command": ["./tools/bin/t"]});
            tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            fs::write(self.folder.path().join("tools.json"), json!({ "tools": [tool] }).to_string()).unwrap();
        }

        fn calls(&self) -> PendingCalls {
            PendingCalls::file(self.folder.path().join("state/pending.json"))
        }

        fn approvals(&self) -> Approvals {
            Approvals::file(self.folder.path().join("state/approvals.json"))
        }

        /// Calls the tool in a process of its own; returns the reason of the decision, and the identifier of a waiting call.
        async fn call(&self, client: &str, arguments: &str) -> (Reason, Option<String>) {
            let waiting = self.waiting.clone();
            let on_waiting: WaitingCallback =
                Arc::new(move |invocation, id| waiting.lock().unwrap().push((invocation.to_owned(), id.to_owned())));
            let approver = PendingApprover::new(self.calls(), Some(self.approvals()), client, on_waiting);
            let rule = Rule::new(Behavior::Ask, "t".parse().unwrap(), "test");
            let runtime = Runtime::builder(Audit::off())
                .trusted_source(self.folder.path().join("tools.json"))
                .policy(Policy::default().rule(rule))
                .approver(Arc::new(approver))
                .build()
                .unwrap();
            let result = runtime.session().call(ToolCall::new("c", "t", arguments)).await;
            let decision = result.receipt.decision.clone().unwrap_or_else(|| panic!("{result:?}"));
            let waiting = self.waiting.lock().unwrap().pop();
            assert!(waiting.as_ref().is_none_or(|(invocation, _)| *invocation == result.receipt.invocation));
            (decision.reason, waiting.map(|(_, id)| id))
        }

        /// Identifier under which a call waits.
        async fn waits(&self, client: &str, arguments: &str) -> String {
            let (reason, id) = self.call(client, arguments).await;
            assert_eq!(reason, Reason::Nobody);
            id.expect("an identifier")
        }
    }

    #[tokio::test]
    async fn a_call_waits_until_it_is_answered_and_the_answer_covers_it_once() {
        let server = Server::new();
        let id = server.waits("one", r#"{"a":1,"b":2}"#).await;
        let shown = server.calls().find(&id).unwrap();
        assert_eq!((shown.tool.as_str(), shown.client.as_str(), shown.rests_on.as_str()), ("t", "one", "ask t (test)"));
        assert_eq!(shown.arguments, r#"{"a":1,"b":2}"#);
        assert!(shown.source.starts_with('/') || cfg!(windows), "{}", shown.source);
        assert_eq!(server.waits("one", r#"{"b":2,"a":1}"#).await, id, "fields have no order");
        let others = [server.waits("one", r#"{"a":1,"b":3}"#).await, server.waits("two", r#"{"a":1,"b":2}"#).await];
        server.calls().answer(&id, true).unwrap();
        assert_eq!(server.waits("one", r#"{"a":1,"b":3}"#).await, others[0], "other arguments");
        assert_eq!(server.waits("two", r#"{"a":1,"b":2}"#).await, others[1], "another client");
        assert_eq!(server.call("one", r#"{"a":1,"b":2}"#).await, (Reason::Once, None));
        let again = server.waits("one", r#"{"a":1,"b":2}"#).await;
        assert_ne!(again, id);
        server.calls().answer(&again, false).unwrap();
        assert_eq!(server.call("one", r#"{"a":1,"b":2}"#).await, (Reason::Refused, None));
        assert_ne!(server.waits("one", r#"{"a":1,"b":2}"#).await, again);
        assert!(pending_refusal(&again).contains(&format!("`toolcrib approvals allow {again}`, then repeat the call")));
    }

    #[tokio::test]
    async fn an_answer_does_not_cover_a_changed_tool() {
        let each = json!({"interface": {"requires_user_interaction": true}});
        for more in [json!({}), each] {
            let server = Server::new();
            server.describe("Removes a file", &more);
            let id = server.waits("one", "{}").await;
            assert_eq!(server.calls().find(&id).unwrap().approval.is_none(), more != json!({}));
            server.calls().answer(&id, true).unwrap();
            server.describe("Removes a folder", &more);
            let described = server.waits("one", "{}").await;
            assert_ne!(described, id);
            server.describe("Removes a file", &more);
            let program = END.replace("(memory (export \"memory\") 1)", "(memory (export \"memory\") 2)");
            fs::write(server.folder.path().join("tools/bin/t.wasm"), wat::parse_str(program).unwrap()).unwrap();
            let compiled = server.waits("one", "{}").await;
            assert!(compiled != id && compiled != described, "its program has changed");
        }
    }

    #[tokio::test]
    async fn a_permanent_approval_holds_without_a_restart() {
        let server = Server::new();
        let id = server.waits("one", "{}").await;
        let approval = server.calls().find(&id).unwrap().approval.expect("a scope");
        server.approvals().add(&approval).unwrap();
        assert_eq!(server.call("one", "{}").await, (Reason::Always, None));
        assert_eq!(server.call("two", r#"{"a":1}"#).await, (Reason::Always, None));
        server.approvals().remove(|_| true).unwrap();
        assert_eq!(server.waits("one", "{}").await, id);
    }

    #[tokio::test]
    async fn a_call_that_cannot_wait_is_refused() {
        let server = Server::new();
        fs::create_dir_all(server.calls().path()).unwrap();
        assert_eq!(server.call("one", "{}").await, (Reason::Nobody, None));
    }

    #[tokio::test]
    async fn long_arguments_are_cut_for_people_and_compared_whole() {
        let server = Server::new();
        let arguments = |end: &str| json!({ "a": "x".repeat(20_000) + end }).to_string();
        let id = server.waits("one", &arguments("y")).await;
        let shown = server.calls().find(&id).unwrap();
        assert_eq!(shown.arguments.len() + shown.left_out, arguments("y").len());
        assert!(shown.left_out > 0);
        assert_ne!(server.waits("one", &arguments("z")).await, id);
    }
}
