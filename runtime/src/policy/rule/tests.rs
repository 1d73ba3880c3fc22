//! Decisions of rules about calls.

use std::collections::HashMap;

use serde_json::json;

use super::*;
use crate::policy::Allowed;

fn rules(texts: &[(Behavior, &str)]) -> Rules {
    let rule = |(behavior, text): &(Behavior, &str)| Rule::new(*behavior, text.parse().unwrap(), "test");
    Rules(texts.iter().map(rule).map(Arc::new).collect())
}

fn tool(name: &str) -> Tool {
    let mut tool = crate::tool::tests::plain(name);
    tool.interface.identity.aliases.value = vec!["other".to_owned()];
    tool
}

fn decision(rules: &Rules, name: &str, arguments: Value) -> Option<Behavior> {
    decision_in(rules, &Grant::new(&tool(name), &Allowed::default(), &HashMap::new()).unwrap(), name, arguments)
}

fn decision_in(rules: &Rules, grant: &Grant, name: &str, arguments: Value) -> Option<Behavior> {
    match rules.decide(&tool(name), grant, &arguments) {
        RuleDecision::Deny(_) => Some(Behavior::Deny),
        RuleDecision::Allow(_) => Some(Behavior::Allow),
        RuleDecision::Ask(rules) => rules.first().map(|_| Behavior::Ask),
    }
}

#[test]
fn the_first_folder_is_the_same_by_its_name_and_without() {
    let dir = tempfile::tempdir().unwrap();
    let mut policy = crate::Policy::default();
    for name in ["desk", "other"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        policy = policy.allow(crate::policy::Permission::Write(dir.path().join(name)));
    }
    let allowed = Allowed::resolve(&policy).unwrap();
    let grant = Grant::new(&tool("w"), &allowed, &HashMap::new()).unwrap();
    for written in ["secrets/*", "desk/secrets/*"] {
        let deny = rules(&[(Behavior::Deny, &format!("w(path={written})"))]);
        for path in ["secrets/a", "/desk/secrets/a", "desk/secrets/a", "/secrets/a"] {
            let decision = decision_in(&deny, &grant, "w", json!({ "path": path }));
            assert_eq!(decision, Some(Behavior::Deny), "{written} {path}");
        }
        assert_eq!(decision_in(&deny, &grant, "w", json!({"path": "/other/secrets/a"})), None);
    }
    let allow = rules(&[(Behavior::Allow, "w(path=out/*)")]);
    assert_eq!(decision_in(&allow, &grant, "w", json!({"path": "out/a"})), Some(Behavior::Allow));
}

#[test]
fn odd_spellings_of_a_path_or_number_are_no_way_round() {
    let deny = rules(&[(Behavior::Deny, "w(path=secrets/*)"), (Behavior::Deny, "n(n=1)")]);
    for path in ["x://../secrets/a", r"x\y/../secrets/b", "x:/../secrets/a"] {
        assert_eq!(decision(&deny, "w", json!({ "path": path })), Some(Behavior::Deny), "{path}");
    }
    let allow = rules(&[(Behavior::Allow, "w(path=out/*)")]);
    for path in ["out/x://../../secrets/d", r"out/a\b/../../secrets/x"] {
        assert_eq!(decision(&allow, "w", json!({ "path": path })), None, "{path}");
    }
    for number in [json!(1), json!(1.0), serde_json::from_str("1e0").unwrap()] {
        assert_eq!(decision(&deny, "n", json!({ "n": number })), Some(Behavior::Deny));
    }
}

#[test]
fn a_pattern_means_a_path_however_it_is_written() {
    for pattern in ["/out/*", "./out/*", "out//*", "x/../out/*"] {
        let deny = rules(&[(Behavior::Deny, &format!("w(path={pattern})"))]);
        for path in ["out/a", "/out/a", "./out/a"] {
            assert_eq!(decision(&deny, "w", json!({ "path": path })), Some(Behavior::Deny), "{pattern} {path}");
        }
    }
    for pattern in ["out/", "/out"] {
        let deny = rules(&[(Behavior::Deny, &format!("w(path={pattern})"))]);
        assert_eq!(decision(&deny, "w", json!({"path": "out"})), Some(Behavior::Deny), "{pattern}");
    }
}

#[test]
fn a_spelling_that_means_the_same_file_is_denied_and_never_allowed() {
    use NameRules::{Exact, Folded, Windows};
    let rules = |behavior: Behavior, text: &str, names: NameRules| {
        Rules(vec![Arc::new(Rule::new(behavior, Pattern::parse(text, names).unwrap(), "test"))])
    };
    let given = |path: &str| json!({ "path": path });
    for path in ["SUB/X", "Sub/./x", "y/../SUB/x", "\u{17f}ub/x"] {
        for (names, denied) in [(Exact, None), (Folded, Some(Behavior::Deny)), (Windows, Some(Behavior::Deny))] {
            for pattern in ["w(path=sub/*)", "w(path=SuB/*)", "w(path=/SUB//*)"] {
                // The rule that is written like the path applies on each system.
                if pattern.contains("SUB") && path.contains("SUB") {
                    continue;
                }
                let rules = rules(Behavior::Deny, pattern, names);
                assert_eq!(decision(&rules, "w", given(path)), denied, "{names:?} {pattern} {path}");
            }
        }
        for names in [Exact, Folded, Windows] {
            let allow = rules(Behavior::Allow, "w(path=sub/*)", names);
            assert_eq!(decision(&allow, "w", given(path)), None, "{names:?} {path}");
        }
    }
    for path in [r"SUB\x", "sub/x::$DATA", "sub /x.", r"y\..\sub.\x", "sub:a/x"] {
        let denied = |names| decision(&rules(Behavior::Deny, "w(path=sub/x)", names), "w", given(path));
        assert_eq!(denied(Windows), Some(Behavior::Deny), "{path}");
        assert_eq!(denied(Folded), None, "{path}");
    }
    let mut several = rules(Behavior::Deny, r"w(path=SUB\*)", Windows);
    several.add(Rule::new(Behavior::Allow, "w".parse().unwrap(), "test"));
    assert_eq!(decision(&several, "w", given("sub/x")), Some(Behavior::Deny));
    assert_eq!(decision(&several, "w", json!({"path": ["other", "sub/x"]})), Some(Behavior::Deny));
    assert_eq!(decision(&several, "w", given("other")), Some(Behavior::Allow));
    assert_eq!(decision(&rules(Behavior::Deny, "w(path=*:*)", Windows), "w", given("a")), None);
}

