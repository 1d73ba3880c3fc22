//! Rules for programs that a script runs, or that have a command line. Such a program gets standard input and arguments instead of
//! one JSON object: rules see the members of its JSON input by name, and its arguments as `argv`. A rule for any other argument of
//! a program that a script runs cannot be evaluated, so the program does not run.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::policy::Grant;
use crate::schema;
use crate::tool::{Body, Tool};

use super::class::ToolClass;
use super::{Behavior, Rule, Rules};

/// Name of the program's arguments in rules and hooks.
const ARGV: &str = "argv";
/// Name of the program's standard input in rules, for a tool that gets arbitrary arguments.
const STDIN: &str = "stdin";

/// Returns `true` if an argument's name in a rule refers to a program's arguments, or to one of them.
pub(super) fn is_argv(name: &str) -> bool {
    let name = name.strip_prefix('/').unwrap_or(name);
    name.split('/').next() == Some(ARGV)
}

/// Input of a program, as rules and hooks see it.
#[derive(Debug)]
pub(crate) struct Command {
    /// The members of its standard input, if that is a JSON object, and `argv`.
    pub(crate) arguments: Arc<Value>,
    /// `true` if the program may get input that is in none of these members.
    pub(crate) is_opaque: bool,
    /// Total bytes of the input.
    pub(crate) size: usize,
}

impl Command {
    /// Converts the input of a program. `argv` has each argument, then all of them joined with spaces.
    pub(crate) fn new(stdin: &str, argv: &[String]) -> Self {
        let input = schema::parse(stdin).ok().and_then(|input| match input {
            Value::Object(members) => Some(members),
            _ => None,
        });
        let is_opaque = !argv.is_empty() || input.is_none();
        let mut arguments = input.unwrap_or_default();
        add_argv(&mut arguments, argv);
        let size = stdin.len() + argv.iter().map(String::len).sum::<usize>();
        Self { arguments: Arc::new(Value::Object(arguments)), is_opaque, size }
    }
}

/// Returns the arguments of a call as rules and hooks see them: those that a command line makes of them are in `argv`.
///
/// # Errors
///
/// The arguments do not fit the command line.
pub(crate) fn visible_arguments(tool: &Tool, arguments: &Arc<Value>) -> Result<Arc<Value>, String> {
    let Body::Command { command_line: Some(line), argv, .. } = &tool.body else { return Ok(arguments.clone()) };
    let fixed = argv.get(1..).unwrap_or_default();
    let argv: Vec<String> = fixed.iter().cloned().chain(line.arguments(fixed, arguments)?).collect();
    let mut members = arguments.as_object().cloned().unwrap_or_default();
    add_argv(&mut members, &argv);
    Ok(Arc::new(members.into()))
}

/// Returns `true` for the name of an argument that is visible if a tool gets arbitrary arguments and standard input.
pub(crate) fn is_visible_in_command_line(name: &str) -> bool {
    is_argv(name) || name == STDIN
}

/// Adds the arguments of a program as `argv`: each, and all of them joined with spaces. A member with the same name is appended.
fn add_argv(arguments: &mut Map<String, Value>, argv: &[String]) {
    if argv.is_empty() {
        return;
    }
    let mut all: Vec<Value> = argv.iter().map(|one| Value::from(one.as_str())).collect();
    all.extend((argv.len() > 1).then(|| Value::from(argv.join(" "))));
    all.extend(arguments.remove(ARGV));
    arguments.insert(ARGV.to_owned(), Value::Array(all));
}

/// Decision of the rules about a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandDecision {
    /// No deny or ask rule applies.
    Allow,
    /// A deny rule applies.
    Deny,
    /// An ask rule applies.
    Ask,
    /// A deny or ask rule depends on arguments that are not visible.
    Undecidable,
}

/// Script that runs a program, with its own grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptKind {
    /// A hook, about which nobody can be asked.
    Hook,
    /// A tool.
    Tool,
    /// A tool that may overwrite.
    OverwritingTool,
}

impl ScriptKind {
    /// Returns `true` if calls of the script were asked about by a rule that applies to the program too.
    fn was_asked(self, rule: &Rule) -> bool {
        match rule.pattern.class {
            // The program has the grant of the script, which so belongs to the class.
            Some(ToolClass::Writes) => self != Self::Hook,
            _ => self == Self::OverwritingTool,
        }
    }
}

