//! Problems of a source, collected while it is read, so that each is reported and none hides another.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, Severity};
use crate::tool::{Place, ScriptedHook, Tool, Unusable};

use super::bundle::OpenBundle;
use super::document::read_text;
use super::places;
use super::suggestion::nearest;
use super::tools_policy::ToolsPolicy;

/// Maximum number of unknown fields that are named per file.
const MAX_UNKNOWN: usize = 100;

/// Problem of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Severity of the problem.
    pub severity: Severity,
    /// File that has the problem.
    pub path: PathBuf,
    /// Position in the file, as far as it is known.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// Entry, field, value found and fix, in one sentence.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Content of a source: tools, hooks, policies and problems, in source order.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) tools: Vec<Tool>,
    pub(super) hooks: Vec<ScriptedHook>,
    pub(super) policies: Vec<ToolsPolicy>,
    pub(super) problems: Vec<ScopedDiagnostic>,
    /// Bundle that was read.
    pub(super) bundle: Option<Arc<OpenBundle>>,
    /// Agent Tool record without a readable program, so that any component beside it may be its program.
    pub(super) without_program: Option<PathBuf>,
}

impl Parsed {
    /// Creates the content of a source that could not be read at all.
    pub(super) fn failed(path: &Path, reason: &str) -> Self {
        let mut report = Diagnostics::new(path);
        report.error(reason);
        Self::of(None, report)
    }

    /// Creates the content of a tool file.
    pub(super) fn of(tools: impl IntoIterator<Item = Tool>, report: Diagnostics) -> Self {
        Self { tools: tools.into_iter().collect(), problems: report.problems, ..Self::default() }
    }

    /// Appends the content of another file in the same source.
    pub(super) fn add(&mut self, other: Self) {
        self.tools.extend(other.tools);
        self.hooks.extend(other.hooks);
        self.policies.extend(other.policies);
        self.problems.extend(other.problems);
        self.without_program = other.without_program.or(self.without_program.take());
    }
}

/// Fault at a position, before its file and its wording are known.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) place: Option<Place>,
    pub(super) message: String,
}

/// Diagnostic together with its effect on a load.
#[derive(Debug, Clone)]
pub(super) struct ScopedDiagnostic {
    pub(super) problem: Diagnostic,
    /// `true` if a load reports it together with others of its kind, and not alone.
    pub(super) together: bool,
    /// Part of the source that an error makes unusable.
    pub(super) scope: Scope,
    /// Message without its place in words and without a path of the host, if it has them.
    pub(super) reason: Option<String>,
    /// JSON pointer to the faulty part, in a JSON document.
    pub(super) pointer: Option<String>,
    /// Error of a load, if it is not made from the diagnostic.
    pub(super) fault: Option<Error>,
}

/// Part of a source that an error makes unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The whole source, unless the error is confined to a tool later.
    Source,
    /// The whole source, always.
    Always,
    /// One tool; the error is its first.
    Tool,
    /// One tool that has another error already.
    SameTool,
}

impl ScopedDiagnostic {
    /// Creates a diagnostic of a whole source that is reported alone.
    pub(super) fn new(problem: Diagnostic) -> Self {
        Self { problem, together: false, scope: Scope::Source, reason: None, pointer: None, fault: None }
    }

    /// Converts it into the error of a failed load.
    pub(super) fn into_error(self) -> Error {
        let Self { problem: Diagnostic { path, message, .. }, fault, .. } = self;
        fault.unwrap_or(Error::Source { path, message })
    }

    /// Converts it into the warning of a load that disables the tool and keeps the others.
    pub(super) fn into_warning(self) -> Diagnostic {
        let message = format!("{}; the tool is disabled", self.problem.message);
        Diagnostic { severity: Severity::Warning, message, ..self.problem }
    }

    fn is_error(&self) -> bool {
        self.problem.severity == Severity::Error
    }
}

/// Confines the errors among these diagnostics to one tool. Returns `None` if there is no error.
pub(super) fn confine(problems: &mut [ScopedDiagnostic]) -> Option<Unusable> {
    let errors = || problems.iter().filter(|scoped| scoped.is_error());
    let alone = errors().find(|scoped| !scoped.together);
    let first = alone.or_else(|| errors().next())?;
    let Diagnostic { path, message, .. } = &first.problem;
    let (why, message) = match first.together {
        false => (first.reason.as_ref().unwrap_or(message).clone(), message.clone()),
        true => {
            let all = invalid_config(errors().map(|scoped| scoped.problem.message.as_str()));
            (all.clone(), all)
        }
    };
    let fault = first.fault.clone().unwrap_or_else(|| Error::Source { path: path.clone(), message });
    let mut scope = Scope::Tool;
    for scoped in problems.iter_mut().filter(|scoped| scoped.is_error()) {
        if scoped.scope == Scope::Source {
            scoped.scope = std::mem::replace(&mut scope, Scope::SameTool);
        }
    }
    Some(Unusable { reason: why, fault })
}

/// Sets the position of each problem with a JSON pointer: its part, or the nearest existing part around it.
pub(super) fn locate(problems: &mut [ScopedDiagnostic]) {
    let mut wanted: HashMap<_, places::Part> = HashMap::new();
    for scoped in problems.iter().filter(|scoped| scoped.problem.place.is_none()) {
        if let Some(pointer) = &scoped.pointer {
            wanted.entry(scoped.problem.path.clone()).or_default().insert(pointer);
        }
    }
    for (path, whole) in &mut wanted {
        if let Ok(text) = read_text(path) {
            places::find(&text, whole);
        }
    }
    for scoped in problems.iter_mut().filter(|scoped| scoped.problem.place.is_none()) {
        let whole = wanted.get(&scoped.problem.path);
        scoped.problem.place = scoped.pointer.as_ref().and_then(|pointer| whole?.nearest(pointer));
    }
}

