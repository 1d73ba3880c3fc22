//! Detection of rules and conditions that can never match: a misspelled tool or argument name, or a value that no
//! argument accepts. Such a deny or ask rule would have no effect, so it is reported before anything runs. Nothing is
//! reported for open schemas.

use std::sync::Arc;

use serde_json::Value;

use crate::flow::{Labels, PRIVATE};
use crate::schema::{Mismatch, ValuePredicate, find_mismatch};
use crate::source::nearest;
use crate::tool::{Body, Glob, ScriptedHook, Tool};

use super::argv::is_argv;
use super::spelling::is_null;
use super::{Rule, Rules, matches};

/// Maximum characters of a name or pattern in a message.
const MAX_QUOTED_CHARS: usize = 80;
/// Maximum number of arguments that a message lists.
const MAX_LISTED_NAMES: usize = 10;
/// Minimum length of a pattern's literal prefix for suggestions.
const MIN_PREFIX_LEN: usize = 2;

/// A condition on an argument: one of its patterns must match.
struct Condition<'a> {
    argument: &'a str,
    globs: &'a [Glob],
    /// Name of the first granted folder, which a path may start with.
    root: Option<&'a str>,
}

impl ValuePredicate for Condition<'_> {
    fn may_match(&self, value: &Value) -> bool {
        matches(self.globs, None, value, self.root, false)
    }

    fn may_match_number(&self) -> bool {
        let numeric = |c: char| c.is_ascii_digit() || "+-.eE*?".contains(c);
        self.globs.iter().any(|glob| glob.as_str().chars().all(numeric))
    }
}

impl Rules {
    /// Finds the rules that match none of the tools, each with a suggested name.
    pub(crate) fn without_tool<'a>(&'a self, tools: &'a [Tool]) -> impl Iterator<Item = (&'a Rule, Option<&'a str>)> {
        let none =
            |rule: &&Arc<Rule>| rule.pattern.flow().is_none() && !tools.iter().any(|tool| rule.matches_tool(tool));
        let all = move || tools.iter().map(|tool| tool.name.as_str());
        self.0.iter().filter(none).map(move |rule| {
            // The prefix of a pattern before its first wildcard is compared with the prefixes of the names.
            let written = rule.pattern.tool.as_str();
            let prefix = written.split(['*', '?']).next().unwrap_or_default();
            let suggestion = match prefix == written {
                true => nearest(written, all()),
                false if prefix.len() < MIN_PREFIX_LEN => None,
                false => {
                    let same_length = |name: &'a str| name.get(..prefix.len()).map(|cut| (cut, name));
                    let near = nearest(prefix, all().filter_map(same_length).map(|(cut, _)| cut));
                    near.and_then(|near| all().find(|name| name.starts_with(near)))
                }
            };
            (rule.as_ref(), suggestion)
        })
    }

    /// Finds the rules about flows with a name that no place has, each with a suggested one.
    pub(crate) fn without_label<'a>(
        &'a self,
        labels: &'a Labels,
    ) -> impl Iterator<Item = (&'a Rule, &'a str, Option<&'a str>)> {
        let named = self.0.iter().flat_map(|rule| {
            let names = rule.pattern().flow().into_iter().flat_map(|flow| flow.names());
            names.map(move |name| (rule.as_ref(), name))
        });
        let is_known = |name: &str| name == PRIVATE || labels.names().any(|known| known == name);
        named.filter(move |(_, name)| !is_known(name)).map(|(rule, name)| (rule, name, nearest(name, labels.names())))
    }

    /// Finds the first rule that matches tools by their names but none of their calls, with the reason. Each tool comes
    /// with the name of its first granted folder, if it has one.
    pub(crate) fn dead<'a>(&'a self, tools: &[(&Tool, Option<&str>)]) -> Option<(&'a Rule, String)> {
        self.0.iter().filter(|rule| !rule.pattern.arguments.is_empty()).find_map(|rule| {
            let about = tools.iter().filter(|(tool, _)| rule.matches_tool(tool));
            let conditions = rule.pattern.arguments.iter().map(|of| (of.name.as_str(), of.globs.as_slice()));
            Some((rule.as_ref(), never(about.copied(), conditions)?))
        })
    }
}

/// Explains why the patterns of a hook's `when.args` match no call of the tools in its scope that its `when.tool` matches;
/// `None` if they may match. A hook for every tool is not checked, because its file does not determine the tools.
pub(crate) fn dead_condition(hook: &ScriptedHook, tools: &[Tool]) -> Option<String> {
    let when = &hook.when;
    if when.tools.is_empty() || when.arguments.is_empty() {
        return None;
    }
    let about = tools.iter().filter(|tool| hook.handles(tool));
    let conditions = when.arguments.iter().map(|(name, glob)| (name.as_str(), std::slice::from_ref(glob)));
    never(about.map(|tool| (tool, None)), conditions)
}