#[test]
fn an_absent_argument_is_denied_by_its_default() {
    let mut tool = tool("w");
    tool.parameters = Some(json!({"properties": {"mode": {"default": "all"}}}));
    let grant = Grant::new(&tool, &Allowed::default(), &HashMap::new()).unwrap();
    let deny = rules(&[(Behavior::Deny, "w(mode=all)")]);
    assert!(matches!(deny.decide(&tool, &grant, &json!({})), RuleDecision::Deny(_)));
}

#[test]
fn a_denial_of_an_alias_is_one_of_the_tool_and_an_allowance_is_not() {
    let by_alias = |behavior| decision(&rules(&[(behavior, "other")]), "w", json!({}));
    assert_eq!(by_alias(Behavior::Deny), Some(Behavior::Deny));
    assert_eq!(by_alias(Behavior::Ask), Some(Behavior::Ask));
    assert_eq!(by_alias(Behavior::Allow), None);
    assert!(rules(&[(Behavior::Deny, "oth*")]).blocks(&tool("w")).is_some());
}

#[test]
fn a_denial_wins_and_an_allowance_answers_a_question() {
    use Behavior::{Allow, Ask, Deny};
    let rules = rules(&[(Ask, "fs_*"), (Allow, "fs_read_*"), (Allow, "*"), (Deny, "fs_rm")]);
    assert_eq!(decision(&rules, "fs_rm", json!({})), Some(Deny));
    assert_eq!(decision(&rules, "fs_stat", json!({})), Some(Allow));
    assert_eq!(rules.blocks(&tool("fs_rm")).unwrap().to_string(), "deny fs_rm (test)");
}

#[test]
fn a_path_is_matched_by_its_meaning() {
    let deny = rules(&[(Behavior::Deny, "w(path=secrets/*)")]);
    for path in ["secrets/a", "./secrets/a", "x/../secrets/a", "/secrets/a", "secrets//a", r"secrets\a"] {
        assert_eq!(decision(&deny, "w", json!({ "path": path })), Some(Behavior::Deny), "{path}");
    }
    let allow = rules(&[(Behavior::Allow, "w(path=out/*)")]);
    assert_eq!(decision(&allow, "w", json!({"path": "out/a"})), Some(Behavior::Allow));
    for path in ["out/../a", "a/../out/b/../../c", "./out/a"] {
        assert_eq!(decision(&allow, "w", json!({ "path": path })), None, "{path}");
    }
}

#[test]
fn of_several_values_one_denies_and_all_allow() {
    let arguments = json!({"paths": ["out/a", "etc/b"]});
    assert_eq!(decision(&rules(&[(Behavior::Deny, "w(paths=etc/*)")]), "w", arguments.clone()), Some(Behavior::Deny));
    assert_eq!(decision(&rules(&[(Behavior::Allow, "w(paths=out/*)")]), "w", arguments), None);
    assert_eq!(decision(&rules(&[(Behavior::Allow, "w(paths=*)")]), "w", json!({"paths": []})), None);
}

#[test]
fn arguments_are_named_by_key_or_pointer_and_quoted_where_needed() {
    let rules = rules(&[(Behavior::Deny, r#"q(/a/b="x,y)z*", n=4?)"#)]);
    assert_eq!(decision(&rules, "q", json!({"a": {"b": "x,y)z!"}, "n": 42})), Some(Behavior::Deny));
    assert_eq!(decision(&rules, "q", json!({"a": {"b": "x,y)z!"}})), None);
}

#[test]
fn a_rule_at_the_end_asks_nothing_before_and_only_an_ask_rule_is_one() {
    let (mut rules, tool) = (Rules::default(), tool("w"));
    rules.add(Rule::new(Behavior::Ask, "w".parse().unwrap(), "test").at_end());
    let grant = Grant::new(&tool, &Allowed::default(), &HashMap::new()).unwrap();
    assert_eq!(decision(&rules, "w", json!({})), None);
    assert_eq!(rules.at_end(&tool, &grant, &json!({})).unwrap().to_string(), "stage w (test)");
    rules.add(Rule::new(Behavior::Ask, "w(path=a)".parse().unwrap(), "test").holding_requests());
    assert_eq!(rules.at_end(&tool, &grant, &json!({"path": "a"})).unwrap().verb(), "hold", "the one that holds most");
    assert!(!rules.at_end(&tool, &grant, &json!({"path": "b"})).unwrap().holds_requests());
    rules.add(Rule::new(Behavior::Deny, "w".parse().unwrap(), "test").at_end());
    assert_eq!(decision(&rules, "w", json!({})), Some(Behavior::Deny));
}
