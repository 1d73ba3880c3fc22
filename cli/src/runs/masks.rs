//! Masks of kept runs: those of the audit log, applied to the texts of messages. Arguments and results that are JSON stay
//! JSON.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolcrib::audit::Redactions;
use toolcrib::tool::SensitiveArguments;

/// Maximum number of calls of which the sensitive values are masked in later texts.
const MAX_SENSITIVE_CALLS: usize = 256;
/// Bytes at the end of a text that still arrives which are not written yet: a mask may need what follows.
const HELD_BACK: usize = 64;

/// Masks of a run.
#[derive(Debug, Default)]
pub(crate) struct RunMasks {
    redactions: Redactions,
    /// Names of sensitive arguments by tool.
    names: HashMap<String, Vec<String>>,
    /// Sensitive arguments of calls so far, by identifier.
    calls: Vec<(String, SensitiveArguments)>,
}

impl RunMasks {
    /// Creates masks from those of the audit log.
    pub(crate) fn new(redactions: Redactions) -> Self {
        Self { redactions, ..Self::default() }
    }

    /// Adds the names of the sensitive arguments of a tool.
    pub(crate) fn add_tool(&mut self, tool: &str, names: Vec<String>) {
        if !names.is_empty() {
            self.names.insert(tool.to_owned(), names);
        }
    }

    /// Masks a message of a conversation; `true` if arguments of a call were changed.
    pub(crate) fn mask_message(&mut self, message: &mut Value) -> bool {
        let calls = |message: &Value| message.get("tool_calls").cloned();
        let before = calls(message);
        for call in before.as_ref().and_then(Value::as_array).into_iter().flatten() {
            self.learn(call);
        }
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            for (kind, member) in [("function", "arguments"), ("custom", "input")] {
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

    /// Masks a text.
    pub(crate) fn mask_text(&self, text: &str) -> String {
        self.masked(text, "")
    }

    /// Returns the masked beginning of a text that still arrives: a part that no later text can change.
    pub(crate) fn mask_beginning(&self, text: &str) -> String {
        if self.redactions.is_empty() && self.calls.is_empty() {
            return text.to_owned();
        }
        let end = text.floor_char_boundary(text.len().saturating_sub(HELD_BACK));
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
            // Nobody knows which arguments of an unknown tool are sensitive: those of all others are taken for it.
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
            self.calls.push((id, sensitive));
        }
        if self.calls.len() > MAX_SENSITIVE_CALLS {
            self.calls.remove(0);
        }
    }

    /// Masks a text, in JSON its strings. The sensitive arguments of the call that it belongs to are masked by name too.
    fn masked(&self, text: &str, id: &str) -> String {
        let is_json = text.trim_start().starts_with(['{', '[']);
        let parsed = is_json.then(|| serde_json::from_str::<Value>(text).ok()).flatten();
        let before = parsed.unwrap_or_else(|| Value::String(text.to_owned()));
        let mut value = before.clone();
        for (call, sensitive) in &self.calls {
            match call == id {
                true => value = sensitive.mask(&value),
                false if masks_all(sensitive) => {}
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
        let mut masks = RunMasks::new(redactions);
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
}
