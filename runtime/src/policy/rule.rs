//! Rules for calls: allow, ask or deny, by the name of the tool and by its arguments. A deny rule overrides all others,
//! and an allow rule overrides an ask rule.
//!
//! A rule is written `NAME` or `NAME(ARGUMENT=PATTERN, …)`. In `NAME` and `PATTERN`, `*` matches any text, including
//! empty text and `/`, and `?` matches one character; a pattern with `,` or `)` is put in double quotes. An argument is
//! named by its key, or by a JSON pointer such as `/options/mode`. The text of an argument is compared as written and
//! as a path: with `.` and `..` resolved, and with and without the name of the first granted folder. A deny or ask rule
//! applies if one of these readings matches; an allow rule applies if all of them match and the text has no `..`. A number is
//! compared by its value, however it is written, and a missing argument by its default, else as `null`. On
//! systems on which several spellings are one file, a deny or ask rule also compares the text as their file systems do.

mod argv;
mod class;
mod dead;
mod path;
mod pattern;
mod spelling;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::call::Behavior;
use crate::schema::step;
use crate::tool::names::NameRules;
use crate::tool::{Glob, Tool, Trust};

use super::Grant;
use path::{is_resolved, matches_folded, resolve_path, spellings};

pub(crate) use argv::{Command, CommandDecision, ScriptKind, is_visible_in_command_line, visible_arguments};
pub(crate) use class::may_overwrite;
pub(crate) use dead::dead_condition;
pub use pattern::{Pattern, PatternError};
pub(crate) use spelling::{canonical as canonical_value, is_null, matches_number, means, plain as plain_number};

/// Steps counted for one value, and bytes of text that count as one more step.
const STEPS_PER_VALUE: usize = 4;
const BYTES_PER_STEP: usize = 4;

/// A rule for calls.
#[derive(Debug, Clone)]
pub struct Rule {
    behavior: Behavior,
    pattern: Pattern,
    /// Flag or file that has the rule.
    origin: String,
    /// `true` if an ask rule applies only where somebody can answer.
    where_answered: bool,
    /// `true` if an ask rule holds back what a call writes, and asks at its end.
    at_end: bool,
    /// `true` if it holds back requests too.
    holds_requests: bool,
}

impl Rule {
    /// Creates a rule from a pattern; `origin` names the flag or file that has it.
    pub fn new(behavior: Behavior, pattern: Pattern, origin: impl Into<String>) -> Self {
        Self { behavior, pattern, origin: origin.into(), where_answered: false, at_end: false, holds_requests: false }
    }

    /// Lets an ask rule ask at the end of a call, once about all that the call and the calls below it have written. Until then it is
    /// held back in a stage of the call; see [`Builder::call_stages`](crate::Builder::call_stages).
    #[must_use]
    pub fn at_end(self) -> Self {
        Self { at_end: true, ..self }
    }

    /// Lets a rule at the end of a call hold back its requests too, but for those with a safe method (GET, HEAD, OPTIONS). A tool
    /// gets the status 202 for such a request, and the request is sent once somebody agrees.
    #[must_use]
    pub fn holding_requests(self) -> Self {
        Self { at_end: true, holds_requests: true, ..self }
    }

    /// Returns `true` if the rule holds back requests.
    pub(crate) fn holds_requests(&self) -> bool {
        self.holds_requests
    }

    /// Returns `true` if the rule asks at the end of a call. Only an ask rule can.
    pub fn is_at_end(&self) -> bool {
        self.at_end && self.behavior == Behavior::Ask
    }

    /// Limits an ask rule to calls about which the [`Approver`](super::Approver) can ask somebody. Other calls run without a
    /// question, where the rule denies them otherwise.
    #[must_use]
    pub fn where_answered(self) -> Self {
        Self { where_answered: true, ..self }
    }

    /// Returns `true` if the rule applies, given that somebody can answer or not.
    pub(crate) fn applies_where(&self, can_answer: bool) -> bool {
        can_answer || !self.where_answered
    }

    /// Behavior of the rule.
    pub fn behavior(&self) -> Behavior {
        self.behavior
    }

