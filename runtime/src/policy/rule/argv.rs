//! Rules over a program that a script runs. What the program gets is its standard input and its arguments, where a model's
//! call has one JSON object: the members of that input are the arguments that rules know, and `argv` stands for what is
//! given as arguments. A rule over anything else cannot judge them, and so lets nothing pass.

use std::sync::Arc;

use serde_json::Value;

use crate::policy::Grant;
use crate::schema;
use crate::tool::Tool;

use super::{Behavior, Rule, Rules};

/// The name under which rules and hooks see the arguments of a program.
const ARGV: &str = "argv";

/// Returns true where a rule means the arguments of a program, or one of them, by this name.
pub(super) fn is_argv(name: &str) -> bool {
    let name = name.strip_prefix('/').unwrap_or(name);
    name.split('/').next() == Some(ARGV)
}

/// What a script gives to a program, as rules and hooks see it.
#[derive(Debug)]
pub(crate) struct Command {
    /// The members of its standard input, where that is a JSON object, and `argv`.
    pub(crate) arguments: Arc<Value>,
    /// True where it may be given what stands in none of these members.
    pub(crate) is_opaque: bool,
    /// The bytes that were given.
    pub(crate) size: usize,
}

impl Command {
    /// Reads what a program is given. `argv` has each argument, and then all of them with a space between.
    pub(crate) fn new(stdin: &str, argv: &[String]) -> Self {
        let input = schema::parse(stdin).ok().and_then(|input| match input {
            Value::Object(members) => Some(members),
            _ => None,
        });
        let is_opaque = !argv.is_empty() || input.is_none();
        let mut arguments = input.unwrap_or_default();
        if !argv.is_empty() {
            let mut all: Vec<Value> = argv.iter().map(|one| Value::from(one.as_str())).collect();
            all.extend((argv.len() > 1).then(|| Value::from(argv.join(" "))));
            // A member of the input that is named so as well hides none of them.
            all.extend(arguments.remove(ARGV));
            arguments.insert(ARGV.to_owned(), Value::Array(all));
        }
        let size = stdin.len() + argv.iter().map(String::len).sum::<usize>();
        Self { arguments: Arc::new(Value::Object(arguments)), is_opaque, size }
    }
}

/// What rules say of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sentence {
    /// None denies it or asks about it.
    Pass,
    /// One denies it.
    Denied,
    /// One asks about it.
    Asked,
    /// One denies or asks by arguments that it cannot see.
    Unseen,
}

impl Rules {
    /// Judges a command of a tool's program.
    pub(crate) fn judge_command(&self, tool: &Tool, grant: &Grant, command: &Command) -> Sentence {
        let fits = |rule: &Arc<Rule>| rule.fits(grant.root(), tool.parameters.as_ref(), &command.arguments);
        // What a rule says of `argv` it can judge: where that does not fit, the rule is not about this command.
        let misses = |rule: &Arc<Rule>| {
            command.is_opaque
                && rule.names_beside_argv()
                && rule.fits_where(is_argv, grant.root(), None, &command.arguments)
        };
        // An allowance by the input alone knows nothing of arguments beside it.
        let certain = |rule: &&Arc<Rule>| !command.is_opaque || !rule.names_beside_argv() || rule.names_argv();
        if self.over(Behavior::Deny, tool).any(fits) {
            Sentence::Denied
        } else if self.over(Behavior::Deny, tool).any(misses) {
            Sentence::Unseen
        } else if self.over(Behavior::Allow, tool).filter(certain).any(fits) {
            Sentence::Pass
        } else if self.over(Behavior::Ask, tool).any(fits) {
            Sentence::Asked
        } else if self.over(Behavior::Ask, tool).any(misses) {
            Sentence::Unseen
        } else {
            Sentence::Pass
        }
    }
}

impl Rule {
    fn names_argv(&self) -> bool {
        self.pattern.arguments.iter().any(|(name, _)| is_argv(name))
    }

    fn names_beside_argv(&self) -> bool {
        self.pattern.arguments.iter().any(|(name, _)| !is_argv(name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;
    use crate::policy::Allowed;
    use crate::tool::tests::plain;

    fn sentence(rules: &[(Behavior, &str)], stdin: &str, argv: &[&str]) -> Sentence {
        let tool = plain("rm");
        let grant = Grant::new(&tool, &Allowed::default(), &HashMap::new()).unwrap();
        let mut all = Rules::default();
        rules.iter().for_each(|(behavior, text)| all.add(Rule::new(*behavior, text.parse().unwrap(), "test")));
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        all.judge_command(&tool, &grant, &Command::new(stdin, &argv))
    }

    /// Returns true where a command is let pass by one rule.
    fn passes(behavior: Behavior, rule: &str, stdin: &str, argv: &[&str]) -> bool {
        sentence(&[(behavior, rule)], stdin, argv) == Sentence::Pass
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
        for (allow, sentenced) in [
            ("rm", Sentence::Pass),
            ("rm(argv=-v)", Sentence::Pass),
            ("rm(path=out/*, argv=-v)", Sentence::Pass),
            ("rm(path=out/*)", Sentence::Asked),
            ("rm(argv=-q)", Sentence::Asked),
        ] {
            let rules = [ask, (Behavior::Allow, allow)];
            assert_eq!(sentence(&rules, r#"{"path":"out/a"}"#, &["-v"]), sentenced, "{allow}");
        }
        let rules = [(Behavior::Deny, "rm(path=secrets/*)"), (Behavior::Allow, "rm(argv=-v)")];
        assert_eq!(sentence(&rules, "", &["-v"]), Sentence::Unseen, "no allowance stands against a denial");
    }

    #[test]
    fn a_member_of_the_input_hides_no_argument() {
        let command = Command::new(r#"{"argv":["x"],"n":1}"#, &["a".to_owned(), "b".to_owned()]);
        assert_eq!(*command.arguments, json!({"n": 1, "argv": ["a", "b", "a b", ["x"]]}));
        assert!(!passes(Behavior::Deny, "rm(argv=x)", r#"{"argv":["x"]}"#, &["a"]));
        assert!(passes(Behavior::Deny, "rm(argv=x)", r#"{"argv":["y"]}"#, &["a"]));
    }
}
