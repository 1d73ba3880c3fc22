//! Policy over the tools that a model may use, by patterns over their names.

use crate::tool::{Disabled, Glob, Tool};

/// Name of the field, reported as the one that disables a tool.
pub(super) const FIELD: &str = "tools_policy";

/// Tools that a model may use.
#[derive(Debug, Default)]
pub(crate) struct ToolsPolicy {
    /// Patterns of an allowlist: all other tools are denied.
    pub(super) allow: Option<Vec<Glob>>,
    /// Patterns of denied tools. They override `allow`.
    pub(super) deny: Vec<Glob>,
}

impl ToolsPolicy {
    /// Disables the tools that it denies. They stay loaded.
    pub(crate) fn apply(&self, tools: &mut [Tool]) {
        let is_like = |globs: &[Glob], name: &str| globs.iter().any(|glob| glob.is_match(name));
        for tool in tools {
            let denied = is_like(&self.deny, &tool.name);
            if denied || self.allow.as_ref().is_some_and(|allow| !is_like(allow, &tool.name)) {
                tool.disabled =
                    Some(Disabled { field: FIELD, reason: format!("tool {:?} denied by policy", tool.name) });
            }
        }
    }
}
