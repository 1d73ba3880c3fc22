//! Size limits of interface fields. Every call reads these fields, so their size adds to the cost of a call.

use serde_json::Value;

use super::FieldError;

/// Maximum number of characters per text.
const MAX_TEXT: usize = 16 << 10;
/// Maximum number of characters per template.
const MAX_TEMPLATE: usize = 4096;
/// Maximum number of placeholders per template.
const MAX_PLACEHOLDERS: usize = 64;
/// Maximum number of entries per list.
const MAX_ENTRIES: usize = 256;
/// Partition that consists of templates.
const TEMPLATES: &str = "rendering";
/// Field of another partition that is a template, too.
const CLASSIFIER_INPUT: &str = "classifier_input";

/// Checks the size of a field.
///
/// # Errors
///
/// [`FieldError`] with the field, its size and the limit.
pub(super) fn check(partition: Option<&str>, field: &str, value: &Value) -> Result<(), FieldError> {
    let is_template = partition == Some(TEMPLATES) || field == CLASSIFIER_INPUT;
    match value {
        Value::String(text) => {
            let (kind, max) = if is_template { ("template", MAX_TEMPLATE) } else { ("text", MAX_TEXT) };
            let chars = text.chars().count();
            if chars > max {
                return Err(FieldError::TooLong { field: field.to_owned(), kind, chars, max });
            }
            let placeholders = text.matches('{').count();
            if is_template && placeholders > MAX_PLACEHOLDERS {
                let field = field.to_owned();
                return Err(FieldError::TooManyPlaceholders { field, placeholders, max: MAX_PLACEHOLDERS });
            }
            Ok(())
        }
        Value::Array(entries) if entries.len() > MAX_ENTRIES => {
            let field = field.to_owned();
            Err(FieldError::TooManyEntries { field, entries: entries.len(), max: MAX_ENTRIES })
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
        Interface::default().declare(field, value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_summary_of_too_many_placeholders_is_refused() {
        let expected = "ui_summary: 65 placeholders, more than the 64 allowed";
        assert_eq!(stated("ui_summary", json!("{a}".repeat(65))).unwrap_err(), expected);
        assert_eq!(stated("ui_summary", json!("{a}".repeat(64))), Ok(true));
        assert!(stated("transcript_search_text", json!("{".repeat(65))).is_err());
    }

    #[test]
    fn a_template_a_text_and_a_list_have_a_longest() {
        for field in ["ui_summary", "activity_description", "error_render_hint", "classifier_input"] {
            let expected = format!("{field}: a template of 4097 characters, more than the 4096 allowed");
            assert_eq!(stated(field, json!("é".repeat(4097))).unwrap_err(), expected);
            assert_eq!(stated(field, json!("é".repeat(4096))), Ok(true));
        }
        let expected = "search_hint: a text of 16385 characters, more than the 16384 allowed";
        assert_eq!(stated("search_hint", json!("x".repeat((16 << 10) + 1))).unwrap_err(), expected);
        let rule = json!({"field": "/a", "is": "==", "than": {"field": "/b"}});
        let expected = "value_validation: 257 entries, more than the 256 allowed";
        assert_eq!(stated("value_validation", json!(vec![rule; 257])).unwrap_err(), expected);
        assert!(stated("aliases", json!(["x".repeat((16 << 10) + 1)])).is_err());
    }
}
