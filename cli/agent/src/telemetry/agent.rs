//! The `invoke_agent` span of a run with one `chat` span per model request. Spans contain no message content.

use std::time::SystemTime;

use reqwest::Url;

use super::export::Queue;
use super::span::{Kind, Place, Span, new_id};
use crate::event::{Ending, Event, Totals};
use crate::turn::{Turn, Usage};

/// Error type if nothing more specific is known.
const OTHER: &str = "_OTHER";

/// Span of a run.
#[derive(Debug)]
pub struct AgentSpan {
    queue: Queue,
    place: Place,
    id: u64,
    start: SystemTime,
    model: String,
    /// Identifier of the run.
    run: String,
    /// Pending request.
    chat: Option<Chat>,
    /// Error kind of the last request, if it failed.
    failure: Option<String>,
}

/// A pending request.
#[derive(Debug)]
struct Chat {
    step: u32,
    server: Option<Url>,
    start: SystemTime,
}

impl AgentSpan {
    /// Creates the span `id`.
    pub(super) fn new(queue: Queue, place: Place, id: u64) -> Self {
        let (model, run) = (String::new(), String::new());
        Self { queue, place, id, start: SystemTime::now(), model, run, chat: None, failure: None }
    }

    /// Names the run.
    pub fn of_run(self, run: &str) -> Self {
        Self { run: run.to_owned(), ..self }
    }

    /// Creates the span of a subagent.
    pub(crate) fn below(&self) -> Self {
        Self::new(self.queue.clone(), Place { parent: Some(self.id), ..self.place }, new_id()).of_run(&self.run)
    }

    /// Records an event of the run. The last event ends the span.
    pub(crate) fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Start { model, .. } => (self.model, self.start) = ((*model).to_owned(), SystemTime::now()),
            Event::End { reason, totals, .. } => self.end(Ok((*reason, totals))),
            Event::Error { .. } => self.end(Err(())),
            _ => {}
        }
    }

    /// Records that a request is sent to `server` or to a script.
    pub(crate) fn asked(&mut self, step: u32, server: Option<&Url>) {
        self.chat = Some(Chat { step, server: server.cloned(), start: SystemTime::now() });
    }

    /// Records the answer or the kind of error.
    pub(crate) fn answered(&mut self, end: Result<&Turn, &str>) {
        let Some(Chat { step, server, start }) = self.chat.take() else { return };
        let place = Place { parent: Some(self.id), ..self.place };
        let kind = if server.is_some() { Kind::Client } else { Kind::Internal };
        let mut span = Span::ended(new_id(), place, kind, format!("chat {}", self.model), start);
        span.say("gen_ai.operation.name", "chat");
        // Names the protocol, not the actual server.
        span.say("gen_ai.provider.name", if server.is_some() { "openai" } else { "script" });
        span.say("gen_ai.request.model", self.model.as_str());
        if let Some(address) = server.as_ref().and_then(Url::host_str) {
            span.say("server.address", address);
        }
        if let Some(port) = server.as_ref().and_then(Url::port_or_known_default) {
            span.say("server.port", u64::from(port));
        }
        span.say("toolcrib.step", u64::from(step));
        match end {
            Ok(turn) => {
                count(&mut span, turn.usage);
                if let Some(finish) = &turn.finish {
                    span.attributes.push(("gen_ai.response.finish_reasons", vec![finish.clone()].into()));
                }
            }
            Err(kind) => span.fail(kind),
        }
        self.failure = end.err().map(str::to_owned);
        self.queue.push(span);
    }

    fn end(&mut self, end: Result<(Ending, &Totals), ()>) {
        // An interrupted run leaves its request without an answer.
        self.answered(Err(Ending::Interrupted.as_str()));
        let mut span = Span::ended(self.id, self.place, Kind::Internal, "invoke_agent".to_owned(), self.start);
        span.say("gen_ai.operation.name", "invoke_agent");
        span.say("gen_ai.conversation.id", self.run.as_str());
        span.say("gen_ai.request.model", self.model.as_str());
        match end {
            Ok((ending, totals)) => {
                count(&mut span, totals.usage);
                span.say("toolcrib.ending", ending.as_str());
                span.say("toolcrib.steps", u64::from(totals.steps));
                span.say("toolcrib.calls", totals.calls);
                span.say("toolcrib.failed_calls", totals.failed_calls);
                span.say("toolcrib.denied_calls", totals.denied_calls);
                if ending != Ending::Answer {
                    span.fail(ending.as_str());
                }
            }
            Err(()) => span.fail(self.failure.as_deref().unwrap_or(OTHER)),
        }
        self.queue.push(span);
    }
}

fn count(span: &mut Span, usage: Option<Usage>) {
    if let Some(usage) = usage {
        span.say("gen_ai.usage.input_tokens", usage.prompt_tokens);
        span.say("gen_ai.usage.output_tokens", usage.completion_tokens);
    }
}
