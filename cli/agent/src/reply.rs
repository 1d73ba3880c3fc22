//! Reply to a model about a call: a text, or content parts in the format of one API. A tool may write such parts itself,
//! but only parts that contain all their data are sent. A server would fetch the address in a part, or open one of the
//! operator's stored files by its identifier, and so give the tool access that nobody granted.

use serde_json::{Value, json};
use toolcrib::ToolResult;
use toolcrib::call::Form;

/// Reply for the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// The text, or content parts for the Chat Completions API.
    pub(crate) content: Value,
    /// Content parts for the Responses API, if the text does not hold the whole reply.
    pub(crate) output: Option<Value>,
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self { content: Value::String(text), output: None }
    }
}

impl Reply {
    /// Adds a note of the host behind the reply.
    pub(crate) fn add_note(&mut self, note: &str) {
        match &mut self.content {
            Value::String(text) => *text = format!("{text}\n\n{note}"),
            Value::Array(parts) => parts.push(json!({ "type": "text", "text": note })),
            _ => {}
        }
        if let Some(Value::Array(parts)) = &mut self.output {
            parts.push(json!({ "type": "input_text", "text": note }));
        }
    }
}

/// The parts that a tool wrote for the API that `format` names, where `may_be_sent` says so of every one of them.
pub(super) fn native(result: &ToolResult, format: &str, may_be_sent: fn(&Value) -> bool) -> Option<Value> {
    let Form::Native { format: written } = &result.form else { return None };
    if written != format || result.is_error() {
        return None;
    }
    // Taken from the line: what was masked there is masked here.
    let mut line: Value = serde_json::from_str(&result.line()).ok()?;
    let content = line.get_mut("content")?.take();
    let parts = content.as_array().filter(|parts| !parts.is_empty())?;
    parts.iter().all(may_be_sent).then_some(content)
}

/// The members of a part of this kind: those that are required and those that are optional, each with its allowed
/// values.
pub(super) struct Shape {
    pub(super) kind: &'static str,
    pub(super) required: &'static [Member],
    pub(super) optional: &'static [Member],
}

/// The name of a member, and whether a value may stand there.
pub(super) type Member = (&'static str, fn(&Value) -> bool);

/// Returns `true` if a part has one of these shapes and no other fields.
pub(super) fn is_one_of(part: &Value, shapes: &[Shape]) -> bool {
    let Some(fields) = part.as_object() else { return false };
    let Some(shape) = shapes.iter().find(|shape| fields.get("type").is_some_and(|kind| kind == shape.kind)) else {
        return false;
    };
    let known = |name: &str| shape.required.iter().chain(shape.optional).find(|(known, _)| *known == name);
    shape.required.iter().all(|(name, _)| fields.contains_key(*name))
        && fields.iter().all(|(name, value)| name == "type" || known(name).is_some_and(|(_, holds)| holds(value)))
}

/// Text in which nothing could pass for the host's own word.
pub(super) fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !(text.contains('{') && (text.contains("toolcrib") || text.contains("\\u"))))
}

/// An address that carries what it names.
pub(super) fn is_data(value: &Value) -> bool {
    value.as_str().is_some_and(|address| address.starts_with("data:"))
}

/// Returns `true` for a valid image detail level.
pub(super) fn is_detail(value: &Value) -> bool {
    value.as_str().is_some_and(|detail| ["low", "high", "auto"].contains(&detail))
}

/// Returns `true` for a valid file name.
pub(super) fn is_name(value: &Value) -> bool {
    value.as_str().is_some_and(|name| name.len() <= 255 && !name.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SHAPES: [Shape; 2] = [
        Shape { kind: "text", required: &[("text", is_text)], optional: &[] },
        Shape { kind: "image", required: &[("url", is_data)], optional: &[("detail", is_detail), ("name", is_name)] },
    ];

    #[test]
    fn only_a_part_that_carries_all_it_shows_is_sent() {
        for part in [
            json!({ "type": "text", "text": "a" }),
            json!({ "type": "text", "text": "https://host/ is an address" }),
            json!({ "type": "image", "url": "data:image/png;base64,AA==", "detail": "low", "name": "a.png" }),
        ] {
            assert!(is_one_of(&part, &SHAPES), "{part}");
        }
        for part in [
            json!("text"),
            json!({ "text": "a" }),
            json!({ "type": "text" }),
            json!({ "type": "text", "text": { "url": "x" } }),
            json!({ "type": "text", "text": "{\"toolcrib\":{\"kind\":\"preview\"}}" }),
            json!({ "type": "text", "text": "{\"\\u0074oolcrib\":{}}" }),
            json!({ "type": "text", "text": "a", "url": "data:x" }),
            json!({ "type": "image" }),
            json!({ "type": "image", "url": "https://host/?secret" }),
            json!({ "type": "image", "url": "DATA:image/png,https://host" }),
            json!({ "type": "image", "url": "data:x", "detail": "all of it" }),
            json!({ "type": "image", "url": "data:x", "name": "a\nb" }),
            json!({ "type": "image", "file_id": "file-1" }),
            json!({ "type": "item_reference", "id": "rs_1" }),
        ] {
            assert!(!is_one_of(&part, &SHAPES), "{part}");
        }
    }
}
