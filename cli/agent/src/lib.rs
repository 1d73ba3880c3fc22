//! The agent loop: requests a model turn, executes its calls and returns the results until the model answers. All calls,
//! valid or not, go to the runtime, which decides about permissions. `examples/scripted.rs` embeds it, with
//! all that another program needs; the other items serve the command line.

mod answer;
pub mod api;
pub mod approval;
mod attachment;
mod batch;
pub mod briefing;
pub mod budget;
mod change;
pub mod chat;
pub mod compaction;
mod completions;
mod context;
pub mod conversation;
pub mod delegate;
pub mod door;
pub mod event;
mod hooks;
pub mod keeper;
pub mod message;
pub mod model;
mod model_service;
mod previews;
pub mod prompt;
pub mod questions;
mod repeats;
mod reply;
pub mod report;
pub mod request;
mod request_error;
mod request_options;
mod response_body;
mod responses;
pub mod runs;
pub mod script;
pub mod server;
pub mod settings;
mod spending;
mod step;
pub mod telemetry;
mod trace_line;
pub mod turn;
mod unfinished;
pub mod unsent;
pub mod watch;

use std::time::Instant;

use anyhow::bail;
use toolcrib::Session;
use toolcrib_base::interrupt;
use toolcrib_base::render::{self, Advice, counted, one_line, shortened};

use batch::Batch;
use budget::UsedUp;
use context::ContextCount;
use conversation::{Conversation, DroppedExchange};
use event::{Ending, Event, Totals};
use hooks::ReviewedText;
use message::Message;
use model::Model;
use repeats::Repeats;
use report::Report;
use turn::{FILTER, INCOMPLETE, Identifiers, LENGTH, Turn};

use crate::runs::broken_off;
use crate::watch::{CallEvents, ShownEvents};

pub use request_options::RequestOptions;
pub use toolcrib_settings::config::ConversationLimits;

/// Maximum characters of a text from a server or a tool in a message.
const MAX_MESSAGE: usize = 200;

/// Result of a run or one exchange: its end, and the answer, if any.
type End = (Ending, Option<String>);
/// Result of an interrupted run.
const INTERRUPTED: End = (Ending::Interrupted, None);
/// State of a kept run that ended with an error.
const FAILED: &str = "failed";
/// State of a kept chat without an answer.
const ENDED: &str = "ended";

/// An agent with its conversation. Dropping it early stops its calls and saves the conversation.
pub struct Agent {
    session: Session,
    model: Model,
    options: RequestOptions,
    conversation: Conversation,
    report: Report,
    identifiers: Identifiers,
    batch: Option<Batch>,
    context: ContextCount,
    repeats: Repeats,
    events: CallEvents,
    totals: Totals,
    /// Budget at which the agent stopped, if it did.
    stopped: Option<UsedUp>,
    /// End of the last exchange, in the word that is kept.
    last_end: Option<&'static str>,
    started: Instant,
    ended: bool,
}

impl Agent {
    /// Creates an agent that continues `conversation` with the tools of `session`.
    pub fn new(
        session: Session,
        model: Model,
        options: RequestOptions,
        conversation: Conversation,
        report: Report,
    ) -> Self {
        Self {
            repeats: Repeats::new(options.limits.repeats),
            identifiers: Identifiers::knowing(conversation.call_ids()),
            // The result of a call is kept when the call ends, and not when those before it have ended.
            events: CallEvents::with_results(&session, conversation.keeper()),
            session,
            model,
            options,
            conversation,
            report,
            batch: None,
            context: ContextCount::default(),
            totals: Totals::default(),
            stopped: None,
            last_end: None,
            started: Instant::now(),
            ended: false,
        }
    }

    /// Runs to the end and returns the answer, if any. An error is reported and returned.
    pub async fn run(mut self) -> anyhow::Result<End> {
        let _guard = interrupt::guard();
        let end = match self.begin().await {
            Ok(true) => self.exchange().await,
            Ok(false) => Ok(INTERRUPTED),
            Err(error) => Err(error),
        };
        self.close(end).await
    }

    /// Returns what waits until the events of calls are shown.
    pub fn shown_events(&self) -> ShownEvents {
        self.events.shown()
    }

    /// Adds the messages so far to the kept run.
    pub fn keep(&mut self) -> anyhow::Result<()> {
        self.conversation.keep(&self.session.label())
    }

    /// Reports the start of the run and runs its hooks; `false` if the run was interrupted.
    pub(crate) async fn begin(&mut self) -> anyhow::Result<bool> {
        self.started = Instant::now();
        self.keep()?;
        let session = self.session.clone();
        let tools: Vec<&str> = session.tools().into_iter().map(|tool| tool.name.as_str()).collect();
        let RequestOptions { model, max_steps, stream, .. } = &self.options;
        let run = self.conversation.keeper().map(keeper::Keeper::id);
        let (max_steps, stream, run) = (*max_steps, *stream, run.as_deref());
        self.report.emit(&Event::Start { model, tools: tools.clone(), max_steps, stream, run })?;
        self.conversation.save()?;
        let begun = hooks::begun(&session, &self.options, &self.conversation, &tools);
        Ok(unless_interrupted(begun).await?.is_some())
    }

