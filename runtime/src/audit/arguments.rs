//! Call arguments in their record: masked, and bounded in size. Long arguments are represented by their beginning,
//! arguments with unknown sensitive parts by their size and digest.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::call::{Payload, ToolCall};
use crate::policy::SensitiveArguments;
use crate::schema::{
    self, CheckedArguments, Clock, JSON_SPACE, MAX_ARGUMENT_BYTES, MAX_INLINE_BYTES, ToolValidator, with_clock,
};
use crate::source::digest;

use super::redact::Redactions;

/// Maximum bytes of arguments in a record, as JSON text.
const MAX_ARGUMENTS_LEN: usize = 4 << 10;
/// Maximum leading bytes of longer arguments, as JSON text.
const MAX_BEGINNING_LEN: usize = 1 << 10;
/// Start of the object with arguments that a record holds as JSON.
const JSON_START: &str = r#"{"json":"#;
/// Maximum levels of arguments that a record holds as JSON. Many parsers refuse a record of more than 128 levels.
const MAX_DEPTH: usize = 64;

/// Arguments of a call, before they are masked.
#[derive(Debug, Clone)]
pub(crate) struct CallArguments {
    call: Arc<ToolCall>,
    /// Checks of the tool, which name the sensitive arguments; `None` if the call reached no usable tool.
    validator: Option<Arc<ToolValidator>>,
    /// Checked arguments: the call's own and, after each change by a hook, the changed ones.
    checked: Vec<Arc<Value>>,
    /// `true` if the last of them differ from the call's own.
    is_changed: bool,
    /// Maximum bytes of any version.
    size: usize,
}

/// The member `arguments` of a record: one JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedArguments(String);

impl CallArguments {
    /// Creates the arguments of a call before anything is known about it.
    pub(crate) fn new(call: Arc<ToolCall>) -> Self {
        let size = call.arguments.len();
        Self { call, validator: None, checked: Vec::new(), is_changed: false, size }
    }

    /// Sets the checks of the tool.
    pub(crate) fn set_validator(&mut self, validator: &Arc<ToolValidator>) {
        self.validator = Some(validator.clone());
    }

    /// Adds checked arguments: first the call's own, later the ones that a hook changed.
    pub(crate) fn add(&mut self, checked: &CheckedArguments) {
        self.is_changed = !self.checked.is_empty();
        self.size = self.size.max(checked.text.len());
        // Values of a sensitive argument may be repeated in a later version.
        if self.is_changed && self.sensitive_names().is_empty() {
            self.checked.clear();
        }
        self.checked.push(checked.value.clone());
    }

    /// Runs a computation over the arguments at once. Returns `None` if they are large or if it takes long.
    pub(super) fn at_once<T>(&self, compute: impl FnOnce() -> T) -> Option<T> {
        let is_small = self.size <= MAX_INLINE_BYTES;
        is_small.then(|| with_clock(&Clock::inline(), compute).ok()).flatten()
    }

    fn sensitive_names(&self) -> &[String] {
        self.validator.as_deref().map_or(&[], ToolValidator::sensitive_names)
    }

