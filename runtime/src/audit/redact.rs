//! Redaction of records. It works on the strings of a record, not on its text, so that a mask never breaks the JSON.

use std::borrow::Cow;
use std::sync::Arc;

use regex::Regex;
use serde::Serialize;
use serde_json::Value;

use crate::policy::{Literal, MASK, Scanner, Secrets, masked, plain_number};
use crate::schema::step;

/// Text bytes that count as one step of the call's budget.
const BYTES_PER_STEP: usize = 64;

/// Maximum number of times that a text is escaped, one for another.
const MAX_ESCAPED: usize = 3;

/// Fields with text from outside. The other fields are words and numbers of the host and are never masked.
const FREE_TEXT: [&str; 11] =
    ["callId", "caller", "tool", "argv", "cwd", "granted", "denied", "decision", "mutations", "hooks", "network"];

/// Masks over the strings of JSON values, as in the audit log.
#[derive(Debug, Clone, Default)]
pub struct Redactions {
    patterns: Vec<Regex>,
    literals: Vec<Literal>,
    /// Secrets. Each one is masked once it has been read from its store.
    secrets: Option<Secrets>,
}

impl Redactions {
    /// Masks the matches of patterns, also in a text that is escaped for JSON or a URL. A pattern is a regular expression, and it is
    /// masked as a literal text too: people write both.
    pub fn add(&mut self, patterns: impl IntoIterator<Item = String>) {
        for pattern in patterns.into_iter().filter(|pattern| !pattern.is_empty()) {
            let is_more = regex::escape(&pattern) != pattern;
            self.patterns.extend(Regex::new(&pattern).ok().filter(|_| is_more));
            self.add_literal([pattern]);
        }
    }

    /// Masks literal texts, in each of the encodings in which stored secrets are found.
    pub fn add_literal(&mut self, texts: impl IntoIterator<Item = String>) {
        let literals = texts.into_iter().filter(|text| !text.is_empty());
        self.literals.extend(literals.map(|text| Literal::new(&text)));
    }

    /// Masks the secrets used by calls, in each of their encodings.
    pub fn add_secrets(&mut self, secrets: Secrets) {
        self.secrets = Some(secrets);
    }

    /// Serializes a record as one JSON line, with its strings masked, and adds the JSON text of its arguments, which
    /// are masked already.
    pub(super) fn line(&self, record: &impl Serialize, arguments: Option<&str>) -> Vec<u8> {
        // The arguments, the record and the fields of the chain.
        let mut line = Vec::with_capacity(arguments.map_or(0, str::len) + 2048);
        let written = if self.is_empty() {
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
        if let (Some(arguments), Some(b'}')) = (arguments, line.last()) {
            line.pop();
            for part in [",\"arguments\":", arguments, "}"] {
                line.extend_from_slice(part.as_bytes());
            }
        }
        line
    }

    /// Returns `true` if nothing is masked.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.literals.is_empty() && self.scanner().is_none()
    }

    /// Returns `true` if a text contains the value of a secret.
    pub(super) fn has_secret(&self, text: &str) -> bool {
        self.scanner().is_some_and(|scanner| scanner.check(text.as_bytes()).is_err())
    }

    fn scanner(&self) -> Option<Arc<Scanner>> {
        self.secrets.as_ref()?.scanner()
    }

    /// Masks every string of a value, and every number with a part to mask.
    pub fn mask(&self, value: &mut Value) {
        Mask { patterns: &self.patterns, literals: &self.literals, scanner: self.scanner().as_deref() }.mask(value);
    }
}

/// Patterns, texts and secrets for masking one value.
struct Mask<'a> {
    patterns: &'a [Regex],
    literals: &'a [Literal],
    scanner: Option<&'a Scanner>,
}