impl Rules {
    /// Finds a rule that denies calls of a tool, or asks about them, by arguments that are not visible if the tool gets arbitrary
    /// arguments and standard input.
    pub(crate) fn over_hidden_arguments(&self, tool: &Tool) -> Option<&Rule> {
        let applies = |rule: &&Arc<Rule>| {
            rule.behavior != Behavior::Allow
                && rule.matches_tool(tool)
                && rule.pattern.arguments.iter().any(|pattern| !is_visible_in_command_line(&pattern.name))
        };
        self.0.iter().find(applies).map(AsRef::as_ref)
    }

    /// Decides about a run of a tool's program by a script with this grant, whose requests are held back if `holds` is `true`.
    pub(crate) fn decide_command(
        &self,
        (tool, grant, holds): (&Tool, &Grant, bool),
        script: ScriptKind,
        command: &Command,
    ) -> CommandDecision {
        let applies =
            |rule: &Arc<Rule>| rule.matches_arguments(grant.root(), tool.parameters.as_ref(), &command.arguments);
        // The `argv` of a rule is visible: if it does not match, the rule does not apply.
        let may_apply = |rule: &Arc<Rule>| {
            command.is_opaque
                && rule.names_other_than_argv()
                && rule.matches_selected(is_argv, grant.root(), None, &command.arguments)
        };
        // An allow rule for members of the input does not cover arguments of the program.
        let certain = |rule: &&Arc<Rule>| !command.is_opaque || !rule.names_other_than_argv() || rule.names_argv();
        // Where somebody answers, the call of such a script was asked about, and its programs have its grant.
        let is_stated = |rule: &Rule| rule.pattern.class.is_none_or(|class| class.is_stated(tool));
        let asks = |rule: &&Arc<Rule>| {
            // What the script has held back is asked about at its end.
            let is_held = rule.is_at_end() && grant.stage().is_some() && (holds || !rule.holds_requests());
            !is_held && (!(rule.where_answered && script.was_asked(rule)) || is_stated(rule))
        };
        if self.for_tool(Behavior::Deny, tool, grant).any(applies) {
            CommandDecision::Deny
        } else if self.for_tool(Behavior::Deny, tool, grant).any(may_apply) {
            CommandDecision::Undecidable
        } else if self.for_tool(Behavior::Allow, tool, grant).filter(certain).any(applies) {
            CommandDecision::Allow
        } else if self.for_tool(Behavior::Ask, tool, grant).filter(asks).any(applies) {
            CommandDecision::Ask
        } else if self.for_tool(Behavior::Ask, tool, grant).filter(asks).any(may_apply) {
            CommandDecision::Undecidable
        } else {
            CommandDecision::Allow
        }
    }
}

impl Rule {
    fn names_argv(&self) -> bool {
        self.pattern.arguments.iter().any(|pattern| is_argv(&pattern.name))
    }

