//! A conversation's messages as input items. The conversation stays in the form of the Chat Completions API, in which
//! it is kept and loaded: whatever a file holds becomes an item or a part of one.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::answer::push_text;
use crate::message::{Message, MessageCall, Placeholder, Role};

/// Every message, in its order.
pub(super) fn items(messages: &[Message]) -> Vec<Value> {
    let mut customs = HashSet::new();
    let mut items = Vec::with_capacity(messages.len());
    for message in messages {
        match message.role {
            Role::Assistant => {
                let calls = message.tool_calls.iter().flatten();
                customs.extend(calls.filter(|call| call.custom.is_some()).map(|call| call.id.as_str()));
                assistant(message, &mut items);
            }
            Role::Tool => items.push(output(message, &customs)),
            role => items.push(message_item(role, parts(&message.content))),
        }
    }
    items
}

/// Adds the items of a model's answer, in their order. The positions in a file may be wrong; no item is left out for that.
fn assistant(message: &Message, items: &mut Vec<Value>) {
    let mut text = String::new();
    push_text(&mut text, &message.content);
    if text.is_empty() {
        push_text(&mut text, message.other.get("refusal").unwrap_or(&Value::Null));
    }
    // As a text: parts of output would have to say which of a response of the server's they were.
    let mut text = (!text.is_empty()).then(|| message_item(Role::Assistant, json!(text)));
    let mut calls = message.tool_calls.iter().flatten().map(call);
    for item in &message.output_items {
        match Placeholder::of(item) {
            Some(Placeholder::Text) => items.extend(text.take()),
            Some(Placeholder::Call) => items.extend(calls.next()),
            None if is_whole(item) => items.push(filled(item)),
            None => {}
        }
    }
    items.extend(text);
    items.extend(calls);
}

/// Returns `true` if an item contains its data. A server that stores nothing cannot look the data up.
fn is_whole(item: &Value) -> bool {
    let filled = |value: &Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => false,
    };
    match item["type"].as_str() {
        Some("reasoning") => filled(&item["encrypted_content"]) || filled(&item["content"]),
        kind => kind.is_some(),
    }
}

