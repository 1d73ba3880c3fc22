//! Masks of kept runs: the audit log masks, applied to message texts. Arguments and results that are JSON stay JSON.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolcrib::audit::Redactions;
use toolcrib::policy::{Secret, Secrets, SensitiveArguments};

/// Maximum number of calls with sensitive values that are searched for. Beyond it, every text is masked.
const MAX_SENSITIVE_CALLS: usize = 256;
/// Maximum bytes of all values that are searched for. Beyond it, the same.
const MAX_SEARCHED_BYTES: usize = 8 << 10;
/// Minimum number of bytes that are held back at the end of a text while it arrives.
const MIN_HELD_BACK: usize = 64;
/// Maximum bytes of a spelling per masked byte: an escape that is escaped for a URL takes the most.
pub(crate) const MAX_SPELLING: usize = 64;
/// Maximum length of a stored secret in a text, in bytes.
const MAX_SECRET_BYTES: usize = MAX_SPELLING * Secret::MAX_LEN;
/// Replacement for a text that is masked as a whole.
const MASK: &str = "***";

/// Masks of a run.
#[derive(Debug, Default)]
pub struct RunMasks {
    redactions: Redactions,
    /// Masks of stored secrets, which `redactions` has too; empty until a call has read one.
    stored: Redactions,
    /// Names of sensitive arguments by tool.
    names: HashMap<String, Vec<String>>,
    /// Sensitive arguments of calls so far, by identifier.
    calls: Vec<(String, SensitiveArguments)>,
    /// Bytes of their values that are searched for.
    searched: usize,
    /// `true` once there were more sensitive arguments, of one call or of all, than can be searched for.
    is_full: bool,
    /// Maximum length in bytes of a text that is masked; `None` if it is not known.
    longest: Option<usize>,
}

impl RunMasks {
    /// Creates masks from the audit log masks. Each masks at most `longest` bytes; `None` if the maximum is not known.
    pub(crate) fn new(redactions: Redactions, longest: Option<usize>) -> Self {
        Self { redactions, longest, ..Self::default() }
    }

    /// Adds masks of the stored secrets that calls use.
    pub(crate) fn with_stored(mut self, secrets: Secrets) -> Self {
        self.stored.add_secrets(secrets.clone());
        self.redactions.add_secrets(secrets);
        self
    }

    /// Adds the names of a tool's sensitive arguments.
    pub(crate) fn add_tool(&mut self, tool: &str, names: Vec<String>) {
        if !names.is_empty() {
            self.names.insert(tool.to_owned(), names);
        }
    }