    fn names_other_than_argv(&self) -> bool {
        self.pattern.arguments.iter().any(|pattern| !is_argv(&pattern.name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;
    use crate::policy::Allowed;
    use crate::tool::tests::plain;

    fn decision(rules: &[(Behavior, &str)], stdin: &str, argv: &[&str]) -> CommandDecision {
        let tool = plain("rm");
        let grant = Grant::new(&tool, &Allowed::default(), &HashMap::new()).unwrap();
        let mut all = Rules::default();
        rules.iter().for_each(|(behavior, text)| all.add(Rule::new(*behavior, text.parse().unwrap(), "test")));
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        all.decide_command((&tool, &grant, false), ScriptKind::Hook, &Command::new(stdin, &argv))
    }

    /// Returns `true` if one rule lets a program run.
    fn passes(behavior: Behavior, rule: &str, stdin: &str, argv: &[&str]) -> bool {
        decision(&[(behavior, rule)], stdin, argv) == CommandDecision::Allow
    }

    #[test]
    fn a_rule_over_argv_sees_each_argument_and_all_of_them_together() {
        for behavior in [Behavior::Deny, Behavior::Ask] {
            for rule in [
                "rm(argv=--force)",
                "rm(argv=*secret*)",
                "rm(argv=*-r /*)",
                "rm(argv=--force -r*)",
                "rm(/argv/0=--force)",
            ] {
                assert!(!passes(behavior, rule, "", &["--force", "-r", "/secrets"]), "{rule}");
            }
            assert!(passes(behavior, "rm(argv=--force)", "", &["-r", "notes"]));
            assert!(passes(behavior, "rm(argv=--force)", "", &[]), "without arguments there is nothing that matches");
            assert!(passes(behavior, "rm(argv=--force)", "not JSON", &[]));
        }
    }

    #[test]
    fn a_rule_over_other_arguments_lets_nothing_pass_that_it_cannot_see() {
        for behavior in [Behavior::Deny, Behavior::Ask] {
            let rule = "rm(path=secrets/*)";
            assert!(passes(behavior, rule, r#"{"path":"notes"}"#, &[]));
            for (stdin, argv) in [
                (r#"{"path":"secrets/a"}"#, &[] as &[_]),
                ("", &[]),
                ("", &["secrets/a"]),
                ("", &["--path=secrets/a"]),
                ("", &["notes"]),
                (r#"{"path":"notes"}"#, &["-v"]),
                ("[1]", &[]),
                ("secrets/a", &[]),
            ] {
                assert!(!passes(behavior, rule, stdin, argv), "{stdin} {argv:?}");
            }
        }
    }

    #[test]
    fn a_rule_over_both_is_about_commands_whose_argv_fits() {
        let rule = "rm(argv=--force, path=secrets/*)";
        assert!(passes(Behavior::Deny, rule, "", &["--gently", "secrets/a"]));
        assert!(!passes(Behavior::Deny, rule, "", &["--force", "secrets/a"]));
    }

    #[test]
    fn an_allowance_answers_a_question_only_where_it_sees_the_argv() {
        let ask = (Behavior::Ask, "rm");
        for (allow, expected) in [
            ("rm", CommandDecision::Allow),
            ("rm(argv=-v)", CommandDecision::Allow),
            ("rm(path=out/*, argv=-v)", CommandDecision::Allow),
            ("rm(path=out/*)", CommandDecision::Ask),
            ("rm(argv=-q)", CommandDecision::Ask),
        ] {
            let rules = [ask, (Behavior::Allow, allow)];
            assert_eq!(decision(&rules, r#"{"path":"out/a"}"#, &["-v"]), expected, "{allow}");
        }
        let rules = [(Behavior::Deny, "rm(path=secrets/*)"), (Behavior::Allow, "rm(argv=-v)")];
        assert_eq!(
            decision(&rules, "", &["-v"]),
            CommandDecision::Undecidable,
            "an allow rule does not override a deny rule"
        );
    }

    #[test]
    fn a_member_of_the_input_hides_no_argument() {
        let command = Command::new(r#"{"argv":["x"],"n":1}"#, &["a".to_owned(), "b".to_owned()]);
        assert_eq!(*command.arguments, json!({"n": 1, "argv": ["a", "b", "a b", ["x"]]}));
        assert!(!passes(Behavior::Deny, "rm(argv=x)", r#"{"argv":["x"]}"#, &["a"]));
        assert!(passes(Behavior::Deny, "rm(argv=x)", r#"{"argv":["y"]}"#, &["a"]));
    }

    #[test]
    fn a_script_runs_a_program_that_is_asked_about_at_its_end_only_in_a_stage() {
        let tool = crate::tool::tests::plain("rm");
        let grant = Grant::new(&tool, &Allowed::default(), &HashMap::new()).unwrap();
        let command = Command::new("", &[]);
        let ask = || Rule::new(Behavior::Ask, "rm".parse().unwrap(), "test");
        let decided = |rule: Rule, grant: &Grant, holds| {
            let mut rules = Rules::default();
            rules.add(rule);
            rules.decide_command((&tool, grant, holds), ScriptKind::Tool, &command)
        };
        for rule in [ask().at_end(), ask().holding_requests()] {
            assert_eq!(decided(rule, &grant, false), CommandDecision::Ask);
        }
        #[cfg(target_os = "linux")]
        {
            use toolcrib_staging::{Limits, Stages};
            let folder = tempfile::tempdir().unwrap();
            let staged = grant.within_call(Stages::new(folder.path()).open("one", Limits::default()).unwrap());
            assert_eq!(decided(ask().at_end(), &staged, false), CommandDecision::Allow);
            assert_eq!(decided(ask().holding_requests(), &staged, false), CommandDecision::Ask);
            assert_eq!(decided(ask().holding_requests(), &staged, true), CommandDecision::Allow);
        }
    }
}
