//! Folders: the manifest in a folder, or else every file of it that a dialect matches by name. Hidden files are ignored.

use std::path::{Path, PathBuf};

use super::bundle::is_bundle;
use super::diagnostics::Parsed;
use super::dialect::{Dialect, Dialects};
use super::document::{Candidate, from_root};
use super::files;

/// Name of the file that makes its folder a Rust package.
const PACKAGE: &str = "Cargo.toml";

/// A folder that is no project.
pub(super) struct Folder {
    /// Dialects of its files.
    pub(super) dialects: &'static Dialects,
}

impl Dialect for Folder {
    fn matches_path(&self, path: &Path) -> bool {
        files::is_folder(path) || is_bundle(path)
    }

    fn read(&self, candidate: &Candidate<'_>) -> Parsed {
        let folder = candidate.path();
        match self.dialects.manifest(folder) {
            Some(manifest) => self.dialects.read(&manifest, candidate.called()),
            None => read_entries(folder, self.dialects),
        }
    }
}

/// Reads a folder's files, dialect by dialect, each in file name order.
fn read_entries(folder: &Path, dialects: &Dialects) -> Parsed {
    let files = match self::files(folder) {
        Ok(files) => files,
        Err(error) => return Parsed::failed(folder, &format!("read folder: {error}")),
    };
    let mut parsed = Parsed::default();
    let mut is_empty = true;
    for dialect in dialects.all {
        let entries: Vec<&Path> =
            files.iter().map(PathBuf::as_path).filter(|file| dialect.matches_entry(file)).collect();
        if !entries.is_empty() {
            is_empty = false;
            parsed = dialect.read_entries(&entries, parsed);
        }
    }
    if is_empty {
        return Parsed::failed(folder, &without_tools(folder, dialects));
    }
    parsed
}

/// Returns the message for a folder without tools: the files that were looked for, and a manifest in the parent folder.
fn without_tools(folder: &Path, dialects: &Dialects) -> String {
    let all = || dialects.all.iter().copied();
    let manifests = all().filter_map(Dialect::manifest).map(|name| format!("`{name}`"));
    let entries = all().filter_map(Dialect::entry_form).map(str::to_owned);
    let forms: Vec<_> = manifests.chain(entries).collect();
    let manifest = from_root(folder).parent().and_then(|parent| dialects.manifest(parent));
    let hint = match manifest.as_deref().and_then(Path::file_name) {
        _ if files::is_file(&folder.join(PACKAGE)) => {
            "; it is a Rust package, and `toolcrib build` builds its component".to_owned()
        }
        Some(name) => format!("; its parent folder has a `{}`", name.display()),
        None => String::new(),
    };
    format!("no tools found in this folder: no {}{hint}", forms.join(", no "))
}

/// Lists the files of a folder in name order, without hidden ones.
///
/// # Errors
///
/// Fails if the folder cannot be read.
pub(super) fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files: Vec<_> = files::list(folder)?.into_iter().filter(|path| !is_hidden(path)).collect();
    files.sort();
    Ok(files)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}
