//! An output item of the Responses API: a message, a call, or something that is kept as it is.

use serde_json::Value;
use toolcrib::call::Payload;

use crate::answer::{arguments, push_text, scalar};
use crate::turn::Call;

const MESSAGE: &str = "message";
const CALL: &str = "function_call";
const TEXT_CALL: &str = "custom_tool_call";

/// An item of output while it arrives.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) index: Option<u64>,
    pub(super) id: String,
    /// Status, as the server names it.
    pub(super) status: Option<String>,
    /// `true` if the server has sent the whole item.
    pub(super) is_done: bool,
    pub(super) what: What,
}

/// Content of an item.
#[derive(Debug, PartialEq)]
pub(super) enum What {
    Message {
        text: String,
        refusal: String,
    },
    Call(Call),
    /// Any other item, which is sent back unchanged.
    Other(Value),
}

impl What {
    /// A message that says nothing yet.
    pub(super) fn message() -> Self {
        Self::Message { text: String::new(), refusal: String::new() }
    }

    /// A call that carries nothing yet.
    pub(super) fn call(payload: Payload) -> Self {
        Self::Call(Call { payload, ..Call::default() })
    }

    /// As an event or a response has it.
    pub(super) fn read(item: &Value) -> Self {
        let call = |carried: &Value, payload| {
            let id = [&item["call_id"], &item["id"]].into_iter().map(scalar).find(|id| !id.is_empty());
            let (id, name) = (id.unwrap_or_default(), scalar(&item["name"]));
            Self::Call(Call { id, name, arguments: arguments(carried), payload })
        };
        let kind = match item["type"].as_str() {
            Some(kind) => kind,
            None if item["input"].is_string() => TEXT_CALL,
            None if item.get("name").or(item.get("arguments")).is_some() => CALL,
            None => MESSAGE,
        };
        match kind {
            CALL => call(&item["arguments"], Payload::Object),
            TEXT_CALL => call(&item["input"], Payload::Text),
            MESSAGE => {
                let (mut text, mut refusal) = (String::new(), String::new());
                match &item["content"] {
                    Value::Array(parts) => parts.iter().for_each(|part| match part["refusal"].as_str() {
                        Some(refused) => refusal.push_str(refused),
                        None => push_text(&mut text, part),
                    }),
                    content => push_text(&mut text, content),
                }
                Self::Message { text, refusal }
            }
            _ => Self::Other(item.clone()),
        }
    }

    /// Replaces the members that a later event of the item has too.
    pub(super) fn take(&mut self, later: Self) {
        let fill = |old: &mut String, new: String| {
            if !new.is_empty() {
                *old = new;
            }
        };
        match (self, later) {
            (Self::Message { text, refusal }, Self::Message { text: later_text, refusal: later_refusal }) => {
                fill(text, later_text);
                fill(refusal, later_refusal);
            }
            (Self::Call(call), Self::Call(later)) => {
                fill(&mut call.id, later.id);
                fill(&mut call.name, later.name);
                fill(&mut call.arguments, later.arguments);
                call.payload = later.payload;
            }
            (old, new) => *old = new,
        }
    }
}

impl Item {
    /// As an event or a response has it.
    pub(super) fn read(item: &Value, index: Option<u64>) -> Self {
        let status = item["status"].as_str().map(str::to_owned);
        Self { index, id: scalar(&item["id"]), status, is_done: false, what: What::read(item) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_may_be_missing_or_of_another_type() {
        let call = |id: &str, name: &str, arguments: &str, payload| {
            What::Call(Call { id: id.into(), name: name.into(), arguments: arguments.into(), payload })
        };
        let function = |id, arguments| call(id, "one", arguments, Payload::Object);
        for (item, wanted) in [
            (json!({ "type": CALL, "call_id": "a", "name": "one" }), function("a", "")),
            (json!({ "type": CALL, "id": "a", "name": "one", "arguments": null }), function("a", "")),
            (json!({ "type": CALL, "call_id": 7, "name": "one", "arguments": { "x": 1 } }), function("7", "{\"x\":1}")),
            (json!({ "type": null, "name": "one", "arguments": "{}" }), function("", "{}")),
            (
                json!({ "type": CALL, "call_id": "a", "name": null, "arguments": [] }),
                call("a", "", "[]", Payload::Object),
            ),
            (json!({ "type": TEXT_CALL, "input": null }), call("", "", "", Payload::Text)),
            (json!({ "name": "patch", "input": "a" }), call("", "patch", "a", Payload::Text)),
            (json!({ "type": "reasoning" }), What::Other(json!({ "type": "reasoning" }))),
            (json!(null), What::message()),
            (json!(["message"]), What::message()),
        ] {
            assert_eq!(What::read(&item), wanted, "{item}");
        }
    }
}
