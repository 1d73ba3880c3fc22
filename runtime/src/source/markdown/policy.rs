//! Reader of `tools_policy`, the project field with its policy over tools.

use crate::source::capabilities::globs;
use crate::source::diagnostics::Diagnostics;
use crate::source::name::shortened;
use crate::source::tools_policy::{FIELD, ToolsPolicy};
use crate::tool::Glob;

use super::node::{Fields, Node};

/// Values of `mode`.
const MODES: [&str; 2] = ["allowlist", "denylist"];

/// Reads the policy of a project.
pub(super) fn read(stated: Option<Node>, report: &mut Diagnostics) -> Option<ToolsPolicy> {
    let place = stated.as_ref()?.place;
    let mut fields = report.parsed(stated?.fields(FIELD))?;
    let mode = report.parsed(fields.read("mode", |node, _| node.text("tools_policy.mode")))?.unwrap_or_default();
    if !MODES.contains(&mode.as_str()) {
        let mode = shortened(&mode);
        report.invalid(place, format!("{FIELD}.mode {mode:?} must be {}", MODES.join("|")));
    }
    let allow = patterns("allow", &mut fields, report);
    let deny = patterns("deny", &mut fields, report);
    for (key, _) in fields.rest() {
        let known = "expected one of `mode`, `allow`, `deny`";
        report.invalid(key.place, format!("{FIELD}: unknown field `{}`, {known}", key.name));
    }
    Some(ToolsPolicy { allow: Some(allow).filter(|_| mode == MODES[0]), deny })
}

fn patterns(field: &str, fields: &mut Fields, report: &mut Diagnostics) -> Vec<Glob> {
    let at = format!("{FIELD}.{field}");
    let Some(node) = fields.take(field) else { return Vec::new() };
    let place = node.place;
    let written = report.parsed(node.texts(&at)).unwrap_or_default();
    globs(&at, written).map_err(|wrong| report.invalid(place, wrong)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::tool::Disabled;
    use crate::tool::tests::plain;

    use super::*;

    fn policy_of(policy: Value) -> (Option<ToolsPolicy>, Vec<String>) {
        let mut report = Diagnostics::new(Path::new("harness.md"));
        let policy = read(Some(Node::from(&policy)), &mut report);
        (policy, report.problems.into_iter().map(|noted| noted.problem.message).collect())
    }

    #[test]
    fn an_allowlist_denies_the_rest_a_denylist_what_it_names_and_deny_wins() {
        for (policy, denied) in [
            (json!({"mode": "allowlist", "allow": ["git_*"]}), vec!["run"]),
            (json!({"mode": "allowlist", "allow": ["*"], "deny": ["git_?ush"]}), vec!["git_push"]),
            (json!({"mode": "allowlist"}), vec!["git_push", "git_diff", "run"]),
            (json!({"mode": "denylist", "deny": ["git_push", "r*"], "allow": ["run"]}), vec!["git_push", "run"]),
            (json!({"mode": "denylist"}), vec![]),
        ] {
            let mut tools = ["git_push", "git_diff", "run"].map(plain);
            policy_of(policy.clone()).0.unwrap().apply(&mut tools);
            let disabled = tools.iter().filter(|tool| tool.disabled.is_some()).map(|tool| tool.name.as_str());
            assert_eq!(disabled.collect::<Vec<_>>(), denied, "{policy}");
        }
        let mut tools = [plain("run")];
        policy_of(json!({"mode": "denylist", "deny": ["run"]})).0.unwrap().apply(&mut tools);
        let why = "tool \"run\" denied by policy".to_owned();
        assert_eq!(tools[0].disabled, Some(Disabled { field: "tools_policy", reason: why }));
    }

    #[test]
    fn a_slip_is_told_in_the_formats_words() {
        for (policy, expected) in [
            (json!({"mode": "allow"}), r#"tools_policy.mode "allow" must be allowlist|denylist"#),
            (json!({"deny": ["a"]}), r#"tools_policy.mode "" must be allowlist|denylist"#),
            (json!({"mode": "allowlist", "allow": ["a", ""]}), "tools_policy.allow[1] is empty"),
            (json!({"mode": "denylist", "deny": [" "]}), "tools_policy.deny[0] is empty"),
            (json!({"mode": "denylist", "deny": "a"}), "tools_policy.deny must be a list, found a string"),
            (
                json!({"mode": "denylist", "denny": ["a"]}),
                "tools_policy: unknown field `denny`, expected one of `mode`, `allow`, `deny`",
            ),
        ] {
            assert_eq!(policy_of(policy).1, [expected]);
        }
    }
}
