//! Plan of a copy: every folder and file with its new path, and checks of the new paths. Changes nothing.

use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use toolcrib_guest::{Error, PathContext, error};

use crate::{MAX_BYTES, MAX_ENTRIES};

/// Maximum depth of a copied folder.
const MAX_DEPTH: usize = 64;
/// Maximum paths that are named for a reason.
const MAX_NAMED: usize = 3;

/// Folder to create, unless it exists.
pub(crate) struct Folder {
    pub(crate) to: PathBuf,
    pub(crate) exists: bool,
}

/// File to copy.
pub(crate) struct File {
    pub(crate) from: PathBuf,
    pub(crate) to: PathBuf,
    pub(crate) replaces: bool,
}

/// Steps of a copy, folders before the files in them.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) folders: Vec<Folder>,
    pub(crate) files: Vec<File>,
    /// Number of files that are replaced.
    pub(crate) replaced: usize,
    pub(crate) left_out: LeftOut,
    bytes: u64,
    overwrite: bool,
}

/// Entries that are not copied.
#[derive(Default)]
pub(crate) struct LeftOut {
    links: Vec<PathBuf>,
    special: Vec<PathBuf>,
}

impl LeftOut {
    pub(crate) fn reasons(&self) -> Vec<String> {
        let reason = |paths: &[PathBuf], why: &str| {
            let named: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| format!("`{}`", path.display())).collect();
            let more = if paths.len() > MAX_NAMED { ", …" } else { "" };
            (!paths.is_empty()).then(|| format!("{}: {why} ({}{more})", paths.len(), named.join(", ")))
        };
        let links = reason(&self.links, "symbolic links, which are not copied");
        links.into_iter().chain(reason(&self.special, "neither files nor folders")).collect()
    }
}

impl Plan {
    /// Plans the copy of `from` to `to`.
    ///
    /// # Errors
    ///
    /// If an entry cannot be read, a bound is exceeded, or something is at a new path that may not be replaced.
    pub(crate) fn new(from: &Path, to: &Path, overwrite: bool) -> Result<Self, Error> {
        let mut plan = Self { overwrite, ..Self::default() };
        let kind = fs::symlink_metadata(from).at("copy", from)?.file_type();
        if !kind.is_dir() && !kind.is_file() {
            return Err(error!("copy `{}`: it is neither a file nor a folder", from.display()));
        }
        if !overwrite && fs::symlink_metadata(to).is_ok() {
            let cure = if kind.is_dir() { "replace files in it" } else { "replace it" };
            return Err(Error::conflict(format!(
                "copy to `{}`: it already exists; set `overwrite` to {cure}",
                to.display()
            )));
        }
        plan.add(from, to, kind, 0)?;
        Ok(plan)
    }

    fn add(&mut self, from: &Path, to: &Path, kind: FileType, depth: usize) -> Result<(), Error> {
        if kind.is_dir() {
            return self.add_folder(from, to, depth);
        }
        if kind.is_symlink() {
            self.left_out.links.push(from.to_path_buf());
            return Ok(());
        }
        if !kind.is_file() {
            self.left_out.special.push(from.to_path_buf());
            return Ok(());
        }
        self.bytes += fs::symlink_metadata(from).at("copy", from)?.len();
        if self.bytes > MAX_BYTES {
            return Err(error!("copy: the files are over the limit of {MAX_BYTES} bytes together; {UNTOUCHED}"));
        }
        let replaces = self.there(to, "a file", FileType::is_file)?;
        self.replaced += usize::from(replaces);
        self.files.push(File { from: from.to_path_buf(), to: to.to_path_buf(), replaces });
        self.count()
    }

    fn add_folder(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), Error> {
        if depth == MAX_DEPTH {
            return Err(error!("copy `{}`: folders are deeper than {MAX_DEPTH}; {UNTOUCHED}", from.display()));
        }
        let exists = self.there(to, "a folder", FileType::is_dir)?;
        self.folders.push(Folder { to: to.to_path_buf(), exists });
        self.count()?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(from).at("copy", from)? {
            let entry = entry.at("copy", from)?;
            entries.push((entry.file_name(), entry.file_type().at("copy", entry.path())?));
            if entries.len() > MAX_ENTRIES {
                return Err(too_many());
            }
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, kind) in entries {
            self.add(&from.join(&name), &to.join(&name), kind, depth + 1)?;
        }
        Ok(())
    }

    /// Returns `true` if something is at a new path that the copy may replace, or a folder that it may fill.
    fn there(&self, to: &Path, what: &str, is_kind: impl Fn(&FileType) -> bool) -> Result<bool, Error> {
        // Nothing is below a folder that is new.
        if !self.overwrite || self.folders.first().is_some_and(|folder| !folder.exists) {
            return Ok(false);
        }
        match fs::symlink_metadata(to) {
            Err(_) => Ok(false),
            Ok(found) if is_kind(&found.file_type()) => Ok(true),
            Ok(_) => {
                Err(Error::conflict(format!("copy to `{}`: it exists and is not {what}; {UNTOUCHED}", to.display())))
            }
        }
    }

    fn count(&self) -> Result<(), Error> {
        if self.files.len() + self.folders.len() > MAX_ENTRIES { Err(too_many()) } else { Ok(()) }
    }
}

fn too_many() -> Error {
    error!("copy: more than {MAX_ENTRIES} files and folders; copy parts of the folder; {UNTOUCHED}")
}

/// End of an error before anything is written.
const UNTOUCHED: &str = "nothing was copied";
