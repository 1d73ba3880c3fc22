//! Patterns for flows, written `flow MARK + MARK -> WAY`: what a call depends on, and where its effects go.

use std::fmt::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use super::label::{Integrity, Label, MANY, PRIVATE, checked_name};

/// First word of a pattern.
const FLOW: &str = "flow";
/// Maximum number of sources that an explanation names.
const MAX_EXPLAINED: usize = 3;

/// Way out of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A file of a granted folder, unless a stage holds it back.
    Write,
    /// A request to a host.
    Net,
    /// A program of the model.
    Code,
    /// The model itself, by the answer of the call.
    Model,
}

/// Ways out, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ways(u8);

impl Ways {
    /// Ways out of a running call.
    const ALL: Self = Self(7);

    #[must_use]
    pub(crate) fn with(self, way: Way) -> Self {
        Self(self.0 | 1 << way as u8)
    }

    pub(crate) fn has(self, way: Way) -> bool {
        self.0 >> way as u8 & 1 == 1
    }

    pub(crate) fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    pub(crate) fn of_bits(bits: u8) -> Self {
        Self(bits)
    }
}

/// Writes the pattern in its normal form.
impl fmt::Display for FlowPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let untrusted = self.needs_untrusted.then_some("untrusted");
        let marks: Vec<&str> = self.names().chain(untrusted).collect();
        let way = match self.ways {
            Ways::ALL => "any",
            ways if ways.has(Way::Net) => "net",
            ways if ways.has(Way::Write) => "write",
            ways if ways.has(Way::Model) => "model",
            _ => "code",
        };
        write!(f, "{FLOW} {} -> {way}", marks.join(" + "))
    }
}

/// Pattern for flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlowPattern {
    needs_untrusted: bool,
    /// Names of confidentiality that must all be there.
    names: Vec<Arc<str>>,
    ways: Ways,
}

/// The text is not a pattern for flows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}`: {reason}; write it like `flow untrusted -> write` or `flow private + untrusted -> net`, with `net`, `write`, \
     `code`, `any` or `model` after the arrow"
)]
pub struct FlowPatternError {
    text: String,
    reason: String,
}

impl FlowPattern {
    /// Returns `true` if a text is meant as a pattern for flows.
    pub(crate) fn is_meant(text: &str) -> bool {
        // The patterns of arguments can have an arrow too.
        let before_arguments = text.split('(').next().unwrap_or_default();
        before_arguments.contains("->")
            || text.trim().split_once(char::is_whitespace).is_some_and(|(first, _)| first == FLOW)
    }

    /// Returns the names of a label that the pattern is about.
    pub(crate) fn names_in<'a>(&'a self, label: &'a Label) -> impl Iterator<Item = &'a str> {
        let is_meant = |known: &&str| self.names().any(|name| name == PRIVATE || name == *known || *known == MANY);
        label.confidentiality().filter(is_meant)
    }

    /// Names of confidentiality that must be there.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(AsRef::as_ref)
    }

    /// Returns `true` if a label has all marks of the pattern. `private` matches every confidentiality.
    pub(crate) fn matches(&self, label: &Label) -> bool {
        (!self.needs_untrusted || label.integrity() == Integrity::Untrusted)
            && self.names.iter().all(|name| match name.as_ref() {
                PRIVATE => label.confidentiality().next().is_some(),
                name => label.has_name(name),
            })
    }

    /// Ways out that the pattern is about.
    pub(crate) fn ways(&self) -> Ways {
        self.ways
    }

    /// Explains to a person how a call with this label flows: from where, and what it depends on.
    pub(crate) fn explain(&self, label: &Label, ways: Ways, hosts: &[String]) -> String {
        let mut text = "this call ".to_owned();
        let from = listed(self.names_in(label).flat_map(|name| label.sources(name)));
        let ways = self.ways.both(ways);
        let action = match (ways.has(Way::Net), ways.has(Way::Write), ways.has(Way::Code)) {
            (true, false, _) => "send",
            (true, true, _) => "send or write",
            (false, true, _) => "write",
            (false, false, _) => "run",
        };
        let _ = match from.is_empty() {
            true => write!(text, "could {action}"),
            false => write!(text, "could {action} data from {from}"),
        };
        if ways.has(Way::Net) && !hosts.is_empty() {
            let _ = write!(text, " to {}", listed(hosts.iter().map(String::as_str)));
        }
        if self.needs_untrusted {
            let _ = write!(text, ", after {} was read", listed(label.untrusted_sources()));
        }
        text
    }
}

