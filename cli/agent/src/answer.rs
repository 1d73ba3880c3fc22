//! State of an answer while it arrives, and readers for the fields that both APIs share. Every field may be missing,
//! null or of another type than documented; unknown fields are ignored. This module knows nothing of HTTP, and runs
//! nothing.

use serde_json::Value;

use super::turn::{Turn, Usage};

/// Maximum calls per answer: more than any model makes, and few enough to search for each fragment.
pub(crate) const MAX_CALLS: usize = 512;

/// Error in an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerError {
    /// The stream ended before the answer did.
    Truncated,
    /// The server stopped the model in the midst of a call whose text does not show that it breaks off.
    TruncatedCall,
    /// The answer contains no message.
    Empty,
    /// The answer contains more than [`MAX_CALLS`] calls, or other items.
    TooManyItems,
    /// The server reports an error in place of an answer.
    Error { code: Option<u16>, message: String },
}

/// Builds an answer from its parts. A whole answer is a stream of one part.
pub(crate) trait AnswerBuilder: Send {
    /// Adds one part, or the whole, and returns the text that is new in it.
    fn add(&mut self, part: &Value) -> Result<&str, AnswerError>;

    /// `true` once the server has marked the answer as complete.
    fn is_finished(&self) -> bool;

    /// `true` if no further part can follow.
    fn is_over(&self) -> bool {
        false
    }

    /// The answer of a server that sent it whole.
    fn whole(self: Box<Self>) -> Result<Turn, AnswerError>;

    /// The answer of a stream that has ended; `done` says whether its end was announced. Nothing of one that was cut may
    /// be executed.
    fn streamed(self: Box<Self>, done: bool) -> Result<Turn, AnswerError>;
}

impl AnswerError {
    /// Parses an error body.
    pub(crate) fn error(body: &Value) -> Self {
        let places = [&body["error"]["code"], &body["error"]["status"], &body["code"]];
        Self::Error { code: places.into_iter().find_map(code), message: message_of(body) }
    }
}

/// Returns the error that a server reports instead of an answer or within a stream.
pub(super) fn error_in(part: &Value) -> Option<AnswerError> {
    match &part["error"] {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Object(fields) if fields.is_empty() => None,
        _ => Some(AnswerError::error(part)),
    }
}

/// The status that a code is, or that the word for it means.
fn code(code: &Value) -> Option<u16> {
    match scalar(code).as_str() {
        "server_error" => Some(500),
        "rate_limit_exceeded" => Some(429),
        text => text.parse().ok(),
    }
}

/// Returns a server's error message from any of the usual fields.
pub(crate) fn message_of(body: &Value) -> String {
    let body = body.get(0).unwrap_or(body);
    let places = [&body["error"]["message"], &body["error"], &body["message"], &body["detail"], body];
    match places.into_iter().find(|place| !place.is_null()) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// Text: a string, or parts that each are a string or hold one.
pub(super) fn push_text(text: &mut String, content: &Value) {
    match content {
        Value::String(content) => text.push_str(content),
        Value::Array(parts) => parts.iter().for_each(|part| push_text(text, part)),
        Value::Object(part) => match part.get("text").or(part.get("refusal")) {
            Some(Value::String(content)) => text.push_str(content),
            Some(Value::Object(nested)) => push_text(text, nested.get("value").unwrap_or(&Value::Null)),
            _ => {}
        },
        _ => {}
    }
}

/// The tokens that an answer has cost.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let count = |names: [&str; 2]| {
        let found = names.into_iter().find_map(|name| usage[name].as_f64());
        // A float is cast with saturation, so an absurd count stays a count.
        found.map(|count| count as u64)
    };
    let prompt = count(["prompt_tokens", "input_tokens"]);
    let completion = count(["completion_tokens", "output_tokens"]);
    let total = count(["total_tokens", "total_tokens"]);
    prompt.or(completion).or(total)?;
    let (prompt_tokens, completion_tokens) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    let total_tokens = total.unwrap_or(prompt_tokens.saturating_add(completion_tokens));
    Some(Usage { prompt_tokens, completion_tokens, total_tokens })
}

/// A text, or a number as text.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

/// The arguments of a call: text, or what servers put in its place.
pub(super) fn arguments(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// `true` if `text` is one JSON value.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_in_the_place_of_an_answer_is_told_with_its_code() {
        let error = |code, message: &str| Some(AnswerError::Error { code, message: message.into() });
        for (body, wanted) in [
            (json!({"error":{"code":502,"message":"upstream"}}), error(Some(502), "upstream")),
            (json!({"error":"no such model"}), error(None, "no such model")),
            (json!({"error":{"code":"server_error","message":"later"}}), error(Some(500), "later")),
            (json!({"error":{"code":"rate_limited","message":"slow down"},"choices":[]}), error(None, "slow down")),
            (json!({"error":null,"choices":[]}), None),
        ] {
            assert_eq!(error_in(&body), wanted, "{body}");
        }
    }
}
