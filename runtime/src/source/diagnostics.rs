//! What is wrong in a source, noted while it is read, so that every problem is told and none hides another.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::Error;
use crate::tool::{Place, Unusable};

use super::{Diagnostic, Severity, places};

/// Something wrong at a place, before it is known in which file and how it is told.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) place: Option<Place>,
    pub(super) message: String,
}

/// A problem as it was noted.
#[derive(Debug, Clone)]
pub(super) struct ScopedDiagnostic {
    pub(super) problem: Diagnostic,
    /// Whether a load tells it together with others of its kind, and not alone.
    pub(super) together: bool,
    /// The part of the source that an error makes unusable.
    pub(super) scope: Scope,
    /// The message without its place in words and without a path of the host, where it has them.
    pub(super) reason: Option<String>,
    /// The JSON pointer to what it is about, in a document of JSON.
    pub(super) pointer: Option<String>,
    /// The error of a load, where it is not made of the problem.
    pub(super) fault: Option<Error>,
}

/// The part of a source that an error makes unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The whole source, as long as nobody confined the error to a tool.
    Source,
    /// The whole source, for good.
    Always,
    /// One tool, whose first error it is.
    Tool,
    /// One tool that has another error already.
    SameTool,
}

impl ScopedDiagnostic {
    /// A problem of a whole source that is told alone.
    pub(super) fn new(problem: Diagnostic) -> Self {
        Self { problem, together: false, scope: Scope::Source, reason: None, pointer: None, fault: None }
    }

    /// The error with which a load fails over it.
    pub(super) fn into_error(self) -> Error {
        let Self { problem: Diagnostic { path, message, .. }, fault, .. } = self;
        fault.unwrap_or(Error::Source { path, message })
    }

    /// The same as a warning: the tool is disabled, and the others work.
    pub(super) fn into_warning(self) -> Diagnostic {
        let message = format!("{}; the tool is disabled", self.problem.message);
        Diagnostic { severity: Severity::Warning, message, ..self.problem }
    }
}

/// Confines the errors among these problems to one tool; `None` where there is no error.
pub(super) fn confine(problems: &mut [ScopedDiagnostic]) -> Option<Unusable> {
    let errors = || problems.iter().filter(|noted| noted.problem.severity == Severity::Error);
    let alone = errors().find(|noted| !noted.together);
    let first = alone.or_else(|| errors().next())?;
    let Diagnostic { path, message, .. } = &first.problem;
    let (why, message) = match first.together {
        false => (first.reason.as_ref().unwrap_or(message).clone(), message.clone()),
        true => {
            let all: Vec<_> = errors().map(|noted| noted.problem.message.as_str()).collect();
            let all = format!("invalid config: {}", all.join("; "));
            (all.clone(), all)
        }
    };
    let fault = first.fault.clone().unwrap_or_else(|| Error::Source { path: path.clone(), message });
    let mut scope = Scope::Tool;
    for noted in problems.iter_mut().filter(|noted| noted.problem.severity == Severity::Error) {
        if noted.scope == Scope::Source {
            noted.scope = std::mem::replace(&mut scope, Scope::SameTool);
        }
    }
    Some(Unusable { reason: why, fault })
}

/// The problems of one file.
pub(super) struct Diagnostics {
    path: PathBuf,
    /// What is being parsed, with its colon, where the format has a word for that.
    parsing: String,
    /// The place in the file where what follows is found, with its colon; empty at the top.
    at: String,
    sound: bool,
    /// The JSON pointer to that place, in a document of JSON.
    pointer: Option<String>,
    /// The unknown fields so far.
    unknown: usize,
    pub(super) problems: Vec<ScopedDiagnostic>,
}

