//! Folder of the results: one file per result, named by its reference, and a lock file. A result gets its name once it
//! is complete. Only the holder of the lock writes, so any other temporary file was left by a crash.

use std::cmp::Reverse;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::store::owner_only::{self, FileLock};

use super::Limits;
use super::reference::Reference;

/// Prefix of temporary file names, which are removed under the lock.
const TEMPORARY_PREFIX: &str = ".res-";

#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

/// The folder while this process holds its lock.
pub(super) struct LockedFolder<'a> {
    path: &'a Path,
    _lock: FileLock,
}

/// Size and age of a result's file.
struct StoredFile {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a result's file. A reference has no separators, so the path cannot leave the folder.
    pub(super) fn file(&self, reference: &Reference) -> PathBuf {
        self.path.join(reference.as_str())
    }

    /// Returns `true` if the folder exists. A folder that other users may write is an error.
    pub(super) fn exists(&self) -> io::Result<bool> {
        owner_only::folder_exists(&self.path)
    }

    /// Lists the references in the folder without opening their files.
    pub(super) fn references(&self) -> io::Result<Vec<Reference>> {
        if !self.exists()? {
            return Ok(Vec::new());
        }
        let mut references = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            references.extend(entry?.file_name().to_str().and_then(|name| Reference::parse(name).ok()));
        }
        Ok(references)
    }

    /// Creates the folder if it is missing, waits for its lock, and removes temporary files that a crash left.
    pub(super) fn lock(&self) -> io::Result<LockedFolder<'_>> {
        let lock = owner_only::lock_folder(&self.path, owner_only::MAX_LOCK_WAIT)?;
        owner_only::remove_temporary(&self.path, TEMPORARY_PREFIX);
        Ok(LockedFolder { path: &self.path, _lock: lock })
    }
}

impl LockedFolder<'_> {
    /// Stores a result completely or not at all, after removing the oldest results that exceed the limits.
    pub(super) fn put(
        &self,
        reference: &Reference,
        parts: [&[u8]; 2],
        now: SystemTime,
        limits: &Limits,
    ) -> io::Result<()> {
        let mut file = owner_only::temporary(self.path, TEMPORARY_PREFIX)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.as_file().set_modified(now)?;
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.make_room(bytes, now, limits)?;
        owner_only::persist_new(file, &self.path.join(reference.as_str())).map(drop).map_err(|(error, _)| error)
    }

    /// Removes expired results, then the oldest until another of `bytes` bytes fits.
    fn make_room(&self, bytes: u64, now: SystemTime, limits: &Limits) -> io::Result<()> {
        let mut files = self.files()?;
        files.sort_by_key(|file| Reverse(file.modified));
        let mut left = limits.bytes.saturating_sub(bytes);
        let mut full = false;
        for (newer, file) in files.iter().enumerate() {
            full |= newer + 1 >= limits.results || file.bytes > left || limits.is_expired(file.modified, now);
            if full {
                owner_only::remove(&file.path)?;
            } else {
                left -= file.bytes;
            }
        }
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<StoredFile>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.path)? {
            let entry = entry?;
            if entry.file_name().to_str().is_none_or(|name| Reference::parse(name).is_err()) {
                continue;
            }
            // The metadata of the entry itself, even if it is a link. Another process may have removed it.
            match entry.metadata() {
                Ok(metadata) if metadata.is_file() => {
                    let (bytes, modified) = (metadata.len(), metadata.modified()?);
                    files.push(StoredFile { path: entry.path(), bytes, modified });
                }
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(files)
    }
}