    /// Represents the arguments by their size alone.
    pub(crate) fn size_alone(&self) -> LoggedArguments {
        LoggedArguments(format!(r#"{{"bytes":{}}}"#, self.size))
    }

    /// Represents the arguments, masked; without their content unless `has_content`. The result is meaningless if the
    /// computation was interrupted.
    pub(super) fn represent(&self, redactions: &Redactions, has_content: bool) -> LoggedArguments {
        let names = self.sensitive_names();
        // Sensitive arguments are found by name, which unchecked arguments may misspell.
        let is_unchecked = self.checked.is_empty() && (!names.is_empty() || self.size > MAX_ARGUMENT_BYTES);
        if is_unchecked {
            return self.size_alone();
        }
        let has_content = has_content && self.validator.is_some();
        let parsed;
        let value = match self.checked.last() {
            Some(value) => Some(value.as_ref()),
            None if self.call.payload == Payload::Text || (!has_content && redactions.is_empty()) => None,
            None => {
                parsed = schema::parse(self.received()).ok();
                parsed.as_ref()
            }
        };
        let text = match value {
            Some(value) => self.masked_json(value, redactions),
            None => masked_text(self.received(), redactions),
        };
        let json = value.filter(|_| has_content).and_then(|_| compact(&text));
        // A secret may extend over several values.
        let shown = json.as_deref().map_or(&*text, |object| &object[JSON_START.len()..object.len() - 1]);
        if redactions.has_secret(shown) {
            return self.size_alone();
        }
        match json {
            Some(object) => LoggedArguments(object),
            None if has_content => LoggedArguments::of_text(&text),
            None => LoggedArguments::withheld(&text),
        }
    }

    /// Returns the text of the call's arguments; `{}` for an object payload without text.
    fn received(&self) -> &str {
        match self.call.payload {
            Payload::Text => &self.call.arguments,
            Payload::Object => match self.call.arguments.trim_matches(JSON_SPACE) {
                "" => "{}",
                text => text,
            },
        }
    }

    /// Returns the masked JSON text for a version of the arguments; the text from the call itself if nothing is masked.
    fn masked_json(&self, value: &Value, redactions: &Redactions) -> Cow<'_, str> {
        let names = self.sensitive_names();
        let mut masked = Cow::Borrowed(value);
        // By name first: a redaction may match a name.
        if !names.is_empty() {
            let mut sensitive = SensitiveArguments::default();
            self.checked.iter().for_each(|version| sensitive.add(names, version));
            masked = Cow::Owned(sensitive.mask(value));
        }
        if !redactions.is_empty() {
            redactions.mask(masked.to_mut());
        }
        let is_received = !self.is_changed && self.call.payload == Payload::Object;
        match &masked {
            Cow::Borrowed(_) if is_received => Cow::Borrowed(self.received()),
            Cow::Owned(masked) if is_received && masked == value => Cow::Borrowed(self.received()),
            masked => Cow::Owned(masked.to_string()),
        }
    }
}

impl LoggedArguments {
    /// Returns the JSON text of the object.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Represents a text, or its beginning with its size and digest.
    fn of_text(text: &str) -> Self {
        if beginning(text, MAX_ARGUMENTS_LEN).len() == text.len() {
            return Self(format!(r#"{{"text":{}}}"#, Value::from(text)));
        }
        let cut = Value::from(beginning(text, MAX_BEGINNING_LEN));
        Self(format!(r#"{{"cut":{cut},"bytes":{},"digest":"{}"}}"#, text.len(), digest(text.as_bytes())))
    }

    /// Represents a text by its size and digest.
    fn withheld(text: &str) -> Self {
        Self(format!(r#"{{"bytes":{},"digest":"{}"}}"#, text.len(), digest(text.as_bytes())))
    }
}

fn masked_text<'t>(text: &'t str, redactions: &Redactions) -> Cow<'t, str> {
    if redactions.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut value = Value::from(text);
    redactions.mask(&mut value);
    match value {
        Value::String(masked) => Cow::Owned(masked),
        _ => Cow::Borrowed(text),
    }
}

/// Returns the longest beginning of a text that has at most `most` bytes between a JSON string's quotes.
fn beginning(text: &str, most: usize) -> &str {
    let mut left = most;
    for (at, c) in text.char_indices() {
        let escaped = match c {
            '"' | '\\' | '\u{8}' | '\u{c}' | '\n' | '\r' | '\t' => 2,
            c if c < ' ' => 6,
            c => c.len_utf8(),
        };
        match left.checked_sub(escaped) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

/// Returns the object of a record with valid JSON as its member `json`, without white space between its tokens, which
/// are unchanged; `None` if the JSON is longer or deeper than a record allows.
fn compact(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut object = String::with_capacity(JSON_START.len() + bytes.len().min(MAX_ARGUMENTS_LEN) + 1);
    object.push_str(JSON_START);
    // Bytes from `from` up to `at` are not copied yet.
    let (mut depth, mut from, mut at) = (0_usize, 0, 0);
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'"' => end_of_string(json, at),
            b' ' | b'\t' | b'\r' | b'\n' => {
                object.push_str(&json[from..at]);
                from = at + 1;
                from
            }
            byte => {
                match byte {
                    b'[' | b'{' => depth += 1,
                    b']' | b'}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                at + 1
            }
        };
        if depth > MAX_DEPTH || object.len() - JSON_START.len() + (at - from) > MAX_ARGUMENTS_LEN {
            return None;
        }
    }
    object.push_str(&json[from..]);
    object.push('}');
    Some(object)
}

/// Returns the index after the JSON string that starts at `at`; no further than the maximum JSON length in a record.
fn end_of_string(json: &str, at: usize) -> usize {
    let end = json.ceil_char_boundary(at + 2 + MAX_ARGUMENTS_LEN);
    let mut next = at + 1;
    while let Some(len) = json[next..end].find('"') {
        let escapes = json.as_bytes()[next..next + len].iter().rev().take_while(|byte| **byte == b'\\').count();
        next += len + 1;
        // After an odd number of backslashes, the quote is a character of the string.
        if escapes % 2 == 0 {
            return next;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::error::Error;
    use crate::policy::{Secret, SecretStore, Secrets};
    use crate::tool::tests::plain;
    use crate::tool::{Placement, SecretRequest};

    use super::*;

    /// Store with a secret of digits, and one that extends over two array values.
    struct Store;

    impl SecretStore for Store {
        fn value(&self, name: &str) -> Result<Option<Secret>, Error> {
            let value = if name == "digits" { "12345678" } else { "ab\",\"cd12" };
            Secret::new(name, value).map(Some)
        }
    }

    /// Checks of a tool with the sensitive argument `token`.
    fn validator(is_sensitive: bool) -> Arc<ToolValidator> {
        let mut tool = plain("t");
        if is_sensitive {
            tool.parameters = Some(json!({"properties": {"token": {"type": "string", "format": "password"}}}));
        }
        Arc::new(ToolValidator::compile(&tool).unwrap())
    }

    /// Arguments of a call that reached a tool. They are checked if they are a JSON object.
    fn sent(text: &str, is_sensitive: bool) -> CallArguments {
        let mut arguments = CallArguments::new(Arc::new(ToolCall::new("c", "t", text)));
        let validator = validator(is_sensitive);
        arguments.set_validator(&validator);
        if let Ok(checked) = validator.check(text) {
            arguments.add(&checked);
        }
        arguments
    }

    fn redactions(words: &[&str]) -> Redactions {
        let mut redactions = Redactions::default();
        redactions.add_literal(words.iter().map(|word| (*word).to_owned()));
        redactions
    }

    fn logged(arguments: &CallArguments, masked: &[&str]) -> Value {
        let logged = arguments.represent(&redactions(masked), true).0;
        assert!(logged.len() <= MAX_ARGUMENTS_LEN + 120 && !logged.contains('\n'), "{} bytes: {logged}", logged.len());
        serde_json::from_str(&logged).unwrap_or_else(|error| panic!("{error}: {logged}"))
    }

    fn hash(text: &str) -> Value {
        json!(digest(text.as_bytes()))
    }

    #[test]
    fn arguments_that_are_json_stay_as_they_were_written() {
        let text = "{ \"n\": 12345678901234567890123,\n\t\"e\": 1E2, \"s\": \"a \\\" {b\\u0041\" }";
        let arguments = sent(text, false);
        let written = arguments.represent(&Redactions::default(), true).0;
        assert_eq!(written, r#"{"json":{"n":12345678901234567890123,"e":1E2,"s":"a \" {b\u0041"}}"#);
        assert_eq!(logged(&arguments, &["{b"])["json"]["s"], "a \" ***REDACTED***A");
        assert_eq!(logged(&sent("", false), &[]), json!({"json": {}}));
        assert_eq!(logged(&sent("[1]", false), &[]), json!({"json": [1]}), "wrong arguments are logged too");
    }

    #[test]
    fn white_space_outside_of_strings_is_left_out() {
        let value = json!({"a b": [" \t{", "\"] ", {"\\": [[], {}, -1.5e-7, null]}], "": "\\\" "});
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(compact(&pretty), Some(format!(r#"{{"json":{value}}}"#)));
    }

    #[test]
    fn arguments_that_are_not_json_are_text() {
        let of = |text: &str| logged(&sent(text, false), &["secret"]);
        assert_eq!(of("{\"a\": secret\u{1b}\n"), json!({"text": "{\"a\": ***REDACTED***\u{1b}"}));
        assert_eq!(of(r#"{"a":1,"a":2}"#), json!({"text": r#"{"a":1,"a":2}"#}));
        let mut call = ToolCall::text("c", "t", "{\"not\": parsed} secret");
        call.format = Some("x".to_owned());
        let mut arguments = CallArguments::new(Arc::new(call));
        arguments.set_validator(&validator(false));
        assert_eq!(logged(&arguments, &["secret"]), json!({"text": "{\"not\": parsed} ***REDACTED***"}));
    }

    #[test]
    fn long_arguments_are_cut_between_characters_and_have_a_digest() {
        let fits = json!({"a": "é".repeat((MAX_ARGUMENTS_LEN - 8) / 2)}).to_string();
        assert_eq!(fits.len(), MAX_ARGUMENTS_LEN);
        assert!(logged(&sent(&fits, false), &[])["json"].is_object());
        let longer = fits.replacen('é', "éx", 1);
        let cut = logged(&sent(&longer, false), &[]);
        assert_eq!((&cut["bytes"], &cut["digest"]), (&json!(longer.len()), &hash(&longer)));
        let beginning = cut["cut"].as_str().unwrap();
        assert!(longer.starts_with(beginning) && beginning.len() > MAX_BEGINNING_LEN - 8, "{beginning}");
    }

    #[test]
    fn what_is_masked_is_in_no_beginning_and_in_no_digest() {
        let text = json!({"a": "secret", "b": "x".repeat(MAX_ARGUMENTS_LEN)}).to_string();
        let without = text.replace("secret", "***REDACTED***");
        let cut = logged(&sent(&text, false), &["secret"]);
        assert_eq!((&cut["bytes"], &cut["digest"]), (&json!(without.len()), &hash(&without)));
        assert!(cut["cut"].as_str().unwrap().starts_with(r#"{"a":"***REDACTED***","b":"xxx"#), "{cut}");
    }

    #[test]
    fn hostile_arguments_have_a_bound() {
        let controls: String = (0..1 << 20).map(|n| char::from((n % 32) as u8)).collect();
        let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        for text in [
            "x".repeat(1 << 20),
            controls.clone(),
            json!({ "a": controls }).to_string(),
            json!({ "a": "\"\\".repeat(3000) }).to_string(),
            deep(100),
            deep(100_000),
            format!("[{}1e15]", "1e15,".repeat(800)),
            "é".repeat(MAX_ARGUMENTS_LEN),
            " ".repeat(1 << 20),
        ] {
            for masked in [&[][..], &["x", "\u{1}", "e1"]] {
                logged(&sent(&text, false), masked);
            }
        }
        assert!(logged(&sent(&deep(MAX_DEPTH - 1), false), &[])["json"]["a"][0].is_array());
        assert_eq!(logged(&sent(&deep(MAX_DEPTH), false), &[]), json!({"text": deep(MAX_DEPTH)}));
        let endless = "x".repeat(MAX_ARGUMENT_BYTES + 1);
        assert_eq!(logged(&sent(&endless, false), &[]), json!({"bytes": MAX_ARGUMENT_BYTES + 1}));
    }

    #[test]
    fn sensitive_arguments_are_masked_and_unchecked_ones_are_withheld() {
        let text = r#"{"token":"hunter22","url":"/?key=hunter22"}"#;
        let arguments = sent(text, true);
        assert_eq!(logged(&arguments, &[]), json!({"json": {"token": "***", "url": "/?key=***"}}));
        assert_eq!(logged(&arguments, &["token"])["json"]["***REDACTED***"], "***");
        let withheld: Value = serde_json::from_str(&arguments.represent(&Redactions::default(), false).0).unwrap();
        let masked = r#"{"token":"***","url":"/?key=***"}"#;
        assert_eq!(withheld, json!({"bytes": masked.len(), "digest": hash(masked)}));
        for wrong in [r#"{"token":7,"tokn":"hunter22"}"#, "hunter22", "\"hunter22\"", "{\"token\":\"hunter22\""] {
            assert_eq!(logged(&sent(wrong, true), &[]), json!({"bytes": wrong.len()}));
        }
    }

    #[test]
    fn a_secret_is_masked_and_one_that_extends_over_several_values_is_withheld() {
        let secrets = Secrets::new(Store);
        let request = |name: &str| SecretRequest {
            name: name.to_owned(),
            host: "api.example.com".parse().unwrap(),
            placement: Placement::parse("header:x-key").unwrap(),
        };
        secrets.open(&[request("digits"), request("across")]).unwrap();
        let mut redactions = Redactions::default();
        redactions.add_secrets(secrets);
        let of = |text: &str, has_content| sent(text, false).represent(&redactions, has_content).0;
        let masked = r#"{"n":"***REDACTED***","t":"<***REDACTED***>"}"#;
        assert_eq!(of(r#"{"n":12345678,"t":"<3132333435363738>"}"#, true), format!(r#"{{"json":{masked}}}"#));
        let across = r#"{"a":["ab","cd12"]}"#;
        for has_content in [true, false] {
            assert_eq!(of(across, has_content), format!(r#"{{"bytes":{}}}"#, across.len()));
        }
    }

    #[test]
    fn changed_arguments_replace_those_of_the_call_and_show_no_value_of_either() {
        let mut arguments = sent(r#"{"token":"hunter22","to":"ada"}"#, true);
        let changed = json!({"token": "changed-1", "to": "ada", "log": "hunter22 changed-1"});
        arguments.add(&CheckedArguments { text: changed.to_string(), value: Arc::new(changed) });
        assert_eq!(logged(&arguments, &[]), json!({"json": {"token": "***", "to": "ada", "log": "*** ***"}}));
        let mut arguments = sent(r#"{"a":1}"#, false);
        arguments.add(&CheckedArguments { text: r#"{"a":2}"#.to_owned(), value: Arc::new(json!({"a": 2})) });
        assert_eq!(logged(&arguments, &[]), json!({"json": {"a": 2}}));
    }

    #[test]
    fn arguments_for_no_tool_are_withheld() {
        let arguments = |text: &str| CallArguments::new(Arc::new(ToolCall::new("c", "absent", text)));
        let text = r#"{"token": "hunter22"}"#;
        assert_eq!(logged(&arguments(text), &[]), json!({"bytes": text.len(), "digest": hash(text)}));
        let masked = r#"{"token":"***REDACTED***"}"#;
        assert_eq!(logged(&arguments(text), &["hunter22"]), json!({"bytes": masked.len(), "digest": hash(masked)}));
    }
}