    /// Masks a conversation message; `true` if arguments of a call were changed.
    pub(crate) fn mask_message(&mut self, message: &mut Value) -> bool {
        let calls = |message: &Value| message.get("tool_calls").cloned();
        let before = calls(message);
        for call in before.as_ref().and_then(Value::as_array).into_iter().flatten() {
            self.learn(call);
        }
        if let (true, Some(message)) = (self.is_full, message.as_object_mut()) {
            // They repeat other parts of the message in forms of a server.
            message.retain(|member, _| !matches!(member.as_str(), "output_parts" | "output_items"));
        }
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            for (kind, member) in [("function", "arguments"), ("custom", "input")] {
                // A model can call a tool that does not exist.
                call.get_mut(kind)
                    .and_then(|kind| kind.get_mut("name"))
                    .into_iter()
                    .for_each(|name| self.redactions.mask(name));
                if let Some(Value::String(text)) = call.get_mut(kind).and_then(|kind| kind.get_mut(member)) {
                    *text = self.masked(text, &id);
                }
            }
        }
        let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        for member in ["content", "output_parts", "output_items"] {
            if let Some(value) = message.get_mut(member) {
                each_text(value, &|text| self.masked(text, &id));
            }
        }
        before != calls(message)
    }

    /// Masks a text that a call showed, as its result.
    pub(crate) fn mask_shown(&self, id: &str, text: &str) -> String {
        self.masked(text, id)
    }

    /// `true` if every text is masked as a whole.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Masks a text.
    pub(crate) fn mask_text(&self, text: &str) -> String {
        self.masked(text, "")
    }

    /// Returns the masked beginning of a text that still arrives: a part that no later text can change.
    pub(crate) fn mask_beginning(&self, text: &str) -> String {
        if self.redactions.is_empty() && self.calls.is_empty() && !self.is_full {
            return text.to_owned();
        }
        if looks_like_json(text) {
            // Its strings are masked once they can be read.
            return String::new();
        }
        // A mask may begin in the last bytes, as long as what it covers may be.
        let Some(longest) = self.longest.filter(|_| !self.is_full) else { return String::new() };
        let secret = if self.stored.is_empty() { 0 } else { MAX_SECRET_BYTES };
        let held_back = longest.max(secret).max(MIN_HELD_BACK);
        let end = text.floor_char_boundary(text.len().saturating_sub(held_back));
        // A word is written once it is whole.
        let end = text[..end].rfind(char::is_whitespace).unwrap_or(0);
        let (beginning, whole) = (self.mask_text(&text[..end]), self.mask_text(text));
        if whole.starts_with(&beginning) { beginning } else { String::new() }
    }

    /// Notes the sensitive arguments of a call.
    fn learn(&mut self, call: &Value) {
        let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
        let all;
        let names = match self.names.get(name) {
            Some(names) => names,
            None if self.names.is_empty() => return,
            // An unknown tool does not say which arguments are sensitive: the names of all other tools apply to it.
            None => {
                all = self.names.values().flatten().cloned().collect::<Vec<_>>();
                &all
            }
        };
        let text = call.pointer("/function/arguments").and_then(Value::as_str).unwrap_or_default();
        let Ok(arguments) = serde_json::from_str::<Value>(text) else { return };
        let mut sensitive = SensitiveArguments::default();
        sensitive.add(names, &arguments);
        if sensitive.mask(&arguments) != arguments {
            let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            self.longest = self.longest.map(|longest| longest.max(longest_text(&arguments) * MAX_SPELLING));
            self.searched += sensitive.share(self.calls.iter().map(|(_, known)| known));
            let is_searched = self.calls.len() < MAX_SENSITIVE_CALLS && self.searched <= MAX_SEARCHED_BYTES;
            match is_searched && !masks_all(&sensitive) {
                true => self.calls.push((id, sensitive)),
                false => self.is_full = true,
            }
        }
    }

    /// Masks a text, in JSON its strings. The sensitive arguments of the call that it belongs to are masked by name too.
    fn masked(&self, text: &str, id: &str) -> String {
        let parsed = looks_like_json(text).then(|| serde_json::from_str::<Value>(text).ok()).flatten();
        let before = parsed.unwrap_or_else(|| Value::String(text.to_owned()));
        let mut value = before.clone();
        if self.is_full {
            mask_all(&mut value);
        }
        for (call, sensitive) in &self.calls {
            match call == id {
                true => value = sensitive.mask(&value),
                // Of other calls only the values are masked: a name may mean something else here.
                false => each_text(&mut value, &|text| {
                    sensitive.mask(&Value::from(text)).as_str().unwrap_or_default().to_owned()
                }),
            }
        }
        self.redactions.mask(&mut value);
        match value {
            value if value == before => text.to_owned(),
            Value::String(text) => text,
            value => value.to_string(),
        }
    }
}

/// Returns `true` if a text may be JSON.
fn looks_like_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Replaces every text and number of a value. Structure and names stay, so that JSON stays JSON.
fn mask_all(value: &mut Value) {
    match value {
        Value::String(text) if text.is_empty() => {}
        Value::String(_) | Value::Number(_) => *value = Value::from(MASK),
        Value::Array(items) => items.iter_mut().for_each(mask_all),
        Value::Object(fields) => fields.values_mut().for_each(mask_all),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Returns the maximum length of a text or number in a value, in bytes.
fn longest_text(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(longest_text).max().unwrap_or_default(),
        Value::Object(fields) => fields.values().map(longest_text).max().unwrap_or_default(),
        value => value.to_string().len(),
    }
}

/// Replaces each string of a value.
fn each_text(value: &mut Value, replace: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = replace(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, replace)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, replace)),
        _ => {}
    }
}