/// Joins messages that are reported together.
pub(super) fn invalid_config<'m>(messages: impl Iterator<Item = &'m str>) -> String {
    format!("invalid config: {}", messages.collect::<Vec<_>>().join("; "))
}

/// Collector of one file's problems.
pub(super) struct Diagnostics {
    path: PathBuf,
    /// Prefix of parse errors, with its colon, if the format prescribes one.
    parsing: String,
    /// Prefix that names the current entry, with its colon; empty at the top.
    entry: String,
    sound: bool,
    /// JSON pointer to the current entry, in a JSON document.
    pointer: Option<String>,
    /// Number of unknown fields so far.
    unknown: usize,
    pub(super) problems: Vec<ScopedDiagnostic>,
}

impl Diagnostics {
    /// Creates an empty collector for a file.
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            parsing: String::new(),
            entry: String::new(),
            sound: true,
            pointer: None,
            unknown: 0,
            problems: Vec::new(),
        }
    }

    /// Sets the prefix of parse errors.
    pub(super) fn parsing(&mut self, prefix: String) {
        self.parsing = prefix;
    }

    /// Enters an entry: sets the prefix of its messages and resets [`Diagnostics::sound`].
    pub(super) fn enter(&mut self, entry: String) {
        self.entry = entry;
        self.sound = true;
    }

    /// Sets the JSON pointer to the current entry.
    pub(super) fn within(&mut self, pointer: String) {
        self.pointer = Some(pointer);
    }

    /// Returns `true` if the current entry has no error so far.
    pub(super) fn sound(&self) -> bool {
        self.sound
    }

    /// Adds an error of the current entry.
    pub(super) fn error(&mut self, message: &str) {
        self.alone(None, format!("{}{message}", self.entry));
        self.explain(message);
    }

    /// Adds an error that makes the whole source unusable.
    pub(super) fn fatal(&mut self, message: &str) {
        self.error(message);
        self.problems.last_mut().into_iter().for_each(|scoped| scoped.scope = Scope::Always);
    }

    /// Adds an error unless a condition holds.
    pub(super) fn require(&mut self, condition: bool, otherwise: &str) {
        if !condition {
            self.error(otherwise);
        }
    }

    /// Returns the value, or adds its error.
    pub(super) fn value<T>(&mut self, value: Result<T, String>) -> Option<T> {
        value.map_err(|wrong| self.error(&wrong)).ok()
    }

    /// Returns the value, or adds each of its errors.
    pub(super) fn values<T>(&mut self, value: Result<T, Vec<String>>) -> Option<T> {
        value.map_err(|faults| faults.iter().for_each(|fault| self.error(fault))).ok()
    }

    /// Returns the value, or adds its error as one of parsing.
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

    /// Adds an error at a position, without a prefix.
    pub(super) fn alone(&mut self, place: Option<Place>, message: String) {
        self.sound = false;
        self.add(Severity::Error, place, message, false);
    }

    /// Adds an error in the format's own words, which a load reports together with the others of this kind.
    pub(super) fn invalid(&mut self, place: Option<Place>, message: String) {
        self.sound = false;
        self.add(Severity::Error, place, message, true);
    }

    /// Adds a warning of the current entry.
    pub(super) fn warn(&mut self, message: &str) {
        self.warn_at(None, message);
    }

    /// Adds a warning of the current entry at a position.
    pub(super) fn warn_at(&mut self, place: Option<Place>, message: &str) {
        self.add(Severity::Warning, place, format!("{}{message}", self.entry), false);
        self.explain(message);
    }

    /// Adds a warning for each unknown field, with the nearest known one. `within` names the object, with its colon, if it
    /// is not the entry itself.
    pub(super) fn unknown(&mut self, within: &str, unknown: &Map<String, Value>, known: &[&str]) {
        for key in unknown.keys() {
            self.unknown_at(None, within, key, known);
        }
    }

    /// Adds a warning for an unknown field at a position.
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

    /// Sets the position of the last problem.
    pub(super) fn place_last(&mut self, place: Option<Place>) {
        self.problems.last_mut().into_iter().for_each(|scoped| scoped.problem.place = place);
    }

    /// Returns a mark for [`Diagnostics::confine`].
    pub(super) fn mark(&self) -> usize {
        self.problems.len()
    }

    /// Confines the errors since a mark to one tool. Returns `None` if there is no error.
    pub(super) fn confine(&mut self, mark: usize) -> Option<Unusable> {
        confine(self.problems.get_mut(mark..).unwrap_or_default())
    }

    /// Stores the message of the last problem without its prefix.
    fn explain(&mut self, message: &str) {
        let pointer = self.pointer.as_ref().map(|within| format!("{within}{}", places::subject(message)));
        if let Some(scoped) = self.problems.last_mut() {
            scoped.reason = Some(message.to_owned());
            scoped.pointer = pointer;
        }
    }

    fn add(&mut self, severity: Severity, place: Option<Place>, message: String, together: bool) {
        let problem = Diagnostic { severity, path: self.path.clone(), place, message };
        self.problems.push(ScopedDiagnostic { together, ..ScopedDiagnostic::new(problem) });
    }
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
}
