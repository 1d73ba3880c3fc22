//! Definitions of the tools that the host runs itself: search for deferred tools, reader for stored answers, the two tools for
//! background tasks, and the tools for programs.

mod code;

use serde_json::{Value, json};

use crate::tool::{Body, Builtin, Capabilities, Interface, Origin, Tool};

pub(crate) use code::{CodeTools, MAX_DESCRIBED};

/// Maximum number of tools that a search returns.
pub(crate) const MAX_FOUND: usize = 20;
/// Maximum bytes of an answer that are opened at once.
pub(crate) const MAX_OPENED: u64 = 32 << 10;

/// Returns the definition of a built-in tool.
pub(crate) fn tool(builtin: Builtin) -> Tool {
    let (name, description, parameters) = match builtin {
        Builtin::ToolSearch => (
            "tool_search",
            "Find tools that are not listed, and load them so that they can be called. `query` is `select:NAME,NAME` for \
             exact names, or a few words.",
            json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Exact names or words"},
                    "max_results": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND, "default": 5},
                },
                "required": ["query"],
                "additionalProperties": false,
            }),
        ),
        Builtin::ReadResult => (
            "read_result",
            "Read a part of an answer that was too long to show in full, by the reference in its preview.",
            json!({
                "type": "object",
                "properties": {
                    "reference": {"type": "string", "maxLength": 100, "description": "The reference, `res_…`"},
                    "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Byte to start at"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_OPENED, "default": MAX_OPENED, "description": "Maximum bytes to read"},
                },
                "required": ["reference"],
                "additionalProperties": false,
            }),
        ),
        Builtin::TaskPoll => (
            "task_poll",
            "Return the state of a task: `running`, `done` with its result, or `failed` with its error.",
            json!({
                "type": "object",
                "properties": {"task_id": {"type": "string", "maxLength": 100, "description": "The task, `task_…`"}},
                "required": ["task_id"],
                "additionalProperties": false,
            }),
        ),
        Builtin::RunCode | Builtin::SearchTools | Builtin::DescribeTool => {
            return CodeTools::default().tool(builtin);
        }
        Builtin::TaskAwait => (
            "task_await",
            "Wait for a task to end and return its state; it is still `running` if the wait times out first.",
            json!({
                "type": "object",
                "properties": {
                    "task_id": {"type": "string", "maxLength": 100, "description": "The task, `task_…`"},
                    "timeout_ms": {"type": "integer", "minimum": 0, "maximum": 300_000, "default": 20_000, "description": "Maximum wait in milliseconds"},
                },
                "required": ["task_id"],
                "additionalProperties": false,
            }),
        ),
    };
    let mut interface = Interface::default();
    // Names from the format's documentation, which model servers would reject as names.
    interface.identity.aliases.value = match builtin {
        Builtin::TaskPoll => vec!["task.poll".to_owned()],
        Builtin::TaskAwait => vec!["task.await".to_owned()],
        _ => Vec::new(),
    };
    prove_harmless(&mut interface);
    defined(builtin, name, description.to_owned(), parameters, interface)
}

/// States that a tool changes nothing, reaches nothing and can run beside others.
fn prove_harmless(interface: &mut Interface) {
    interface.safety.is_read_only.prove(true);
    interface.safety.is_open_world.prove(false);
    interface.safety.is_concurrency_safe.prove(true);
}

fn defined(builtin: Builtin, name: &str, description: String, parameters: Value, mut interface: Interface) -> Tool {
    interface.discovery.always_load.prove(true);
    Tool {
        description: Some(description),
        parameters: Some(parameters),
        requested: Capabilities { declared: true, ..Capabilities::default() },
        interface,
        ..Tool::new(name, Body::Builtin(builtin), Origin::host())
    }
}
