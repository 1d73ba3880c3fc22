//! Command line of a program that takes arguments instead of JSON, and the form of its output. A call's arguments fill the
//! placeholders of a command line; each placeholder is a part of one argument of the program, and no shell reads it.

mod schema;
mod template;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

pub use template::{Template, TemplateError};

/// Maximum number of arguments of a program.
pub(crate) const MAX_ARGUMENTS: usize = 1000;
/// Maximum total bytes of the arguments of a program.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 128 << 10;
/// Maximum bytes of the text for standard input.
const MAX_STDIN_BYTES: usize = 16 << 20;
/// Argument after which most programs take no more options.
pub(crate) const END_OF_OPTIONS: &str = "--";

/// Command line of a program. By default, the program reads the call's arguments as JSON from standard input, writes one line of
/// JSON, and succeeds with exit code 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct CommandLine {
    /// Arguments after the fixed ones; `None` for a program that reads JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<ArgvItem>>,
    /// Text for standard input; `None` for the call's arguments as JSON, or for nothing if there is `argv`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Template>,
    /// Form of standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputForm>,
    /// Exit codes of a success; empty for 0 alone.
    #[serde(rename = "successCodes", skip_serializing_if = "BTreeSet::is_empty")]
    pub success_codes: BTreeSet<i32>,
}

/// Arguments of a program that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ArgvItem {
    /// One argument. If it is a placeholder alone, an array becomes an argument for each of its items, and `null` or an absent
    /// argument none.
    One(Template),
    /// Arguments that exist on a condition.
    Group(ArgvGroup),
}

/// Arguments that exist if an argument of the call is given, and is neither `null` nor `false`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ArgvGroup {
    /// Argument of the call.
    #[serde(flatten)]
    pub condition: GroupCondition,
    /// Arguments of the program.
    pub argv: Vec<Template>,
    /// `true` if a value may begin with `-`, and so be an option of the program.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub options: bool,
}

/// Condition of a group, by the name of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum GroupCondition {
    /// Once if the argument is given.
    When(String),
    /// Once for each item of the argument, which its placeholder then stands for.
    Each(String),
}

/// Form of a program's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OutputForm {
    /// One JSON value, on one line or more.
    Json,
    /// A JSON value on each line: the result is an array of them.
    JsonLines,
    /// Text: the result is a string.
    Text,
    /// Lines of text: the result is an array of strings.
    Lines,
    /// Any bytes: the result is a string of base64.
    Bytes,
}

impl OutputForm {
    /// Every form, with its name.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("json", Self::Json),
        ("json-lines", Self::JsonLines),
        ("text", Self::Text),
        ("lines", Self::Lines),
        ("bytes", Self::Bytes),
    ];

    /// Returns the name of the form.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|form| form.1 == self).map_or("", |form| form.0)
    }

    /// Returns the JSON Schema of each result in this form; `None` if a result can have any type.
    pub fn schema(self) -> Option<Value> {
        let schema = match self {
            Self::Json => return None,
            Self::JsonLines => serde_json::json!({ "type": "array" }),
            Self::Text => serde_json::json!({ "type": "string" }),
            Self::Lines => serde_json::json!({ "type": "array", "items": { "type": "string" } }),
            Self::Bytes => serde_json::json!({ "type": "string", "contentEncoding": "base64" }),
        };
        Some(schema)
    }
}

impl GroupCondition {
    /// Returns the name of the argument.
    pub fn argument(&self) -> &str {
        match self {
            Self::When(name) | Self::Each(name) => name,
        }
    }
}

impl CommandLine {
    /// Creates the command line of a program that gets the arguments `argv` and the text `stdin` of a call as they are, and whose
    /// output is text.
    pub fn passthrough() -> Self {
        let argv = ArgvGroup {
            condition: GroupCondition::Each("argv".to_owned()),
            argv: vec![Template::placeholder("argv")],
            options: true,
        };
        Self {
            argv: Some(vec![ArgvItem::Group(argv)]),
            stdin: Some(Template::placeholder("stdin")),
            output: Some(OutputForm::Text),
            success_codes: BTreeSet::new(),
        }
    }

