//! Payloads that script hooks get, and the answers that they return.

use serde_json::{Map, Value, json};
use toolcrib_foundation::text;

use crate::error::{Outcome, ToolError};
use crate::hook::{FinishedCall, ProposedCall};
use crate::schema;

/// Answer of a script to an event.
pub(super) enum Answer {
    Allow,
    Pass,
    Block(String),
    Modify(Value),
    Delegate(Value),
}

/// Returns the payload of a call before it runs, with both documented names for its arguments: the text and the value.
pub(super) fn proposed(call: &ProposedCall<'_>) -> Value {
    of_call(call.call_id, &call.tool.name, call.model_input, call.arguments)
}

/// Returns the payload of a call after it has run.
pub(super) fn finished(call: &FinishedCall<'_>) -> Value {
    let content = call.answer.map_or_else(ToolError::content, str::to_owned);
    let mut payload = of_call(call.call_id, &call.tool.name, call.model_input, call.arguments);
    payload["content"] = json!(content);
    payload["result"] = schema::parse(&content).unwrap_or_else(|_| json!(content));
    payload["is_error"] = json!(call.outcome != Outcome::Ok);
    payload["outcome"] = json!(call.outcome);
    payload
}

fn of_call(id: &str, tool: &str, sent: &str, arguments: &Value) -> Value {
    json!({
        "id": id,
        "name": tool,
        "arguments": arguments.to_string(),
        "args": arguments,
        "sent": sent,
    })
}

/// Returns the arguments in a modified payload: `args`, or `arguments` if only that was changed. A payload with any other
/// key is the arguments themselves.
pub(super) fn modified_arguments(call: &ProposedCall<'_>, payload: Value) -> Result<Value, String> {
    const OWN: [&str; 5] = ["id", "name", "arguments", "args", "sent"];
    let Value::Object(mut fields) = payload else { return Err("its `payload` is not an object".to_owned()) };
    if fields.keys().any(|key| !OWN.contains(&key.as_str())) {
        return Ok(Value::Object(fields));
    }
    let text = match fields.get("arguments") {
        Some(Value::String(text)) => schema::parse(text).ok(),
        Some(Value::Object(_)) => fields.get("arguments").cloned(),
        _ => None,
    };
    let text = text.filter(Value::is_object);
    match (fields.remove("args").filter(Value::is_object), text) {
        (Some(args), Some(text)) if args == *call.arguments => Ok(text),
        (Some(args), _) => Ok(args),
        (None, Some(text)) => Ok(text),
        (None, None) => Ok(Value::Object(fields)),
    }
}

/// Returns the answer in a modified payload: `result`, or `content` if only that was changed, or the whole payload.
pub(super) fn replaced(modified: Value, payload: &Value) -> Value {
    let Value::Object(mut fields) = modified else { return modified };
    let changed = |fields: &mut Map<String, Value>, name: &str| {
        fields.remove(name).filter(|value| payload.get(name) != Some(value))
    };
    let names_either = fields.contains_key("result") || fields.contains_key("content");
    let (result, content) = (changed(&mut fields, "result"), changed(&mut fields, "content"));
    match (result, content) {
        (Some(result), _) => result,
        (None, Some(Value::String(text))) => schema::parse(&text).unwrap_or(Value::String(text)),
        (None, Some(content)) => content,
        (None, None) if names_either => payload["result"].clone(),
        (None, None) => Value::Object(fields),
    }
}

/// Parses the answer of a script.
pub(super) fn parse_answer(text: &str) -> Result<Answer, String> {
    let mut fields = match schema::parse(text).map_err(|error| format!("its answer is not JSON: {error}"))? {
        Value::Null => return Ok(Answer::Pass),
        Value::Object(fields) => fields,
        _ => return Err("its answer is neither None nor a dict with `action`".to_owned()),
    };
    let action = fields.remove("action");
    match action.as_ref().and_then(Value::as_str) {
        Some("allow") => Ok(Answer::Allow),
        Some("block") => {
            let reason = fields.remove("reason");
            let reason = reason.as_ref().and_then(Value::as_str).unwrap_or("no reason was given");
            Ok(Answer::Block(clipped_reason(reason)))
        }
        Some("modify") => {
            let payload = fields.remove("payload").ok_or("its answer has the action `modify`, and no `payload`")?;
            Ok(Answer::Modify(payload))
        }
        Some("delegate") => Ok(Answer::Delegate(Value::Object(fields))),
        _ => Err(format!(
            "its `action` must be allow, block, modify or delegate, found {}",
            action.map_or_else(|| "none".to_owned(), |action| text::shown(&action.to_string()))
        )),
    }
}

/// Shortens the reason of a hook for the model.
pub(super) fn clipped_reason(reason: &str) -> String {
    text::truncate(reason, text::MAX_MESSAGE)
}