impl Diagnostics {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            parsing: String::new(),
            at: String::new(),
            sound: true,
            pointer: None,
            unknown: 0,
            problems: Vec::new(),
        }
    }

    /// What follows is parsed as this.
    pub(super) fn parsing(&mut self, what: String) {
        self.parsing = what;
    }

    /// What follows stands at this place; whether it is sound is counted from here on.
    pub(super) fn enter(&mut self, at: String) {
        self.at = at;
        self.sound = true;
    }

    /// Whether nothing was wrong at this place so far.
    pub(super) fn sound(&self) -> bool {
        self.sound
    }

    pub(super) fn error(&mut self, message: &str) {
        self.alone(None, format!("{}{message}", self.at));
        self.explain(message);
    }

    /// What follows stands in this part of a document of JSON.
    pub(super) fn within(&mut self, pointer: String) {
        self.pointer = Some(pointer);
    }

    /// The place of the last problem.
    pub(super) fn place_last(&mut self, place: Option<Place>) {
        self.problems.last_mut().into_iter().for_each(|noted| noted.problem.place = place);
    }

    /// Adds to the last problem what its message is without its place.
    fn explain(&mut self, message: &str) {
        let pointer = self.pointer.as_ref().map(|within| format!("{within}{}", places::subject(message)));
        if let Some(noted) = self.problems.last_mut() {
            noted.reason = Some(message.to_owned());
            noted.pointer = pointer;
        }
    }

    /// An error that no part of the source survives.
    pub(super) fn fatal(&mut self, message: &str) {
        self.error(message);
        self.problems.last_mut().into_iter().for_each(|noted| noted.scope = Scope::Always);
    }

    /// A mark for [`Diagnostics::confine`].
    pub(super) fn mark(&self) -> usize {
        self.problems.len()
    }

    /// Confines the errors since a mark to one tool; `None` where there is no error.
    pub(super) fn confine(&mut self, mark: usize) -> Option<Unusable> {
        confine(self.problems.get_mut(mark..).unwrap_or_default())
    }

    pub(super) fn warn(&mut self, message: &str) {
        self.warn_at(None, message);
    }

    pub(super) fn warn_at(&mut self, place: Option<Place>, message: &str) {
        self.add(Severity::Warning, place, format!("{}{message}", self.at), false);
        self.explain(message);
    }

    /// An error where something that has to hold does not.
    pub(super) fn that(&mut self, holds: bool, otherwise: &str) {
        if !holds {
            self.error(otherwise);
        }
    }

    /// The value, or an error with its text.
    pub(super) fn value<T>(&mut self, value: Result<T, String>) -> Option<T> {
        value.map_err(|wrong| self.error(&wrong)).ok()
    }

    /// The value, or an error of parsing.
    pub(super) fn parsed<T>(&mut self, value: Result<T, Fault>) -> Option<T> {
        let Fault { place, message } = match value {
            Ok(value) => return Some(value),
            Err(fault) => fault,
        };
        let position = place.filter(|_| !self.parsing.is_empty());
        let position = position.map(|it| format!("yaml: line {}: column {}: ", it.line, it.column)).unwrap_or_default();
        self.alone(place, format!("{}{position}{message}", self.parsing));
        None
    }

    /// An error at a place, in words of its own.
    pub(super) fn alone(&mut self, place: Option<Place>, message: String) {
        self.sound = false;
        self.add(Severity::Error, place, message, false);
    }

    /// An error in what was parsed, in the format's own words: it is told together with the others.
    pub(super) fn invalid(&mut self, place: Option<Place>, message: String) {
        self.sound = false;
        self.add(Severity::Error, place, message, true);
    }

    /// A warning for each field that no rule knows, with the nearest that one does. `within` names the object, with its
    /// colon, where it is not the place itself.
    pub(super) fn unknown(&mut self, within: &str, unknown: &Map<String, Value>, known: &[&str]) {
        for key in unknown.keys() {
            self.unknown_at(None, within, key, known);
        }
    }

    /// The same for one field.
    pub(super) fn unknown_at(&mut self, place: Option<Place>, within: &str, key: &str, known: &[&str]) {
        self.unknown += 1;
        if self.unknown > MAX_UNKNOWN {
            if self.unknown == MAX_UNKNOWN + 1 {
                self.warn(&format!("more than {MAX_UNKNOWN} unknown fields are ignored; the others are not named"));
            }
            return;
        }
        let nearest = nearest(key, known.iter().copied());
        let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
        self.warn_at(place, &format!("{within}unknown field `{key}` is ignored{hint}"));
    }

    fn add(&mut self, severity: Severity, place: Option<Place>, message: String, together: bool) {
        let problem = Diagnostic { severity, path: self.path.clone(), place, message };
        self.problems.push(ScopedDiagnostic { together, ..ScopedDiagnostic::new(problem) });
    }
}

/// The most unknown fields of a file that are named.
const MAX_UNKNOWN: usize = 100;
/// The longest word that is held against others, in characters.
const MAX_WORD_LEN: usize = 128;
/// The most pairs of characters that are compared to find the nearest of many words: a few milliseconds.
const MAX_PAIRS: usize = 1 << 20;

/// The first of many, and how many more there are.
pub(super) fn listed(each: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = each.len().saturating_sub(most);
    let more = (more > 0).then(|| format!("and {more} more"));
    each.take(most).chain(more).collect::<Vec<_>>().join(", ")
}

/// The known word nearest to `word`, if one is near enough to be meant. Of very many words only the first are tried.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().take(MAX_WORD_LEN + 1).count();
    if length > MAX_WORD_LEN {
        return None;
    }
    let most = (length / 3).clamp(1, 3);
    let mut left = MAX_PAIRS;
    known
        .filter(|candidate| candidate.chars().take(MAX_WORD_LEN + 1).count().abs_diff(length) <= most)
        .take_while(|candidate| {
            let room = left.checked_sub((length + 1) * (candidate.len() + 1));
            left = room.unwrap_or(0);
            room.is_some()
        })
        .map(|candidate| (strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    #[test]
    fn of_very_many_unknown_fields_the_first_are_named() {
        let fields: Map<_, _> = (0..200_000).map(|n| (format!("{}{n}", "x".repeat(100)), json!(1))).collect();
        let mut report = Diagnostics::new(Path::new("tools.json"));
        let start = Instant::now();
        report.unknown("", &fields, &["name"; 60]);
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
        assert_eq!(report.problems.len(), MAX_UNKNOWN + 1);
        assert!(
            report.problems.last().unwrap().problem.message.starts_with("more than 100 unknown fields are ignored")
        );
    }

    #[test]
    fn the_nearest_of_twenty_thousand_names_is_not_looked_for_to_the_end() {
        let names: Vec<_> = (0..20_000).map(|n| format!("{}{n:05}", "x".repeat(120))).collect();
        let start = Instant::now();
        let word = format!("{}y0000", "x".repeat(120));
        assert_eq!(nearest(&word, names.iter().map(String::as_str)), Some(names[0].as_str()));
        assert!(start.elapsed().as_secs() < 2, "{:?}", start.elapsed());
    }
}
