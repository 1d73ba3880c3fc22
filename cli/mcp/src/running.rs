//! A running call and the requests that wait for it: the one that made it, and each that brings an answer to a question of a
//! program. Progress is passed on, and a cancellation of the request is one of the call.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolcrib::ToolResult;
use toolcrib_base::render;

use super::answer::{self, Pending};
use super::caller::{Answer, Caller};
use super::dialogue::Question;
use super::once::KeyedCall;
use super::paused::Place;
use super::progress::{Progress, ProgressParts};
use super::publication::Published;
use super::report::{Receiver, Report};
use super::starts::Start;

/// A call that runs. Dropping it stops the call.
pub(super) struct RunningCall {
    id: String,
    /// State in which it began: a reload does not change it.
    pub(super) published: Arc<Published>,
    pub(super) caller: Arc<Caller>,
    work: BoxFuture<'static, Option<ToolResult>>,
    /// Questions about the calls of a program.
    questions: Option<mpsc::Receiver<Question>>,
    /// Question that waits for its answer.
    question: Option<Question>,
    cancelled: CancellationToken,
    /// Start of the call, if it matters.
    start: Option<Start>,
    /// `true` if the call becomes a task once it has started.
    becomes_task: bool,
    /// Key that its client stated.
    key: Option<KeyedCall>,
    /// Its place among the paused calls and its task, once it was paused.
    place: Option<(Place, AbortHandle)>,
}

/// Event that a waiting request reports to its client.
pub(super) enum Happening {
    /// The call has ended; `None` if it was stopped.
    Ended(Option<Box<ToolResult>>),
    /// A program waits for an answer.
    Asked(Question),
}

/// A request that waits for a call.
pub(super) struct Attendance<'a> {
    cancelled: &'a CancellationToken,
    stopping: &'a CancellationToken,
    report: Report,
    parts: Option<ProgressParts>,
}

impl RunningCall {
    /// Creates a call from its work, which starts with the first request that waits for it. `cancelled` stops it.
    pub(super) fn new(
        id: String,
        published: Arc<Published>,
        caller: Arc<Caller>,
        work: BoxFuture<'static, Option<ToolResult>>,
        questions: Option<mpsc::Receiver<Question>>,
        cancelled: CancellationToken,
    ) -> Self {
        Self {
            id,
            published,
            caller,
            work,
            questions,
            question: None,
            cancelled,
            start: None,
            becomes_task: false,
            key: None,
            place: None,
        }
    }

    /// Makes the call a task once it has started (`becomes_task`), and keeps its result under a key.
    pub(super) fn observing(self, becomes_task: bool, key: Option<KeyedCall>) -> Self {
        let start = (becomes_task || key.is_some()).then(|| self.published.parts.starts.of(&self.id));
        Self { start, becomes_task, key, ..self }
    }

    /// Keeps the result of the call under its key, if it has one; `None` for a call that was stopped. A call that was not allowed had
    /// no effect, and can be made with the same key.
    pub(super) async fn settle(&mut self, result: Option<&CallToolResult>) {
        let Some(key) = self.key.take() else { return };
        let kept = match (self.start.as_ref().is_none_or(Start::was_allowed), result) {
            (false, _) => None,
            // It stays a call that began and has no result.
            (true, None) => return,
            (true, Some(result)) => Some(serde_json::to_value(result).unwrap_or_default()),
        };
        end_key(key, kept).await;
    }

    /// Frees the key of a call that asks a question: its client repeats the request with the answer, and so makes the call.
    pub(super) async fn free_key(&mut self) {
        if let Some(key) = self.key.take() {
            end_key(key, None).await;
        }
    }

    /// Returns the start of a call that becomes a task then.
    pub(super) fn task_start(&self) -> Option<Start> {
        self.start.clone().filter(|_| self.becomes_task)
    }

    /// Returns the token that stops the call.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// Converts the result of the call for its client, with the questions that it left open.
    pub(super) fn converted(&self, name: &str, result: &ToolResult) -> CallToolResult {
        let open = Pending::new(self.caller.take_open(), &result.receipt);
        answer::convert(result, self.published.catalog.output(name), &open, &self.published.deny_flags)
    }

