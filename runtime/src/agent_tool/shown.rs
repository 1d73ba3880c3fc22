//! EventKind of a call may stand in a record: the operator's masks are laid over everything that comes from outside, and what
//! is long is cut, with its size and digest told.

use serde_json::{Value, json};

use crate::audit::Redactions;
use crate::source::digest;
use crate::tool::{Tool, masked};

/// The longest text or value that stands in a record whole, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// EventKind stands in its place of one that is longer.
const PREVIEW: usize = 2 << 10;
/// Stands in the place of a sensitive value that somebody repeats.
const MASK: &str = "***";
/// The shortest secret that is masked where it is repeated, in characters: masking a shorter one would garble every text.
const MIN_SECRET_LEN: usize = 4;
/// The most sensitive values of a call that are looked for; where there are more, every text of it is masked.
const MAX_SECRETS: usize = 64;
/// The most characters of a name or an identifier from outside.
const MAX_WORD_LEN: usize = 256;

/// EventKind is masked: what the operator says, and for one call what its tool marks as sensitive.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    pub(super) redactions: Redactions,
    /// The names of sensitive arguments.
    names: Vec<String>,
    /// Their values, wherever somebody repeats them.
    secrets: Vec<String>,
}

/// A text as it may be shown.
pub(super) struct Text {
    pub(super) text: String,
    /// Whether a mask lies over a part of it.
    pub(super) masked: bool,
    /// Where it was cut: its bytes and its digest before.
    pub(super) cut: Option<(usize, String)>,
}

impl Shown {
    /// The same for a call with these arguments, those of these names sensitive.
    pub(super) fn without(&self, names: &[String], arguments: &Value) -> Self {
        let mut shown = self.clone();
        shown.names = names.to_vec();
        let long_enough = |secret: &String| secret.chars().count() >= MIN_SECRET_LEN;
        shown.secrets.extend(secrets(arguments, names).into_iter().filter(long_enough));
        shown.secrets.sort_unstable();
        shown.secrets.dedup();
        shown
    }

    /// A name or an identifier.
    pub(super) fn word(&self, word: &str) -> String {
        self.masked(Value::String(word.chars().take(MAX_WORD_LEN).collect())).as_str().unwrap_or_default().to_owned()
    }

    /// A value; in the place of a long one, its beginning as text.
    pub(super) fn value(&self, value: &Value) -> Value {
        let value = self.masked(value.clone());
        let text = value.to_string();
        match cut(&text) {
            Some((bytes, digest)) => json!({ "cut": true, "bytes": bytes, "digest": digest, "preview": start(&text) }),
            None => value,
        }
    }

    /// A text. Where it is JSON, masks are laid over its strings, so that it stays JSON.
    pub(super) fn text(&self, text: &str) -> Text {
        let is_open = self.redactions.is_empty() && self.names.is_empty();
        let masked = match serde_json::from_str::<Value>(text) {
            _ if is_open => text.to_owned(),
            Ok(value) => match self.masked(value.clone()) {
                masked if masked == value => text.to_owned(),
                masked => masked.to_string(),
            },
            Err(_) => self.masked(json!(text)).as_str().unwrap_or_default().to_owned(),
        };
        let cut = cut(&masked);
        let is_masked = masked != text;
        let text = if cut.is_some() { start(&masked).to_owned() } else { masked };
        Text { text, masked: is_masked, cut }
    }

    fn masked(&self, mut value: Value) -> Value {
        self.redactions.mask(&mut value);
        if !self.names.is_empty() {
            value = masked(&value, &self.names);
            self.replace(&mut value);
        }
        value
    }

    fn replace(&self, value: &mut Value) {
        match value {
            // To look for so many would take longer than the call.
            Value::String(text) if self.secrets.len() > MAX_SECRETS => MASK.clone_into(text),
            Value::String(text) => {
                for secret in self.secrets.iter().filter(|secret| text.contains(*secret)).collect::<Vec<_>>() {
                    *text = text.replace(secret, MASK);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.replace(field)),
            _ => {}
        }
    }
}

/// The texts in the members of these names, at any depth.
fn secrets(value: &Value, names: &[String]) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(|item| secrets(item, names)).collect(),
        Value::Object(fields) => {
            let is_hidden = |name: &String| names.iter().any(|hidden| hidden == name || hidden == Tool::ANY_NAME);
            let of = |(name, value): (&String, &Value)| match is_hidden(name) {
                true => leaves(value),
                false => secrets(value, names),
            };
            fields.iter().flat_map(of).collect()
        }
        _ => Vec::new(),
    }
}

fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        Value::Null | Value::Bool(_) => Vec::new(),
        Value::Number(number) => vec![number.to_string()],
    }
}

fn cut(text: &str) -> Option<(usize, String)> {
    (text.len() > MAX_BYTES).then(|| (text.len(), digest(text.as_bytes())))
}

fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(PREVIEW)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_after_it_was_masked() {
        let mut shown = Shown::default();
        shown.redactions.add_literal(["secret".to_owned()]);
        let text = format!("{}secret{}", "x".repeat(PREVIEW - 3), "y".repeat(MAX_BYTES));
        let told = shown.text(&text);
        assert!(told.masked && told.text.len() <= PREVIEW && !told.text.contains("sec"), "{}", told.text);
        assert!(told.cut.is_some_and(|(bytes, digest)| bytes > MAX_BYTES && digest.starts_with("sha256:")));
    }

    #[test]
    fn json_stays_json_under_a_mask() {
        let mut shown = Shown::default();
        shown.redactions.add_literal(["a\"b".to_owned()]);
        let told = shown.text(r#"{"key":"a\"b"}"#);
        assert_eq!(told.text, r#"{"key":"***REDACTED***"}"#);
        assert!(!shown.text("{\"key\": 1}").masked, "what no mask touches stays as it was written");
    }

    #[test]
    fn a_sensitive_value_is_masked_by_its_name_and_wherever_it_is_repeated() {
        let names = ["token".to_owned()];
        let shown = Shown::default().without(&names, &json!({ "token": ["hunter22", 4711], "user": "ada" }));
        let told = shown.text(r#"{"user":"ada","token":1,"log":"hunter22 at 4711"}"#);
        assert_eq!(told.text, r#"{"user":"ada","token":"***","log":"*** at ***"}"#);
        assert_eq!(shown.text("no hunter22 here").text, "no *** here");
    }

    #[test]
    fn a_long_value_is_told_by_its_beginning() {
        let told = Shown::default().value(&json!({ "text": "é".repeat(MAX_BYTES) }));
        assert_eq!((&told["cut"], told["preview"].as_str().map(str::len)), (&json!(true), Some(PREVIEW - 1)));
    }

    #[test]
    fn of_too_many_sensitive_values_no_text_is_shown() {
        let arguments = |count: usize| json!({"key": (0..count).map(|n| format!("secret {n:04}")).collect::<Vec<_>>()});
        let shown = |count: usize| Shown::default().without(&["key".to_owned()], &arguments(count));
        assert_eq!(shown(MAX_SECRETS).value(&json!("a plain text")), json!("a plain text"));
        assert_eq!(shown(MAX_SECRETS + 1).value(&json!("a plain text")), json!(MASK));
    }
}
