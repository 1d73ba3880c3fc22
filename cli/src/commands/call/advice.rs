//! Errors and hints of a call on standard error: denied capabilities, wrong arguments, and the next command to try.

use serde_json::{Map, Value};
use toolcrib::tool::Body;
use toolcrib::{Outcome, Runtime, Tool, ToolResult};
use toolcrib_base::render::{self, MAX_EXCERPT};
use toolcrib_base::suggestion;
use toolcrib_settings::permission::{DenyFlags, denial_hints, folders_hint, hint, limit_hint};
use toolcrib_settings::unrequested::{UnrequestedVariables, unrequested};

/// Error of the host's model function where the program provides no model.
const NO_MODEL: &str = "no model is configured";
/// Error that the Rust standard library has for a missing variable.
const NO_VARIABLE: &str = "environment variable not found";
/// Capabilities of a descriptor.
const FILES: &str = "files";
const NETWORK: &str = "network";
/// Capabilities of front matter that a denial names as they are.
const SERVICES: [&str; 3] = ["exec", "delegate", "meta"];
/// Maximum number of misspelt arguments that are named.
const MAX_MISSPELT: usize = 3;
/// Maximum number of unknown arguments that are compared with the known ones.
const MAX_COMPARED: usize = 16;

/// Arguments of a call, as the user gave them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Given<'a> {
    /// JSON, or text that should be JSON, on the command line.
    Json(&'a str),
    /// The same from standard input or a file.
    JsonFile(&'a str),
    /// Text of `--text`.
    Text(&'a str),
    /// Arguments that could not be read; the error is already printed.
    Unreadable,
}

/// Prints errors and hints about a result.
pub(super) fn advise(result: &ToolResult, runtime: &Runtime, given: Given<'_>, verbose: bool, deny_flags: &DenyFlags) {
    let tool = runtime.tool(&result.receipt.tool);
    render::hints(&denial_hints(&result.receipt, result.is_error() || verbose, deny_flags));
    if let Some(tool) = tool {
        render::hints(&variable_hints(result, tool));
    }
    let Err(error) = &result.outcome else {
        // Changes that somebody agreed to can be taken back.
        hint(&result.receipt, tool, "").iter().for_each(|hint| render::hint(hint));
        return;
    };
    if let Some(tool) = tool {
        render::hints(&unrequested_hints(result, tool));
    }
    // The whole standard error was shown already, or a fault of the host explains the failure.
    if !verbose && result.fault.is_none() {
        render::log_end(result).iter().for_each(|end| render::quoted("|", end));
    }
    match (&result.fault, tool) {
        (Some(fault), _) => {
            // The model sees a short message; the operator sees the full error.
            render::explain(&fault.clone().into());
        }
        (None, Some(tool)) if error.outcome == Outcome::BadArguments => render::hints(&argument_hints(tool, given)),
        (None, Some(tool))
            if let deadline = runtime.limits(&tool.name).map(|limits| limits.deadline)
                && let Some(hint) = limit_hint(error.outcome, Some(&tool.limits), deadline) =>
        {
            render::hint(&hint);
        }
        _ => {}
    }
    if let Some(tool) = tool.filter(|tool| tool.requested.model && error.message.contains(NO_MODEL)) {
        render::hint(&format!("`{}` asks a model, which only `toolcrib run` provides", tool.name));
    }
    let arguments = match given {
        Given::Json(text) | Given::JsonFile(text) | Given::Text(text) => text,
        Given::Unreadable => "",
    };
    if let Some(hint) = hint(&result.receipt, tool, arguments) {
        render::hint(&hint);
    }
    let grant = tool.and_then(|tool| runtime.grant(&tool.name));
    if let Some(hint) = grant.and_then(|grant| folders_hint(grant, &result.receipt, arguments, &error.content())) {
        render::hint(&hint);
    }
}

/// Kind of a denied capability.
fn kind(capability: &str) -> &str {
    capability.split_once(':').map_or(capability, |(kind, _)| kind)
}

/// Returns a hint for each capability that the program or script tried to use and its descriptor does not request.
fn unrequested_hints(result: &ToolResult, tool: &Tool) -> Vec<String> {
    let receipt = &result.receipt;
    let tried = |capability: &str| match capability {
        FILES => receipt.missed_folders,
        NETWORK => {
            let is_network = |kind: &str| ["connect", "net"].contains(&kind);
            receipt.denied.iter().any(|denial| is_network(kind(&denial.capability)))
        }
        other => SERVICES.contains(&other) && receipt.denied.iter().any(|denial| kind(&denial.capability) == other),
    };
    let missing = unrequested(std::slice::from_ref(tool));
    let missing = missing.iter().filter(|missing| tried(missing.capability));
    missing
        .map(|missing| {
            let (name, capability) = (render::one_line(&tool.name), missing.capability);
            format!("`{name}` uses `{capability}` and does not request it, so no flag grants it; {}", missing.advice())
        })
        .collect()
}

/// Returns a hint about variables that the tool reads and does not request, which are never there. The names are known of a
/// script alone; a program shows by its error that a variable was missing.
fn variable_hints(result: &ToolResult, tool: &Tool) -> Vec<String> {
    let name = render::one_line(&tool.name);
    if let Some(missing) = UnrequestedVariables::of(tool) {
        return vec![format!("`{name}` reads {}, so no flag grants it; {}", missing.message(), missing.advice())];
    }
    let is_missing = matches!(&result.outcome, Err(error) if error.message.contains(NO_VARIABLE));
    let is_script = matches!(tool.body, Body::Script(_));
    if is_script || !is_missing || !tool.requested.declared {
        return Vec::new();
    }
    let requested: Vec<String> =
        tool.requested.env.iter().map(|name| format!("`{}`", render::one_line(name))).collect();
    let requested = if requested.is_empty() { "no variable".to_owned() } else { requested.join(", ") };
    vec![format!(
        "`{name}` requests {requested}; request others with `env(\"NAME\")` in `#[tool(…)]`, or in `env` of the \
         `capabilities` of the descriptor"
    )]
}

/// Returns hints about arguments that the schema refuses or that are no JSON.
fn argument_hints(tool: &Tool, given: Given<'_>) -> Vec<String> {
    let (Given::Json(text) | Given::JsonFile(text)) = given else { return Vec::new() };
    let mut hints = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(arguments)) => misspelt(tool, &arguments),
        _ if text.trim().is_empty() => Vec::new(),
        _ => {
            let typed = if let Given::Json(text) = given { text } else { "" };
            vec![format!("arguments are one JSON object, such as '{}'", example(typed))]
        }
    };
    // The definitions of the host's own tools are offered to models alone.
    if !matches!(tool.body, Body::Builtin(_)) {
        hints.push(format!("`toolcrib schema {}` shows the arguments of the tool", tool.name));
    }
    hints
}

