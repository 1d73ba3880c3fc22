//! Requests about tasks, and the calls that become one: those of tools that run in the background, and those that take long.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{CancelTaskParams, CreateTaskResult, ErrorData, GetTaskParams, GetTaskResult, UpdateTaskParams};
use rmcp::service::RequestContext;

use super::access::Identity;
use super::caller::Answer;
use super::handler::{Handler, invalid};
use super::running::{Attendance, Happening, RunningCall};
use super::tasks::CallTask;
use super::tool_calls::{can_ask, repeats};

/// Default time after which a call becomes a task.
pub(super) const TASK_AFTER: Duration = Duration::from_secs(10);

impl Handler {
    /// Returns `true` if the calls of a client can become tasks.
    pub(super) fn makes_tasks(context: &RequestContext<RoleServer>) -> bool {
        repeats(context) && context.client_capabilities().is_some_and(|abilities| abilities.supports_tasks())
    }

    /// Waits until a call should become a task; forever if its client knows none.
    pub(super) fn due(&self, call: &RunningCall, context: &RequestContext<RoleServer>) -> BoxFuture<'static, ()> {
        if !Self::makes_tasks(context) || self.closing().is_cancelled() {
            return std::future::pending().boxed();
        }
        match call.task_start() {
            Some(start) => async move { start.reached().await }.boxed(),
            None => tokio::time::sleep(self.task_after).boxed(),
        }
    }

    /// Lets a call go on as a task, and creates the answer that names it. Returns the call if there are too many tasks.
    pub(super) fn make_task(
        &self,
        call: RunningCall,
        name: String,
        client: &Arc<str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CreateTaskResult, Box<RunningCall>> {
        let Some(task) = self.tasks.create(client, call.cancellation().clone()) else { return Err(Box::new(call)) };
        let created = CreateTaskResult::new(task.created());
        let going = AssertUnwindSafe(self.clone().go_on(call, name, task.clone(), can_ask(context))).catch_unwind();
        // The server waits for its end: the result is kept under a key then.
        tokio::spawn(self.running.track_future(async move {
            if going.await.is_err() {
                task.end(None);
            }
        }));
        Ok(created)
    }

    /// Runs the call of a task to its end.
    async fn go_on(self, mut call: RunningCall, name: String, task: Arc<CallTask>, asks: bool) {
        let (cancelled, stopping) = (call.cancellation().clone(), self.stopping.clone());
        let mut nobody = Attendance::of_nobody(&cancelled, &stopping);
        let result = loop {
            match call.next(&mut nobody).await {
                Happening::Ended(result) => break result,
                Happening::Asked(question) if asks => task.ask(question),
                Happening::Asked(question) => question.answer(Answer::None),
            }
        };
        let result = result.map(|result| call.converted(&name, &result));
        call.settle(result.as_ref()).await;
        task.end(result.as_ref());
    }

    /// Returns a task of the client that asks for it.
    fn task(&self, id: &str, context: &RequestContext<RoleServer>) -> Result<Arc<CallTask>, ErrorData> {
        let unknown = "no such task: its result is kept for ten minutes, and each server knows its own tasks alone";
        let identity = Identity::of(&context.extensions);
        self.tasks.get(&identity.holder, id).ok_or_else(|| invalid(unknown.to_owned()))
    }

    /// Returns the state of a task.
    pub(super) fn state_of(
        &self,
        request: &GetTaskParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.task(&request.task_id, context).map(|task| GetTaskResult::new(task.detailed()))
    }

    /// Gives the answers of a client's user to the questions of a task.
    pub(super) fn answer_task(
        &self,
        request: &UpdateTaskParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.task(&request.task_id, context).map(|task| task.answer(&request.input_responses))
    }

    /// Cancels the call of a task.
    pub(super) fn stop_task(
        &self,
        request: &CancelTaskParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.task(&request.task_id, context).map(|task| task.cancel())
    }
}
