//! The agent loop: requests a model turn, executes its calls and returns the results until the model answers. All calls,
//! valid or not, go to the runtime, which decides about permissions.

mod answer;
pub(crate) mod api;
mod attachment;
mod batch;
pub(crate) mod briefing;
mod chat;
pub(crate) mod conversation;
pub(crate) mod delegate;
pub(crate) mod event;
mod hooks;
mod lines;
pub(crate) mod model;
mod model_service;
pub(crate) mod prompt;
pub(crate) mod questions;
mod reply;
pub(crate) mod report;
pub(crate) mod request;
mod request_error;
mod response_body;
mod responses;
pub(crate) mod retry;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod turn;
pub(crate) mod unsent;

use std::time::Instant;

use anyhow::bail;
use serde_json::Value;
use toolcrib::call::Payload;
use toolcrib::{Session, Tool};

use api::Api;
use batch::Batch;
use conversation::{Conversation, Message};
use event::{Ending, Event, ToolResult, Totals};
use hooks::ReviewedText;
use model::Model;
use report::Report;
use request::{Request, Sampling};
use turn::{Call, FILTER, INCOMPLETE, Identifiers, LENGTH, Turn, Usage};

use crate::interrupt;
use crate::permission::hint;
use crate::render::{self, one_line, shortened};
use crate::watch::{CallEventKind, CallEvents};

/// Maximum characters shown of a server's reason.
const MAX_REASON: usize = 200;

/// Options of every model request in a run.
#[derive(Debug, Clone)]
pub(crate) struct RequestOptions {
    pub(crate) api: Api,
    /// `true` to offer tools that take text as custom tools if the API supports them.
    pub(crate) custom_tools: bool,
    pub(crate) model: String,
    pub(crate) sampling: Sampling,
    pub(crate) stream: bool,
    pub(crate) max_steps: u32,
}

impl RequestOptions {
    /// Creates the request for the next message of `conversation` with `tools`.
    pub(crate) fn request<'a>(&'a self, conversation: &'a Conversation, tools: &'a [Value]) -> Request<'a> {
        let RequestOptions { api, sampling, stream, .. } = *self;
        Request {
            api,
            model: &self.model,
            messages: conversation.messages(),
            tools,
            sampling,
            stream,
            reasoning: api == Api::Responses,
            max_tokens: None,
        }
    }

    /// Creates a request without tools for one answer of at most `tokens`.
    pub(crate) fn question<'a>(&'a self, conversation: &'a Conversation, tokens: u32) -> Request<'a> {
        Request { max_tokens: Some(tokens), reasoning: false, ..self.request(conversation, &[]) }
    }

    /// Returns the features of the model's API by the names that tool definitions use.
    pub(crate) fn abilities(&self) -> impl Iterator<Item = String> {
        let custom = self.api == Api::Responses && self.custom_tools;
        let abilities = [("custom_tools", custom), ("media_results", self.api == Api::Responses)];
        abilities.into_iter().filter(|(_, can)| *can).map(|(name, _)| name.to_owned())
    }

    /// Returns the current tool definitions of a session.
    pub(crate) fn definitions(&self, session: &Session) -> Vec<Value> {
        session.tools().into_iter().map(|tool| self.api.definition(tool, self.custom_tools)).collect()
    }
}

/// One agent run. Dropping it early stops its calls and saves the conversation.
pub(crate) struct Agent {
    session: Session,
    model: Model,
    options: RequestOptions,
    conversation: Conversation,
    report: Report,
    identifiers: Identifiers,
    batch: Option<Batch>,
    events: CallEvents,
    totals: Totals,
    started: Instant,
    ended: bool,
}

impl Agent {
    /// Creates an agent that continues `conversation` with the tools of `session`.
    pub(crate) fn new(
        session: Session,
        model: Model,
        options: RequestOptions,
        conversation: Conversation,
        report: Report,
    ) -> Self {
        Self {
            identifiers: Identifiers::knowing(conversation.call_ids()),
            events: CallEvents::of(&session),
            session,
            model,
            options,
            conversation,
            report,
            batch: None,
            totals: Totals::default(),
            started: Instant::now(),
            ended: false,
        }
    }

    /// Runs to the end and returns the answer, if any. An error is reported and returned.
    pub(crate) async fn run(mut self) -> anyhow::Result<(Ending, Option<String>)> {
        let _guard = interrupt::guard();
        let end = self.steps().await;
        self.ended = true;
        let saved = self.save();
        // Background tasks end with the run and are logged before it is over.
        self.session.end().await;
        while let Some(seen) = self.events.ready() {
            if let CallEventKind::Hooks(_) = seen.kind {
                self.report.emit(&Event::of(self.totals.steps, &seen))?;
            }
        }
        match end {
            Ok((ending, answer)) => {
                saved?;
                let exit_code = match ending {
                    Ending::Answer => 0,
                    Ending::MaxSteps => 1,
                    Ending::Interrupted => interrupt::INTERRUPTED,
                };
                let event = Event::End { reason: ending, answer: answer.as_deref(), totals: self.totals(), exit_code };
                self.report.emit(&event)?;
                Ok((ending, answer))
            }
            Err(error) => {
                // The first error is the one to return.
                let _ = self.report.emit(&Event::Error { message: &render::message(&error), exit_code: 1 });
                Err(error)
            }
        }
    }

