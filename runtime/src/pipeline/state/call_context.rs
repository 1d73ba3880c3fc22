//! Context of a call as a rich tool gets it: JSON objects in layers, the host's own first. A caller adds keys and
//! overrides none.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::call::{self, ToolCall, clipped};
use crate::pipeline::recorder::CallRecorder;
use crate::sandbox::{GuestPayload, Invocation, Program};
use crate::schema::CheckedArguments;
use crate::tool::{Rich, Tool};

use super::MAX_EXTRA_BYTES;
use super::scope::CallScope;

/// The host's own keys in every context.
const RESERVED_KEYS: [&str; 6] = ["trigger_source", "config", "tool", "invocation", "depth", "parent"];

/// Contexts of one runtime's calls.
#[derive(Debug, Default)]
pub(crate) struct CallContexts {
    /// Name of the door through which calls come.
    pub(crate) trigger_source: Option<String>,
    /// Keys that the application adds to all calls.
    pub(crate) application: Map<String, Value>,
    /// Settings of each tool from the operator.
    pub(crate) config: HashMap<String, Value>,
}

/// Position of a call among others.
struct Position<'a> {
    tool: &'a str,
    invocation: &'a str,
    depth: u32,
    parent: Option<&'a str>,
}

impl CallContexts {
    /// Returns the name of the door through which calls come.
    pub(crate) fn door(&self) -> &str {
        self.trigger_source.as_deref().unwrap_or("library")
    }

    /// Returns the operator's settings of a tool, or null.
    pub(crate) fn config(&self, tool: &str) -> Value {
        self.config.get(tool).cloned().unwrap_or_default()
    }

    /// Returns the shared context for all calls to a tool, as JSON text, without the keys for one call.
    pub(crate) fn of_tool(&self, tool: &str) -> String {
        let mut all = self.application.clone();
        all.insert("trigger_source".to_owned(), json!(self.door()));
        all.insert("config".to_owned(), self.config(tool));
        all.insert("tool".to_owned(), json!(tool));
        Value::Object(all).to_string()
    }

    /// Returns the key under which a session keeps the prepared state of a tool: the component, the tool with its grant,
    /// and the operator's settings.
    pub(crate) fn preparation_key(&self, tool: &Tool, rich: &Rich, program: &Program) -> String {
        let config = self.config(&tool.name);
        format!("{}\0{}\0{}\0{config}", program.digest, tool.name, rich.tool)
    }

    /// Returns one call's context, as JSON text, and a warning for each key of the caller that is left out.
    fn of(&self, call: &ToolCall, position: &Position<'_>) -> (String, Vec<String>) {
        let source = match position.parent {
            Some(_) => "tool",
            None => self.door(),
        };
        let mut all = self.application.clone();
        all.insert("trigger_source".to_owned(), json!(source));
        all.insert("config".to_owned(), self.config(position.tool));
        all.insert("tool".to_owned(), json!(position.tool));
        all.insert("invocation".to_owned(), json!(position.invocation));
        all.insert("depth".to_owned(), json!(position.depth));
        all.insert("parent".to_owned(), json!(position.parent));
        let mut warnings = Vec::new();
        let bytes = bytes(&call.context);
        if bytes > MAX_EXTRA_BYTES {
            let message =
                format!("the caller's context has {bytes} bytes, more than the {MAX_EXTRA_BYTES} allowed: left out");
            return (Value::Object(all).to_string(), vec![message]);
        }
        for (key, value) in &call.context {
            if RESERVED_KEYS.contains(&key.as_str()) || self.application.contains_key(key) {
                warnings.push(format!(
                    "the context key `{}` is reserved for the host: the caller's value is ignored",
                    clipped(key)
                ));
            } else {
                all.insert(key.clone(), value.clone());
            }
        }
        (Value::Object(all).to_string(), warnings)
    }
}

/// Fields of a rich tool's invocation, except the payload.
pub(crate) struct InvocationFields {
    id: String,
    name: Option<String>,
    format: Option<String>,
    metadata: String,
    context: String,
}

