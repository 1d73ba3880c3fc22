//! Masks secrets in records. It works on the strings of a record, not on its text, so that a mask never breaks the JSON.

use std::borrow::Cow;

use regex::Regex;
use serde::Serialize;
use serde_json::Value;

const MASK: &str = "***REDACTED***";
/// The fields whose text comes from outside. The others are the host's own words and figures, and stay readable.
const FREE_TEXT: [&str; 10] =
    ["callId", "tool", "argv", "cwd", "granted", "denied", "decision", "mutations", "hooks", "network"];

#[derive(Debug, Clone, Default)]
pub(crate) struct Redactions {
    patterns: Vec<Regex>,
}

impl Redactions {
    pub(crate) fn add(&mut self, patterns: impl IntoIterator<Item = String>) {
        for pattern in patterns.into_iter().filter(|pattern| !pattern.is_empty()) {
            match Regex::new(&pattern) {
                Ok(regex) => self.patterns.push(regex),
                Err(_) => self.add_literal([pattern]),
            }
        }
    }

    pub(crate) fn add_literal(&mut self, texts: impl IntoIterator<Item = String>) {
        let literals = texts.into_iter().filter(|text| !text.is_empty());
        self.patterns.extend(literals.filter_map(|text| Regex::new(&regex::escape(&text)).ok()));
    }

    /// One JSON object on one line, with every string masked.
    pub(super) fn line(&self, record: &impl Serialize) -> Vec<u8> {
        let mut line = Vec::with_capacity(512);
        let written = if self.patterns.is_empty() {
            serde_json::to_writer(&mut line, record)
        } else {
            serde_json::to_value(record).and_then(|mut value| {
                for field in FREE_TEXT {
                    value.get_mut(field).into_iter().for_each(|text| self.mask(text));
                }
                serde_json::to_writer(&mut line, &value)
            })
        };
        debug_assert!(written.is_ok(), "a record is plain data");
        line
    }

    /// Whether it masks nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Masks every string in a value.
    pub(crate) fn mask(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                for pattern in &self.patterns {
                    if let Cow::Owned(masked) = pattern.replace_all(text, MASK) {
                        *text = masked;
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(fields) => {
                if fields.keys().any(|key| self.patterns.iter().any(|pattern| pattern.is_match(key))) {
                    let masked = std::mem::take(fields).into_iter().map(|(key, value)| {
                        let mut key = Value::String(key);
                        self.mask(&mut key);
                        (key.as_str().unwrap_or_default().to_owned(), value)
                    });
                    *fields = masked.collect();
                }
                fields.values_mut().for_each(|field| self.mask(field));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_masked_and_the_line_stays_json() {
        let mut redactions = Redactions::default();
        redactions.add(["sk-[a-z]+".into(), "(broken".into(), String::new()]);
        redactions.add_literal(["a.c".into()]);
        let line = redactions.line(&json!({"argv": ["sk-abc", "x(broken\"", "a.c", "abc"], "outcome": "sk-ok"}));
        let value: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value, json!({"argv": [MASK, format!("x{MASK}\""), MASK, "abc"], "outcome": "sk-ok"}));
    }
}