    /// Returns `true` if this exit code is a success.
    pub(crate) fn is_success(&self, exit: i32) -> bool {
        match self.success_codes.is_empty() {
            true => exit == 0,
            false => self.success_codes.contains(&exit),
        }
    }

    /// Returns the program's arguments after the `fixed` ones.
    ///
    /// # Errors
    ///
    /// A message for the model: a value that would be an option, a NUL character, or more than a program takes.
    pub(crate) fn arguments(&self, fixed: &[String], call: &Value) -> Result<Vec<String>, String> {
        let options_end = fixed.iter().any(|fixed| fixed == END_OF_OPTIONS);
        let mut words = ArgumentList { options_end, ..ArgumentList::default() };
        for item in self.argv.iter().flatten() {
            match item {
                ArgvItem::One(template) => match template.as_placeholder().map(|name| (name, call.get(name))) {
                    None => words.add(template, call, None, false)?,
                    Some((_, None | Some(Value::Null))) => {}
                    Some((name, Some(Value::Array(items)))) => {
                        items.iter().try_for_each(|item| words.add(template, call, Some((name, item)), false))?;
                    }
                    Some(_) => words.add(template, call, None, false)?,
                },
                ArgvItem::Group(group) => words.add_group(group, call)?,
            }
        }
        Ok(words.words)
    }

    /// Returns the text for the program's standard input; `None` for the call's arguments as JSON.
    ///
    /// # Errors
    ///
    /// See [`CommandLine::check_stdin`].
    pub(crate) fn stdin(&self, call: &Value) -> Result<Option<String>, String> {
        self.check_stdin(call)?;
        let Some(template) = &self.stdin else { return Ok(self.argv.is_some().then(String::new)) };
        Ok(Some(template.fill(|name| call.get(name))))
    }

    /// Checks the length of the text for standard input.
    ///
    /// # Errors
    ///
    /// A message for the model: it is longer than a program reads, or has a number that was rounded.
    pub(crate) fn check_stdin(&self, call: &Value) -> Result<(), String> {
        let mut names = self.stdin.iter().flat_map(Template::placeholders);
        if let Some(name) = names.find(|name| call.get(*name).is_some_and(is_rounded)) {
            return Err(rounded(name));
        }
        match self.stdin.iter().all(|template| template.length(|name| call.get(name)) <= MAX_STDIN_BYTES) {
            true => Ok(()),
            false => Err(format!("the program would read more than {MAX_STDIN_BYTES} bytes")),
        }
    }
}

/// Arguments of a program so far.
#[derive(Default)]
struct ArgumentList {
    words: Vec<String>,
    bytes: usize,
    /// Repetitions of groups.
    groups: usize,
    /// `true` after an argument `--` of the command line itself.
    options_end: bool,
}

impl ArgumentList {
    fn add_group(&mut self, group: &ArgvGroup, call: &Value) -> Result<(), String> {
        let name = group.condition.argument();
        let value = match call.get(name) {
            None | Some(Value::Null | Value::Bool(false)) => return Ok(()),
            Some(value) => value,
        };
        let mut add = |bound| {
            self.groups += 1;
            if self.groups > MAX_ARGUMENTS {
                return Err(too_many());
            }
            group.argv.iter().try_for_each(|template| self.add(template, call, bound, group.options))
        };
        match (&group.condition, value) {
            (GroupCondition::Each(_), Value::Array(items)) => items.iter().try_for_each(|item| add(Some((name, item)))),
            _ => add(None),
        }
    }

