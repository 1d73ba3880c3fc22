//! Interface for a dialect of tool sources, and the choice of the dialect that reads a source.

use std::path::{Path, PathBuf};

use super::diagnostics::Parsed;
use super::document::Candidate;
use super::files;

/// A format of tool sources.
pub(super) trait Dialect: Sync {
    /// Returns `true` if the path alone shows that a source is in this dialect.
    fn matches_path(&self, _path: &Path) -> bool {
        false
    }

    /// Returns `true` if the text of a file shows that it is in this dialect. Called for files that no dialect matches by
    /// path.
    fn matches_text(&self, _text: &str) -> bool {
        false
    }

    /// Reads the tools, the hooks and every problem of a source.
    fn read(&self, candidate: &Candidate<'_>) -> Parsed;

    /// Name of the file that makes its folder a source in this dialect.
    fn manifest(&self) -> Option<&'static str> {
        None
    }

    /// Returns `true` if a file of a folder without a manifest belongs to this dialect, judged by its name.
    fn matches_entry(&self, _file: &Path) -> bool {
        false
    }

    /// Reads the files of a folder that [`Dialect::matches_entry`] matched, after `before`.
    fn read_entries(&self, files: &[&Path], mut before: Parsed) -> Parsed {
        files.iter().for_each(|file| before.add(self.read(&Candidate::new(file))));
        before
    }

    /// Form of the files that [`Dialect::matches_entry`] matches, such as "Markdown tool (`NAME.md`)".
    fn entry_form(&self) -> Option<&'static str> {
        None
    }
}

/// Dialects in order of precedence. A folder is read dialect by dialect in the same order.
pub(super) struct Dialects {
    pub(super) all: &'static [&'static dyn Dialect],
    /// Dialect of a source that no dialect matches.
    pub(super) default: &'static dyn Dialect,
}

impl Dialects {
    /// Reads a source in the first dialect that matches it. With a name or alias of the only tool that is `called`, a manifest
    /// reads no more of the others than their names and programs.
    pub(super) fn read(&self, path: &Path, called: Option<&str>) -> Parsed {
        let candidate = Candidate::for_calls(path, called);
        let dialects = || self.all.iter().copied();
        let by_path = dialects().find(|dialect| dialect.matches_path(path));
        let by_text = || {
            let text = candidate.text().ok()?;
            dialects().find(|dialect| dialect.matches_text(&text))
        };
        by_path.or_else(by_text).unwrap_or(self.default).read(&candidate)
    }

    /// Finds the manifest of a folder.
    pub(super) fn manifest(&self, folder: &Path) -> Option<PathBuf> {
        let manifests = self.all.iter().filter_map(|dialect| dialect.manifest());
        manifests.map(|name| folder.join(name)).find(|manifest| files::is_file(manifest))
    }
}
