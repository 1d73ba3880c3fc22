//! Checks that a call of its tool is possible at all, whatever its arguments.

use std::borrow::Cow;

use serde_json::json;

use crate::call::{Behavior, Decision, Payload, Reason, ToolCall, clipped};
use crate::error::{Outcome, ToolError};
use crate::pipeline::prepared::ToolEntry;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Pipeline};
use crate::tool::{Callers, Tool, Visibility};

/// Accepts a tool call, and returns it with an arguments object.
///
/// # Errors
///
/// The error of a tool that is unusable, disabled, internal or not loaded, or that the caller may not call; and
/// [`Outcome::BadArguments`] for a call that could not be read or has the wrong payload.
pub(crate) fn accept<'p, 'c>(
    pipeline: &Pipeline,
    entry: ToolEntry<'p>,
    call: &'c ToolCall,
    scope: &CallScope<'p>,
    recorder: &mut CallRecorder<'p>,
) -> Result<Cow<'c, ToolCall>, ToolError> {
    let ToolEntry { tool, prepared, index } = entry;
    if let Some(parent) = &scope.parent {
        parent.may_call(tool)?;
    }
    if let Some(unusable) = &tool.unusable {
        entry.record(recorder);
        recorder.fault(unusable.fault.clone());
        return Err(ToolError::new(Outcome::BadComponent, unusable.reason.clone()));
    }
    if let Some(why) = &call.unreadable {
        entry.record(recorder);
        return Err(ToolError::new(Outcome::BadArguments, clipped(why)));
    }
    let call = with_object(tool, call)?;
    entry.record(recorder);
    if let Some((decision, why)) = &prepared.disabled {
        recorder.decide(decision.clone());
        return Err(ToolError::new(Outcome::Denied, why.clone()));
    }
    if tool.interface.discovery.schema_visibility.value == Visibility::Internal && !scope.memory.is_open() {
        recorder.decide(Decision::new(Behavior::Deny, Reason::Record, "schema_visibility"));
        return Err(ToolError::new(Outcome::Denied, "the tool can be called only by the host"));
    }
    if pipeline.workers_of(tool).is_some() && !prepared.only_reads {
        recorder.decide(Decision::new(Behavior::Deny, Reason::Record, "is_read_only"));
        let name = &tool.name;
        let why = format!(
            "`{name}` may change something, and only tools that only read run at workers: a call may be repeated there. Nothing was sent"
        );
        return Err(ToolError::new(Outcome::Denied, why));
    }
    let callers = tool.interface.discovery.callers.value;
    let is_of_model = scope.parent.is_none() && !scope.memory.is_open() && pipeline.code.is_offered();
    let refused = match callers {
        Callers::Direct if scope.is_of_program() => Some("the tool is called directly, and not by a program"),
        Callers::Code if is_of_model => {
            Some("the tool is called by programs alone: call it in a program of `run_code`")
        }
        _ => None,
    };
    if let Some(why) = refused {
        recorder.decide(Decision::new(Behavior::Deny, Reason::Record, "callers"));
        return Err(ToolError::new(Outcome::Denied, why));
    }
    let full = || pipeline.observers.iter().find_map(|observer| observer.refusal());
    if let Some(why) = scope.is_of_program().then(full).flatten() {
        recorder.decide(Decision::new(Behavior::Deny, Reason::Budget, "observer"));
        return Err(ToolError::new(Outcome::Denied, clipped(&why)));
    }
    let is_loaded = || scope.is_of_program() || index.is_some_and(|index| scope.memory.has_loaded(index));
    if prepared.deferred && !is_loaded() {
        let name = &tool.name;
        let message = format!("schema_not_loaded: call `tool_search` with `select:{name}` first, then `{name}`");
        return Err(ToolError::new(Outcome::SchemaNotLoaded, message));
    }
    Ok(call)
}

/// Puts a text payload into the one field that the tool names for it.
fn with_object<'c>(tool: &Tool, call: &'c ToolCall) -> Result<Cow<'c, ToolCall>, ToolError> {
    if call.payload == Payload::Object {
        return Ok(Cow::Borrowed(call));
    }
    let Some(text) = &tool.text else {
        let message = format!("the tool `{}` takes an object of arguments, not text", tool.name);
        return Err(ToolError::new(Outcome::BadArguments, message));
    };
    let mut object = json!({});
    object[&text.field] = json!(call.arguments);
    Ok(Cow::Owned(ToolCall { arguments: object.to_string(), ..call.clone() }))
}
