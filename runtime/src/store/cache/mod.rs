//! Cache of files that can be made or fetched again: compiled programs, and bundles from registries. All kinds of entries
//! share one folder and one size limit. The least recently used entries are removed first.
//!
//! ```no_run
//! # fn demo() -> Result<(), toolcrib::Error> {
//! use toolcrib::cache::Cache;
//!
//! let cache = Cache::folder("./cache");
//! for entry in cache.entries()? {
//!     println!("{} {} {} bytes, used {}", entry.digest, entry.kind.as_str(), entry.bytes, entry.used);
//! }
//! let removed = cache.prune(256 << 20)?;
//! println!("{} entries removed, {} bytes", removed.entries, removed.bytes);
//! # Ok(()) }
//! ```
//!
//! An entry is written under a temporary name and renamed once it is complete. Its modification time is the time of its
//! last use. Several processes may share the folder: every file operation is safe without a lock, and the lock only
//! avoids that two processes evict at once. A process that is killed leaves at most a temporary file, which is removed
//! after an hour. Bundles are locked while they are used, and are not removed then: [`Cache::bundle`].

mod bundles;
mod folder;
mod name;

use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::Serialize;

use crate::error::Error;
use crate::store::owner_only::{self, SharedAccess, TEMPORARY_PREFIX};

use folder::{FoundEntry, Limits};

pub(crate) use name::EntryName;

pub use bundles::{DownloadFiles, HeldFile, NewBundle};
pub use name::EntryKind;

/// Default limit on the bytes of all entries together: 2 GiB.
pub const DEFAULT_MAX_BYTES: u64 = 2 << 30;
/// Maximum bytes of one entry, whatever the limit on all.
const MAX_ENTRY_BYTES: u64 = 1 << 30;
/// Maximum number of entries.
const MAX_ENTRIES: usize = 16_384;
/// Maximum number of entries that one scan reads. A scan that reads this many removes most of them, so that a folder
/// with more is within its limits after a few writes: each write adds one.
const MAX_SCANNED: usize = 4 * MAX_ENTRIES;
/// Precision of the last use's time. A more recent time is not updated.
const USE_PRECISION: Duration = Duration::from_hours(1);

/// A cache in a folder, which several processes may share. All methods block on disk access; async code calls them from
/// a blocking thread.
#[derive(Debug, Clone)]
pub struct Cache {
    path: PathBuf,
    limits: Limits,
}

/// Description of a cache entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CacheEntry {
    /// Path of the file, relative to the folder.
    pub file: String,
    /// Digest of the compiled program, the bundle's manifest, or the downloaded blob, as `sha256:HEX`. Two entries have
    /// the same digest if a program was compiled for two configurations of the engine, by two versions, or for two
    /// roles, as a tool and as an interpreter.
    pub digest: String,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Time of the last use, up to an hour early; serialized as RFC 3339 in UTC.
    pub used: Timestamp,
}

/// Number and size of the entries that were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removal {
    /// Number of entries.
    pub entries: usize,
    /// Size of their files in bytes.
    pub bytes: u64,
}

impl Removal {
    fn add(&mut self, entries: usize, bytes: u64) {
        self.entries += entries;
        self.bytes += bytes;
    }
}

/// Entry that is open. It stays the same if the entry is removed or replaced at the same time.
pub(crate) struct OpenEntry {
    file: File,
    len: u64,
    used: Option<SystemTime>,
}

impl OpenEntry {
    /// Returns the open file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Size of the entry in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns a reader of the content from its beginning; `None` if the file cannot be read.
    pub(crate) fn rewound(&self) -> Option<&File> {
        (&self.file).rewind().ok().map(|()| &self.file)
    }

    /// Records that the entry is used, if the recorded time is no longer precise. A failure only makes the entry older.
    pub(crate) fn mark_used(&self) {
        // A time in the future is corrected.
        let age = self.used.and_then(|used| used.elapsed().ok());
        if age.is_none_or(|age| age >= USE_PRECISION) {
            let _ = self.file.set_modified(SystemTime::now());
        }
    }
}

