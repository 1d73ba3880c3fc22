//! Hooks implemented by scripts: the event, the priority and the conditions.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

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
    /// Sources with tools that the hook may handle.
    pub scope: HookScope,
}

/// Sources with tools that a script hook may handle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HookScope {
    /// The hook's own source. Events without a tool are handled only if all tools of the run are of this source.
    #[default]
    OwnSource,
    /// All sources, the host's own tools, and events without a tool.
    AllSources,
}

impl ScriptedHook {
    /// Returns `true` if the hook may handle calls of a tool, as far as its event, its scope and the tool's name
    /// determine. Other conditions depend on the call.
    pub fn handles(&self, tool: &Tool) -> bool {
        matches!(self.event, HookPoint::ToolPre | HookPoint::ToolPost) && self.reaches(tool) && self.matches(Some(tool))
    }

    /// Returns `true` if a tool is in the scope of the hook. Names do not count, so that no name brings a tool into a scope.
    pub(crate) fn reaches(&self, tool: &Tool) -> bool {
        let own = &self.tool.origin.source;
        self.scope == HookScope::AllSources || (own.is_some() && tool.origin.source == *own)
    }

    /// Returns `true` if the patterns of the hook match a tool's name or one of its aliases; an event without a tool has an
    /// empty name.
    pub(crate) fn matches(&self, tool: Option<&Tool>) -> bool {
        let tools = &self.when.tools;
        let matches = |name: &str| tools.iter().any(|glob| glob.is_match(name));
        tools.is_empty() || tool.map_or_else(|| matches(""), |tool| tool.names().any(matches))
    }
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

/// Prefix of custom event names.
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
    /// Patterns for tool names. At least one must match; empty for every tool.
    pub tools: Vec<Glob>,
    /// Patterns that must match the texts of these arguments.
    pub arguments: Vec<(String, Glob)>,
    /// Starlark expression over `event` and `payload` that must be true.
    pub expression: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tool::tests::plain;

    fn of(source: Option<&str>, name: &str) -> Tool {
        let mut tool = plain(name);
        tool.origin.source = source.map(|source| Path::new(source).into());
        tool
    }

    fn hook(source: Option<&str>, pattern: &str, scope: HookScope) -> ScriptedHook {
        let when = When { tools: vec![pattern.parse().expect("a glob")], ..When::default() };
        ScriptedHook { tool: of(source, "h"), event: HookPoint::ToolPre, priority: 0, when, scope }
    }

    #[test]
    fn no_name_and_no_pattern_brings_a_tool_into_the_scope_of_a_hook() {
        let (own, all) = (HookScope::OwnSource, HookScope::AllSources);
        for (pattern, scope, tool, handles) in [
            ("*", own, of(Some("/a"), "t"), true),
            ("t", own, of(Some("/a"), "t"), true),
            ("*", own, of(Some("/b"), "t"), false),
            ("t", own, of(Some("/b"), "t"), false),
            ("*", own, of(Some("/a/b"), "t"), false),
            ("*", own, of(Some("/a2"), "t"), false),
            ("*", own, of(None, "read_result"), false),
            ("x*", own, of(Some("/a"), "t"), false),
            ("*", all, of(Some("/b"), "t"), true),
            ("x*", all, of(Some("/b"), "t"), false),
            ("*", all, of(None, "read_result"), true),
        ] {
            assert_eq!(hook(Some("/a"), pattern, scope).handles(&tool), handles, "{pattern} {scope:?} {tool:?}");
        }
        let mut renamed = of(Some("/a"), "t");
        renamed.interface.identity.aliases.value = vec!["old".to_owned()];
        assert!(hook(Some("/a"), "old", own).handles(&renamed) && !hook(Some("/b"), "old", own).handles(&renamed));
        assert!(!hook(None, "*", own).handles(&of(None, "t")), "a hook without a source has no tools of its own");
        let started = ScriptedHook { event: HookPoint::RunStart, ..hook(Some("/a"), "*", all) };
        assert!(!started.handles(&of(Some("/a"), "t")), "it handles no calls");
    }
}
