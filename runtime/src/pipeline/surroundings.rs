//! EventKind surrounds a call, as a rich tool is told it: layers, of which the host's own come first and stay as they are. A
//! caller adds to them and overrides nothing.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::call::ToolCall;

/// The host's own keys in every call.
const OWN: [&str; 6] = ["trigger_source", "config", "tool", "invocation", "depth", "parent"];
/// The most bytes of what a caller adds.
const MAX_BYTES: usize = 64 << 10;

/// EventKind surrounds the calls of one runtime.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// Through which door calls come.
    pub(crate) trigger_source: Option<String>,
    /// EventKind an application adds for all calls.
    pub(crate) application: Map<String, Value>,
    /// EventKind the operator set for each tool.
    pub(crate) config: HashMap<String, Value>,
}

/// Where a call stands.
pub(super) struct Standing<'a> {
    pub(super) tool: &'a str,
    pub(super) invocation: &'a str,
    pub(super) depth: u32,
    pub(super) parent: Option<&'a str>,
}

impl Surroundings {
    /// EventKind the operator set for a tool; null where he set nothing.
    pub(super) fn config(&self, tool: &str) -> Value {
        self.config.get(tool).cloned().unwrap_or_default()
    }

    /// EventKind surrounds all calls of a tool, as JSON text: nothing of one call.
    pub(super) fn of_tool(&self, tool: &str) -> String {
        let mut all = self.application.clone();
        all.insert("trigger_source".to_owned(), json!(self.trigger_source.as_deref().unwrap_or("library")));
        all.insert("config".to_owned(), self.config(tool));
        all.insert("tool".to_owned(), json!(tool));
        Value::Object(all).to_string()
    }

    /// EventKind surrounds one call, as JSON text, and a sentence for each key of the caller's that was left out.
    pub(super) fn of(&self, call: &ToolCall, standing: &Standing<'_>) -> (String, Vec<String>) {
        let source = match standing.parent {
            Some(_) => "tool",
            None => self.trigger_source.as_deref().unwrap_or("library"),
        };
        let mut all = self.application.clone();
        all.insert("trigger_source".to_owned(), json!(source));
        all.insert("config".to_owned(), self.config(standing.tool));
        all.insert("tool".to_owned(), json!(standing.tool));
        all.insert("invocation".to_owned(), json!(standing.invocation));
        all.insert("depth".to_owned(), json!(standing.depth));
        all.insert("parent".to_owned(), json!(standing.parent));
        let mut warnings = Vec::new();
        let bytes = bytes(&call.context);
        if bytes > MAX_BYTES {
            let message =
                format!("the caller's context has {bytes} bytes, more than the {MAX_BYTES} allowed: left out");
            return (Value::Object(all).to_string(), vec![message]);
        }
        for (key, value) in &call.context {
            if OWN.contains(&key.as_str()) || self.application.contains_key(key) {
                warnings.push(format!(
                    "the context's key `{}` is the host's own: the caller's value is left out",
                    super::clip(key)
                ));
            } else {
                all.insert(key.clone(), value.clone());
            }
        }
        (Value::Object(all).to_string(), warnings)
    }
}

/// EventKind a caller says about the payload, as JSON text, and a sentence where that is too much.
pub(super) fn metadata(call: &ToolCall) -> (String, Option<String>) {
    let bytes = bytes(&call.metadata);
    if bytes > MAX_BYTES {
        let warning = format!("the call's metadata has {bytes} bytes, more than the {MAX_BYTES} allowed: left out");
        return ("{}".to_owned(), Some(warning));
    }
    (serde_json::to_string(&call.metadata).unwrap_or_else(|_| "{}".to_owned()), None)
}

fn bytes(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(key, value)| key.len() + value.to_string().len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_adds_and_overrides_nothing() {
        let application = Map::from_iter([("application".to_owned(), json!("test"))]);
        let config = HashMap::from([("t".to_owned(), json!({"max": 1}))]);
        let surroundings = Surroundings { trigger_source: None, application, config };
        let mut call = ToolCall::new("c", "t", "{}");
        for (key, value) in [("config", json!(0)), ("application", json!(0)), ("mine", json!(7)), ("depth", json!(9))] {
            call.context.insert(key.to_owned(), value);
        }
        let standing = Standing { tool: "t", invocation: "inv", depth: 1, parent: None };
        let (told, warnings) = surroundings.of(&call, &standing);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["config"], json!({"max": 1}));
        assert_eq!((&told["application"], &told["mine"], &told["depth"]), (&json!("test"), &json!(7), &json!(1)));
        assert_eq!(warnings.len(), 3);
        assert!(warnings[0].contains("`config`") && warnings[1].contains("`application`"), "{warnings:?}");
        call.context.insert("large".to_owned(), json!("x".repeat(MAX_BYTES)));
        let (told, warnings) = surroundings.of(&call, &standing);
        assert!(!told.contains("mine") && warnings[0].contains("more than the 65536"), "{warnings:?}");
    }
}
