//! Whose a call is: what the operator says first, then what tools claim, then the name. A tool is asked about calls without
//! a name, about names that nothing has, and about names of its own component; no tool takes a call from another's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::call::{Payload, ToolCall};
use crate::error::{Error, Outcome, ToolError};
use crate::sandbox::{Carried, Opinion, Usage};
use crate::tool::{Body, Limits};

use super::rich::Asking;
use super::ticket::Ticket;
use super::{Context, Entry, Pipeline};

/// How long a tool may take to say whether a call is its own, and all that are asked about one call.
const MAX_TIME: Duration = Duration::from_secs(1);
const MAX_TOTAL_TIME: Duration = Duration::from_secs(2);
/// The most tools that are asked about one call.
const MAX_ASKED: usize = 32;

impl Pipeline {
    /// The tool that is to answer a call.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadArguments`] where there is none, where the tool of the name rejects the call, or where two claim it.
    pub(super) async fn whose<'p>(
        self: &'p Arc<Self>,
        call: &ToolCall,
        context: &Context<'p>,
        ticket: &mut Ticket<'p>,
    ) -> Result<Entry<'p>, ToolError> {
        if let Some(name) = self.routes.get(&call.name) {
            return self.entry(name, context.memory).map_err(|fault| ticket.fault(fault));
        }
        let named = match call.name.is_empty() {
            true => None,
            false => Some(self.entry(&call.name, context.memory)),
        };
        let by_name = |named: Option<Result<Entry<'p>, Error>>, ticket: &mut Ticket<'p>| match named {
            Some(named) => named.map_err(|fault| ticket.fault(fault)),
            None => Err(bad("the call names no tool and no tool claims it")),
        };
        let entry = named.as_ref().and_then(|named| named.as_ref().ok().copied());
        // A call that has a name of its own, and nobody to say otherwise.
        if entry.is_some_and(|entry| !claims(entry)) || !self.ready_to_claim() {
            return by_name(named, ticket);
        }
        let beside =
            |other: &Entry<'_>| entry.is_none_or(|entry| other.tool.body.program() == entry.tool.body.program());
        let is_named = |other: &Entry<'_>| entry.is_some_and(|entry| entry.tool.name == other.tool.name);
        // Text is for tools that take text.
        let takes = |other: &Entry<'_>| call.payload == Payload::Object || other.tool.text.is_some();
        let all = (0..self.ready.len()).map(|index| self.at(index));
        let asked = all.filter(|entry| claims(*entry)).filter(beside).filter(takes);
        let (mut claimed, mut rejected) = (Vec::<Entry<'p>>::new(), false);
        let until = Instant::now() + MAX_TOTAL_TIME;
        for (count, entry) in asked.enumerate() {
            // Who was not heard might have claimed it too.
            if count == MAX_ASKED || Instant::now() >= until {
                return Err(bad("routing this call timed out: name its tool"));
            }
            let opinion = tokio::time::timeout_at(until.into(), self.opinion(entry, call, context, ticket)).await;
            match opinion.unwrap_or_else(|_| Err(bad("it took too long"))) {
                Ok(Opinion::Claims) => claimed.push(entry),
                Ok(Opinion::Rejects) => rejected |= is_named(&entry),
                Ok(Opinion::None) => {}
                Err(error) if is_named(&entry) => return Err(error),
                // Who cannot say that a call is his own has none.
                Err(error) => ticket.log(format!(
                    "routing: `{}`: {}
",
                    entry.tool.name, error.message
                )),
            }
        }
        match claimed.as_slice() {
            [] if rejected => Err(bad(&format!("the tool `{}` rejects this call", super::clip(&call.name)))),
            [] => by_name(named, ticket),
            [one] => Ok(*one),
            [one, other, ..] => {
                let (one, other) = (&one.tool.name, &other.tool.name);
                Err(bad(&format!("`{one}` and `{other}` both claim this call: the operator must configure a route")))
            }
        }
    }

    /// Whether any tool claims calls.
    pub(super) fn ready_to_claim(&self) -> bool {
        self.registry.tools().iter().any(|tool| matches!(&tool.body, Body::Rich(rich) if rich.says.route))
    }

    async fn opinion<'p>(
        self: &'p Arc<Self>,
        entry: Entry<'p>,
        call: &ToolCall,
        context: &Context<'p>,
        ticket: &mut Ticket<'p>,
    ) -> Result<Opinion, ToolError> {
        let Body::Rich(rich) = &entry.tool.body else { return Ok(Opinion::None) };
        let program = self.program(entry).await.map_err(|fault: Error| ToolError::of_fault(&fault))?;
        let asking = Asking::of(self, entry.tool, call, context, ticket);
        let payload = match call.payload {
            Payload::Text => Carried::Text(&call.arguments),
            Payload::Object => Carried::Object(&call.arguments),
        };
        let limits = Limits { deadline: entry.ready.limits.deadline.min(MAX_TIME), ..entry.ready.limits };
        let since = Instant::now();
        let said = match self.slots(entry.ready, &limits, context.depth).await {
            Ok(_slots) => {
                let usage = Arc::new(Usage::default());
                let prepared = context.memory.prepared(&self.prepared_key(entry.tool, rich, &program));
                let asked = asking.asked(rich, payload, prepared.as_deref());
                self.sandbox.claim_rich(&program, asked, &limits, &usage).await
            }
            Err(busy) => Err(busy),
        };
        ticket.waited(since);
        said
    }
}

fn bad(why: &str) -> ToolError {
    ToolError::new(Outcome::BadArguments, why)
}

fn claims(entry: Entry<'_>) -> bool {
    entry.ready.is_open() && matches!(&entry.tool.body, Body::Rich(rich) if rich.says.route)
}
