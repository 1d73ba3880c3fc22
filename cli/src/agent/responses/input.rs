//! The messages of a conversation as items of input. The conversation stays in the form of the Chat Completions API, in
//! which it is kept and loaded: whatever a file holds becomes an item or a part of one.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::agent::conversation::{Message, MessageCall, Role, Stand};

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
            role => items.push(spoken(role, message, "input_text")),
        }
    }
    items
}

/// What the model gave, each thing in its place. What a file says of the places may be wrong: nothing is left out for it.
fn assistant(message: &Message, items: &mut Vec<Value>) {
    let said = spoken(Role::Assistant, message, "output_text");
    let mut said = said["content"].as_array().is_some_and(|parts| !parts.is_empty()).then_some(said);
    let mut calls = message.tool_calls.iter().flatten().map(call);
    for item in &message.output_items {
        match Stand::of(item) {
            Some(Stand::Text) => items.extend(said.take()),
            Some(Stand::Call) => items.extend(calls.next()),
            None if is_whole(item) => items.push(item.clone()),
            None => {}
        }
    }
    items.extend(said);
    items.extend(calls);
}

/// Whether an item carries what it stands for. A server that was told to keep nothing cannot look it up.
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
    let told = || match &message.content {
        Value::String(text) => json!(text),
        Value::Null => json!(""),
        Value::Array(parts) => json!(texts(parts).unwrap_or_else(|| message.content.to_string())),
        other => json!(other.to_string()),
    };
    json!({ "type": kind, "call_id": id, "output": message.output.clone().unwrap_or_else(told) })
}

/// The text of parts that are nothing else.
fn texts(parts: &[Value]) -> Option<String> {
    parts.iter().map(|part| part.as_str().or(part["text"].as_str())).collect()
}

/// What somebody says, its text in parts of the type `text`.
fn spoken(role: Role, message: &Message, text: &str) -> Value {
    let said = |said: &Value| json!({ "type": text, "text": said });
    let mut parts: Vec<Value> = match &message.content {
        Value::Null => Vec::new(),
        Value::String(none) if none.is_empty() && role == Role::Assistant => Vec::new(),
        Value::Array(parts) => parts.iter().map(|part| spoken_part(part, said)).collect(),
        content => vec![said(content)],
    };
    if let (true, Some(refusal @ Value::String(_))) = (parts.is_empty(), message.other.get("refusal")) {
        parts.push(json!({ "type": "refusal", "refusal": refusal }));
    }
    json!({ "type": "message", "role": role, "content": parts })
}

/// A part of what is said: one that this API calls otherwise by its name there, any other as it is.
fn spoken_part(part: &Value, text: impl Fn(&Value) -> Value) -> Value {
    let renamed = |kind: &str, members: &Value| {
        let members = members.as_object().cloned().unwrap_or_default();
        Value::Object(Map::from_iter([("type".to_owned(), json!(kind))].into_iter().chain(members)))
    };
    match part["type"].as_str() {
        _ if part.is_string() => text(part),
        Some("text") => text(&part["text"]),
        Some("image_url") => {
            let mut image = renamed("input_image", &part["image_url"]);
            if let Some(address) = image.as_object_mut().and_then(|image| image.remove("url")) {
                image["image_url"] = address;
            } else if part["image_url"].is_string() {
                image["image_url"] = part["image_url"].clone();
            }
            image
        }
        Some("file") => renamed("input_file", &part["file"]),
        _ => part.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent for a conversation as it is kept.
    fn sent(kept: Value) -> Value {
        let messages: Vec<Message> = serde_json::from_value(kept).expect("messages");
        Value::Array(items(&messages))
    }

    #[test]
    fn a_conversation_is_sent_as_items_in_its_order() {
        let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" });
        let second =
            json!({ "type": "reasoning", "id": "rs_2", "content": [{ "type": "reasoning_text", "text": "hm" }] });
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
              "output_items": [reasoning, "text", reference, second, "call", "call"] },
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
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "let me see" }] },
            second,
            { "type": "function_call", "call_id": "a", "name": "one", "arguments": "{}" },
            { "type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin" },
            { "type": "function_call_output", "call_id": "a", "output": image },
            { "type": "custom_tool_call_output", "call_id": "b", "output": "done" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "well" }] },
        ]);
        assert_eq!(sent(kept), wanted);
    }

    #[test]
    fn nothing_is_lost_that_a_file_puts_in_odd_places() {
        let call = json!({ "id": "a", "type": "function", "function": { "name": "one", "arguments": "{}" } });
        let sent_call = json!({ "type": "function_call", "call_id": "a", "name": "one", "arguments": "{}" });
        let said =
            json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "x" }] });
        for places in
            [json!([]), json!(["text", "text"]), json!(["call"]), json!(["call", "call", "call", 7, "other", {}])]
        {
            let kept = json!([{ "role": "assistant", "content": "x", "tool_calls": [call], "output_items": places }]);
            let items = sent(kept);
            let items = items.as_array().expect("items");
            assert!(items.len() == 2 && items.contains(&said) && items.contains(&sent_call), "{places}: {items:?}");
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
        assert_eq!(refused[0]["content"], json!([{ "type": "refusal", "refusal": "no" }]));
        assert_eq!(sent(json!([{ "role": "assistant", "content": "" }])), json!([]));
    }
}
