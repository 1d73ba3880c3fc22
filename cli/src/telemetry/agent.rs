//! The `invoke_agent` span of a run and in it one `chat` span a request to the model, from what the loop tells. What is
//! said, by whomever, is in none of them.

use std::time::SystemTime;

use reqwest::Url;

use super::export::Queue;
use super::span::{Kind, Place, Span, new_id};
use crate::agent::event::{Ending, Event, Totals};
use crate::agent::turn::{Turn, Usage};

/// What is said of a failure of which nothing better is known.
const OTHER: &str = "_OTHER";

/// A run, as it is traced.
#[derive(Debug)]
pub(crate) struct AgentSpan {
    queue: Queue,
    place: Place,
    id: u64,
    start: SystemTime,
    model: String,
    /// The request that is under way.
    chat: Option<Chat>,
    /// How the last request failed, if it did.
    failure: Option<String>,
}

/// A request that is under way.
#[derive(Debug)]
struct Chat {
    step: u32,
    server: Option<Url>,
    start: SystemTime,
}

impl AgentSpan {
    /// The span `id`, there.
    pub(super) fn new(queue: Queue, place: Place, id: u64) -> Self {
        Self { queue, place, id, start: SystemTime::now(), model: String::new(), chat: None, failure: None }
    }

    /// The span of an agent below this one.
    pub(crate) fn below(&self) -> Self {
        Self::new(self.queue.clone(), Place { parent: Some(self.id), ..self.place }, new_id())
    }

    /// Hears what happens in the run. Its last event ends the span.
    pub(crate) fn hear(&mut self, event: &Event<'_>) {
        match event {
            Event::Start { model, .. } => (self.model, self.start) = ((*model).to_owned(), SystemTime::now()),
            Event::End { reason, totals, .. } => self.end(Ok((*reason, totals))),
            Event::Error { .. } => self.end(Err(())),
            _ => {}
        }
    }

    /// Notes that the model is asked, behind `server` or in a script.
    pub(crate) fn asked(&mut self, step: u32, server: Option<&Url>) {
        self.chat = Some(Chat { step, server: server.cloned(), start: SystemTime::now() });
    }

    /// Notes its answer, or the kind of failure there was instead.
    pub(crate) fn answered(&mut self, end: Result<&Turn, &str>) {
        let Some(Chat { step, server, start }) = self.chat.take() else { return };
        let place = Place { parent: Some(self.id), ..self.place };
        let kind = if server.is_some() { Kind::Client } else { Kind::Internal };
        let mut span = Span::ended(new_id(), place, kind, format!("chat {}", self.model), start);
        span.say("gen_ai.operation.name", "chat");
        // Whose protocol it is, whoever the server is.
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
        // Whoever ended the run did not wait for the model.
        self.answered(Err(Ending::Interrupted.as_str()));
        let mut span = Span::ended(self.id, self.place, Kind::Internal, "invoke_agent".to_owned(), self.start);
        span.say("gen_ai.operation.name", "invoke_agent");
        span.say("gen_ai.request.model", self.model.as_str());
        match end {
            Ok((ending, totals)) => {
                count(&mut span, totals.usage);
                span.say("toolcrib.ending", ending.as_str());
                span.say("toolcrib.steps", u64::from(totals.steps));
                span.say("toolcrib.calls", totals.calls);
                span.say("toolcrib.failed_calls", totals.failed_calls);
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
