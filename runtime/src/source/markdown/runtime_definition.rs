//! Tools and hooks that a script defines while it runs, as JSON with the fields of a Markdown file. They request the
//! capabilities of the defining tool, never more. An unknown field is an error, since a warning would not be shown.

use serde_json::Value;

use crate::source::Severity;
use crate::source::diagnostics::Diagnostics;
use crate::source::suggestion::nearest;
use crate::tool::{Body, LimitRequest, Origin, ScriptedHook, Tool};

use super::entry::Entry;
use super::node::Node;
use super::origin;
use super::script::Lines;

/// Fields of a tool.
const TOOL_FIELDS: [&str; 5] = ["name", "description", "parameters", "script", "timeout_ms"];
/// Fields of a hook.
const HOOK_FIELDS: [&str; 7] = ["name", "description", "event", "priority", "when", "script", "timeout_ms"];

/// Reads the tool that a script of `maker` defines.
///
/// # Errors
///
/// The first fault of the definition, in the words for a Markdown file.
pub(crate) fn defined_tool(definition: &Value, maker: &Tool) -> Result<Tool, String> {
    let (entry, mut report) = entry("tool", definition, &TOOL_FIELDS, maker)?;
    let tool = entry.and_then(|entry| entry.tool(&Lines::of(""), &mut report));
    let tool = sound(tool, report)?.value;
    match tool.body {
        Body::Script(_) => Ok(limited_by(tool, maker)),
        // No handler can be registered for it later.
        _ => Err(format!("tool {:?}: script is required", tool.name)),
    }
}

/// Reads the hook that a script of `maker` defines.
///
/// # Errors
///
/// The first fault of the definition, in the words for a Markdown file.
pub(crate) fn defined_hook(definition: &Value, maker: &Tool) -> Result<ScriptedHook, String> {
    let (entry, mut report) = entry("hook", definition, &HOOK_FIELDS, maker)?;
    let hook = entry.and_then(|entry| entry.hook(&Lines::of(""), &mut report));
    let hook = sound(hook, report)?.value;
    Ok(ScriptedHook { tool: limited_by(hook.tool, maker), ..hook })
}

