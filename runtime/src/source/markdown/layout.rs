//! Project layout: the names of its files and folders, and the kind of file that each folder holds.

use std::path::Path;

use crate::source::document::from_root;

/// Project file with lists of tools and hooks.
pub(in crate::source) const FILE: &str = "harness.md";
/// Project folder, with one folder for each kind of file.
pub(in crate::source) const FOLDER: &str = ".harness";
/// Folder of bundles that replace tools and hooks with the same name.
pub(in crate::source) const OVERRIDES: &str = "overrides";
/// Folder of built-in bundles, read after the project file.
pub(in crate::source) const BUILTINS: &str = "builtins";
/// Folders in [`FOLDER`], in the order in which they are read.
pub(in crate::source) const FOLDERS: [(&str, Kind); 5] = [
    ("tools", Kind::Tool),
    ("hooks", Kind::Hook),
    (BUILTINS, Kind::Bundle),
    ("plugins", Kind::Bundle),
    (OVERRIDES, Kind::Bundle),
];

/// Kind of a Markdown file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Kind {
    /// One tool, named after the file.
    Tool,
    /// One hook, named after the file.
    Hook,
    /// Lists of tools and hooks.
    Bundle,
    /// Lists of tools and hooks, and the project's policy over tools.
    Project,
}

impl Kind {
    /// Returns the kind of a file by its name and its folder.
    pub(super) fn of(file: &Path) -> Self {
        let path = from_root(file);
        let mut folders = path.ancestors().skip(1).filter_map(Path::file_name);
        let (folder, parent) = (folders.next(), folders.next());
        let is_in_project = parent.is_some_and(|parent| parent == FOLDER);
        match FOLDERS.into_iter().find(|(name, _)| is_in_project && folder.is_some_and(|folder| folder == *name)) {
            _ if path.file_name().is_some_and(|name| name == FILE) => Self::Project,
            Some((_, kind)) => kind,
            None => Self::Tool,
        }
    }

    /// Noun for messages, as the format's reference words it.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::Bundle => "bundle",
            Self::Project => "harness",
        }
    }
}
