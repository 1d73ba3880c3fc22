//! Rules over calls: allow, ask or deny, by the tool's name and by its arguments. A denial wins over everything, an
//! allowance over a question.
//!
//! A rule is written `NAME` or `NAME(ARGUMENT=PATTERN, …)`. In `NAME` and `PATTERN`, `*` stands for any text, also an
//! empty one and one with `/`, and `?` for one character; a pattern with `,` or `)` stands in double quotes. An argument
//! is named by its key, or by a JSON pointer such as `/options/mode`. An argument that is a path is looked at as it was
//! written and with `.` and `..` resolved: to deny, one of the two has to match; to allow, both.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use regex::Regex;
use serde_json::Value;

use crate::call::Behavior;
use crate::tool::Tool;

/// A rule over calls.
#[derive(Debug, Clone)]
pub struct Rule {
    behavior: Behavior,
    pattern: Pattern,
    place: String,
}

/// Which calls a rule is about.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    tool: Regex,
    arguments: Vec<(String, Regex)>,
}

impl Rule {
    /// A rule that was written at `place`: a flag or a file.
    pub fn new(behavior: Behavior, pattern: Pattern, place: impl Into<String>) -> Self {
        Self { behavior, pattern, place: place.into() }
    }

    /// Whether it is about this call.
    pub fn is_about(&self, tool: &str, arguments: &Value) -> bool {
        let certain = self.behavior == Behavior::Allow;
        self.pattern.is_about_tool(tool)
            && self.pattern.arguments.iter().all(|(name, glob)| {
                let value = match name.starts_with('/') {
                    true => arguments.pointer(name),
                    false => arguments.get(name),
                };
                value.is_some_and(|value| matches(glob, value, certain))
            })
    }
}

/// The rule as it was written, and where.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.behavior.as_str(), self.pattern.text, self.place)
    }
}

/// Rules in the order in which they were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Vec<Rule>);

impl Rules {
    pub(crate) fn add(&mut self, rule: Rule) {
        self.0.push(rule);
    }

    /// The rule that decides about a call, if one does. A denial or question about one of the tool's aliases is about the
    /// tool; an allowance has to name the tool itself.
    pub(crate) fn judge(&self, tool: &Tool, arguments: &Value) -> Option<(Behavior, &Rule)> {
        let is_about = |rule: &Rule| match rule.behavior {
            Behavior::Allow => rule.is_about(&tool.name, arguments),
            _ => names(tool).any(|name| rule.is_about(name, arguments)),
        };
        let first = |behavior| self.0.iter().find(|rule| rule.behavior == behavior && is_about(rule));
        [Behavior::Deny, Behavior::Allow, Behavior::Ask].into_iter().find_map(|one| Some((one, first(one)?)))
    }

    /// The rule that denies every call of a tool, if one does.
    pub(crate) fn blocks(&self, tool: &Tool) -> Option<&Rule> {
        self.0.iter().find(|rule| {
            let Rule { behavior, pattern, .. } = rule;
            *behavior == Behavior::Deny
                && pattern.arguments.is_empty()
                && names(tool).any(|name| pattern.is_about_tool(name))
        })
    }
}

fn names(tool: &Tool) -> impl Iterator<Item = &str> {
    std::iter::once(&tool.name).chain(&tool.interface.identity.aliases.value).map(String::as_str)
}

impl Pattern {
    /// Whether it is about a tool of this name, with whatever arguments.
    pub fn is_about_tool(&self, name: &str) -> bool {
        self.tool.is_match(name)
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (name, list) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let list = rest.strip_suffix(')').ok_or_else(|| format!("`{text}`: the last `)` is missing"))?;
                (name.trim(), Some(list))
            }
        };
        if name.is_empty() || name.contains([' ', ',', '=', ')']) {
            return Err(format!("`{text}`: write it like `fs_*` or `fs_write_file(path=out/*)`"));
        }
        let mut arguments = Vec::new();
        for part in split(list.unwrap_or_default()) {
            let (argument, glob) =
                part.split_once('=').ok_or_else(|| format!("`{text}`: `{}` is not like `path=out/*`", part.trim()))?;
            let glob = glob.trim();
            let glob = glob.strip_prefix('"').and_then(|glob| glob.strip_suffix('"')).unwrap_or(glob);
            arguments.push((argument.trim().to_owned(), regex(glob)?));
        }
        Ok(Self { text: text.to_owned(), tool: regex(name)?, arguments })
    }
}

/// The parts between commas that stand outside quotes.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let parts = list.split(move |c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    parts.filter(|part| !part.trim().is_empty())
}