/// Lists the first names, each with control characters escaped.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.dedup();
    let shown: Vec<String> =
        names.iter().take(MAX_EXPLAINED).map(|name| format!("`{}`", name.escape_debug())).collect();
    let more = if names.len() > MAX_EXPLAINED { " and others" } else { "" };
    format!("{}{more}", shown.join(", "))
}

impl FromStr for FlowPattern {
    type Err = FlowPatternError;

    fn from_str(text: &str) -> Result<Self, FlowPatternError> {
        let error = |reason: String| FlowPatternError { text: text.trim().to_owned(), reason };
        let rest = text.trim().strip_prefix(FLOW).filter(|rest| rest.starts_with(char::is_whitespace));
        let rest = rest.ok_or_else(|| error("the first word is not `flow`".to_owned()))?;
        let (marks, way) = rest.split_once("->").ok_or_else(|| error("`->` is missing".to_owned()))?;
        let ways = match way.trim() {
            "net" => Ways::default().with(Way::Net),
            "write" => Ways::default().with(Way::Write),
            "code" => Ways::default().with(Way::Code),
            "any" => Ways::ALL,
            "model" => Ways::default().with(Way::Model),
            other => return Err(error(format!("`{other}` is no way out"))),
        };
        let mut pattern = Self { needs_untrusted: false, names: Vec::new(), ways };
        for mark in marks.split('+').map(str::trim) {
            match mark {
                "untrusted" => pattern.needs_untrusted = true,
                name => pattern.names.push(checked_name(name).map_err(|reason| error(reason.to_string()))?),
            }
        }
        Ok(pattern)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flow::Mark;

    fn label(untrusted: bool, names: &[&str]) -> Label {
        let integrity = if untrusted { "untrusted" } else { "trusted" };
        Label::stated(&json!({"integrity": integrity, "confidentiality": names}), "x").unwrap()
    }

    #[test]
    fn all_marks_must_be_there() {
        let pattern: FlowPattern = "flow private + untrusted -> net".parse().unwrap();
        assert!(pattern.matches(&label(true, &["private"])) && pattern.matches(&label(true, &["customers"])));
        assert!(!pattern.matches(&label(false, &["private"])) && !pattern.matches(&label(true, &[])));
        let named: FlowPattern = " flow  customers->any ".parse().unwrap();
        assert_eq!(
            (named.to_string(), pattern.to_string()),
            ("flow customers -> any".into(), "flow private + untrusted -> net".into())
        );
        assert!(named.matches(&label(false, &["customers"])) && !named.matches(&label(true, &["private"])));
        assert!([Way::Write, Way::Net, Way::Code].into_iter().all(|way| named.ways().has(way)));
        assert!(pattern.ways().has(Way::Net) && !pattern.ways().has(Way::Write));
        let shown: FlowPattern = "flow private -> model".parse().unwrap();
        assert_eq!(shown.to_string(), "flow private -> model");
        assert!(shown.ways().has(Way::Model) && !named.ways().has(Way::Model), "`any` is of effects");
        assert!(FlowPattern::is_meant("a -> b") && FlowPattern::is_meant("flow a"));
        assert!(
            !FlowPattern::is_meant("t(x=a->b)") && !FlowPattern::is_meant("flow") && !FlowPattern::is_meant("flow_*")
        );
    }

    #[test]
    fn a_slip_is_an_error_with_an_example() {
        for wrong in [
            "flow",
            "flowa -> net",
            "Flow a -> net",
            "flow a",
            "flow -> net",
            "flow a -> internet",
            "flow trusted -> net",
            "flow a + -> net",
        ] {
            let error = wrong.parse::<FlowPattern>().unwrap_err().to_string();
            assert!(error.contains("flow untrusted -> write"), "{error}");
        }
    }

    #[test]
    fn an_explanation_names_sources_and_destinations() {
        let mut read = Label::default();
        read.mark(&Mark::Named("private".into()), &"file:/w/customers.csv".into());
        read.mark(&Mark::Untrusted, &"host:blog.example\u{1b}[2J".into());
        let pattern: FlowPattern = "flow private + untrusted -> net".parse().unwrap();
        let net = Ways::default().with(Way::Net);
        assert_eq!(
            pattern.explain(&read, net, &["api.example".to_owned()]),
            "this call could send data from `file:/w/customers.csv` to `api.example`, after \
             `host:blog.example\\u{1b}[2J` was read"
        );
        for number in 0..MAX_EXPLAINED {
            read.mark(&Mark::Named("private".into()), &format!("file:/w/{number}").into());
        }
        assert!(pattern.explain(&read, net, &[]).contains("`file:/w/1` and others, after"));
    }
}