/// The same without empty members, which servers give and refuse.
fn filled(item: &Value) -> Value {
    let members = item.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn call(call: &MessageCall) -> Value {
    let text = |called: &Value, member: &str| match &called[member] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    match (&call.custom, &call.function) {
        (Some(custom), _) => json!({
            "type": "custom_tool_call",
            "call_id": call.id,
            "name": text(custom, "name"),
            "input": text(custom, "input"),
        }),
        (None, function) => {
            let function = function.as_ref().unwrap_or(&Value::Null);
            json!({
                "type": "function_call",
                "call_id": call.id,
                "name": text(function, "name"),
                "arguments": text(function, "arguments"),
            })
        }
    }
}

fn output(message: &Message, customs: &HashSet<&str>) -> Value {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let kind = if customs.contains(id) { "custom_tool_call_output" } else { "function_call_output" };
    let text = || match &message.content {
        Value::String(text) => json!(text),
        Value::Null => json!(""),
        Value::Array(parts) => json!(texts(parts).unwrap_or_else(|| message.content.to_string())),
        other => json!(other.to_string()),
    };
    json!({ "type": kind, "call_id": id, "output": message.output.clone().unwrap_or_else(text) })
}

/// The text of parts that are nothing else.
fn texts(parts: &[Value]) -> Option<String> {
    parts.iter().map(|part| part.as_str().or(part["text"].as_str())).collect()
}

fn message_item(role: Role, content: Value) -> Value {
    json!({ "type": "message", "role": role, "content": content })
}

/// Converts the content of a message to parts.
fn parts(content: &Value) -> Value {
    match content {
        Value::Null => json!([]),
        Value::Array(parts) => parts.iter().map(part).collect(),
        content => json!([text(content)]),
    }
}

fn text(text: &Value) -> Value {
    json!({ "type": "input_text", "text": text })
}

/// A part of what is said: one that this API calls otherwise by its name there, any other as it is.
fn part(part: &Value) -> Value {
    let renamed = |kind: &str, members: &Value| {
        let members = members.as_object().cloned().unwrap_or_default();
        Map::from_iter([("type".to_owned(), json!(kind))].into_iter().chain(members))
    };
    match part["type"].as_str() {
        _ if part.is_string() => text(part),
        Some("text") => text(&part["text"]),
        Some("image_url") => {
            let mut image = renamed("input_image", &part["image_url"]);
            let address = image.remove("url").unwrap_or_else(|| part["image_url"].clone());
            image.insert("image_url".to_owned(), address);
            image.entry("detail").or_insert_with(|| json!("auto"));
            Value::Object(image)
        }
        Some("file") => Value::Object(renamed("input_file", &part["file"])),
        _ => part.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the items that are sent for a stored conversation.
    fn sent(kept: Value) -> Value {
        let messages: Vec<Message> = serde_json::from_value(kept).expect("messages");
        Value::Array(items(&messages))
    }

    #[test]
    fn a_conversation_is_sent_as_items_in_its_order() {
        let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" });
        let second =
            json!({ "type": "reasoning", "id": "rs_2", "content": [{ "type": "reasoning_text", "text": "hm" }] });
        let mut given = second.clone();
        given["status"] = json!(null);
        let reference = json!({ "type": "reasoning", "id": "rs_3", "summary": [] });
        let image = json!([{ "type": "input_text", "text": "{}" }, { "type": "input_image", "image_url": "data:," }]);
        let kept = json!([
            { "role": "system", "content": "be kind" },
            { "role": "developer", "content": "one" },
            { "role": "user", "name": "me", "content": [
                { "type": "text", "text": "look" },
                { "type": "image_url", "image_url": { "url": "data:,", "detail": "low" } },
                { "type": "file", "file": { "file_id": "f1" } },
                { "type": "new", "x": 1 } ] },
            { "role": "assistant", "content": "let me see", "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "one", "arguments": "{}" } },
                { "id": "b", "type": "custom", "custom": { "name": "patch", "input": "*** Begin" } } ],
              "output_items": [reasoning, "text", reference, given, "call", "call"] },
            { "role": "tool", "name": "one", "tool_call_id": "a", "content": "{}", "output_parts": image },
            { "role": "tool", "name": "patch", "tool_call_id": "b", "content": "done" },
            { "role": "assistant", "content": "well" },
        ]);
        let wanted = json!([
            { "type": "message", "role": "system", "content": [{ "type": "input_text", "text": "be kind" }] },
            { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "one" }] },
            { "type": "message", "role": "user", "content": [
                { "type": "input_text", "text": "look" },
                { "type": "input_image", "detail": "low", "image_url": "data:," },
                { "type": "input_file", "file_id": "f1" },
                { "type": "new", "x": 1 } ] },
            reasoning,
            { "type": "message", "role": "assistant", "content": "let me see" },
            second,
            { "type": "function_call", "call_id": "a", "name": "one", "arguments": "{}" },
            { "type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin" },
            { "type": "function_call_output", "call_id": "a", "output": image },
            { "type": "custom_tool_call_output", "call_id": "b", "output": "done" },
            { "type": "message", "role": "assistant", "content": "well" },
        ]);
        assert_eq!(sent(kept), wanted);
    }

    #[test]
    fn nothing_is_lost_that_a_file_puts_in_odd_places() {
        let call = json!({ "id": "a", "type": "function", "function": { "name": "one", "arguments": "{}" } });
        let sent_call = json!({ "type": "function_call", "call_id": "a", "name": "one", "arguments": "{}" });
        let message = json!({ "type": "message", "role": "assistant", "content": "x" });
        for places in
            [json!([]), json!(["text", "text"]), json!(["call"]), json!(["call", "call", "call", 7, "other", {}])]
        {
            let kept = json!([{ "role": "assistant", "content": "x", "tool_calls": [call], "output_items": places }]);
            let items = sent(kept);
            let items = items.as_array().expect("items");
            assert!(items.len() == 2 && items.contains(&message) && items.contains(&sent_call), "{places}: {items:?}");
        }
        for (content, wanted) in [
            (json!([{ "type": "text", "text": "a" }, "b"]), json!("ab")),
            (json!([{ "type": "image_url" }]), json!("[{\"type\":\"image_url\"}]")),
            (json!(null), json!("")),
            (json!({ "a": 1 }), json!("{\"a\":1}")),
        ] {
            let kept = json!([{ "role": "tool", "tool_call_id": "a", "content": content }]);
            assert_eq!(sent(kept)[0]["output"], wanted, "{content}");
        }
        let refused = sent(json!([{ "role": "assistant", "content": null, "refusal": "no" }]));
        assert_eq!(refused[0]["content"], json!("no"));
        assert_eq!(sent(json!([{ "role": "assistant", "content": "" }])), json!([]));
    }
}
