//! Findings of the check: collected while a program is walked, then merged and placed.

use std::collections::HashMap;

use ruff_source_file::{LineIndex, OneIndexed};
use ruff_text_size::{TextRange, TextSize};

use super::Problem;

/// Subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The call of a tool: only a problem if the name `tools` has its meaning.
    Call,
    /// Syntax that the interpreter's compiler refuses.
    Syntax,
    /// Another absent feature.
    Feature,
}

/// Maximum number of further places that a message lists.
const MAX_PLACES: usize = 5;

struct Finding {
    start: TextSize,
    message: String,
    subject: Subject,
}

/// Collected findings.
#[derive(Default)]
pub(super) struct Findings {
    found: Vec<Finding>,
}

impl Findings {
    /// Adds a finding about the call of a tool.
    pub(super) fn call(&mut self, range: TextRange, message: impl Into<String>) {
        self.add(Subject::Call, range, message);
    }

    /// Adds a finding about syntax that the compiler refuses.
    pub(super) fn syntax(&mut self, range: TextRange, message: impl Into<String>) {
        self.add(Subject::Syntax, range, message);
    }

    /// Adds a finding about another absent feature.
    pub(super) fn feature(&mut self, range: TextRange, message: impl Into<String>) {
        self.add(Subject::Feature, range, message);
    }

    fn add(&mut self, subject: Subject, range: TextRange, message: impl Into<String>) {
        self.found.push(Finding { start: range.start(), message: message.into(), subject });
    }

    /// Returns the problems in the order of the source. Findings with one message are one problem that lists its places.
    pub(super) fn problems(mut self, source: &str, omitted: Option<Subject>) -> Vec<(Problem, Subject)> {
        self.found.retain(|finding| Some(finding.subject) != omitted);
        self.found.sort_by_key(|finding| finding.start);
        let index = LineIndex::from_source_text(source);
        let mut places: HashMap<&str, Vec<(u32, u32)>> = HashMap::new();
        let mut order = Vec::new();
        for finding in &self.found {
            let place = index.line_column(finding.start, source);
            let known = places.entry(&finding.message).or_default();
            if known.is_empty() {
                order.push((finding.message.as_str(), finding.subject));
            }
            let place = (number(place.line), number(place.column));
            if !known.contains(&place) {
                known.push(place);
            }
        }
        let problem = |(message, subject): (&str, Subject)| {
            let [(line, column), others @ ..] = &places[message][..] else {
                return (Problem { line: 0, column: 0, message: message.to_owned() }, subject);
            };
            (Problem { line: *line, column: *column, message: message.to_owned() + &also(others) }, subject)
        };
        order.into_iter().map(problem).collect()
    }
}

/// Further places of a problem.
fn also(places: &[(u32, u32)]) -> String {
    if places.is_empty() {
        return String::new();
    }
    let listed = places.iter().take(MAX_PLACES).map(|(line, column)| format!("{line}:{column}"));
    let listed = listed.collect::<Vec<_>>().join(", ");
    let more = places.len().saturating_sub(MAX_PLACES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(" (also at {listed}{more})")
}

fn number(place: OneIndexed) -> u32 {
    u32::try_from(place.get()).unwrap_or(0)
}