impl Cache {
    /// Uses a folder, which the first stored entry creates with owner-only rights. The limit on all entries together is
    /// [`DEFAULT_MAX_BYTES`], and at most 16,384 entries are stored.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        let limits = Limits { bytes: DEFAULT_MAX_BYTES, entries: MAX_ENTRIES, scanned: MAX_SCANNED };
        Self { path: path.into(), limits }
    }

    /// Sets the maximum bytes of all entries together. It is applied when an entry is stored; a larger entry is not stored.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Maximum bytes of all entries together.
    pub fn limit(&self) -> u64 {
        self.limits.bytes
    }

    /// Lists the entries, the most recently used first. A missing folder is empty; of a folder with more than 65,536
    /// entries, as many are listed.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] if the folder is a link, can be written by other users or cannot be read.
    pub fn entries(&self) -> Result<Vec<CacheEntry>, Error> {
        let scan = || match owner_only::folder_exists(&self.path)? {
            true => Ok(folder::scan(&self.path, self.limits.scanned)?.entries),
            false => Ok(Vec::new()),
        };
        let found: Vec<FoundEntry> = scan().map_err(|error| self.fault(error))?;
        Ok(found.iter().map(CacheEntry::from).collect())
    }

    /// Removes the least recently used entries until the others have at most `max_bytes` together, except bundles in use.
    /// Also removes downloads that were not continued for a day, and temporary files that a killed process left: files
    /// of bundles after five seconds, others after an hour. A missing folder is empty.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] if the folder is a link or can be written by other users, if it or an entry cannot be written, or
    /// if another process holds the lock for more than ten seconds.
    pub fn prune(&self, max_bytes: u64) -> Result<Removal, Error> {
        self.remove_over(&Limits { bytes: max_bytes, ..self.limits })
    }

    /// Removes every entry that is not in use. The key of the folder and all files that are not entries stay.
    ///
    /// # Errors
    ///
    /// As for [`Cache::prune`].
    pub fn clear(&self) -> Result<Removal, Error> {
        self.remove_over(&Limits { bytes: 0, entries: 0, ..self.limits })
    }

    fn remove_over(&self, limits: &Limits) -> Result<Removal, Error> {
        let remove = || {
            let mut all = Removal::default();
            if !owner_only::folder_exists(&self.path)? {
                return Ok(all);
            }
            let _lock = owner_only::lock_folder(&self.path, owner_only::MAX_LOCK_WAIT)?;
            owner_only::remove_abandoned(&self.path, TEMPORARY_PREFIX);
            bundles::remove_unfinished(&self.path.join(name::BUNDLES));
            loop {
                let (removal, has_more) = folder::evict(&self.path, limits)?;
                all.add(removal.entries, removal.bytes);
                if !has_more {
                    return Ok(all);
                }
            }
        };
        remove().map_err(|error| self.fault(error))
    }

    /// Opens an entry; `None` if it does not exist, belongs to or can be written by someone else, or cannot be used. The
    /// caller checks the content.
    pub(crate) fn open(&self, name: &EntryName) -> Option<OpenEntry> {
        let file = owner_only::open(&self.path.join(name.as_str()), SharedAccess::Read).ok()??;
        let metadata = file.metadata().ok()?;
        if metadata.len() > MAX_ENTRY_BYTES {
            return None;
        }
        Some(OpenEntry { file, len: metadata.len(), used: metadata.modified().ok() })
    }

    /// Stores an entry completely or not at all, and removes the least recently used entries that exceed the limits. An
    /// entry that exceeds them alone is not stored.
    ///
    /// If another process is evicting, this one does not: the folder may then exceed its limit by the entries that are
    /// stored at this moment, until the next is stored.
    ///
    /// # Errors
    ///
    /// The folder is a link or can be written by other users, or the entry cannot be written.
    pub(crate) fn put(&self, name: &EntryName, parts: &[&[u8]]) -> io::Result<()> {
        owner_only::create_folder(&self.path)?;
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let stored = if bytes <= self.limits.bytes.min(MAX_ENTRY_BYTES) { self.write(name, parts) } else { Ok(()) };
        self.apply_limits();
        stored
    }

    /// Removes the entries that exceed the limits, unless another process does so.
    fn apply_limits(&self) {
        // A lock that cannot be taken for another reason, such as the kind of the file system, does not end the limit.
        match owner_only::lock_folder(&self.path, Duration::ZERO) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _lock => {
                let _ = folder::evict(&self.path, &self.limits);
            }
        }
    }

    /// Writes a new file or replaces the file of an entry. A link or a folder of the same name stays.
    fn write(&self, name: &EntryName, parts: &[&[u8]]) -> io::Result<()> {
        let path = self.path.join(name.as_str());
        bundles::refuse_other(&path)?;
        let mut file = owner_only::temporary(&self.path, TEMPORARY_PREFIX)?;
        for part in parts {
            file.write_all(part)?;
        }
        owner_only::persist(file, &path).map(drop)
    }

    fn fault(&self, error: io::Error) -> Error {
        Error::Cache { path: self.path.clone(), reason: error.to_string(), source: Some(Arc::new(error)) }
    }
}

impl From<&FoundEntry> for CacheEntry {
    fn from(found: &FoundEntry) -> Self {
        Self {
            file: found.name.as_str().to_owned(),
            digest: found.name.digest(),
            kind: found.kind,
            bytes: found.bytes,
            used: Timestamp::try_from(found.used).unwrap_or(Timestamp::UNIX_EPOCH),
        }
    }
}

#[cfg(test)]
mod tests;