    /// Adds one argument; `bound` is the value that stands for an argument of the call.
    fn add(
        &mut self,
        template: &Template,
        call: &Value,
        bound: Option<(&str, &Value)>,
        options: bool,
    ) -> Result<(), String> {
        let value = |name: &str| bound.filter(|bound| bound.0 == name).map(|bound| bound.1).or_else(|| call.get(name));
        if self.words.len() == MAX_ARGUMENTS || template.length(value) > MAX_ARGUMENT_BYTES - self.bytes {
            return Err(too_many());
        }
        if let Some(name) = template.placeholders().find(|name| value(name).is_some_and(is_rounded)) {
            return Err(rounded(name));
        }
        let word = template.fill(value);
        if let Some(name) = template.placeholders().find(|_| word.contains('\0')) {
            return Err(format!("{name}: an argument of a program cannot have the character NUL"));
        }
        let is_option = word.len() > 1 && word.starts_with('-');
        if let Some(name) = template.first_if_placeholder().filter(|_| is_option && !options && !self.options_end) {
            return Err(format!("{name}: a value that begins with `-` would be an option of the program"));
        }
        self.options_end |= template.as_text() == Some(END_OF_OPTIONS);
        self.bytes += word.len();
        self.words.push(word);
        Ok(())
    }
}

/// Returns `true` for a value with an integer beyond 64 bits: it was rounded when it was parsed.
fn is_rounded(value: &Value) -> bool {
    /// Least and greatest integers of 64 bits, as far as they are parsed as such.
    const LEAST: f64 = -9_223_372_036_854_775_808.0;
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    match value {
        Value::Number(number) => {
            number.is_f64() && number.as_f64().is_some_and(|number| number >= BEYOND || number <= LEAST)
        }
        Value::Array(items) => items.iter().any(is_rounded),
        Value::Object(members) => members.values().any(is_rounded),
        _ => false,
    }
}

fn rounded(name: &str) -> String {
    format!("{name}: a number beyond 64 bits would reach the program with other digits; pass it as a string")
}