impl Mask<'_> {
    fn mask(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(masked) = self.masked(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(fields) => {
                if fields.keys().any(|key| self.masked(key).is_some()) {
                    let masked = std::mem::take(fields).into_iter();
                    *fields = masked.map(|(key, value)| (self.masked(&key).unwrap_or(key), value)).collect();
                }
                fields.values_mut().for_each(|field| self.mask(field));
            }
            Value::Number(number) => {
                let is_hidden = |text: &str| self.masked(text).is_some();
                if is_hidden(&number.to_string()) || number.is_f64() && is_hidden(&plain_number(number)) {
                    *value = Value::from(MASK);
                }
            }
            _ => {}
        }
    }

    /// Returns the masked text; `None` if nothing matches.
    fn masked(&self, text: &str) -> Option<String> {
        // Each of many matches may scan the rest of the text.
        let steps = 1 + text.len() / BYTES_PER_STEP;
        let patterns = self.patterns.iter().flat_map(|pattern| pattern.find_iter(text)).map(|found| found.range());
        let patterns = patterns.take_while(|_| step(steps));
        let literals = self.literals.iter().flat_map(|literal| literal.found(text));
        let secrets = self.scanner.into_iter().flat_map(|scanner| scanner.found(text));
        match masked(text, patterns.chain(literals).chain(secrets).collect()) {
            Cow::Owned(without) if !self.is_hidden_by_escapes(&without) => Some(without),
            Cow::Borrowed(_) if !self.is_hidden_by_escapes(text) => None,
            _ => Some(MASK.to_owned()),
        }
    }

    /// Returns `true` if a pattern matches a text whose escapes are replaced. Its place in the text is not known.
    fn is_hidden_by_escapes(&self, text: &str) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let mut plain = Cow::Borrowed(text);
        for _ in 0..MAX_ESCAPED {
            let Some(unescaped) = unescaped(&plain).filter(|_| step(1 + text.len() / BYTES_PER_STEP)) else { break };
            plain = Cow::Owned(unescaped);
            if self.patterns.iter().any(|pattern| pattern.is_match(&plain)) {
                return true;
            }
        }
        false
    }
}

/// Replaces URL and JSON string escapes in a text once; `None` if it has none.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut rest, mut has_escapes) = (text, false);
    while let Some(at) = rest.find(['%', '\\']) {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at..];
        let hex = |from: usize, to: usize| escape.get(from..to).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let (replacement, len) = match escape.as_bytes().get(..2) {
            Some(b"\\u") => (hex(2, 6).and_then(char::from_u32), 6),
            Some(b"\\x") => (hex(2, 4).and_then(char::from_u32), 4),
            Some(b"\\n") => (Some('\n'), 2),
            Some(b"\\t") => (Some('\t'), 2),
            Some([b'\\', other]) if other.is_ascii() => (Some(char::from(*other)), 2),
            _ => (None, 1),
        };
        match (replacement, hex(1, 3).filter(|_| escape.starts_with('%'))) {
            (Some(c), _) => {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                (rest, has_escapes) = (&escape[len..], true);
            }
            (None, Some(byte)) => {
                bytes.extend(u8::try_from(byte));
                (rest, has_escapes) = (&escape[3..], true);
            }
            (None, None) => {
                bytes.push(escape.as_bytes()[0]);
                rest = &escape[1..];
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    has_escapes.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::error::Error;
    use crate::policy::{Secret, SecretStore};
    use crate::tool::{Placement, SecretRequest};

    use super::*;

    struct Canary;

    impl SecretStore for Canary {
        fn value(&self, name: &str) -> Result<Option<Secret>, Error> {
            Secret::new(name, "canary-1234").map(Some)
        }
    }

    #[test]
    fn a_pattern_that_covers_part_of_a_secret_leaves_nothing_of_it() {
        let secrets = Secrets::new(Canary);
        let placement = Placement::parse("header:x-key").unwrap();
        let host = "api.example.com".parse().unwrap();
        secrets.open(&[SecretRequest { name: "canary".to_owned(), host, placement }]).unwrap();
        let mut redactions = Redactions::default();
        redactions.add(["[a-z]+-".into(), "34 [a-z]+".into()]);
        redactions.add_secrets(secrets);
        let mut value = json!(["<canary-1234 end>", "12 <>"]);
        redactions.mask(&mut value);
        assert_eq!(value, json!([format!("<{MASK}>"), "12 <>"]));
    }

    #[test]
    fn a_match_does_not_hide_another_one_in_escaped_text() {
        let mut redactions = Redactions::default();
        redactions.add(["sk-[a-z]+".into()]);
        let mut value = json!(["sk-a and s\\u006b-real", "sk-a and %73k-real", "s\\u006b-real", "sk-a and 100 %"]);
        redactions.mask(&mut value);
        assert_eq!(value, json!([MASK, MASK, MASK, format!("{MASK} and 100 %")]));
    }

    #[test]
    fn strings_are_masked_and_the_line_stays_json() {
        let mut redactions = Redactions::default();
        redactions.add(["sk-[a-z]+".into(), "(broken".into(), String::new()]);
        redactions.add_literal(["a.c".into()]);
        let record = json!({"argv": ["sk-abc", "x(broken\"", "a.c", "abc"], "outcome": "sk-ok"});
        let value = |arguments| serde_json::from_slice::<Value>(&redactions.line(&record, arguments)).unwrap();
        let mut expected = json!({"argv": [MASK, format!("x{MASK}\""), MASK, "abc"], "outcome": "sk-ok"});
        assert_eq!(value(None), expected);
        expected["arguments"] = json!({"bytes": 7});
        assert_eq!(value(Some(r#"{"bytes":7}"#)), expected);
    }
}
