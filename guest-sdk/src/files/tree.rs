//! Changes to several files: made in memory first, and written to disk only when all of them are known to apply.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::{Error, PathContext, error, files};

const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Text files by path, with their content before and after the changes.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<PathBuf, File>,
    /// Renamed files, each with its old and its new path.
    renamed: Vec<(PathBuf, PathBuf)>,
}

/// Text before and after; `None` if the file does not exist.
struct File {
    before: Option<String>,
    after: Option<String>,
}

impl Tree {
    /// Text of a file, with the changes so far.
    ///
    /// # Errors
    ///
    /// If the file does not exist, or is not a text of at most 16 MiB.
    pub fn read(&mut self, path: &str) -> Result<&str, Error> {
        let file = self.file(path)?;
        file.after.as_deref().ok_or_else(|| ErrorKind::NotFound.into()).at("read", path)
    }

    /// Replaces the text of a file.
    ///
    /// # Errors
    ///
    /// If the existing file cannot be read.
    pub fn write(&mut self, path: &str, text: String) -> Result<(), Error> {
        self.file(path)?.after = Some(text);
        Ok(())
    }

    /// Replaces the text of an existing file, without reading it again: `before` is its text on disk.
    pub fn edit(&mut self, path: &str, before: String, after: String) {
        self.files.insert(key(path), File { before: Some(before), after: Some(after) });
    }

    /// Creates a file.
    ///
    /// # Errors
    ///
    /// If the file exists.
    pub fn create(&mut self, path: &str, text: String) -> Result<(), Error> {
        let file = self.file(path)?;
        if file.after.is_some() {
            return Err(Error::conflict(format!("create `{path}`: it already exists")));
        }
        file.after = Some(text);
        Ok(())
    }

    /// Renames a file and replaces its text. The file keeps its mode, where the host keeps modes.
    ///
    /// # Errors
    ///
    /// If the new path exists, or the file cannot be read.
    pub fn rename(&mut self, from: &str, to: &str, text: String) -> Result<(), Error> {
        self.create(to, text)?;
        self.delete(from)?;
        self.renamed.push((key(from), key(to)));
        Ok(())
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// If the existing file cannot be read.
    pub fn delete(&mut self, path: &str) -> Result<(), Error> {
        self.file(path)?.after = None;
        Ok(())
    }

    fn file(&mut self, path: &str) -> Result<&mut File, Error> {
        let key = key(path);
        if !self.files.contains_key(&key) {
            let before = match fs::symlink_metadata(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                found => {
                    found.at("read", path)?;
                    Some(files::read_text(path, MAX_FILE_BYTES)?)
                }
            };
            self.files.insert(key.clone(), File { after: before.clone(), before });
        }
        self.files.get_mut(&key).ok_or_else(|| error!("read `{path}`: lost"))
    }

    /// Writes all changes. If a write fails, the earlier ones are undone.
    ///
    /// # Errors
    ///
    /// The failed write, and each write that could not be undone.
    pub fn commit(self) -> Result<(), Error> {
        let mut done = Vec::new();
        for step in self.steps() {
            let Err(error) = step.perform() else {
                done.push(step);
                continue;
            };
            let lost =
                done.iter().rev().filter_map(|step| step.undo().err().map(|_| format!("`{}`", step.path().display())));
            let lost: Vec<_> = lost.collect();
            return Err(match lost.is_empty() {
                true => error!("{error}; no file was changed"),
                false => error!("{error}; could not be undone: {}", lost.join(", ")),
            });
        }
        Ok(())
    }

    /// Returns the changes in the order in which they are written: renames first, then texts.
    fn steps(&self) -> Vec<Step<'_>> {
        // A path whose file was renamed has no file, and the new path has its text.
        let mut there: BTreeMap<&Path, Option<&str>> =
            self.files.iter().map(|(path, file)| (path.as_path(), file.before.as_deref())).collect();
        let mut steps = Vec::new();
        for (from, to) in &self.renamed {
            // A file that is not there yet is written under its new name, and one that is replaced can be restored.
            let is_there = |path: &Path| there.get(path).copied().flatten().is_some();
            if is_there(from) && !is_there(to) {
                let text = there.insert(from, None).flatten();
                there.insert(to, text);
                steps.push(Step::Rename { from, to });
            }
        }
        for (path, file) in &self.files {
            let (before, after) = (there.get(path.as_path()).copied().flatten(), file.after.as_deref());
            if before != after {
                steps.push(Step::Put { path, before, after });
            }
        }
        steps
    }
}

/// Change of one file.
enum Step<'t> {
    Rename { from: &'t Path, to: &'t Path },
    Put { path: &'t Path, before: Option<&'t str>, after: Option<&'t str> },
}

impl Step<'_> {
    fn perform(&self) -> Result<(), Error> {
        match self {
            Step::Rename { from, to } => rename(from, to),
            Step::Put { path, after, .. } => put(path, *after),
        }
    }

    fn undo(&self) -> Result<(), Error> {
        match self {
            Step::Rename { from, to } => rename(to, from),
            Step::Put { path, before, .. } => put(path, *before),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Step::Rename { from: path, .. } | Step::Put { path, .. } => path,
        }
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    make_parent(to)?;
    fs::rename(from, to).at("rename", from)
}

fn make_parent(path: &Path) -> Result<(), Error> {
    path.parent().map_or(Ok(()), |parent| fs::create_dir_all(parent).at("make the folder", parent))
}

fn put(path: &Path, text: Option<&str>) -> Result<(), Error> {
    let Some(text) = text else {
        return fs::remove_file(path).at("delete", path);
    };
    make_parent(path)?;
    files::replace(path, text.as_bytes())
}

/// Key of a path: `x`, `./x` and `/x` are the same file.
fn key(path: &str) -> PathBuf {
    let parts = Path::new(path).components();
    parts.filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir)).collect()
}