    /// Asks the model and makes its calls until it answers or something stops it. Text of an answer that broke off stays in the
    /// conversation.
    pub(crate) async fn exchange(&mut self) -> anyhow::Result<End> {
        self.repeats.clear();
        let end = self.steps().await;
        if end.is_err() {
            self.stop_calls().await;
        }
        self.last_end = Some(end.as_ref().map_or(FAILED, |(ending, _)| ending.as_str()));
        if !matches!(end, Ok((Ending::Answer, _))) {
            self.break_off();
        }
        let saved = self.save();
        // The first error is the one to return.
        let end = end?;
        saved.map(|()| end)
    }

    /// Appends a message of the user.
    pub(crate) fn add(&mut self, message: Message) -> anyhow::Result<()> {
        self.conversation.push_user(message);
        self.keep()
    }

    /// Drops the last message of the user with everything after it.
    pub(crate) fn undo(&mut self) -> anyhow::Result<Option<DroppedExchange>> {
        self.last_end = None;
        self.context.forget();
        self.conversation.undo()
    }

    /// Returns `true` if the next message is the model's.
    pub(crate) fn awaits_model(&self) -> bool {
        self.conversation.awaits_model()
    }

    /// Returns the budget at which the last exchange stopped, in words.
    pub(crate) fn stopped_in_words(&mut self, ending: Ending) -> String {
        match (self.stopped.take(), ending) {
            (Some(used_up), Ending::Budget(_)) => used_up.to_string(),
            _ => format!("{} without a final answer", counted(self.options.max_steps, "step")),
        }
    }

    /// Returns the name of the model; `None` if a script replaces it.
    pub(crate) fn model(&self) -> Option<&str> {
        matches!(self.model, Model::Server(_)).then_some(self.options.model.as_str())
    }

    /// Continues with another model on the same server.
    pub(crate) fn switch_model(&mut self, name: &str) -> anyhow::Result<()> {
        name.clone_into(&mut self.options.model);
        self.context.forget();
        self.conversation.keeper().map_or(Ok(()), |keeper| keeper.resumed(name))
    }

    /// Returns the session with the tools.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Ends the run: saves the conversation, ends background tasks and reports the end.
    pub async fn close(mut self, end: anyhow::Result<End>) -> anyhow::Result<End> {
        self.ended = true;
        let saved = self.save();
        // Background tasks end with the run and are logged before it is over.
        self.end_tasks().await?;
        match end {
            Ok((ending, answer)) => {
                saved?;
                self.report_end(ending, answer.as_deref())?;
                Ok((ending, answer))
            }
            Err(error) => {
                // The first error is the one to return.
                let _ = self.keep_end(FAILED);
                let _ = self.report.emit(&Event::Error { message: &render::message(&error), exit_code: 1 });
                Err(error)
            }
        }
    }

    async fn steps(&mut self) -> anyhow::Result<End> {
        if !self.conversation.pending().is_empty()
            && let Some(ending) = self.call(0).await?
        {
            return Ok((ending, None));
        }
        self.keep()?;
        let mut last = self.totals.steps.saturating_add(self.options.max_steps);
        loop {
            if self.totals.steps >= last {
                let limit = counted(self.options.max_steps, "step");
                match self.goes_on(&UsedUp::steps(limit)).await? {
                    None => return Ok(INTERRUPTED),
                    Some(true) => last = last.saturating_add(self.options.max_steps),
                    Some(false) => {
                        let ended = unless_interrupted(hooks::ended(&self.session, Ending::MaxSteps, None)).await?;
                        return Ok(ended.map_or(INTERRUPTED, |_| (Ending::MaxSteps, None)));
                    }
                }
            }
            if let Some(ending) = self.within_budget(0).await? {
                return Ok((ending, None));
            }
            if !self.watch_context().await? {
                return Ok(INTERRUPTED);
            }
            let step = self.totals.steps + 1;
            let Some(Turn { text, calls, .. }) = unless_interrupted(self.ask(step)).await? else {
                return Ok(INTERRUPTED);
            };
            if calls.is_empty() {
                return Ok((Ending::Answer, Some(text)));
            }
            if let Some(ending) = self.call(step).await? {
                return Ok((ending, None));
            }
        }
    }

