//! Redaction of text from outside the host: the operator's redactions, sensitive arguments, and truncation of long text.

use serde_json::{Value, json};
use toolcrib::Tool;
use toolcrib::audit::Redactions;
use toolcrib::source::digest;
use toolcrib::tool::mask_arguments;

/// Maximum size of a text or value in a record, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// Size of the preview of a longer one, in bytes.
const PREVIEW: usize = 2 << 10;
/// Replacement of a repeated sensitive value.
const MASK: &str = "***";
/// Minimum length of a sensitive value that is masked where it is repeated, in characters. Masking shorter ones would garble
/// every text.
const MIN_SECRET_LEN: usize = 4;
/// Maximum number of sensitive values of a call that are searched for. Beyond it, every text of the call is masked.
const MAX_SECRETS: usize = 64;
/// Maximum length of a name or identifier from outside, in characters.
const MAX_WORD_LEN: usize = 256;

/// Redactions by the operator, and of the sensitive arguments of one call.
#[derive(Debug, Clone, Default)]
pub(super) struct Redactor {
    pub(super) redactions: Redactions,
    /// Names of sensitive arguments.
    names: Vec<String>,
    /// Values of sensitive arguments.
    values: Vec<String>,
}

/// Redacted text.
pub(super) struct Text {
    pub(super) text: String,
    /// `true` if a part is masked.
    pub(super) masked: bool,
    /// Size and digest of the whole text, if it was truncated.
    pub(super) cut: Option<(usize, String)>,
}

impl Redactor {
    /// Returns a redactor that also masks the arguments of these names, and their values.
    pub(super) fn without(&self, names: &[String], arguments: &Value) -> Self {
        let mut redactor = self.clone();
        redactor.names = names.to_vec();
        let long_enough = |value: &String| value.chars().count() >= MIN_SECRET_LEN;
        redactor.values.extend(sensitive_values(arguments, names).into_iter().filter(long_enough));
        redactor.values.sort_unstable();
        redactor.values.dedup();
        redactor
    }

    /// Redacts a name or an identifier.
    pub(super) fn word(&self, word: &str) -> String {
        self.masked(Value::String(word.chars().take(MAX_WORD_LEN).collect())).as_str().unwrap_or_default().to_owned()
    }

    /// Redacts a value. A long one becomes its size, its digest and a preview.
    pub(super) fn value(&self, value: &Value) -> Value {
        let value = self.masked(value.clone());
        let text = value.to_string();
        match cut(&text) {
            Some((bytes, digest)) => json!({ "cut": true, "bytes": bytes, "digest": digest, "preview": start(&text) }),
            None => value,
        }
    }

    /// Redacts a text. In JSON the strings are masked, so that it stays JSON.
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
            value = mask_arguments(&value, &self.names);
            self.replace(&mut value);
        }
        value
    }

    /// Masks sensitive values in the strings of a value.
    fn replace(&self, value: &mut Value) {
        match value {
            // Searching for so many would take longer than the call.
            Value::String(text) if self.values.len() > MAX_SECRETS => MASK.clone_into(text),
            Value::String(text) => {
                for value in self.values.iter().filter(|value| text.contains(*value)).collect::<Vec<_>>() {
                    *text = text.replace(value, MASK);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.replace(field)),
            _ => {}
        }
    }
}

/// Returns the texts in the members of these names, at any depth.
fn sensitive_values(value: &Value, names: &[String]) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(|item| sensitive_values(item, names)).collect(),
        Value::Object(fields) => {
            let is_hidden = |name: &String| names.iter().any(|hidden| hidden == name || hidden == Tool::ANY_NAME);
            let of = |(name, value): (&String, &Value)| match is_hidden(name) {
                true => leaves(value),
                false => sensitive_values(value, names),
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
        let mut redactor = Redactor::default();
        redactor.redactions.add_literal(["secret".to_owned()]);
        let text = format!("{}secret{}", "x".repeat(PREVIEW - 3), "y".repeat(MAX_BYTES));
        let told = redactor.text(&text);
        assert!(told.masked && told.text.len() <= PREVIEW && !told.text.contains("sec"), "{}", told.text);
        assert!(told.cut.is_some_and(|(bytes, digest)| bytes > MAX_BYTES && digest.starts_with("sha256:")));
    }

    #[test]
    fn json_stays_json_under_a_mask() {
        let mut redactor = Redactor::default();
        redactor.redactions.add_literal(["a\"b".to_owned()]);
        let told = redactor.text(r#"{"key":"a\"b"}"#);
        assert_eq!(told.text, r#"{"key":"***REDACTED***"}"#);
        assert!(!redactor.text("{\"key\": 1}").masked, "what no mask touches stays as it was written");
    }

    #[test]
    fn a_sensitive_value_is_masked_by_its_name_and_wherever_it_is_repeated() {
        let names = ["token".to_owned()];
        let redactor = Redactor::default().without(&names, &json!({ "token": ["hunter22", 4711], "user": "ada" }));
        let told = redactor.text(r#"{"user":"ada","token":1,"log":"hunter22 at 4711"}"#);
        assert_eq!(told.text, r#"{"user":"ada","token":"***","log":"*** at ***"}"#);
        assert_eq!(redactor.text("no hunter22 here").text, "no *** here");
    }

    #[test]
    fn a_long_value_is_told_by_its_beginning() {
        let told = Redactor::default().value(&json!({ "text": "é".repeat(MAX_BYTES) }));
        assert_eq!((&told["cut"], told["preview"].as_str().map(str::len)), (&json!(true), Some(PREVIEW - 1)));
    }

    #[test]
    fn of_too_many_sensitive_values_no_text_is_shown() {
        let arguments = |count: usize| json!({"key": (0..count).map(|n| format!("secret {n:04}")).collect::<Vec<_>>()});
        let shown = |count: usize| Redactor::default().without(&["key".to_owned()], &arguments(count));
        assert_eq!(shown(MAX_SECRETS).value(&json!("a plain text")), json!("a plain text"));
        assert_eq!(shown(MAX_SECRETS + 1).value(&json!("a plain text")), json!(MASK));
    }
}
