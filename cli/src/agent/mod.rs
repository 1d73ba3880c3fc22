//! The agent: a model is asked, what it calls is executed, and it is told the results, until it answers. This is the
//! loop; each of its parts is a file. It knows neither the command line nor what a tool may do: every call, right or
//! wrong, goes to the runtime, which answers it.

mod answer;
pub(crate) mod api;
mod batch;
mod chat;
pub(crate) mod conversation;
pub(crate) mod delegate;
pub(crate) mod event;
mod fault;
mod hooks;
mod lines;
pub(crate) mod model;
mod model_service;
pub(crate) mod prompt;
mod reply;
pub(crate) mod report;
pub(crate) mod request;
mod response_body;
mod responses;
pub(crate) mod retry;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod turn;

use std::time::Instant;

use anyhow::bail;
use serde_json::Value;
use toolcrib::call::Payload;
use toolcrib::{Session, Tool};

use api::Api;
use batch::Batch;
use conversation::{Conversation, Message};
use event::{Ending, Event, ToolResult, Totals};
use model::Model;
use report::Report;
use request::{Request, Sampling};
use turn::{Call, FILTER, INCOMPLETE, Identifiers, LENGTH, Turn, Usage};

use crate::interrupt;
use crate::permission::hint;
use crate::render::{one_line, shortened};
use crate::watch::Sights;

/// The most characters that are shown of a reason in a server's words.
const MAX_REASON: usize = 200;

/// What is wished for in every request of a run.
#[derive(Debug, Clone)]
pub(crate) struct Wishes {
    pub(crate) api: Api,
    /// Whether a tool that takes text is offered as one where the API has such tools.
    pub(crate) custom_tools: bool,
    pub(crate) model: String,
    pub(crate) sampling: Sampling,
    pub(crate) stream: bool,
    pub(crate) max_steps: u32,
}

impl Wishes {
    /// The request for the next message of `conversation`, to a model that may call `tools`.
    pub(crate) fn request<'a>(&'a self, conversation: &'a Conversation, tools: &'a [Value]) -> Request<'a> {
        let Wishes { api, sampling, stream, .. } = *self;
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

    /// The request for one answer of so many tokens, to a model that may call nothing.
    pub(crate) fn question<'a>(&'a self, conversation: &'a Conversation, tokens: u32) -> Request<'a> {
        Request { max_tokens: Some(tokens), reasoning: false, ..self.request(conversation, &[]) }
    }

    /// What the model's API can do, in the words by which tools ask for it.
    pub(crate) fn abilities(&self) -> impl Iterator<Item = String> {
        let custom = self.api == Api::Responses && self.custom_tools;
        let abilities = [("custom_tools", custom), ("media_results", self.api == Api::Responses)];
        abilities.into_iter().filter(|(_, can)| *can).map(|(name, _)| name.to_owned())
    }

    /// The tools of a conversation as a model is shown them now.
    pub(crate) fn definitions(&self, session: &Session) -> Vec<Value> {
        session.tools().into_iter().map(|tool| self.api.definition(tool, self.custom_tools)).collect()
    }
}

/// One run. Dropping it before its end stops its calls and keeps what was said so far.
pub(crate) struct Agent {
    session: Session,
    model: Model,
    wishes: Wishes,
    conversation: Conversation,
    report: Report,
    identifiers: Identifiers,
    batch: Option<Batch>,
    sights: Sights,
    totals: Totals,
    started: Instant,
    ended: bool,
}

impl Agent {
    /// An agent with the tools of `session`, about to continue `conversation`.
    pub(crate) fn new(
        session: Session,
        model: Model,
        wishes: Wishes,
        conversation: Conversation,
        report: Report,
    ) -> Self {
        Self {
            identifiers: Identifiers::knowing(conversation.call_ids()),
            sights: Sights::of(&session),
            session,
            model,
            wishes,
            conversation,
            report,
            batch: None,
            totals: Totals::default(),
            started: Instant::now(),
            ended: false,
        }
    }

    /// Runs to the end, and gives the answer where there is one. A failure is told too, and returned.
    pub(crate) async fn run(mut self) -> anyhow::Result<(Ending, Option<String>)> {
        let _hold = interrupt::hold();
        let end = self.steps().await;
        self.ended = true;
        let kept = self.keep();
        // What goes on ends with the run, and is signed for before the run is over.
        self.session.end().await;
        match end {
            Ok((ending, answer)) => {
                kept?;
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
                // The first failure is the one to return.
                let _ = self.report.emit(&Event::Error { message: &format!("{error:#}"), exit_code: 1 });
                Err(error)
            }
        }
    }

