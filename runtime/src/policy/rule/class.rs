//! Classes of tools, which a pattern names with `@` in place of a tool name.

use crate::policy::Grant;
use crate::tool::{Access, Tool, Trust};

/// Class of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolClass {
    /// Tools that delete or overwrite, according to their definition. The definition of an untrusted tool proves nothing, so
    /// such a tool is a member if it may write in a granted folder.
    Destructive,
    /// Members of `Destructive` that may write in a granted folder, unless a stage holds back all that they can do.
    Overwrites,
    /// Tools that may write in a granted folder, whatever their definition states.
    Writes,
}

/// Returns `true` if calls of a tool with this grant are asked about because it may overwrite, where somebody can answer.
pub(crate) fn may_overwrite(tool: &Tool, grant: &Grant) -> bool {
    ToolClass::Overwrites.includes(tool, grant)
}

impl ToolClass {
    /// Parses the name of a class with its `@`.
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name {
            "@destructive" => Some(Self::Destructive),
            "@overwrites" => Some(Self::Overwrites),
            "@writes" => Some(Self::Writes),
            _ => None,
        }
    }

    /// Returns `true` if a tool belongs to the class by its definition, regardless of its grant. Writing is a matter of the grant.
    pub(super) fn is_stated(self, tool: &Tool) -> bool {
        self != Self::Writes && tool.interface.safety.is_destructive.value
    }

    /// Returns `true` if a tool with this grant belongs to the class.
    pub(super) fn includes(self, tool: &Tool, grant: &Grant) -> bool {
        match self {
            Self::Destructive => {
                let is_believed = tool.origin.trust != Trust::Stranger;
                tool.interface.safety.is_destructive.value || (!is_believed && Self::Writes.includes(tool, grant))
            }
            // What is held back overwrites nothing before somebody commits it.
            Self::Overwrites => {
                !grant.is_held_back() && Self::Writes.includes(tool, grant) && Self::Destructive.includes(tool, grant)
            }
            Self::Writes => grant.folders().iter().any(|folder| folder.access == Access::Write),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;
    use crate::Policy;
    use crate::call::Behavior;
    use crate::policy::rule::{Pattern, PatternError, RuleDecision, Rules};
    use crate::policy::{Allowed, Permission, Rule};

    /// Number of rules that ask about a tool call.
    fn questions(rules: &Rules, tool: &Tool, allowed: &Allowed) -> usize {
        let grant = Grant::new(tool, allowed, &HashMap::new()).unwrap();
        match rules.decide(tool, &grant, &json!({"path": "x"})) {
            RuleDecision::Ask(rules) => rules.len(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_class_holds_the_tools_with_its_property() {
        let mut rules = Rules::default();
        for pattern in ["@destructive", "@overwrites", "@writes(path=x)"] {
            rules.add(Rule::new(Behavior::Ask, pattern.parse().unwrap(), "test"));
        }
        let folder = tempfile::tempdir().unwrap();
        let granted = |permission| Allowed::resolve(&Policy::default().allow(permission)).unwrap();
        let [reads, writes] =
            [Permission::Read(folder.path().into()), Permission::Write(folder.path().into())].map(granted);
        let mut plain = crate::tool::tests::plain("t");
        assert_eq!(questions(&rules, &plain, &reads), 0);
        assert_eq!(questions(&rules, &plain, &writes), 3, "the definition of an untrusted tool is not believed");
        for trust in [Trust::Reviewed, Trust::Operator] {
            plain.origin.trust = trust;
            assert_eq!(questions(&rules, &plain, &reads), 0);
            assert_eq!(questions(&rules, &plain, &writes), 1);
        }
        let mut destructive = plain.clone();
        destructive.interface.safety.is_destructive.value = true;
        assert_eq!(questions(&rules, &destructive, &reads), 1);
        assert_eq!(questions(&rules, &destructive, &writes), 3);
    }

    #[test]
    fn a_class_only_restricts_and_is_no_name() {
        let mut rules = Rules::default();
        rules.add(Rule::new(Behavior::Allow, "@writes".parse().unwrap(), "test"));
        rules.add(Rule::new(Behavior::Deny, "@destructive".parse().unwrap(), "test"));
        let plain = crate::tool::tests::plain("t");
        assert_eq!(questions(&rules, &plain, &Allowed::default()), 0, "neither allowed nor denied");
        assert!(rules.blocks(&plain).is_none(), "the class depends on the tool");
        let pattern: Pattern = "@writes".parse().unwrap();
        assert!(!pattern.names_tools() && !pattern.matches_tool("t") && !pattern.matches_tool("@writes"));
        for wrong in ["@", "@write", "@Writes", "@*", "@writes*"] {
            assert!(matches!(wrong.parse::<Pattern>(), Err(PatternError::Class { .. })), "{wrong}");
        }
    }
}