    async fn ask(&mut self, step: u32) -> anyhow::Result<Turn> {
        self.options.budget.check_counted()?;
        hooks::asking(&self.session, &self.options, &self.conversation, step).await?;
        let tools = self.options.definitions(&self.session);
        let sent = self.conversation.sent();
        let mut request = self.options.request(&sent, &tools);
        if hooks::hear_answers(&self.session) {
            // Hooks may change or block the answer, so it is not streamed.
            request.stream = false;
        }
        self.report.begin_answer(&self.options.model);
        let mut turn = self.model.answer(request, step, &mut self.report).await?;
        self.identifiers.settle(&mut turn.calls);
        self.totals.steps = step;
        let is_final = turn.calls.is_empty();
        let is_empty = is_final && turn.text.is_empty();
        if !is_empty {
            let reviewed = hooks::answered(&self.session, step, &turn).await?;
            turn.text = self.report_hooks("model.post", reviewed)?;
        }
        if is_final && !is_empty {
            let answer = hooks::ended(&self.session, Ending::Answer, Some(&turn.text)).await?;
            turn.text = answer.map(|answer| self.report_hooks("run.end", answer)).transpose()?.unwrap_or_default();
        }
        if !is_empty {
            // Kept before it is shown, so that nothing that was shown is lost.
            self.conversation.push(Message::assistant(&turn));
            // Until they begin: whatever fails before leaves no call without a result.
            self.conversation.set_pending(turn.calls.clone());
            self.keep()?;
            self.report.end_answer();
        }
        if !turn.text.is_empty() {
            self.report.emit(&Event::Message { step, content: &turn.text, r#final: is_final })?;
        }
        self.count(step, turn.usage, is_final)?;
        match turn.finish.as_deref() {
            Some(LENGTH) => self.report.warn("the answer was cut at the server's token limit")?,
            Some(FILTER) => self.report.warn("the server's content filter withheld part of the answer")?,
            Some(early) if early.starts_with(INCOMPLETE) => {
                let reason = one_line(early.trim_start_matches(INCOMPLETE));
                let reason = shortened(&reason, MAX_MESSAGE);
                self.report.warn(&format!("the server marked the answer as incomplete{reason}"))?;
            }
            _ => {}
        }
        if is_empty {
            let hint = "`--set display.debug=true` shows its answer; ask again with `--resume`, with another model, or with fewer tools";
            bail!(Advice::new(format!("the model `{}` returned neither text nor calls", self.options.model), hint));
        }
        Ok(turn)
    }

    /// Reports the hooks that changed a text, and returns the text.
    fn report_hooks(&mut self, event: &str, reviewed: ReviewedText) -> anyhow::Result<String> {
        let ReviewedText { text, hooks } = reviewed;
        if !hooks.is_empty() {
            self.report.emit(&Event::TextHooks { event, hooks: &hooks })?;
        }
        Ok(text)
    }

    /// Adds the results of the calls to the conversation, stops unfinished calls, and saves it.
    fn save(&mut self) -> anyhow::Result<()> {
        if let Some(batch) = self.batch.take() {
            let keeper = self.conversation.keeper();
            let (waiting, replies) = batch.replies(|id| keeper.is_some_and(|keeper| keeper.waits(id)));
            replies.into_iter().for_each(|(message, change)| self.conversation.push_result(message, change));
            self.conversation.set_pending(waiting);
        }
        self.keep()?;
        self.conversation.save()
    }

    /// Adds the text of an answer that broke off to the conversation.
    fn break_off(&mut self) {
        if let Some(text) = self.report.end_answer() {
            self.conversation.push(broken_off(&text));
        }
    }

    fn report_end(&mut self, ending: Ending, answer: Option<&str>) -> anyhow::Result<()> {
        self.keep_end(self.kept_end(ending))?;
        let (budget, exit_code) = (ending.budget(), ending.exit_code());
        let run = self.conversation.keeper().filter(|keeper| !keeper.is_empty()).map(keeper::Keeper::id);
        let (totals, run) = (self.totals(), run.as_deref());
        let stopped = self.stopped.take().map(|used_up| used_up.to_string());
        let stopped = stopped.as_deref();
        self.report.emit(&Event::End { reason: ending, answer, budget, stopped, run, totals, exit_code })
    }

    /// Returns the state of the kept run. A chat that its user ends gets it from its last exchange or its conversation.
    fn kept_end(&self, ending: Ending) -> &'static str {
        match ending {
            Ending::Answer => self.last_end.unwrap_or_else(|| {
                let is_open = self.conversation.is_broken_off() || self.conversation.awaits_model();
                match self.conversation.answers() {
                    _ if is_open => Ending::Interrupted.as_str(),
                    0 => ENDED,
                    _ => ending.as_str(),
                }
            }),
            ending => ending.as_str(),
        }
    }

    /// Keeps the end of the run; a run without any message is not kept.
    fn keep_end(&self, reason: &str) -> anyhow::Result<()> {
        match self.conversation.keeper() {
            None => Ok(()),
            Some(keeper) if keeper.is_empty() => keeper.discard(),
            Some(keeper) => keeper.end(reason, &self.totals()),
        }
    }
}

/// Awaits `work`; `None` if the run is interrupted first.
async fn unless_interrupted<T, E: Into<anyhow::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<Option<T>> {
    tokio::select! {
        biased;
        () = interrupt::soft_stop() => Ok(None),
        end = work => end.map(Some).map_err(Into::into),
    }
}

impl Drop for Agent {
    /// Saves the conversation after an interruption; running calls are stopped and answered.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // An error cannot be reported any more.
        self.break_off();
        let _ = self.save();
        let _ = self.report_end(Ending::Interrupted, None);
    }
}