    /// Word for the rule: `allow`, `ask`, `deny`, `stage` at the end of a call, or `hold` with requests.
    pub fn verb(&self) -> &'static str {
        match (self.is_at_end(), self.holds_requests) {
            (true, true) => "hold",
            (true, false) => "stage",
            (false, _) => self.behavior.as_str(),
        }
    }

    /// Pattern over calls.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Returns `true` if the rule applies to a call of a tool with this name.
    pub fn matches_call(&self, tool: &str, arguments: &Value) -> bool {
        self.pattern.matches_tool(tool) && self.matches_arguments(None, None, arguments)
    }

    /// Returns `true` if the rule matches a tool name or, unless it is an allow rule, one of the tool's aliases or its
    /// class. Any tool may belong to a class.
    fn matches_tool(&self, tool: &Tool) -> bool {
        match self.behavior {
            // It is judged by the label of the call.
            _ if self.pattern.flow().is_some() => false,
            _ if !self.pattern.names_tools() => self.behavior != Behavior::Allow,
            Behavior::Allow => self.pattern.matches_tool(&tool.name),
            _ => tool.names().any(|name| self.pattern.matches_tool(name)),
        }
    }

    /// Returns `true` if the arguments match. `root` is the name of the first granted folder, if it has one; a missing
    /// argument has its default from `schema`.
    fn matches_arguments(&self, root: Option<&str>, schema: Option<&Value>, arguments: &Value) -> bool {
        self.matches_selected(|_| true, root, schema, arguments)
    }

    /// Returns `true` if the arguments match whose names `selects` accepts.
    fn matches_selected(
        &self,
        selects: impl Fn(&str) -> bool,
        root: Option<&str>,
        schema: Option<&Value>,
        arguments: &Value,
    ) -> bool {
        let certain = self.behavior == Behavior::Allow;
        self.pattern.arguments.iter().filter(|pattern| selects(&pattern.name)).all(|pattern| {
            let name = &pattern.name;
            let given = match name.starts_with('/') {
                true => arguments.pointer(name),
                false => arguments.get(name),
            };
            let default = || schema?.get("properties")?.get(name.trim_start_matches('/'))?.get("default");
            let value = if certain { given } else { given.or_else(default) };
            match value {
                Some(value) => matches(&pattern.globs, pattern.folded.as_ref(), value, root, certain),
                None => !certain && pattern.globs.iter().any(spelling::is_null),
            }
        })
    }
}

/// Writes the behavior, the pattern text and the origin of the rule.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.verb(), self.pattern.text, self.origin)
    }
}

/// Decision of the rules about a call.
#[derive(Debug)]
pub(crate) enum RuleDecision {
    Deny(Arc<Rule>),
    Allow(Arc<Rule>),
    /// All ask rules that apply; empty if no rule applies.
    Ask(Vec<Arc<Rule>>),
}

/// Rules, in the order of their flags and files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Vec<Arc<Rule>>);

impl Rules {
    pub(crate) fn add(&mut self, rule: Rule) {
        self.0.push(Arc::new(rule));
    }

    /// Decides about a call. Deny and ask rules also match aliases of the tool; allow rules match only its name. Each
    /// value of the arguments counts as steps, because large arguments take long.
    pub(crate) fn decide(&self, tool: &Tool, grant: &Grant, arguments: &Value) -> RuleDecision {
        let about = |behavior: Behavior| {
            let applies =
                move |rule: &&Arc<Rule>| rule.matches_arguments(grant.root(), tool.parameters.as_ref(), arguments);
            self.for_tool(behavior, tool, grant).filter(|rule| !rule.is_at_end()).filter(applies)
        };
        if let Some(rule) = about(Behavior::Deny).next() {
            return RuleDecision::Deny(rule.clone());
        }
        if let Some(rule) = about(Behavior::Allow).next() {
            return RuleDecision::Allow(rule.clone());
        }
        RuleDecision::Ask(about(Behavior::Ask).cloned().collect())
    }

    /// Returns the first rule that asks about a call at its end, of those that hold the most back.
    pub(crate) fn at_end(&self, tool: &Tool, grant: &Grant, arguments: &Value) -> Option<&Arc<Rule>> {
        let rules = self.for_tool(Behavior::Ask, tool, grant).filter(|rule| rule.is_at_end());
        let mut rules = rules.filter(|rule| rule.matches_arguments(grant.root(), tool.parameters.as_ref(), arguments));
        let first = rules.next()?;
        Some(rules.find(|rule| rule.holds_requests && !first.holds_requests).unwrap_or(first))
    }

    /// Rules that ask at the end of calls.
    pub(crate) fn all_at_end(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.0.iter().filter(|rule| rule.is_at_end())
    }