    async fn steps(&mut self) -> anyhow::Result<(Ending, Option<String>)> {
        const INTERRUPTED: (Ending, Option<String>) = (Ending::Interrupted, None);
        let session = self.session.clone();
        let tools: Vec<&str> = session.tools().into_iter().map(|tool| tool.name.as_str()).collect();
        let RequestOptions { model, max_steps, stream, .. } = &self.options;
        self.report.emit(&Event::Start { model, tools: tools.clone(), max_steps: *max_steps, stream: *stream })?;
        self.conversation.save()?;
        let begun = hooks::begun(&session, &self.options, &self.conversation, &tools);
        let Some(()) = unless_interrupted(begun).await? else { return Ok(INTERRUPTED) };
        for step in 1..=self.options.max_steps {
            let Some(turn) = unless_interrupted(self.ask(step)).await? else { return Ok(INTERRUPTED) };
            self.conversation.push(Message::assistant(&turn));
            let Turn { text, calls, .. } = turn;
            if calls.is_empty() {
                return Ok((Ending::Answer, Some(text)));
            }
            self.call(step, calls).await?;
            if interrupt::is_requested() {
                return Ok(INTERRUPTED);
            }
            self.save()?;
        }
        let ended = unless_interrupted(hooks::ended(&session, Ending::MaxSteps, None)).await?;
        Ok(ended.map_or(INTERRUPTED, |_| (Ending::MaxSteps, None)))
    }

    async fn ask(&mut self, step: u32) -> anyhow::Result<Turn> {
        hooks::asking(&self.session, &self.options, &self.conversation, step).await?;
        let tools = self.options.definitions(&self.session);
        let mut request = self.options.request(&self.conversation, &tools);
        if hooks::hear_answers(&self.session) {
            // Hooks may change or block the answer, so it is not streamed.
            request.stream = false;
        }
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
        if !turn.text.is_empty() {
            self.report.emit(&Event::Message { step, content: &turn.text, r#final: is_final })?;
        }
        if let Some(usage) = turn.usage {
            *self.totals.usage.get_or_insert(Usage::default()) += usage;
            self.report.emit(&Event::Usage { step, usage })?;
        }
        match turn.finish.as_deref() {
            Some(LENGTH) => self.report.warn("the answer was cut at the server's token limit")?,
            Some(FILTER) => self.report.warn("the server's content filter withheld part of the answer")?,
            Some(early) if early.starts_with(INCOMPLETE) => {
                let reason = one_line(early.trim_start_matches(INCOMPLETE));
                let reason = shortened(&reason, MAX_REASON);
                self.report.warn(&format!("the server marked the answer as incomplete{reason}"))?;
            }
            _ => {}
        }
        if is_empty {
            bail!("the model `{}` returned neither text nor calls", self.options.model);
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

    async fn call(&mut self, step: u32, calls: Vec<Call>) -> anyhow::Result<()> {
        for Call { id, name, arguments, payload } in &calls {
            let custom = *payload == Payload::Text;
            self.report.emit(&Event::ToolCall { step, id, name, arguments, custom })?;
        }
        let batch = self.batch.insert(Batch::start(&self.session, self.options.api, calls));
        let alone = batch.len() == 1;
        loop {
            let (call, result) = tokio::select! {
                biased;
                Some(seen) = self.events.next() => {
                    self.report.emit(&Event::of(step, &seen))?;
                    continue;
                }
                next = batch.next() => match next {
                    Some(next) => next,
                    None => break,
                },
            };
            // Parts shown before the end are reported before it.
            while let Some(seen) = self.events.ready() {
                self.report.emit(&Event::of(step, &seen))?;
            }
            self.totals.calls += 1;
            self.totals.failed_calls += u64::from(result.is_error());
            let tool = self.session.tools().into_iter().find(|tool| tool.name == result.receipt.tool);
            let hint = hint(&result.receipt, tool, &call.arguments);
            self.report.emit(&Event::ToolResult(ToolResult {
                step,
                id: &call.id,
                name: &call.name,
                is_error: result.is_error(),
                content: &result.content(),
                display: result.display.as_deref(),
                plugin: tool.map(Tool::plugin),
                shown: &result.shown,
                receipt: &result.receipt,
                log: &result.log,
                hint: hint.as_deref(),
                alone,
            }))?;
        }
        Ok(())
    }

    /// Adds the results of the calls to the conversation, stops unfinished calls, and saves it.
    fn save(&mut self) -> anyhow::Result<()> {
        if let Some(batch) = self.batch.take() {
            batch.replies().for_each(|(call, reply)| self.conversation.push(Message::result(&call, reply)));
        }
        self.conversation.save()
    }

    fn totals(&self) -> Totals {
        Totals { ms: self.started.elapsed().as_millis().try_into().unwrap_or(u64::MAX), ..self.totals }
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
        let _ = self.save();
        let totals = self.totals();
        let _ = self.report.emit(&Event::End {
            reason: Ending::Interrupted,
            answer: None,
            totals,
            exit_code: interrupt::INTERRUPTED,
        });
    }
}