/// Returns `true` if a call has so many sensitive values that every text is masked.
fn masks_all(sensitive: &SensitiveArguments) -> bool {
    sensitive.mask(&json!("")) != json!("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks() -> RunMasks {
        let mut redactions = Redactions::default();
        redactions.add(["sk-[a-z]+".to_owned()]);
        redactions.add_literal(["two words".to_owned()]);
        let mut masks = RunMasks::new(redactions, Some(64));
        masks.add_tool("login", vec!["password".to_owned()]);
        masks
    }

    fn call(name: &str, arguments: &Value) -> Value {
        json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": "a", "type": "function", "function": { "name": name, "arguments": arguments.to_string() } }] })
    }

    #[test]
    fn sensitive_arguments_are_masked_in_the_call_its_result_and_later() {
        let mut masks = masks();
        for name in ["login", "logni"] {
            let mut message = call(name, &json!({ "user": "ada", "password": "hunter22" }));
            assert!(masks.mask_message(&mut message), "{name}");
            let kept = message["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
            assert_eq!(kept, r#"{"user":"ada","password":"***"}"#);
        }
        let mut result = json!({ "role": "tool", "tool_call_id": "a", "content": "{\"log\":\"hunter22\"}" });
        assert!(!masks.mask_message(&mut result));
        assert_eq!(result["content"], "{\"log\":\"***\"}");
        assert_eq!(masks.mask_text("it is hunter22"), "it is ***");
        let mut plain = call("read", &json!({ "path": "a" }));
        assert!(!masks.mask_message(&mut plain));
    }

    #[test]
    fn patterns_are_masked_in_every_text_and_json_stays_json() {
        let mut masks = masks();
        let mut message = json!({ "role": "user", "content": [{ "type": "text", "text": "key sk-abc" }] });
        masks.mask_message(&mut message);
        assert_eq!(message["content"][0]["text"], "key ***REDACTED***");
        let mut message = call("read", &json!({ "path": "sk-abc\"" }));
        assert!(masks.mask_message(&mut message));
        let kept = message["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(kept).unwrap(), json!({ "path": "***REDACTED***\"" }));
        let mut message = call("fs_sk-abc", &json!({}));
        assert!(masks.mask_message(&mut message));
        assert_eq!(message["tool_calls"][0]["function"]["name"], "fs_***REDACTED***");
    }

    #[test]
    fn a_text_that_still_arrives_shows_no_part_of_a_secret() {
        let masks = masks();
        let text = format!("{} the two words and sk-abcdef {}", "x ".repeat(40), "y ".repeat(40));
        let whole = masks.mask_text(&text);
        for end in 0..text.len() {
            let beginning = masks.mask_beginning(&text[..end]);
            assert!(whole.starts_with(&beginning), "{end}: {beginning}");
        }
        assert_eq!(RunMasks::default().mask_beginning("as it is"), "as it is");
    }

    /// Texts that a kept run gets while a text arrives by one character at a time.
    fn written(masks: &RunMasks, text: &str) -> String {
        (0..text.len()).map(|end| masks.mask_beginning(&text[..end]) + "|").collect()
    }

    #[test]
    fn as_much_is_held_back_as_the_longest_mask_needs() {
        let long = "canary ".repeat(10);
        let text = format!("{} {long}. {}", "x ".repeat(200), "y ".repeat(2_800));
        let mut redactions = Redactions::default();
        redactions.add_literal([long.trim_end().to_owned()]);
        let masks = RunMasks::new(redactions.clone(), Some(long.len()));
        let kept = written(&masks, &text);
        assert!(!kept.contains("canary") && kept.contains("y y"), "{kept}");
        let json = json!({ "a": text.replace(' ', "\n") }).to_string();
        assert_eq!(written(&masks, &json).replace('|', ""), "", "JSON is masked once it is whole");
        // The length that a pattern matches is not known.
        redactions.add(["canary[^.]*".to_owned()]);
        assert_eq!(written(&RunMasks::new(redactions, None), &text).replace('|', ""), "");
        // The length of an argument is known.
        let mut masks = RunMasks::new(Redactions::default(), Some(0));
        masks.add_tool("login", vec!["password".to_owned()]);
        masks.mask_message(&mut call("login", &json!({ "password": [long.trim_end()] })));
        let kept = written(&masks, &text);
        assert!(!kept.contains("canary") && kept.contains("y y"), "{kept}");
    }

    #[test]
    fn more_sensitive_values_than_can_be_searched_for_mask_every_text() {
        let mut masks = masks();
        for number in 0..MAX_SENSITIVE_CALLS {
            masks.mask_message(&mut call("login", &json!({ "password": format!("secret-{number}") })));
        }
        assert_eq!(masks.mask_text("secret-0 and more"), "*** and more");
        let mut message = call("login", &json!({ "user": "ada", "password": "one-more" }));
        message["content"] = json!("");
        message["output_items"] = json!(["call"]);
        assert!(masks.mask_message(&mut message), "masked");
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"user":"***","password":"***"}"#);
        assert_eq!((&message["content"], message.get("output_items")), (&json!(""), None));
        for text in ["secret-0 and more", "one-more", "plain"] {
            assert_eq!(masks.mask_text(text), "***");
            assert_eq!(masks.mask_beginning(&text.repeat(100)), "");
        }
    }

    #[test]
    fn a_call_with_more_sensitive_values_than_can_be_searched_for_masks_every_text() {
        let mut masks = masks();
        let many: Vec<String> = (0..100).map(|number| format!("secret-{number}")).collect();
        masks.mask_message(&mut call("login", &json!({ "password": many })));
        assert_eq!(masks.mask_text("it was secret-7"), "***");
    }
}
