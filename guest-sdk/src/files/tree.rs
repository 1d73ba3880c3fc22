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
        let changed: Vec<_> = self.files.iter().filter(|(_, file)| file.before != file.after).collect();
        for (index, (path, file)) in changed.iter().enumerate() {
            let Err(error) = put(path, file.after.as_deref()) else {
                continue;
            };
            let lost = changed[..index].iter().filter(|(path, file)| put(path, file.before.as_deref()).is_err());
            let lost: Vec<_> = lost.map(|(path, _)| format!("`{}`", path.display())).collect();
            return Err(match lost.is_empty() {
                true => error!("{error}; no file was changed"),
                false => error!("{error}; could not be undone: {}", lost.join(", ")),
            });
        }
        Ok(())
    }
}

fn put(path: &Path, text: Option<&str>) -> Result<(), Error> {
    let Some(text) = text else {
        return fs::remove_file(path).at("delete", path);
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).at("make the folder", parent)?;
    }
    files::replace(path, text.as_bytes())
}

/// Key of a path: `x`, `./x` and `/x` are the same file.
fn key(path: &str) -> PathBuf {
    let parts = Path::new(path).components();
    parts.filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir)).collect()
}