    async fn steps(&mut self) -> anyhow::Result<(Ending, Option<String>)> {
        const INTERRUPTED: (Ending, Option<String>) = (Ending::Interrupted, None);
        let session = self.session.clone();
        let tools: Vec<&str> = session.tools().into_iter().map(|tool| tool.name.as_str()).collect();
        let Wishes { model, max_steps, stream, .. } = &self.wishes;
        self.report.emit(&Event::Start { model, tools: tools.clone(), max_steps: *max_steps, stream: *stream })?;
        self.conversation.save()?;
        let begun = hooks::begun(&session, &self.wishes, &self.conversation, &tools);
        let Some(()) = unless_interrupted(begun).await? else { return Ok(INTERRUPTED) };
        for step in 1..=self.wishes.max_steps {
            let Some(turn) = unless_interrupted(self.ask(step)).await? else { return Ok(INTERRUPTED) };
            self.conversation.push(Message::assistant(&turn));
            let Turn { text, calls, .. } = turn;
            if calls.is_empty() {
                return Ok((Ending::Answer, Some(text)));
            }
            self.call(step, calls).await?;
            if interrupt::is_asked() {
                return Ok(INTERRUPTED);
            }
            self.keep()?;
        }
        let ended = unless_interrupted(hooks::ended(&session, Ending::MaxSteps, None)).await?;
        Ok(ended.map_or(INTERRUPTED, |_| (Ending::MaxSteps, None)))
    }

    async fn ask(&mut self, step: u32) -> anyhow::Result<Turn> {
        hooks::asking(&self.session, &self.wishes, &self.conversation, step).await?;
        let tools = self.wishes.definitions(&self.session);
        let mut request = self.wishes.request(&self.conversation, &tools);
        if hooks::hear_answers(&self.session) {
            // What a hook may still withhold or change is shown to nobody before.
            request.stream = false;
        }
        let mut turn = self.model.answer(request, step, &mut self.report).await?;
        self.identifiers.settle(&mut turn.calls);
        self.totals.steps = step;
        let is_final = turn.calls.is_empty();
        let is_empty = is_final && turn.text.is_empty();
        if !is_empty {
            turn.text = hooks::answered(&self.session, step, &turn).await?;
        }
        if is_final && !is_empty {
            let answer = hooks::ended(&self.session, Ending::Answer, Some(&turn.text)).await?;
            turn.text = answer.unwrap_or_default();
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
            bail!("the model `{}` returned neither text nor calls", self.wishes.model);
        }
        Ok(turn)
    }

    async fn call(&mut self, step: u32, calls: Vec<Call>) -> anyhow::Result<()> {
        for Call { id, name, arguments, payload } in &calls {
            let custom = *payload == Payload::Text;
            self.report.emit(&Event::ToolCall { step, id, name, arguments, custom })?;
        }
        let batch = self.batch.insert(Batch::start(&self.session, self.wishes.api, calls));
        let alone = batch.len() == 1;
        loop {
            let (call, result) = tokio::select! {
                biased;
                Some(seen) = self.sights.next() => {
                    self.report.emit(&Event::of(step, &seen))?;
                    continue;
                }
                next = batch.next() => match next {
                    Some(next) => next,
                    None => break,
                },
            };
            // What was shown before the end is told before it.
            while let Some(seen) = self.sights.ready() {
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

    /// Puts the results of the calls into the conversation, stops calls that have none, and saves it.
    fn keep(&mut self) -> anyhow::Result<()> {
        if let Some(batch) = self.batch.take() {
            batch.replies().for_each(|(call, reply)| self.conversation.push(Message::result(&call, reply)));
        }
        self.conversation.save()
    }

    fn totals(&self) -> Totals {
        Totals { ms: self.started.elapsed().as_millis().try_into().unwrap_or(u64::MAX), ..self.totals }
    }
}

/// The end of `work`, or nothing where somebody ends the run before.
async fn unless_interrupted<T, E: Into<anyhow::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> anyhow::Result<Option<T>> {
    tokio::select! {
        biased;
        () = interrupt::asked() => Ok(None),
        end = work => end.map(Some).map_err(Into::into),
    }
}

impl Drop for Agent {
    /// Somebody ended the program: what was said so far is kept, and calls that still run are stopped and answered.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // Nobody is left to be told of a failure.
        let _ = self.keep();
        let totals = self.totals();
        let _ = self.report.emit(&Event::End {
            reason: Ending::Interrupted,
            answer: None,
            totals,
            exit_code: interrupt::INTERRUPTED,
        });
    }
}