fn too_many() -> String {
    format!("the program would get more than {MAX_ARGUMENTS} arguments or {MAX_ARGUMENT_BYTES} bytes of them")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(text: &str) -> Template {
        text.parse().unwrap()
    }

    fn search() -> CommandLine {
        let group = |condition, argv: &[&str]| {
            ArgvItem::Group(ArgvGroup {
                condition,
                argv: argv.iter().map(|text| template(text)).collect(),
                options: false,
            })
        };
        let argv = vec![
            ArgvItem::One(template("--line-number")),
            group(GroupCondition::When("ignore_case".into()), &["-i"]),
            group(GroupCondition::When("limit".into()), &["--max-count", "{limit}"]),
            group(GroupCondition::Each("globs".into()), &["--glob={globs}"]),
            ArgvItem::One(template("{pattern}")),
            ArgvItem::One(template("{paths}")),
        ];
        CommandLine { argv: Some(argv), ..CommandLine::default() }
    }

    fn arguments(line: &CommandLine, call: &Value) -> Result<Vec<String>, String> {
        line.arguments(&[], call)
    }

    #[test]
    fn placeholders_become_arguments() {
        let arguments = |call: Value| arguments(&search(), &call).unwrap();
        assert_eq!(arguments(json!({"pattern": "a b"})), ["--line-number", "a b"]);
        let whole =
            json!({"pattern": "$(x)", "ignore_case": true, "limit": 3, "globs": ["*.rs", "-x"], "paths": ["a", "b"]});
        let expected = ["--line-number", "-i", "--max-count", "3", "--glob=*.rs", "--glob=-x", "$(x)", "a", "b"];
        assert_eq!(arguments(whole), expected);
        let off = json!({"pattern": "x", "ignore_case": false, "limit": null, "globs": [], "paths": "one"});
        assert_eq!(arguments(off), ["--line-number", "x", "one"]);
    }

    #[test]
    fn a_value_is_no_option_unless_the_command_line_allows_it() {
        let refused = |call: Value| arguments(&search(), &call).unwrap_err();
        let message = "pattern: a value that begins with `-` would be an option of the program";
        assert_eq!(refused(json!({"pattern": "--pre=x"})), message);
        assert!(refused(json!({"pattern": "x", "paths": ["a", "-f"]})).starts_with("paths: a value"));
        assert!(refused(json!({"pattern": "x", "limit": -1})).starts_with("limit: a value"));
        assert_eq!(arguments(&search(), &json!({"pattern": "-"})).unwrap(), ["--line-number", "-"]);
        let line = |argv: &[&str]| {
            let argv = argv.iter().map(|text| ArgvItem::One(template(text))).collect();
            CommandLine { argv: Some(argv), ..CommandLine::default() }
        };
        assert_eq!(arguments(&line(&["--", "{pattern}"]), &json!({"pattern": "-x"})).unwrap(), ["--", "-x"]);
        // A value `--` ends no options.
        let own = line(&["{first}", "{pattern}"]);
        assert!(arguments(&own, &json!({"first": "--", "pattern": "-x"})).is_err());
        let any = CommandLine::passthrough();
        assert_eq!(arguments(&any, &json!({"argv": ["-n", "--", "{x}"]})).unwrap(), ["-n", "--", "{x}"]);
    }

    #[test]
    fn what_no_program_can_get_is_refused() {
        let refused = |call: Value| arguments(&search(), &call).unwrap_err();
        assert!(refused(json!({"pattern": "a\0b"})).starts_with("pattern: an argument of a program"));
        let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (call, name) in [
            (r#"{"pattern": 18446744073709551616}"#, "pattern"),
            (r#"{"pattern": "x", "paths": [1, [-1e300]]}"#, "paths"),
            (r#"{"pattern": -9223372036854775809}"#, "pattern"),
            (r#"{"pattern": {"a": 12345678901234567890123}}"#, "pattern"),
        ] {
            assert!(refused(parsed(call)).starts_with(&format!("{name}: a number beyond 64 bits")), "{call}");
        }
        let whole = arguments(&search(), &parsed(r#"{"pattern": 18446744073709551615, "paths": [0.5]}"#)).unwrap();
        assert_eq!(whole[1..], ["18446744073709551615", "0.5"]);
        let many = vec!["x"; MAX_ARGUMENTS];
        assert!(refused(json!({"pattern": "x", "paths": many})).starts_with("the program would get more than"));
        let long = "x".repeat(MAX_ARGUMENT_BYTES);
        assert!(refused(json!({"pattern": long})).starts_with("the program would get more than"));
        let line = CommandLine { stdin: Some(template(&"{text}".repeat(10_000))), ..CommandLine::default() };
        let text = "x".repeat(MAX_STDIN_BYTES / 2);
        assert!(line.stdin(&json!({"text": text})).unwrap_err().starts_with("the program would read more than"));
        let line = CommandLine { stdin: Some(template("{text}")), ..CommandLine::default() };
        assert_eq!(line.stdin(&parsed(r#"{"text": 1e20}"#)).unwrap_err(), rounded("text"));
        let empty = ArgvGroup { condition: GroupCondition::Each("n".into()), argv: Vec::new(), options: false };
        let line = CommandLine { argv: Some(vec![ArgvItem::Group(empty)]), ..CommandLine::default() };
        assert!(arguments(&line, &json!({"n": vec![0; MAX_ARGUMENTS + 1]})).is_err(), "a repetition of nothing counts");
    }

    #[test]
    fn standard_input_is_json_unless_the_command_line_says_otherwise() {
        let call = json!({"text": "a\nb", "n": 1, "pattern": "x"});
        let stdin = |line: CommandLine| line.stdin(&call).unwrap();
        assert_eq!(stdin(CommandLine::default()), None);
        assert_eq!(stdin(search()).as_deref(), Some(""));
        let text = CommandLine { stdin: Some(template("{text}{gone}{n}")), ..CommandLine::default() };
        assert_eq!(stdin(text).as_deref(), Some("a\nb1"));
    }

    #[test]
    fn exit_codes_of_a_success_are_stated_or_zero() {
        let codes =
            |codes: &[i32]| CommandLine { success_codes: codes.iter().copied().collect(), ..CommandLine::default() };
        assert!(codes(&[]).is_success(0) && !codes(&[]).is_success(1));
        assert!(codes(&[0, 1]).is_success(1) && !codes(&[1]).is_success(0));
    }
}
