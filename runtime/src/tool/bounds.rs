//! How much a field of an interface may hold. The host goes through these fields for each call, so their size is part of
//! what a call costs.

use serde_json::Value;

/// The most characters of a text.
const MAX_TEXT: usize = 16 << 10;
/// The most characters of a template, and the most arguments that it names.
const MAX_TEMPLATE: usize = 4096;
const MAX_PLACEHOLDERS: usize = 64;
/// The most entries of a list.
const MAX_ENTRIES: usize = 256;
/// The partition whose fields are templates, and the one such field elsewhere.
const TEMPLATES: &str = "rendering";
const CLASSIFIER_INPUT: &str = "classifier_input";

/// Checks the size of a field.
///
/// # Errors
///
/// A text that names the field, what was found and the bound.
pub(super) fn check(partition: Option<&str>, field: &str, value: &Value) -> Result<(), String> {
    let is_template = partition == Some(TEMPLATES) || field == CLASSIFIER_INPUT;
    match value {
        Value::String(text) => {
            let (what, most) = if is_template { ("template", MAX_TEMPLATE) } else { ("text", MAX_TEXT) };
            let chars = text.chars().count();
            if chars > most {
                return Err(format!("{field}: a {what} of {chars} characters, more than the {most} allowed"));
            }
            let named = text.matches('{').count();
            if is_template && named > MAX_PLACEHOLDERS {
                return Err(format!("{field}: {named} placeholders, more than the {MAX_PLACEHOLDERS} allowed"));
            }
            Ok(())
        }
        Value::Array(entries) if entries.len() > MAX_ENTRIES => {
            Err(format!("{field}: {} entries, more than the {MAX_ENTRIES} allowed", entries.len()))
        }
        Value::Array(entries) => entries.iter().try_for_each(|entry| check(partition, field, entry)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tool::Interface;

    fn stated(field: &str, value: serde_json::Value) -> Result<bool, String> {
        Interface::default().state(field, value)
    }

    #[test]
    fn a_summary_of_too_many_placeholders_is_refused() {
        let told = "ui_summary: 65 placeholders, more than the 64 allowed";
        assert_eq!(stated("ui_summary", json!("{a}".repeat(65))).unwrap_err(), told);
        assert_eq!(stated("ui_summary", json!("{a}".repeat(64))), Ok(true));
        assert!(stated("transcript_search_text", json!("{".repeat(65))).is_err());
    }

    #[test]
    fn a_template_a_text_and_a_list_have_a_longest() {
        for field in ["ui_summary", "activity_description", "error_render_hint", "classifier_input"] {
            let told = format!("{field}: a template of 4097 characters, more than the 4096 allowed");
            assert_eq!(stated(field, json!("é".repeat(4097))).unwrap_err(), told);
            assert_eq!(stated(field, json!("é".repeat(4096))), Ok(true));
        }
        let told = "search_hint: a text of 16385 characters, more than the 16384 allowed";
        assert_eq!(stated("search_hint", json!("x".repeat((16 << 10) + 1))).unwrap_err(), told);
        let rule = json!({"field": "/a", "is": "==", "than": {"field": "/b"}});
        let told = "value_validation: 257 entries, more than the 256 allowed";
        assert_eq!(stated("value_validation", json!(vec![rule; 257])).unwrap_err(), told);
        assert!(stated("aliases", json!(["x".repeat((16 << 10) + 1)])).is_err());
    }
}