/// Returns a hint for each unknown argument that is named like an argument of the tool.
fn misspelt(tool: &Tool, arguments: &Map<String, Value>) -> Vec<String> {
    let known = tool.parameters.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    let Some(known) = known else { return Vec::new() };
    let unknown = arguments.keys().filter(|name| !known.contains_key(*name)).take(MAX_COMPARED);
    let misspelt = unknown.filter_map(|name| {
        let near = suggestion::nearest(name, known.keys().map(String::as_str))?;
        Some(format!("`{name}`: did you mean `{near}`?"))
    });
    misspelt.take(MAX_MISSPELT).collect()
}

/// Returns arguments such as `timezone=UTC` as a JSON object, or else an object of another tool.
fn example(arguments: &str) -> Value {
    let is_name =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_plain = |c: char| c.is_alphanumeric() || c == ' ' || c.is_ascii_graphic() && c != '\'';
    let short = Some(arguments.trim_start_matches('-')).filter(|text| text.len() <= MAX_EXCERPT);
    let pair = short.and_then(|text| text.split_once('='));
    let (name, value) =
        pair.filter(|(name, value)| is_name(name) && value.chars().all(is_plain)).unwrap_or(("path", "notes.md"));
    Value::Object(Map::from_iter([(name.to_owned(), value.into())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_in_the_form_of_a_shell_are_shown_as_json() {
        for (given, shown) in [
            ("timezone=UTC", r#"{"timezone":"UTC"}"#),
            ("--path=a b", r#"{"path":"a b"}"#),
            ("it='s", r#"{"path":"notes.md"}"#),
            ("{path:1}", r#"{"path":"notes.md"}"#),
            ("path=a\nb", r#"{"path":"notes.md"}"#),
            ("path=a\u{202e}b", r#"{"path":"notes.md"}"#),
            (&format!("path={}", "a".repeat(80)), r#"{"path":"notes.md"}"#),
        ] {
            assert_eq!(example(given).to_string(), shown);
        }
    }
}
