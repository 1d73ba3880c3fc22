//! Rules over calls: allow, ask or deny, by the tool's name and by its arguments. A denial wins over everything, an
//! allowance over a question.
//!
//! A rule is written `NAME` or `NAME(ARGUMENT=PATTERN, …)`. In `NAME` and `PATTERN`, `*` stands for any text, also an
//! empty one and one with `/`, and `?` for one character; a pattern with `,` or `)` stands in double quotes. An argument
//! is named by its key, or by a JSON pointer such as `/options/mode`. Text is looked at as it was written and as a path:
//! with `.` and `..` resolved, and with and without the name of the first granted folder. To deny or to ask, one of these
//! readings has to match; to allow, all of them, and no `..` may stand in it.

mod argv;
mod dead;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

use crate::call::Behavior;
use crate::schema::step;
use crate::tool::{Glob, GlobError, Tool};

use super::Grant;

use argv::is_argv;
pub(crate) use argv::{Command, Sentence};
pub(crate) use dead::dead_condition;

/// The steps of looking at one value, and the bytes of a text that count as one more.
const STEPS: usize = 4;
const BYTES: usize = 4;

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
    tool: Glob,
    /// For each argument its pattern, as it was written and as the path that it means.
    arguments: Vec<(String, Vec<Glob>)>,
}

impl Rule {
    /// A rule that was written at `place`: a flag or a file.
    pub fn new(behavior: Behavior, pattern: Pattern, place: impl Into<String>) -> Self {
        Self { behavior, pattern, place: place.into() }
    }

    /// Whether it is about a call of a tool of this name.
    pub fn is_about(&self, tool: &str, arguments: &Value) -> bool {
        self.pattern.is_about_tool(tool) && self.fits(None, None, arguments)
    }

    /// Returns true where it is about a tool, by its name or, unless it allows, by one of its aliases.
    fn is_over(&self, tool: &Tool) -> bool {
        match self.behavior {
            Behavior::Allow => self.pattern.is_about_tool(&tool.name),
            _ => names(tool).any(|name| self.pattern.is_about_tool(name)),
        }
    }

    /// Whether its arguments fit. `root` is the name of the first granted folder, where it has one; an argument that is
    /// absent is what `schema` gives for it.
    fn fits(&self, root: Option<&str>, schema: Option<&Value>, arguments: &Value) -> bool {
        self.fits_where(|_| true, root, schema, arguments)
    }

    /// Returns true where those of its arguments fit whose names are `such`.
    fn fits_where(
        &self,
        such: impl Fn(&str) -> bool,
        root: Option<&str>,
        schema: Option<&Value>,
        arguments: &Value,
    ) -> bool {
        let certain = self.behavior == Behavior::Allow;
        self.pattern.arguments.iter().filter(|(name, _)| such(name)).all(|(name, globs)| {
            let given = match name.starts_with('/') {
                true => arguments.pointer(name),
                false => arguments.get(name),
            };
            let assumed = || schema?.get("properties")?.get(name.trim_start_matches('/'))?.get("default");
            let value = if certain { given } else { given.or_else(assumed) };
            value.is_some_and(|value| matches(globs, value, root, certain))
        })
    }
}

/// The rule as it was written, and where.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.behavior.as_str(), self.pattern.text, self.place)
    }
}

/// What rules say of a call.
#[derive(Debug)]
pub(crate) enum Judged {
    Deny(Arc<Rule>),
    Allow(Arc<Rule>),
    /// Every rule that asks; where there is none, no rule is about the call.
    Ask(Vec<Arc<Rule>>),
}

/// Rules in the order in which they were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Vec<Arc<Rule>>);

impl Rules {
    pub(crate) fn add(&mut self, rule: Rule) {
        self.0.push(Arc::new(rule));
    }

    /// What the rules say of a call. A denial or question about one of the tool's aliases is about the tool; an allowance
    /// has to name the tool itself. Large arguments take long: each of their values is counted as steps.
    pub(crate) fn judge(&self, tool: &Tool, grant: &Grant, arguments: &Value) -> Judged {
        let about = |behavior: Behavior| {
            let fits = move |rule: &&Arc<Rule>| rule.fits(grant.root(), tool.parameters.as_ref(), arguments);
            self.over(behavior, tool).filter(fits)
        };
        if let Some(rule) = about(Behavior::Deny).next() {
            return Judged::Deny(rule.clone());
        }
        if let Some(rule) = about(Behavior::Allow).next() {
            return Judged::Allow(rule.clone());
        }
        Judged::Ask(about(Behavior::Ask).cloned().collect())
    }