/// Returns `true` for an argument that a schema declares and does not require.
fn may_be_missing(tool: &Tool, argument: &str) -> bool {
    let Some(schema) = &tool.parameters else { return true };
    let is_required = schema["required"].as_array().is_some_and(|all| all.iter().any(|name| name == argument));
    schema["properties"].get(argument).is_some() && !is_required
}

/// Explains why no call of these tools meets all conditions; `None` if that is not certain or there are no tools.
fn never<'a>(
    tools: impl Iterator<Item = (&'a Tool, Option<&'a str>)>,
    conditions: impl Iterator<Item = (&'a str, &'a [Glob])> + Clone,
) -> Option<String> {
    let (mut first, mut count) = (None, 0_usize);
    for (tool, root) in tools {
        if tool.unusable.is_some() {
            // Its arguments are unknown.
            return None;
        }
        count += 1;
        // The arguments of a program are not part of its schema.
        let checked = conditions
            .clone()
            .filter(|(argument, _)| !(is_argv(argument) && matches!(tool.body, Body::Command { .. })))
            .map(|(argument, globs)| Condition { argument, globs, root });
        let broken = |condition: Condition<'a>| {
            // A missing argument is null for a rule.
            if condition.globs.iter().any(is_null) && may_be_missing(tool, condition.argument) {
                return None;
            }
            let reason = find_mismatch(tool, condition.argument, &condition)?;
            Some((condition, reason))
        };
        let (condition, reason) = checked.filter_map(broken).next()?;
        let near = suggestion(&condition, &reason);
        // Of several tools, the message names one with a suggestion.
        if first.as_ref().is_none_or(|(_, _, _, known)| near.is_some() && Option::is_none(known)) {
            first = Some((tool, condition, reason, near));
        }
    }
    let (tool, Condition { argument, globs, .. }, reason, near) = first?;
    let others = match count {
        1 => String::new(),
        count => format!(", nor has any other of the {count} tools that it matches"),
    };
    let known = || match &reason {
        Mismatch::Name(known) if count == 1 && (1..=MAX_LISTED_NAMES).contains(&known.len()) => {
            let known: Vec<_> = known.iter().map(|name| format!("`{}`", clip(name))).collect();
            format!("; it has {}", known.join(", "))
        }
        _ => String::new(),
    };
    let hint = near.map_or_else(known, |near| format!("; did you mean `{near}`?"));
    let (tool, argument) = (clip(&tool.name), clip(argument));
    Some(match reason {
        Mismatch::Name(_) => format!("it can never match: `{tool}` has no argument `{argument}`{others}{hint}"),
        Mismatch::Value => {
            let pattern = clip(globs.first().map_or("", Glob::as_str));
            let others = if others.is_empty() { "" } else { ", nor does any other tool that it matches" };
            format!("it can never match: the argument `{argument}` of `{tool}` takes no value like `{pattern}`{others}")
        }
    })
}

/// Suggests the name of a similar argument.
fn suggestion(condition: &Condition<'_>, reason: &Mismatch) -> Option<String> {
    let Mismatch::Name(known) = reason else { return None };
    let written = condition.argument.rsplit('/').next().unwrap_or_default();
    nearest(written, known.iter().map(String::as_str)).map(clip)
}

