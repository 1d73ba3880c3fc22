//! What is wrong in a source, noted while it is read, so that every problem is told and none hides another.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::tool::Place;

use super::{Problem, Severity};

/// Something wrong at a place, before it is known in which file and how it is told.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) place: Option<Place>,
    pub(super) message: String,
}

/// A problem as it was noted.
#[derive(Debug)]
pub(super) struct Noted {
    pub(super) problem: Problem,
    /// Whether a load tells it together with others of its kind, and not alone.
    pub(super) together: bool,
}

/// The problems of one file.
pub(super) struct Report {
    path: PathBuf,
    /// What is being parsed, with its colon, where the format has a word for that.
    parsing: String,
    /// The place in the file where what follows is found, with its colon; empty at the top.
    at: String,
    sound: bool,
    pub(super) problems: Vec<Noted>,
}

impl Report {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), parsing: String::new(), at: String::new(), sound: true, problems: Vec::new() }
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
    }

    pub(super) fn warn(&mut self, message: &str) {
        self.warn_at(None, message);
    }

    pub(super) fn warn_at(&mut self, place: Option<Place>, message: &str) {
        self.add(Severity::Warning, place, format!("{}{message}", self.at), false);
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
        let nearest = nearest(key, known.iter().copied());
        let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
        self.warn_at(place, &format!("{within}unknown field `{key}` is ignored{hint}"));
    }

    fn add(&mut self, severity: Severity, place: Option<Place>, message: String, together: bool) {
        self.problems.push(Noted { problem: Problem { severity, path: self.path.clone(), place, message }, together });
    }
}

/// The longest word that is held against others, in characters.
const LONGEST_WORD: usize = 128;

/// The known word nearest to `word`, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().take(LONGEST_WORD + 1).count();
    if length > LONGEST_WORD {
        return None;
    }
    let most = (length / 3).clamp(1, 3);
    known
        .filter(|candidate| candidate.chars().take(LONGEST_WORD + 1).count().abs_diff(length) <= most)
        .map(|candidate| (strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