fn regex(glob: &str) -> Result<Regex, String> {
    let mut text = String::from(r"(?s)\A");
    for c in glob.chars() {
        match c {
            '*' => text.push_str(".*"),
            '?' => text.push('.'),
            c => text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    text.push_str(r"\z");
    Regex::new(&text).map_err(|_| format!("`{glob}` is too long for a pattern"))
}

/// Whether an argument matches. Of several values, one is enough to deny, and all are needed to be `certain`.
fn matches(glob: &Regex, value: &Value, certain: bool) -> bool {
    match value {
        Value::Array(items) if certain => !items.is_empty() && items.iter().all(|item| matches(glob, item, certain)),
        Value::Array(items) => items.iter().any(|item| matches(glob, item, certain)),
        Value::String(text) => {
            let (written, resolved) = (glob.is_match(text), glob.is_match(&resolved(text)));
            if certain { written && resolved } else { written || resolved }
        }
        other => glob.is_match(&other.to_string()),
    }
}

/// A path without `.`, `..` and doubled `/`, as the guest's `/` sees it; what is no path stays as it is.
fn resolved(text: &str) -> Cow<'_, str> {
    if !text.contains(['/', '\\']) && text != "." && text != ".." {
        return Cow::Borrowed(text);
    }
    if text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Cow::Owned(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(texts: &[(Behavior, &str)]) -> Rules {
        let rule = |(behavior, text): &(Behavior, &str)| Rule::new(*behavior, text.parse().unwrap(), "test");
        Rules(texts.iter().map(rule).collect())
    }

    fn tool(name: &str) -> Tool {
        let mut tool = crate::tool::tests::plain(name);
        tool.interface.identity.aliases.value = vec!["other".to_owned()];
        tool
    }

    fn judged(rules: &Rules, name: &str, arguments: Value) -> Option<Behavior> {
        rules.judge(&tool(name), &arguments).map(|(behavior, _)| behavior)
    }

    #[test]
    fn a_denial_of_an_alias_is_one_of_the_tool_and_an_allowance_is_not() {
        let by_alias = |behavior| judged(&rules(&[(behavior, "other")]), "w", json!({}));
        assert_eq!(by_alias(Behavior::Deny), Some(Behavior::Deny));
        assert_eq!(by_alias(Behavior::Ask), Some(Behavior::Ask));
        assert_eq!(by_alias(Behavior::Allow), None);
        assert!(rules(&[(Behavior::Deny, "oth*")]).blocks(&tool("w")).is_some());
    }

    #[test]
    fn a_denial_wins_and_an_allowance_answers_a_question() {
        use Behavior::{Allow, Ask, Deny};
        let rules = rules(&[(Ask, "fs_*"), (Allow, "fs_read_*"), (Allow, "*"), (Deny, "fs_rm")]);
        assert_eq!(judged(&rules, "fs_rm", json!({})), Some(Deny));
        assert_eq!(judged(&rules, "fs_stat", json!({})), Some(Allow));
        assert_eq!(rules.blocks(&tool("fs_rm")).unwrap().to_string(), "deny fs_rm (test)");
    }

    #[test]
    fn a_path_is_judged_by_what_it_means() {
        let deny = rules(&[(Behavior::Deny, "w(path=secrets/*)")]);
        for path in ["secrets/a", "./secrets/a", "x/../secrets/a", "/secrets/a", "secrets//a", r"secrets\a"] {
            assert_eq!(judged(&deny, "w", json!({ "path": path })), Some(Behavior::Deny), "{path}");
        }
        let allow = rules(&[(Behavior::Allow, "w(path=out/*)")]);
        assert_eq!(judged(&allow, "w", json!({"path": "out/a"})), Some(Behavior::Allow));
        for path in ["out/../a", "a/../out/b/../../c", "./out/a"] {
            assert_eq!(judged(&allow, "w", json!({ "path": path })), None, "{path}");
        }
    }

    #[test]
    fn of_several_values_one_denies_and_all_allow() {
        let arguments = json!({"paths": ["out/a", "etc/b"]});
        assert_eq!(judged(&rules(&[(Behavior::Deny, "w(paths=etc/*)")]), "w", arguments.clone()), Some(Behavior::Deny));
        assert_eq!(judged(&rules(&[(Behavior::Allow, "w(paths=out/*)")]), "w", arguments), None);
        assert_eq!(judged(&rules(&[(Behavior::Allow, "w(paths=*)")]), "w", json!({"paths": []})), None);
    }

    #[test]
    fn arguments_are_named_by_key_or_pointer_and_quoted_where_needed() {
        let rules = rules(&[(Behavior::Deny, r#"q(/a/b="x,y)z*", n=4?)"#)]);
        assert_eq!(judged(&rules, "q", json!({"a": {"b": "x,y)z!"}, "n": 42})), Some(Behavior::Deny));
        assert_eq!(judged(&rules, "q", json!({"a": {"b": "x,y)z!"}})), None);
    }

    #[test]
    fn a_slip_is_an_error() {
        for text in ["", "(a=b)", "x(a=b", "x(a)", "a b", "x,y"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