    /// Rules with one behavior that match a tool with its grant, regardless of its arguments.
    fn for_tool<'a, 'b>(
        &'a self,
        behavior: Behavior,
        tool: &'b Tool,
        grant: &'b Grant,
    ) -> impl Iterator<Item = &'a Arc<Rule>> + use<'a, 'b> {
        let is_member = move |rule: &Rule| rule.pattern.class.is_none_or(|class| class.includes(tool, grant));
        self.0.iter().filter(move |rule| rule.behavior == behavior && rule.matches_tool(tool) && is_member(rule))
    }

    /// Returns `true` if a hook of an untrusted source may do what calls are denied or asked about by a rule over a class: nobody
    /// can be asked about a hook.
    pub(crate) fn restrict_hook(&self, hook: &Tool, grant: &Grant) -> bool {
        let mut rules = self.for_tool(Behavior::Deny, hook, grant).chain(self.for_tool(Behavior::Ask, hook, grant));
        hook.origin.trust == Trust::Stranger && rules.any(|rule| rule.pattern.class.is_some())
    }

    /// Rules about flows, whatever the call.
    pub(crate) fn about_flows(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.0.iter().filter(|rule| rule.pattern.flow().is_some() && rule.behavior != Behavior::Allow)
    }

    /// Returns `true` if any rule looks at arguments.
    pub(crate) fn have_arguments(&self) -> bool {
        self.0.iter().any(|rule| !rule.pattern.arguments.is_empty())
    }

    /// Finds a rule that denies every call of a tool.
    pub(crate) fn blocks(&self, tool: &Tool) -> Option<&Rule> {
        self.0.iter().map(AsRef::as_ref).find(|rule: &&Rule| {
            let Rule { behavior, pattern, .. } = rule;
            *behavior == Behavior::Deny
                && pattern.arguments.is_empty()
                && tool.names().any(|name| pattern.matches_tool(name))
        })
    }
}

/// Returns `true` if an argument matches. Of an array, one item is sufficient, or all are required if `certain`.
/// `folded` applies to paths as the file system compares them.
fn matches(
    globs: &[Glob],
    folded: Option<&(NameRules, Glob)>,
    value: &Value,
    root: Option<&str>,
    certain: bool,
) -> bool {
    let fit = |text: &str| {
        step(STEPS_PER_VALUE + text.len() / BYTES_PER_STEP) && globs.iter().any(|glob| glob.is_match(text))
    };
    if !step(STEPS_PER_VALUE) {
        return false;
    }
    match value {
        Value::Array(items) if certain => {
            !items.is_empty() && items.iter().all(|item| matches(globs, folded, item, root, certain))
        }
        Value::Array(items) => {
            items.iter().take_while(|_| step(STEPS_PER_VALUE)).any(|item| matches(globs, folded, item, root, certain))
        }
        Value::String(text) => {
            // The target of `..` depends on links, so only a pattern for everything is certain.
            let has_parent = text.split(['/', '\\']).any(|part| part == "..");
            let resolved =
                || [['/'].as_slice(), &['/', '\\']].map(|separators| Cow::Owned(resolve_path(text, separators)));
            let others = (!is_resolved(text)).then(resolved).into_iter().flatten();
            let mut readings = std::iter::once(Cow::Borrowed(text.as_str())).chain(others);
            step(text.len() / BYTES_PER_STEP);
            let fits = |reading: Cow<'_, str>| spellings(&reading, root).any(|spelling| fit(&spelling));
            match certain {
                true if has_parent => globs.iter().any(|glob| glob.is_everything()),
                true => readings.all(fits),
                false => readings.any(fits) || folded.is_some_and(|folded| matches_folded(folded, text, root)),
            }
        }
        Value::Number(number) if certain => {
            step(STEPS_PER_VALUE) && globs.iter().any(|glob| spelling::allows_number(glob, number))
        }
        Value::Number(number) => {
            step(STEPS_PER_VALUE) && globs.iter().any(|glob| spelling::matches_number(glob, number))
        }
        other => {
            let canonical = || {
                let text = spelling::canonical(other).map(|other| other.to_string());
                text.is_some_and(|text| fit(&text) || globs.iter().any(|glob| spelling::means(glob, &text)))
            };
            fit(&other.to_string()) || !certain && canonical()
        }
    }
}
