//! What is wrong in a source, noted while it is read, so that every problem is told and none hides another.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Problem, Severity};

/// The problems of one file.
pub(super) struct Report {
    path: PathBuf,
    /// The place in the file where what follows is found, with its colon; empty at the top.
    at: String,
    sound: bool,
    pub(super) problems: Vec<Problem>,
}

impl Report {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), at: String::new(), sound: true, problems: Vec::new() }
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
        self.sound = false;
        self.add(Severity::Error, message);
    }

    pub(super) fn warn(&mut self, message: &str) {
        self.add(Severity::Warning, message);
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

    /// A warning for each field that no rule knows, with the nearest that one does. `within` names the object, with its
    /// colon, where it is not the place itself.
    pub(super) fn unknown(&mut self, within: &str, unknown: &Map<String, Value>, known: &[&str]) {
        for key in unknown.keys() {
            let nearest = nearest(key, known.iter().copied());
            let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
            self.warn(&format!("{within}unknown field `{key}` is ignored{hint}"));
        }
    }

    fn add(&mut self, severity: Severity, message: &str) {
        self.problems.push(Problem {
            severity,
            path: self.path.clone(),
            place: None,
            message: format!("{}{message}", self.at),
        });
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
