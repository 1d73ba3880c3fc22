//! The folder of the results: a file each, by the name of its reference, and beside them a lock. A result gets its name
//! only when it is whole. Whoever writes holds the lock, so that what else is unfinished was left by a crash.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::owner_only;

use super::Bounds;
use super::reference::Reference;

const LOCK: &str = "lock";
/// How the name of an unfinished file begins and ends.
const UNFINISHED: (&str, &str) = (".res-", ".new");
/// The longest wait for the others' writing.
const MAX_LOCK: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

/// The folder while nobody else writes in it.
pub(super) struct Held<'a> {
    path: &'a Path,
    _lock: File,
}

/// A file with the name of a result.
struct Found {
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

    /// Where a result lies. A reference cannot lead anywhere else.
    pub(super) fn file(&self, reference: &Reference) -> PathBuf {
        self.path.join(reference.as_str())
    }

    /// Whether there is a folder; one that others may write is refused.
    pub(super) fn is_there(&self) -> io::Result<bool> {
        match owner_only::refuse_shared(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            checked => checked.map(|()| self.path.is_dir()),
        }
    }

    /// The references that are there, whatever is behind them.
    pub(super) fn references(&self) -> io::Result<Vec<Reference>> {
        if !self.is_there()? {
            return Ok(Vec::new());
        }
        let mut references = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            references.extend(entry?.file_name().to_str().and_then(|name| Reference::parse(name).ok()));
        }
        Ok(references)
    }

    /// Makes the folder where it is missing, waits until nobody writes, and sweeps what a crash has left.
    pub(super) fn hold(&self) -> io::Result<Held<'_>> {
        owner_only::make_folder(&self.path)?;
        owner_only::refuse_shared(&self.path)?;
        let lock = owner_only::options().write(true).create(true).truncate(false).open(self.path.join(LOCK))?;
        owner_only::lock(&lock, MAX_LOCK)?;
        let held = Held { path: &self.path, _lock: lock };
        held.sweep()?;
        Ok(held)
    }
}

impl Held<'_> {
    /// Puts a result in place, whole or not at all, and before that removes the oldest where the bounds ask for it.
    pub(super) fn put(
        &self,
        reference: &Reference,
        parts: [&[u8]; 2],
        now: SystemTime,
        bounds: &Bounds,
    ) -> io::Result<()> {
        let (prefix, suffix) = UNFINISHED;
        let mut file = tempfile::Builder::new().prefix(prefix).suffix(suffix).tempfile_in(self.path)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.as_file().set_modified(now)?;
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.make_room(bytes, now, bounds)?;
        persist(file, &self.path.join(reference.as_str()))
    }

    /// Removes what is too old, and then the oldest until one more of so many bytes fits.
    fn make_room(&self, bytes: u64, now: SystemTime, bounds: &Bounds) -> io::Result<()> {
        let mut found = self.found()?;
        found.sort_by_key(|found| Reverse(found.modified));
        let mut left = bounds.bytes.saturating_sub(bytes);
        let mut full = false;
        for (newer, file) in found.iter().enumerate() {
            full |= newer + 1 >= bounds.results || file.bytes > left || bounds.is_past(file.modified, now);
            if full {
                remove(&file.path)?;
            } else {
                left -= file.bytes;
            }
        }
        Ok(())
    }

    fn found(&self) -> io::Result<Vec<Found>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(self.path)? {
            let entry = entry?;
            if entry.file_name().to_str().is_none_or(|name| Reference::parse(name).is_err()) {
                continue;
            }
            // The metadata of the entry itself, were it a link. It may have been removed meanwhile.
            match entry.metadata() {
                Ok(about) if about.is_file() => {
                    all.push(Found { path: entry.path(), bytes: about.len(), modified: about.modified()? });
                }
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(all)
    }

    fn sweep(&self) -> io::Result<()> {
        let (prefix, suffix) = UNFINISHED;
        for entry in fs::read_dir(self.path)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(suffix)) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// Removes a file or link; says whether it was there.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Gives a finished file its name, which nothing else may have.
fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.persist_noclobber(path).map(drop).map_err(|failed| failed.error)
}
