//! Resolves the tool of a call: an operator's route first, then a tool's claim, then the name. A tool may claim only
//! unnamed calls, unknown names, or names in its own component.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::call::{Payload, ToolCall, clipped};
use crate::error::{Error, Outcome, ToolError};
use crate::pipeline::prepared::ToolEntry;
use crate::pipeline::prepared::compute::MAX_SIDE_TIME;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, InvocationFields, Pipeline};
use crate::sandbox::{GuestPayload, Opinion, Usage};
use crate::tool::{Body, Limits};

/// Maximum time in which all tools decide about their claims to one call.
const MAX_TOTAL_TIME: Duration = Duration::from_secs(2);
/// Maximum number of tools that decide about one call.
const MAX_CLAIMANTS: usize = 32;

/// Tool with the name in a call; `None` for a call without a name.
type Named<'p> = Option<Result<ToolEntry<'p>, Error>>;

/// Returns the tool of a call.
///
/// # Errors
///
/// [`Outcome::BadArguments`] if no tool answers the call, if the tool of the name rejects the call, or if two tools claim it.
pub(crate) async fn resolve<'p>(
    pipeline: &'p Arc<Pipeline>,
    call: &ToolCall,
    scope: &CallScope<'p>,
    recorder: &mut CallRecorder<'p>,
) -> Result<ToolEntry<'p>, ToolError> {
    if let Some(name) = pipeline.routes.get(&call.name) {
        return pipeline.entry(name, scope.memory).map_err(|fault| recorder.fault(fault));
    }
    let named = match call.name.is_empty() {
        true => None,
        false => Some(pipeline.entry(&call.name, scope.memory)),
    };
    let entry = named.as_ref().and_then(|named| named.as_ref().ok().copied());
    // No other tool can claim a named call of a tool that claims none.
    if entry.is_some_and(|entry| !claims(entry)) || !pipeline.has_claimants() {
        return by_name(named, recorder);
    }
    Box::pin(claimed(pipeline, call, named, scope, recorder)).await
}

/// Returns the tool that claims a call, or else the tool of its name.
async fn claimed<'p>(
    pipeline: &'p Arc<Pipeline>,
    call: &ToolCall,
    named: Named<'p>,
    scope: &CallScope<'p>,
    recorder: &mut CallRecorder<'p>,
) -> Result<ToolEntry<'p>, ToolError> {
    let entry = named.as_ref().and_then(|named| named.as_ref().ok().copied());
    let in_component =
        |other: &ToolEntry<'_>| entry.is_none_or(|entry| other.tool.body.program() == entry.tool.body.program());
    let is_named = |other: &ToolEntry<'_>| entry.is_some_and(|entry| entry.tool.name == other.tool.name);
    // Text is for tools that take text.
    let takes = |other: &ToolEntry<'_>| call.payload == Payload::Object || other.tool.text.is_some();
    let all = (0..pipeline.prepared.len()).map(|index| pipeline.at(index));
    let claimants = all.filter(|entry| claims(*entry)).filter(in_component).filter(takes);
    let (mut claimed, mut rejected) = (Vec::<ToolEntry<'p>>::new(), false);
    let until = Instant::now() + MAX_TOTAL_TIME;
    for (count, entry) in claimants.enumerate() {
        // A tool that was not asked could have claimed the call too.
        if count == MAX_CLAIMANTS || Instant::now() >= until {
            return Err(bad("routing this call timed out: name its tool"));
        }
        let opinion = tokio::time::timeout_at(until.into(), opinion(pipeline, entry, call, scope, recorder)).await;
        match opinion.unwrap_or_else(|_| Err(bad("it took too long"))) {
            Ok(Opinion::Claims) => claimed.push(entry),
            Ok(Opinion::Rejects) => rejected |= is_named(&entry),
            Ok(Opinion::NoOpinion) => {}
            Err(error) if is_named(&entry) => return Err(error),
            // A tool that fails to decide does not claim the call.
            Err(error) => recorder.log(&format!("routing: `{}`: {}\n", entry.tool.name, error.message)),
        }
    }
    match claimed.as_slice() {
        [] if rejected => Err(bad(&format!("the tool `{}` rejects this call", clipped(&call.name)))),
        [] => by_name(named, recorder),
        [one] => Ok(*one),
        [one, other, ..] => {
            let (one, other) = (&one.tool.name, &other.tool.name);
            Err(bad(&format!("`{one}` and `{other}` both claim this call: the operator must configure a route")))
        }
    }
}

fn by_name<'p>(named: Named<'p>, recorder: &mut CallRecorder<'p>) -> Result<ToolEntry<'p>, ToolError> {
    match named {
        Some(named) => named.map_err(|fault| recorder.fault(fault)),
        None => Err(bad("the call names no tool and no tool claims it")),
    }
}

/// Asks a tool for its claim to a call, without any grant.
async fn opinion<'p>(
    pipeline: &'p Arc<Pipeline>,
    entry: ToolEntry<'p>,
    call: &ToolCall,
    scope: &CallScope<'p>,
    recorder: &mut CallRecorder<'p>,
) -> Result<Opinion, ToolError> {
    let Body::Rich(rich) = &entry.tool.body else { return Ok(Opinion::NoOpinion) };
    let program = pipeline.programs.program(entry).await.map_err(|fault: Error| ToolError::of_fault(&fault))?;
    let fields = InvocationFields::new(&pipeline.contexts, entry.tool, call, scope, recorder);
    let payload = match call.payload {
        Payload::Text => GuestPayload::Text(&call.arguments),
        Payload::Object => GuestPayload::Object(&call.arguments),
    };
    let limits = Limits { deadline: entry.prepared.limits.deadline.min(MAX_SIDE_TIME), ..entry.prepared.limits };
    let since = Instant::now();
    let opinion = match pipeline.concurrency.acquire(entry.prepared, scope.memory, &limits, scope.depth).await {
        Ok(_permits) => {
            let usage = Arc::new(Usage::default());
            let prepared = scope.memory.prepared(&pipeline.contexts.preparation_key(entry.tool, rich, &program));
            let invocation = fields.with(rich, payload, prepared.as_deref());
            pipeline.sandbox.claim_rich(&program, invocation, &limits, &usage).await
        }
        Err(busy) => Err(busy),
    };
    recorder.budget.add_wait(since);
    // It can have been prepared with what a rule withholds from the model.
    let has_state = scope.memory.prepared(&pipeline.contexts.preparation_key(entry.tool, rich, &program)).is_some();
    match opinion {
        Err(error) if has_state && pipeline.flows.may_withhold() => {
            recorder.log(&format!("routing: `{}`: {}\n", entry.tool.name, error.message));
            Err(ToolError::new(error.outcome, "the tool could not decide whether it takes the call"))
        }
        opinion => opinion,
    }
}

fn bad(why: &str) -> ToolError {
    ToolError::new(Outcome::BadArguments, why)
}

fn claims(entry: ToolEntry<'_>) -> bool {
    entry.prepared.is_callable() && matches!(&entry.tool.body, Body::Rich(rich) if rich.exports.route)
}
