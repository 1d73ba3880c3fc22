//! Dialects of tool sources: the trait that each implements, and the one list of them in order of precedence. A new dialect
//! is a file that implements [`Dialect`] and an entry of [`DIALECTS`].

use std::path::{Path, PathBuf};

use super::agent_tool::AgentTool;
use super::component::Component;
use super::diagnostics::Parsed;
use super::document::Candidate;
use super::folder::Folder;
use super::markdown::Markdown;
use super::project::Project;
use super::tools_json::ToolsJson;

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

    /// Name of the file that makes its folder a source of this dialect.
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

/// All dialects: the first that matches reads the source. A folder is read dialect by dialect in the same order.
pub(super) const DIALECTS: [&dyn Dialect; 6] = [&Project, &Folder, &AgentTool, &Component, &Markdown, &ToolsJson];

/// Dialect of a source that none of [`DIALECTS`] matches.
const DEFAULT: &dyn Dialect = &ToolsJson;

/// Reads a source in the dialect that matches it.
pub(super) fn read(path: &Path) -> Parsed {
    let candidate = Candidate::new(path);
    let by_path = DIALECTS.into_iter().find(|dialect| dialect.matches_path(path));
    let by_text = || {
        let text = candidate.text().ok()?;
        DIALECTS.into_iter().find(|dialect| dialect.matches_text(&text))
    };
    by_path.or_else(by_text).unwrap_or(DEFAULT).read(&candidate)
}

/// Finds the manifest of a folder.
pub(super) fn manifest(folder: &Path) -> Option<PathBuf> {
    let manifests = DIALECTS.into_iter().filter_map(Dialect::manifest);
    manifests.map(|name| folder.join(name)).find(|manifest| manifest.is_file())
}
