//! Sensitive arguments of a call, masked by their names, and by their values wherever these are repeated, in any encoding.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::tool::mask::{MASK, is_hidden, mask_arguments};

use super::literal::Literal;
use super::rule::plain_number;
use super::scanner::masked_as;

/// Minimum length of a sensitive value that is masked where it is repeated, in characters. Masking shorter ones would garble
/// every text.
const MIN_SECRET_LEN: usize = 4;
/// Maximum number of sensitive values that are searched for in a call. Beyond it, every text of the call is masked.
const MAX_SECRETS: usize = 64;
/// Maximum bytes of their parts that are searched for, which determine the search's memory; beyond it, the same.
const MAX_SEARCHED_BYTES: usize = 8 << 10;

/// Sensitive arguments of one call: their names, and the values that the call has for them.
#[derive(Clone, Default)]
pub struct SensitiveArguments {
    names: Vec<String>,
    values: Vec<Literal>,
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
            let is_known = || self.values.iter().any(|known| known.value() == text.as_str());
            if text.chars().count() >= MIN_SECRET_LEN && self.values.len() <= MAX_SECRETS && !is_known() {
                self.values.push(Literal::new(&text));
            }
        }
    }

    /// Shares the searches for the values that other arguments have too, and returns the bytes that are searched for in addition.
    pub fn share<'a>(&mut self, others: impl Iterator<Item = &'a Self>) -> usize {
        let known: Vec<&Literal> = others.flat_map(|other| &other.values).collect();
        let mut bytes = 0;
        for value in &mut self.values {
            match known.iter().find(|known| known.value() == value.value()) {
                Some(known) => *value = (*known).clone(),
                None => bytes += searched_bytes(value),
            }
        }
        bytes
    }

    /// Returns `true` if there are too many values, or too long ones, to search for.
    fn masks_all(&self) -> bool {
        self.values.len() > MAX_SECRETS || self.values.iter().map(searched_bytes).sum::<usize>() > MAX_SEARCHED_BYTES
    }

    /// Returns `true` if nothing is masked.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns a value with the arguments of these names masked, and with their values masked in every string, in the encodings in
    /// which stored secrets are found, and as numbers. Values of less than 4 characters are masked only by name. With more than 64
    /// values, or more than 8 KiB of their first 512 bytes each, every string and number is masked.
    #[must_use]
    pub fn mask(&self, value: &Value) -> Value {
        let mut value = mask_arguments(value, &self.names);
        if !self.is_empty() {
            // Searching for so many would take longer than the call.
            self.replace(&mut value, self.masks_all());
        }
        value
    }

    /// Masks the values in the strings of a value, and in its members' names.
    fn replace(&self, value: &mut Value, all: bool) {
        match value {
            Value::String(_) | Value::Number(_) if all => *value = Value::from(MASK),
            Value::String(text) => {
                if let Some(masked) = self.masked(text) {
                    *text = masked;
                }
            }
            Value::Number(number) => {
                let plain = plain_number(number);
                if self.values.iter().any(|value| value.value() == plain) {
                    *value = Value::from(MASK);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item, all)),
            Value::Object(fields) => {
                if !all && fields.keys().any(|name| self.masked(name).is_some()) {
                    let named = std::mem::take(fields).into_iter();
                    *fields = named.map(|(name, value)| (self.masked(&name).unwrap_or(name), value)).collect();
                }
                fields.values_mut().for_each(|field| self.replace(field, all));
            }
            _ => {}
        }
    }

    /// Returns the masked text; `None` if it contains no value.
    fn masked(&self, text: &str) -> Option<String> {
        let found = self.values.iter().flat_map(|value| value.found(text)).collect();
        match masked_as(MASK, text, found) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        }
    }
}

/// Returns the number of searched bytes in a value.
fn searched_bytes(value: &Literal) -> usize {
    value.value().len().min(Literal::MAX_LEN)
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
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| std::iter::once(name.clone()).chain(leaves(value))).collect()
        }
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
        let named = json!({"m": {"hunter22": 1, "inner-1": {"changed-2": 2}}});
        assert_eq!(sensitive.mask(&named), json!({"m": {"***": {"***": 2}}}), "names of members; a short name stays");
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

    #[test]
    fn a_long_value_is_found_by_its_beginning_and_masks_the_whole_text() {
        let long: String = (0..3000).map(|at| char::from(b'a' + (at * 7 % 26) as u8)).collect();
        let mut sensitive = SensitiveArguments::default();
        sensitive.add(&["key".to_owned()], &json!({ "key": long }));
        for text in [long.clone(), format!("<{long}>"), json!({ "a": long }).to_string(), long.replace('c', "%63")] {
            assert_eq!(sensitive.mask(&json!({ "log": text })), json!({"log": "***"}));
        }
        let other = format!("{}!", &long[..300]);
        assert_eq!(sensitive.mask(&json!({ "log": other })), json!({ "log": other }));
    }

    #[test]
    fn beyond_the_bytes_that_are_searched_for_every_text_is_masked() {
        let value = |number: usize| format!("{number:0>512}");
        let of = |values: usize| {
            let mut sensitive = SensitiveArguments::default();
            sensitive.add(&["key".to_owned()], &json!({"key": (0..values).map(value).collect::<Vec<_>>()}));
            sensitive.mask(&json!({"log": "text", "n": 1}))
        };
        assert_eq!(of(16), json!({"log": "text", "n": 1}));
        assert_eq!(of(17), json!({"log": "***", "n": "***"}));
    }

    #[test]
    fn equal_values_share_their_search() {
        let of = |value: &str| {
            let mut sensitive = SensitiveArguments::default();
            sensitive.add(&["key".to_owned()], &json!({ "key": value }));
            sensitive
        };
        let known = [of("hunter22"), of("changed-2")];
        assert_eq!((of("hunter22").share(known.iter()), of("another").share(known.iter())), (0, 7));
    }

    #[test]
    fn a_search_over_adversarial_text_stops_at_its_clock() {
        let mut sensitive = SensitiveArguments::default();
        sensitive.add(&["key".to_owned()], &json!({ "key": "\\".repeat(512) }));
        let text = json!({ "log": "\\".repeat(4 << 20) });
        let clock = crate::schema::Clock::inline();
        assert!(crate::schema::with_clock(&clock, || sensitive.mask(&text)).is_err());
    }
}