    /// The rules of one behavior over a tool, whatever they say of its arguments.
    fn over<'a, 'b>(&'a self, behavior: Behavior, tool: &'b Tool) -> impl Iterator<Item = &'a Arc<Rule>> + use<'a, 'b> {
        self.0.iter().filter(move |rule| rule.behavior == behavior && rule.is_over(tool))
    }

    /// The rule that denies every call of a tool, if one does.
    pub(crate) fn blocks(&self, tool: &Tool) -> Option<&Rule> {
        self.0.iter().map(AsRef::as_ref).find(|rule: &&Rule| {
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
            let quoted = glob.strip_prefix('"').and_then(|glob| glob.strip_suffix('"'));
            if quoted.is_none() && glob.contains(['(', ')', '"']) {
                return Err(format!("`{text}`: `{glob}` has to stand in double quotes"));
            }
            let glob = quoted.unwrap_or(glob);
            let path = resolved(glob, &['/']);
            let mut globs = vec![glob.parse::<Glob>().map_err(|error| error.to_string())?];
            if path != glob && !path.is_empty() {
                globs.push(path.parse().map_err(|error: GlobError| error.to_string())?);
            }
            arguments.push((argument.trim().to_owned(), globs));
        }
        Ok(Self { text: text.to_owned(), tool: name.parse().map_err(|error: GlobError| error.to_string())?, arguments })
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

/// Whether an argument matches. Of several values, one is enough to deny, and all are needed to be `certain`.
fn matches(globs: &[Glob], value: &Value, root: Option<&str>, certain: bool) -> bool {
    let fit = |text: &str| step(STEPS + text.len() / BYTES) && globs.iter().any(|glob| glob.is_match(text));
    if !step(STEPS) {
        return false;
    }
    match value {
        Value::Array(items) if certain => {
            !items.is_empty() && items.iter().all(|item| matches(globs, item, root, certain))
        }
        Value::Array(items) => items.iter().take_while(|_| step(STEPS)).any(|item| matches(globs, item, root, certain)),
        Value::String(text) => {
            // What `..` leads to, links decide; only a pattern for everything is certain of it.
            let climbs = text.split(['/', '\\']).any(|part| part == "..");
            let mut readings = [text.clone(), resolved(text, &['/']), resolved(text, &['/', '\\'])].into_iter();
            step(text.len() / BYTES);
            let fits = |reading: String| forms(&reading, root).any(|form| fit(&form));
            match certain {
                true if climbs => globs.iter().any(|glob| glob.is_everything()),
                true => readings.all(fits),
                false => readings.any(fits),
            }
        }
        // `1.0` and `1e0` are the integer 1.
        Value::Number(number) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
            match whole.map(|number| format!("{number:.0}")) {
                Some(whole) if certain => fit(&whole),
                whole => fit(&number.to_string()) || whole.is_some_and(|whole| fit(&whole)),
            }
        }
        other => fit(&other.to_string()),
    }
}

/// A path, and the other way to write it where the first granted folder has a name: with that name, or without.
fn forms(path: &str, root: Option<&str>) -> impl Iterator<Item = String> {
    let other = root.map(|root| {
        let named = path.trim_start_matches('/').strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        named.map_or_else(|| format!("{root}/{}", path.trim_start_matches('/')), str::to_owned)
    });
    std::iter::once(path.to_owned()).chain(other)
}

/// A path without `.`, `..` and doubled separators, seen from the guest's `/`.
fn resolved(text: &str, separators: &[char]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split(separators) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
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

    fn judged(rules: &Rules, name: &str, arguments: Value) -> Option<Behavior> {
        judged_in(rules, &Grant::new(&tool(name), &Allowed::default(), &HashMap::new()).unwrap(), name, arguments)
    }

    fn judged_in(rules: &Rules, grant: &Grant, name: &str, arguments: Value) -> Option<Behavior> {
        match rules.judge(&tool(name), grant, &arguments) {
            Judged::Deny(_) => Some(Behavior::Deny),
            Judged::Allow(_) => Some(Behavior::Allow),
            Judged::Ask(rules) => rules.first().map(|_| Behavior::Ask),
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
                let judged = judged_in(&deny, &grant, "w", json!({ "path": path }));
                assert_eq!(judged, Some(Behavior::Deny), "{written} {path}");
            }
            assert_eq!(judged_in(&deny, &grant, "w", json!({"path": "/other/secrets/a"})), None);
        }
        let allow = rules(&[(Behavior::Allow, "w(path=out/*)")]);
        assert_eq!(judged_in(&allow, &grant, "w", json!({"path": "out/a"})), Some(Behavior::Allow));
    }

    #[test]
    fn odd_spellings_of_a_path_or_number_are_no_way_round() {
        let deny = rules(&[(Behavior::Deny, "w(path=secrets/*)"), (Behavior::Deny, "n(n=1)")]);
        for path in ["x://../secrets/a", r"x\y/../secrets/b", "x:/../secrets/a"] {
            assert_eq!(judged(&deny, "w", json!({ "path": path })), Some(Behavior::Deny), "{path}");
        }
        let allow = rules(&[(Behavior::Allow, "w(path=out/*)")]);
        for path in ["out/x://../../secrets/d", r"out/a\b/../../secrets/x"] {
            assert_eq!(judged(&allow, "w", json!({ "path": path })), None, "{path}");
        }
        for number in [json!(1), json!(1.0), serde_json::from_str("1e0").unwrap()] {
            assert_eq!(judged(&deny, "n", json!({ "n": number })), Some(Behavior::Deny));
        }
    }

    #[test]
    fn a_pattern_means_a_path_however_it_is_written() {
        for pattern in ["/out/*", "./out/*", "out//*", "x/../out/*"] {
            let deny = rules(&[(Behavior::Deny, &format!("w(path={pattern})"))]);
            for path in ["out/a", "/out/a", "./out/a"] {
                assert_eq!(judged(&deny, "w", json!({ "path": path })), Some(Behavior::Deny), "{pattern} {path}");
            }
        }
        for pattern in ["out/", "/out"] {
            let deny = rules(&[(Behavior::Deny, &format!("w(path={pattern})"))]);
            assert_eq!(judged(&deny, "w", json!({"path": "out"})), Some(Behavior::Deny), "{pattern}");
        }
    }

    #[test]
    fn an_absent_argument_is_denied_by_its_default() {
        let mut tool = tool("w");
        tool.parameters = Some(json!({"properties": {"mode": {"default": "all"}}}));
        let grant = Grant::new(&tool, &Allowed::default(), &HashMap::new()).unwrap();
        let deny = rules(&[(Behavior::Deny, "w(mode=all)")]);
        assert!(matches!(deny.judge(&tool, &grant, &json!({})), Judged::Deny(_)));
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
        for text in ["", "(a=b)", "x(a=b", "x(a)", "a b", "x,y", "x(a=b))", "x(a=(b)"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