fn entry(noun: &str, definition: &Value, known: &[&str], maker: &Tool) -> Result<(Option<Entry>, Diagnostics), String> {
    let unknown = definition.as_object().and_then(|fields| fields.keys().find(|key| !known.contains(&key.as_str())));
    if let Some(key) = unknown {
        let hint = nearest(key, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
        return Err(format!("{noun}: unknown field `{key}`{}", hint.unwrap_or_default()));
    }
    let made = origin(maker.origin.path.clone());
    let (text, source) = (Some(definition.to_string().into()), maker.origin.source.clone());
    // The maker could do all that the definition can.
    let origin = Origin { text, source, trust: maker.origin.trust, ..made };
    let mut report = Diagnostics::new(&maker.origin.path);
    Ok((Entry::of_node(noun.to_owned(), Node::from(definition), origin, &mut report), report))
}

/// Returns the definition, unless it has an error.
fn sound<T>(definition: Option<T>, report: Diagnostics) -> Result<T, String> {
    let mut problems = report.problems.into_iter().map(|scoped| scoped.problem);
    match problems.find(|problem| problem.severity == Severity::Error) {
        Some(error) => Err(error.message),
        None => definition.ok_or_else(|| "the definition is empty".to_owned()),
    }
}

/// Gives a tool its maker's capabilities and limits, with the shorter deadline.
fn limited_by(tool: Tool, maker: &Tool) -> Tool {
    let deadlines = tool.limits.deadline.into_iter().chain(maker.limits.deadline);
    let limits = LimitRequest { deadline: deadlines.min(), ..maker.limits };
    Tool { requested: maker.requested.clone(), limits, ..tool }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use crate::tool::tests::plain;
    use crate::tool::{HookPoint, HookScope, Trust};

    use super::*;

    fn maker() -> Tool {
        let mut maker = plain("maker");
        maker.requested.env = vec!["TZ".into()];
        maker.limits.deadline = Some(Duration::from_millis(500));
        maker.limits.memory = Some(7);
        maker.origin.source = Some(std::path::Path::new("/crib").into());
        maker.origin.trust = Trust::Reviewed;
        maker
    }

    #[test]
    fn a_defined_tool_is_what_it_says_with_its_makers_wishes() {
        let definition = json!({
            "name": "t", "description": " d ", "parameters": {"p": {"type": "number", "required": true}},
            "script": "def run(args):\n  return 1\n", "timeout_ms": 900
        });
        let tool = defined_tool(&definition, &maker()).unwrap();
        let schema = json!({"type": "object", "properties": {"p": {"type": "number"}}, "required": ["p"]});
        assert_eq!((tool.description.as_deref(), tool.parameters), (Some("d"), Some(schema)));
        let Body::Script(script) = tool.body else { panic!("{:?}", tool.body) };
        assert_eq!((&*script.source, script.place, script.background), ("def run(args):\n  return 1\n", None, false));
        assert_eq!((tool.requested, tool.origin.path), (maker().requested, maker().origin.path));
        let of_maker = (maker().origin.source, Trust::Reviewed);
        assert_eq!((tool.origin.source, tool.origin.trust), of_maker, "source and trust are its maker's");
        assert_eq!(tool.limits, maker().limits);
        let short = defined_tool(&json!({"name": "t", "script": "x", "timeout_ms": 100}), &maker()).unwrap();
        assert_eq!((short.limits.deadline, short.limits.memory), (Some(Duration::from_millis(100)), Some(7)));
    }

    #[test]
    fn a_defined_hook_is_what_it_says() {
        let definition =
            json!({"name": "h", "event": "tool.pre", "priority": -3, "when": {"tool": "git_*"}, "script": "x"});
        let hook = defined_hook(&definition, &maker()).unwrap();
        assert_eq!((hook.event, hook.priority, hook.when.tools[0].as_str()), (HookPoint::ToolPre, -3, "git_*"));
        assert_eq!((hook.tool.name.as_str(), hook.tool.requested), ("h", maker().requested));
        assert_eq!((hook.tool.origin.source, hook.scope), (maker().origin.source, HookScope::OwnSource));
    }

    #[test]
    fn a_slip_has_the_words_of_an_artifact() {
        let long = "x".repeat(129);
        for (definition, expected) in [
            (json!([]), "tool must be a map, found a list"),
            (json!({"script": "x"}), "tool.name cannot be empty"),
            (json!({"name": " "}), "tool.name cannot be empty"),
            (json!({"name": "t", "script": " "}), "tool \"t\": script is required"),
            (json!({"name": "t", "timeout_ms": -1}), "tool \"t\" timeout_ms must be >= 0"),
            (json!({"name": "t", "timeout_ms": 1.5}), "timeout_ms must be an integer, found 1.5"),
            (json!({"name": "t", "parameters": []}), "parameters must be a map, found a list"),
            (json!({"name": "t", "capabilities": {"env": ["KEY"]}}), "tool: unknown field `capabilities`"),
            (json!({"name": "t", "scrpit": ""}), "tool: unknown field `scrpit`; did you mean `script`?"),
        ] {
            assert_eq!(defined_tool(&definition, &maker()).unwrap_err(), expected);
        }
        let error = defined_tool(&json!({ "name": long }), &maker()).unwrap_err();
        assert!(error.ends_with("name is longer than 128 characters") && error.len() < 250, "{error}");
        for (definition, expected) in [
            (json!({"name": "h", "script": "x"}), "hook \"h\": event field is required in frontmatter"),
            (json!({"name": "h", "event": "tool.pre"}), "hook \"h\": script is required"),
            (
                json!({"name": "h", "event": "tool.per", "script": "x"}),
                "hook.event \"tool.per\" is invalid; did you mean `tool.pre`?",
            ),
        ] {
            assert_eq!(defined_hook(&definition, &maker()).unwrap_err(), expected);
        }
    }
}
