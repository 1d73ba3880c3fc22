//! Masking of sensitive arguments by their names.

use serde_json::Value;

use super::Tool;

/// Replacement for a masked value.
pub(crate) const MASK: &str = "***";

impl Tool {
    /// Name that selects every argument in [`Tool::sensitive_names`].
    pub const ANY_NAME: &str = "*";
}

/// Returns a value with the members of these names masked, at any depth.
pub fn mask_arguments(value: &Value, names: &[String]) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| mask_arguments(item, names)).collect(),
        Value::Object(fields) => {
            let mask_field = |(name, value): (&String, &Value)| {
                (name.clone(), if is_hidden(name, names) { Value::from(MASK) } else { mask_arguments(value, names) })
            };
            Value::Object(fields.iter().map(mask_field).collect())
        }
        other => other.clone(),
    }
}

/// Returns `true` if a name is among these, or if these select every name.
pub(crate) fn is_hidden(name: &str, names: &[String]) -> bool {
    names.iter().any(|hidden| hidden == name || hidden == Tool::ANY_NAME)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sensitive_values_are_masked_wherever_they_stand() {
        let value = json!({"token": "a", "list": [{"token": {"deep": 1}, "plain": 2}]});
        assert_eq!(
            mask_arguments(&value, &["token".into()]),
            json!({"token": "***", "list": [{"token": "***", "plain": 2}]})
        );
        assert_eq!(mask_arguments(&value, &[Tool::ANY_NAME.into()]), json!({"token": "***", "list": "***"}));
    }
}
