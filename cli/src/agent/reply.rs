//! What a model is told of a call: a text, or the parts of what one API takes in its place. A tool may write such parts
//! itself; only those are sent that carry all they show. A server fetches what an address names and opens the operator's
//! own files by their number there: with either, a tool would reach what nobody granted it.

use serde_json::{Map, Value};
use toolcrib::ToolResult;
use toolcrib::call::Form;

/// What is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// The text, or the parts that the Chat Completions API takes in its place.
    pub(crate) content: Value,
    /// The parts that the Responses API takes in its place, where there is more to tell.
    pub(crate) output: Option<Value>,
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self { content: Value::String(text), output: None }
    }
}

/// The parts that a tool wrote for the API that `format` names, where every one of them may be sent.
pub(super) fn native<'a>(result: &'a ToolResult, format: &str) -> Option<&'a Value> {
    match &result.form {
        Form::Native { format: written, content } if written == format && !result.is_error() => {
            let parts = content.as_array().filter(|parts| !parts.is_empty())?;
            parts.iter().all(carries_all).then_some(content)
        }
        _ => None,
    }
}

/// Whether a part is of a known kind with known members, and names nothing that lies elsewhere.
fn carries_all(part: &Value) -> bool {
    let Some(fields) = part.as_object() else { return false };
    let known: &[&str] = match part["type"].as_str() {
        Some("text" | "input_text") => &["text"],
        Some("image_url" | "input_image") => &["image_url", "detail"],
        Some("input_file") => &["file_data", "filename"],
        _ => return false,
    };
    fields.iter().filter(|(name, _)| *name != "type").all(|(name, value)| {
        known.contains(&name.as_str())
            && match (name.as_str(), value) {
                ("image_url", Value::Object(image)) => is_image(image),
                ("image_url" | "file_data", value) => is_data(value),
                (_, value) => value.is_string(),
            }
    })
}

fn is_image(image: &Map<String, Value>) -> bool {
    image.iter().all(|(name, value)| match name.as_str() {
        "url" => is_data(value),
        "detail" => value.is_string(),
        _ => false,
    })
}

fn is_data(value: &Value) -> bool {
    value.as_str().is_some_and(|address| address.starts_with("data:"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_part_that_carries_all_it_shows_is_sent() {
        for part in [
            json!({ "type": "text", "text": "a" }),
            json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==", "detail": "low" } }),
            json!({ "type": "input_text", "text": "https://host/" }),
            json!({ "type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low" }),
            json!({ "type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA==" }),
        ] {
            assert!(carries_all(&part), "{part}");
        }
        for part in [
            json!("text"),
            json!({ "text": "a" }),
            json!({ "type": "text", "text": { "image_url": "x" } }),
            json!({ "type": "image_url", "image_url": { "url": "https://host/?secret" } }),
            json!({ "type": "input_image", "image_url": "https://host/?secret" }),
            json!({ "type": "input_image", "image_url": "DATA:image/png,https://host" }),
            json!({ "type": "input_image", "file_id": "file-1" }),
            json!({ "type": "input_file", "file_url": "https://host/?secret" }),
            json!({ "type": "input_file", "file_data": "https://host/?secret" }),
            json!({ "type": "item_reference", "id": "rs_1" }),
        ] {
            assert!(!carries_all(&part), "{part}");
        }
    }
}