/// Truncates a name for a message.
fn clip(name: &str) -> String {
    match name.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::call::Behavior;
    use crate::tool::tests::plain;
    use crate::tool::{HookPoint, HookScope, When};

    fn closed(name: &str, properties: Value) -> Tool {
        let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        Tool { parameters: Some(schema), ..plain(name) }
    }

    fn dead(rule: &str, tools: &[Tool]) -> Option<String> {
        let mut rules = Rules::default();
        rules.add(Rule::new(Behavior::Deny, rule.parse().unwrap(), "test"));
        let tools: Vec<_> = tools.iter().map(|tool| (tool, None)).collect();
        rules.dead(&tools).map(|(rule, why)| format!("{rule}: {why}"))
    }

    #[test]
    fn a_misspelt_argument_is_told_with_the_one_that_was_meant() {
        let tools = [closed("fs_rm", json!({"path": {}})), closed("fs_ls", json!({"folder": {}})), plain("open")];
        assert_eq!(
            dead("fs_rm(pth=*)", &tools).unwrap(),
            "deny fs_rm(pth=*) (test): it can never match: `fs_rm` has no argument `pth`; did you mean `path`?"
        );
        let several = dead("fs_*(pth=*)", &tools).unwrap();
        assert!(
            several.ends_with("nor has any other of the 2 tools that it matches; did you mean `path`?"),
            "{several}"
        );
        for rule in ["fs_*(path=*)", "fs_rm(path=*)", "*(pth=*)", "open(pth=*)", "absent(pth=*)", "fs_rm"] {
            assert_eq!(dead(rule, &tools), None, "{rule}");
        }
        assert!(dead("fs_rm(path=a, recursive=true)", &tools).is_some(), "all of its conditions have to hold");
    }

    #[test]
    fn null_is_the_value_of_a_missing_argument_alone() {
        let mut tool = closed("t", json!({"n": {"type": "integer"}}));
        let is_dead = |tool: &Tool, rule: &str| dead(rule, std::slice::from_ref(tool)).is_some();
        assert!(!is_dead(&tool, "t(n=null)") && is_dead(&tool, "t(m=null)"));
        tool.parameters.as_mut().unwrap()["required"] = json!(["n"]);
        assert!(is_dead(&tool, "t(n=null)"));
    }

    #[test]
    fn a_value_that_an_argument_never_has_is_told() {
        let properties =
            json!({"mode": {"enum": ["slow", "safe"]}, "n": {"type": "integer"}, "on": {"type": "boolean"}});
        let tools = [closed("t", properties)];
        for rule in ["t(mode=fast)", "t(n=ten)", "t(on=yes)", "t(mode=S*)"] {
            assert!(dead(rule, &tools).is_some_and(|why| why.contains("takes no value like `")), "{rule}");
        }
        for rule in ["t(mode=null)", "t(n=null)", "t(mode=s*)", "t(n=1*)", "t(n=-1.5e3)", "t(on=t*)", "t(on=*)"] {
            assert_eq!(dead(rule, &tools), None, "{rule}");
        }
    }

    #[test]
    fn what_is_given_to_a_program_as_arguments_is_no_argument_of_its_schema() {
        let mut tool = closed("t", json!({"path": {}}));
        for rule in ["t(argv=*)", "t(/argv/0=*)"] {
            assert_eq!(dead(rule, std::slice::from_ref(&tool)), None);
        }
        tool.body = Body::Absent;
        assert!(dead("t(argv=*)", &[tool]).is_some(), "nothing of it can be run by a script");
    }

    #[test]
    fn a_rule_for_no_tool_is_told_with_the_tool_that_was_meant() {
        let tools = [plain("fs_rm"), plain("get_time")];
        for (rule, meant) in
            [("fs_mr", Some("fs_rm")), ("fz_*", Some("fs_rm")), ("gte_*", Some("get_time")), ("zzzzzz", None)]
        {
            let mut rules = Rules::default();
            rules.add(Rule::new(Behavior::Ask, rule.parse().unwrap(), "test"));
            let found: Vec<_> = rules.without_tool(&tools).map(|(_, meant)| meant).collect();
            assert_eq!(found, [meant], "{rule}");
        }
        let mut rules = Rules::default();
        rules.add(Rule::new(Behavior::Ask, "fs_*".parse().unwrap(), "test"));
        assert_eq!(rules.without_tool(&tools).count(), 0);
    }

    #[test]
    fn a_hook_whose_arguments_no_tool_has_is_dead_where_it_names_its_tools() {
        let tools = [closed("fs_rm", json!({"path": {}})), plain("open")];
        let dead_in = |tools_named: &[&str], argument: &str, event: HookPoint, scope: HookScope| {
            let when = When {
                tools: tools_named.iter().map(|glob| glob.parse().unwrap()).collect(),
                arguments: vec![(argument.to_owned(), "*".parse().unwrap())],
                expression: None,
            };
            let hook = ScriptedHook { tool: plain("h"), event, priority: 0, when, scope };
            dead_condition(&hook, &tools)
        };
        let dead = |named: &[&str], argument: &str, event| dead_in(named, argument, event, HookScope::AllSources);
        assert!(dead(&["fs_*"], "pth", HookPoint::ToolPre).unwrap().contains("did you mean `path`?"));
        assert!(dead(&["fs_*"], "pth", HookPoint::ToolPost).is_some());
        for (named, argument) in
            [(&["fs_*"] as &[_], "path"), (&["fs_*", "open"], "pth"), (&[], "pth"), (&["x"], "pth")]
        {
            assert_eq!(dead(named, argument, HookPoint::ToolPre), None, "{named:?} {argument}");
        }
        assert_eq!(dead(&["fs_*"], "pth", HookPoint::RunStart), None, "no call is judged then");
        let own = dead_in(&["fs_*"], "pth", HookPoint::ToolPre, HookScope::OwnSource);
        assert_eq!(own, None, "the tools of other sources do not stop the load");
    }
}
