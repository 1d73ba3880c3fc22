//! Sensitive arguments of a call, masked by their names, and by their values wherever these are repeated, in any encoding.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::tool::mask::{MASK, is_hidden, mask_arguments};

use super::rule::plain_number;
use super::scanner::{Literal, masked_as};

/// Minimum length of a sensitive value that is masked where it is repeated, in characters. Masking shorter ones would garble
/// every text.
const MIN_SECRET_LEN: usize = 4;
/// Maximum number of sensitive values of a call that are searched for. Beyond it, every text of the call is masked.
const MAX_SECRETS: usize = 64;

/// Sensitive arguments of one call: their names, and the values that the call has for them.
#[derive(Clone, Default)]
pub struct SensitiveArguments {
    names: Vec<String>,
    values: Vec<Sensitive>,
}

/// Sensitive value.
#[derive(Clone)]
struct Sensitive {
    text: String,
    search: Literal,
}

/// Shows only the names.
impl fmt::Debug for SensitiveArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SensitiveArguments").field("names", &self.names).finish_non_exhaustive()
    }
}

impl SensitiveArguments {
    /// Sets the names, as `Tool::sensitive_names` returns them, and adds the values that they have in `arguments`.
    pub fn add(&mut self, names: &[String], arguments: &Value) {
        self.names = names.to_vec();
        for text in sensitive_values(arguments, names) {
            let is_known = || self.values.iter().any(|known| known.text == text);
            if text.chars().count() >= MIN_SECRET_LEN && self.values.len() <= MAX_SECRETS && !is_known() {
                self.values.push(Sensitive { search: Literal::new(&text), text });
            }
        }
    }

    /// Returns `true` if nothing is masked.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns a value with the arguments of these names masked, and with their values masked in every string, in the encodings in
    /// which stored secrets are found, and as numbers. Values of less than 4 characters are masked only by name. With more than 64
    /// values, every string and number is masked.
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
            Value::String(_) | Value::Number(_) if self.values.len() > MAX_SECRETS => *value = Value::from(MASK),
            Value::String(text) => {
                let found = self.values.iter().flat_map(|value| value.search.found(text)).collect();
                if let Cow::Owned(masked) = masked_as(MASK, text, found) {
                    *text = masked;
                }
            }
            Value::Number(number) => {
                let plain = plain_number(number);
                if self.values.iter().any(|value| value.text == plain) {
                    *value = Value::from(MASK);
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
        Value::Number(number) => vec![plain_number(number), number.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sensitive_value_is_masked_where_it_is_repeated_and_debug_shows_none() {
        let mut sensitive = SensitiveArguments::default();
        let first = json!({"token": ["hunter2", "hunter22", 4711, "abc"], "list": [{"token": "inner-1"}]});
        sensitive.add(&["token".to_owned()], &first);
        sensitive.add(&["token".to_owned()], &json!({"token": "changed-2"}));
        let value = json!({"token": "changed-2", "log": "hunter22 at 4711, inner-1, changed-2, abc", "n": 4711.0});
        assert_eq!(sensitive.mask(&value), json!({"token": "***", "log": "*** at ***, ***, ***, abc", "n": "***"}));
        assert!(!format!("{sensitive:?}").contains("hunter22"));
        assert!(SensitiveArguments::default().is_empty());
        assert_eq!(SensitiveArguments::default().mask(&value), value);
    }

    #[test]
    fn a_repeated_value_is_found_in_every_encoding() {
        let mut sensitive = SensitiveArguments::default();
        sensitive.add(&["token".to_owned()], &json!({"token": "pa\"ss/w+rd 1", "pin": 1}));
        for repeated in [
            "pa\"ss/w+rd 1",
            r#"{\"t\":\"pa\\\"ss/w+rd 1\"}"#,
            "pa%22ss%2Fw%2Brd%201",
            "pa%2522ss%252Fw%252Brd%25201",
            "cGEic3M vdytyZCAx",
            "cGEi\\nc3MvdytyZCAx",
            "7061 2273 732f 772b 7264 2031",
            "70:61:22:73:73:2f:77:2b:72:64:20:31",
            "0x70, 0x61, 0x22, 0x73, 0x73, 0x2f, 0x77, 0x2b, 0x72, 0x64, 0x20, 0x31",
            "pa&quot;ss&#47;w&#x2b;rd 1",
        ] {
            let masked = sensitive.mask(&json!({ "log": format!("<{repeated}>") }));
            let masked = masked["log"].as_str().unwrap();
            assert!(masked.starts_with("<") && masked.contains("***"), "{repeated}: {masked}");
        }
        let mut number = SensitiveArguments::default();
        number.add(&["pin".to_owned()], &serde_json::from_str(r#"{"pin": 1.2345e4}"#).unwrap());
        let value = serde_json::from_str(r#"{"a": 12345, "b": 12345.0, "c": "pin 12345", "d": 123}"#).unwrap();
        assert_eq!(number.mask(&value), json!({"a": "***", "b": "***", "c": "pin ***", "d": 123}));
    }
}
