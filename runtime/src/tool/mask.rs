//! Masking of sensitive arguments: by the names of the arguments, and by their values wherever these are repeated.

use std::fmt;

use serde_json::Value;

use super::Tool;

/// Replacement for a masked value.
const MASK: &str = "***";
/// Minimum length of a sensitive value that is masked where it is repeated, in characters. Masking shorter ones would garble
/// every text.
const MIN_SECRET_LEN: usize = 4;
/// Maximum number of sensitive values of a call that are searched for. Beyond it, every text of the call is masked.
const MAX_SECRETS: usize = 64;

impl Tool {
    /// Name that selects every argument in [`Tool::sensitive_names`].
    pub const ANY_NAME: &str = "*";
}

/// Sensitive arguments of one call: their names, and the values that the call has for them.
#[derive(Clone, Default)]
pub struct SensitiveArguments {
    names: Vec<String>,
    values: Vec<String>,
}

/// Shows only the names.
impl fmt::Debug for SensitiveArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SensitiveArguments").field("names", &self.names).finish_non_exhaustive()
    }
}

impl SensitiveArguments {
    /// Sets the names, as [`Tool::sensitive_names`] returns them, and adds the values that they have in `arguments`.
    pub fn add(&mut self, names: &[String], arguments: &Value) {
        self.names = names.to_vec();
        let long_enough = |value: &String| value.chars().count() >= MIN_SECRET_LEN;
        self.values.extend(sensitive_values(arguments, names).into_iter().filter(long_enough));
        // The longest first: a value may be the beginning of another.
        self.values.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        self.values.dedup();
    }

    /// Returns `true` if nothing is masked.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns a value with the arguments of these names masked, and with their values masked in every string. Values of less
    /// than 4 characters are masked only by name. With more than 64 values, every string is masked.
    #[must_use]
    pub fn mask(&self, value: &Value) -> Value {
        let mut value = mask_arguments(value, &self.names);
        if !self.is_empty() {
            self.replace(&mut value);
        }
        value
    }

    /// Masks the values in the strings of a value.
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
fn is_hidden(name: &str, names: &[String]) -> bool {
    names.iter().any(|hidden| hidden == name || hidden == Tool::ANY_NAME)
}

/// Returns the texts in the members of these names, at any depth.
fn sensitive_values(value: &Value, names: &[String]) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(|item| sensitive_values(item, names)).collect(),
        Value::Object(fields) => {
            let of = |(name, value): (&String, &Value)| match is_hidden(name, names) {
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

    #[test]
    fn a_sensitive_value_is_masked_where_it_is_repeated_and_debug_shows_none() {
        let mut sensitive = SensitiveArguments::default();
        let first = json!({"token": ["hunter2", "hunter22", 4711, "abc"], "list": [{"token": "inner-1"}]});
        sensitive.add(&["token".to_owned()], &first);
        sensitive.add(&["token".to_owned()], &json!({"token": "changed-2"}));
        let value = json!({"token": "changed-2", "log": "hunter22 at 4711, inner-1, changed-2, abc", "n": 4711});
        assert_eq!(sensitive.mask(&value), json!({"token": "***", "log": "*** at ***, ***, ***, abc", "n": 4711}));
        assert!(!format!("{sensitive:?}").contains("hunter22"));
        assert!(SensitiveArguments::default().is_empty());
        assert_eq!(SensitiveArguments::default().mask(&value), value);
    }
}