impl InvocationFields {
    /// Creates the fields for a call of a tool. Warnings about left-out keys go to the recorder.
    pub(crate) fn new(
        contexts: &CallContexts,
        tool: &Tool,
        call: &ToolCall,
        scope: &CallScope<'_>,
        recorder: &mut CallRecorder<'_>,
    ) -> Self {
        let position = Position {
            tool: &tool.name,
            invocation: recorder.invocation(),
            depth: scope.depth,
            parent: scope.parent.map(|parent| parent.invocation),
        };
        let (context, warnings) = contexts.of(call, &position);
        warnings.into_iter().for_each(|warning| recorder.warn(warning));
        let (metadata, warning) = metadata(call);
        warning.into_iter().for_each(|warning| recorder.warn(warning));
        let is_text = call.payload == call::Payload::Text;
        Self {
            id: clipped(&call.id),
            name: Some(clipped(&call.name)).filter(|name| !name.is_empty()),
            format: call.format.as_deref().map(clipped).or_else(|| (!is_text).then(|| "json".to_owned())),
            metadata,
            context,
        }
    }

    /// Returns the invocation with its payload and the prepared state of the tool.
    pub(crate) fn with<'a>(
        &'a self,
        rich: &'a Rich,
        payload: GuestPayload<'a>,
        prepared: Option<&'a str>,
    ) -> Invocation<'a> {
        let Self { id, name, format, metadata, context } = self;
        let (name, format) = (name.as_deref(), format.as_deref());
        Invocation { id, tool: &rich.tool, name, payload, format, metadata, context, prepared }
    }
}

/// Returns the payload of a call: the one field's text for a tool that takes nothing else, the object for every other, and for
/// arguments beside the text that an open schema admits.
pub(crate) fn payload<'a>(tool: &Tool, checked: &'a CheckedArguments) -> GuestPayload<'a> {
    let text = tool.text.as_ref().filter(|text| tool.parameters.as_ref().is_some_and(|schema| text.is_all_of(schema)));
    let is_alone = checked.value.as_object().is_some_and(|fields| fields.len() == 1);
    let text = text.filter(|_| is_alone).and_then(|text| checked.value.get(&text.field)?.as_str());
    text.map_or(GuestPayload::Object(&checked.text), GuestPayload::Text)
}

/// Returns the caller's metadata about the payload, as JSON text, and a warning if it is too large.
fn metadata(call: &ToolCall) -> (String, Option<String>) {
    let bytes = bytes(&call.metadata);
    if bytes > MAX_EXTRA_BYTES {
        let warning =
            format!("the call's metadata has {bytes} bytes, more than the {MAX_EXTRA_BYTES} allowed: left out");
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
        let contexts = CallContexts { trigger_source: None, application, config };
        let mut call = ToolCall::new("c", "t", "{}");
        for (key, value) in [("config", json!(0)), ("application", json!(0)), ("mine", json!(7)), ("depth", json!(9))] {
            call.context.insert(key.to_owned(), value);
        }
        let position = Position { tool: "t", invocation: "inv", depth: 1, parent: None };
        let (context, warnings) = contexts.of(&call, &position);
        let context: Value = serde_json::from_str(&context).unwrap();
        assert_eq!(context["config"], json!({"max": 1}));
        assert_eq!(
            (&context["application"], &context["mine"], &context["depth"]),
            (&json!("test"), &json!(7), &json!(1))
        );
        assert_eq!(warnings.len(), 3);
        assert!(warnings[0].contains("`config`") && warnings[1].contains("`application`"), "{warnings:?}");
        call.context.insert("large".to_owned(), json!("x".repeat(MAX_EXTRA_BYTES)));
        let (context, warnings) = contexts.of(&call, &position);
        assert!(!context.contains("mine") && warnings[0].contains("more than the 65536"), "{warnings:?}");
    }
}
