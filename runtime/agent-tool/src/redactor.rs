//! Redaction of text from outside the host: the operator's redactions, sensitive arguments, and truncation.

use serde_json::{Value, json};
use toolcrib::audit::Redactions;
use toolcrib::policy::SensitiveArguments;
use toolcrib::source::digest;

/// Maximum size of a text or value in a record, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// Preview size for a longer text or value, in bytes.
const PREVIEW: usize = 2 << 10;
/// Maximum length of a name or identifier from outside, in characters.
const MAX_WORD_LEN: usize = 256;

/// Redactions by the operator, and those for sensitive arguments of one call.
#[derive(Debug, Clone, Default)]
pub(super) struct Redactor {
    pub(super) redactions: Redactions,
    sensitive: SensitiveArguments,
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
        redactor.sensitive.add(names, arguments);
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
        let is_open = self.redactions.is_empty() && self.sensitive.is_empty();
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

    fn masked(&self, value: Value) -> Value {
        // By name first: a redaction may match a name.
        let mut value = if self.sensitive.is_empty() { value } else { self.sensitive.mask(&value) };
        self.redactions.mask(&mut value);
        value
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
        let output = redactor.text(&text);
        assert!(output.masked && output.text.len() <= PREVIEW && !output.text.contains("sec"), "{}", output.text);
        assert!(output.cut.is_some_and(|(bytes, digest)| bytes > MAX_BYTES && digest.starts_with("sha256:")));
    }

    #[test]
    fn json_stays_json_under_a_mask() {
        let mut redactor = Redactor::default();
        redactor.redactions.add_literal(["a\"b".to_owned()]);
        let output = redactor.text(r#"{"key":"a\"b"}"#);
        assert_eq!(output.text, r#"{"key":"***REDACTED***"}"#);
        assert!(!redactor.text("{\"key\": 1}").masked, "what no mask touches stays as it was written");
    }

    #[test]
    fn a_sensitive_value_is_masked_by_its_name_and_wherever_it_is_repeated() {
        let names = ["token".to_owned()];
        let redactor = Redactor::default().without(&names, &json!({ "token": ["hunter22", 4711], "user": "ada" }));
        let output = redactor.text(r#"{"user":"ada","token":1,"log":"hunter22 at 4711"}"#);
        assert_eq!(output.text, r#"{"user":"ada","token":"***","log":"*** at ***"}"#);
        assert_eq!(redactor.text("no hunter22 here").text, "no *** here");
    }

    #[test]
    fn a_long_value_is_told_by_its_beginning() {
        let output = Redactor::default().value(&json!({ "text": "é".repeat(MAX_BYTES) }));
        assert_eq!((&output["cut"], output["preview"].as_str().map(str::len)), (&json!(true), Some(PREVIEW - 1)));
    }

    #[test]
    fn of_too_many_sensitive_values_no_text_is_shown() {
        let arguments = |count: usize| json!({"key": (0..count).map(|n| format!("secret {n:04}")).collect::<Vec<_>>()});
        let shown = |count: usize| Redactor::default().without(&["key".to_owned()], &arguments(count));
        assert_eq!(shown(64).value(&json!("a plain text")), json!("a plain text"));
        assert_eq!(shown(65).value(&json!("a plain text")), json!("***"));
    }

    #[test]
    fn a_redaction_of_the_name_of_a_sensitive_argument_does_not_show_its_value() {
        let mut redactor = Redactor::default().without(&["token".to_owned()], &json!({ "token": "abc" }));
        redactor.redactions.add_literal(["token".to_owned()]);
        assert_eq!(redactor.value(&json!({ "token": "abc" })), json!({ "***REDACTED***": "***" }));
    }
}