    /// Begins to wait for the call in a request. `stopping` is the end of the server.
    pub(super) fn attend<'a>(
        &self,
        context: &'a RequestContext<RoleServer>,
        stopping: &'a CancellationToken,
    ) -> Attendance<'a> {
        let token = context.meta.get_progress_token();
        let progress = token.map(|token| Receiver { peer: context.peer.clone(), token });
        let parts = progress.is_some().then(|| self.published.parts.listen(&self.id));
        Attendance { cancelled: &context.ct, stopping, report: Report::new(progress), parts }
    }

    /// Waits for the end of the call or for a question that has no answer yet. Dropping the future loses neither.
    pub(super) async fn next(&mut self, request: &mut Attendance<'_>) -> Happening {
        // The call in question may have ended meanwhile.
        if let Some(question) = self.question.take().filter(Question::is_open) {
            return Happening::Asked(question);
        }
        let result = loop {
            tokio::select! {
                biased;
                () = request.cancelled.cancelled(), if !self.cancelled.is_cancelled() => self.cancelled.cancel(),
                Some(progress) = next(&mut request.parts) => request.report.add(progress),
                () = request.report.sent() => {}
                result = &mut self.work => break result,
                Some(question) = asked(&mut self.questions) => {
                    if question.is_open() {
                        return Happening::Asked(question);
                    }
                }
            }
        };
        Happening::Ended(result.map(Box::new))
    }

    /// Answers the question that waits.
    pub(super) fn answer(&mut self, answer: Answer) {
        if let Some(question) = self.question.take() {
            question.answer(answer);
        }
    }

    /// Returns the call's place among the paused ones, if it has one.
    pub(super) fn place(&self) -> Option<&Place> {
        self.place.as_ref().map(|(place, _)| place)
    }

    /// Returns `true` if a paused call has ended meanwhile. Its result waits for a request.
    pub(super) fn has_ended(&self) -> bool {
        self.place.as_ref().is_some_and(|(_, task)| task.is_finished())
    }

    /// Lets the call run without a request. Returns the identifier of its place.
    pub(super) fn detach(&mut self, place: Place) -> String {
        let id = place.id.clone();
        let work = std::mem::replace(&mut self.work, std::future::pending().boxed());
        let task = AbortOnDropHandle::new(tokio::spawn(work));
        self.place = Some((place, task.abort_handle()));
        self.work = async move {
            match task.await {
                Ok(result) => result,
                Err(ended) => match ended.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // It ends with the program.
                    Err(_cancelled) => None,
                },
            }
        }
        .boxed();
        id
    }

    /// Pauses the call until its question has an answer.
    pub(super) fn waiting(mut self, question: Question) -> Self {
        self.question = Some(question);
        self
    }
}

impl<'a> Attendance<'a> {
    /// Creates the attendance of nobody: a task reports its state when its client asks for it.
    pub(super) fn of_nobody(cancelled: &'a CancellationToken, stopping: &'a CancellationToken) -> Self {
        Self { cancelled, stopping, report: Report::new(None), parts: None }
    }

    /// Reports the rest of the progress: the result ends the stream of the request, so the last progress precedes it.
    pub(super) async fn finish(mut self) {
        tokio::select! {
            () = self.stopping.cancelled() => {}
            () = self.cancelled.cancelled() => {}
            () = self.report.finish(self.parts.take()) => {}
        }
    }
}

/// Stores the end of a call with a key; `None` if it had no effect.
async fn end_key(key: KeyedCall, result: Option<Value>) {
    if let Err(error) = key.end(result.as_ref()).await {
        render::warning(&format!("the result of a call with a key is not kept: {error}"));
    }
}

/// Awaits the next progress; forever if nobody listens.
async fn next(parts: &mut Option<ProgressParts>) -> Option<Progress> {
    match parts {
        Some(parts) => parts.next().await,
        None => std::future::pending().await,
    }
}

/// Awaits the next question; forever if the call asks none.
async fn asked(questions: &mut Option<mpsc::Receiver<Question>>) -> Option<Question> {
    match questions {
        Some(questions) => questions.recv().await,
        None => std::future::pending().await,
    }
}
