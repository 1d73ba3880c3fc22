//! Hooks implemented by scripts: the event, the priority and the conditions.

use std::fmt;
use std::str::FromStr;

use super::{Glob, Tool};

/// Hook implemented by a script.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScriptedHook {
    /// Name, script, requested capabilities and origin, in the form of a tool. No model sees this tool.
    pub tool: Tool,
    /// Event that the hook handles.
    pub event: HookPoint,
    /// Priority; hooks with lower values run first.
    pub priority: i32,
    /// Conditions for running the hook.
    pub when: When,
}

/// Event of a run that hooks can handle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HookPoint {
    /// Start of a run.
    RunStart,
    /// End of a run.
    RunEnd,
    /// Before a request to the model.
    ModelPre,
    /// After a response of the model.
    ModelPost,
    /// Before a tool call.
    ToolPre,
    /// After a tool call.
    ToolPost,
    /// Event of an embedder: `custom.` and this name.
    Custom(String),
}

/// Prefix of the names of custom events.
const CUSTOM: &str = "custom.";

/// Error of parsing a [`HookPoint`]: an unknown name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown event `{0}`")]
pub struct UnknownHookPoint(String);

impl HookPoint {
    /// All events of the runtime itself.
    pub const BUILTIN: [Self; 6] =
        [Self::RunStart, Self::RunEnd, Self::ModelPre, Self::ModelPost, Self::ToolPre, Self::ToolPost];
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HookPoint::RunStart => "run.start",
            HookPoint::RunEnd => "run.end",
            HookPoint::ModelPre => "model.pre",
            HookPoint::ModelPost => "model.post",
            HookPoint::ToolPre => "tool.pre",
            HookPoint::ToolPost => "tool.post",
            HookPoint::Custom(name) => return write!(f, "{CUSTOM}{name}"),
        })
    }
}

impl FromStr for HookPoint {
    type Err = UnknownHookPoint;

    fn from_str(text: &str) -> Result<Self, UnknownHookPoint> {
        if let Some(name) = text.strip_prefix(CUSTOM).filter(|name| !name.is_empty()) {
            return Ok(Self::Custom(name.to_owned()));
        }
        let found = Self::BUILTIN.into_iter().find(|event| event.to_string() == text);
        found.ok_or_else(|| UnknownHookPoint(text.to_owned()))
    }
}

/// Conditions for running a hook; all must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct When {
    /// Patterns of which one must match the name of the tool; empty for every tool.
    pub tools: Vec<Glob>,
    /// Patterns that must match the texts of these arguments.
    pub arguments: Vec<(String, Glob)>,
    /// Starlark expression over `event` and `payload` that must be true.
    pub expression: Option<String>,
}
