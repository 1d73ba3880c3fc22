//! Bundles in the cache: stored whole, locked as long as they are used, and downloaded into files that an interrupted pull
//! can continue.
//!
//! ```no_run
//! # fn demo() -> Result<(), toolcrib::Error> {
//! use std::io::Write;
//!
//! use toolcrib::cache::Cache;
//!
//! let cache = Cache::folder("./cache");
//! let digest = format!("sha256:{}", "ab".repeat(32));
//! if cache.bundle(&digest)?.is_none() {
//!     let mut bundle = cache.new_bundle()?;
//!     bundle.file_mut().write_all(b"...").expect("space on the disk");
//!     println!("{}", bundle.store(&digest)?.path().display());
//! }
//! # Ok(()) }
//! ```

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::error::Error;
use crate::store::owner_only::{self, FileLock, SharedAccess, TEMPORARY_PREFIX};

use super::Cache;
use super::name::{BUNDLES, EntryName};

/// Maximum wait for a file that another process removes or completes at this moment.
const MAX_HOLD_WAIT: Duration = Duration::from_secs(2);

/// Minimum age of an unlocked temporary file that counts as left behind. A new one is locked long before.
const MAX_UNLOCKED_AGE: Duration = Duration::from_secs(5);
/// Maximum attempts to store a bundle that other processes store and remove at the same time.
const MAX_STORE_ATTEMPTS: u32 = 100;

/// Open file of the cache. It is not removed from the cache as long as this value exists.
#[derive(Debug)]
pub struct HeldFile {
    path: PathBuf,
    lock: FileLock,
}

impl HeldFile {
    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Handle of the file, open for reading.
    pub fn file(&self) -> &File {
        self.lock.file()
    }
}

/// Files of one blob's download. Whoever writes the incomplete one locks it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DownloadFiles {
    /// File of the bytes that have arrived.
    pub partial: PathBuf,
    /// File of the whole blob.
    pub complete: PathBuf,
}

/// Bundle that is being written.
#[derive(Debug)]
pub struct NewBundle<'a> {
    cache: &'a Cache,
    file: NamedTempFile,
}

impl NewBundle<'_> {
    /// Returns the file that the bundle is written to.
    pub fn file_mut(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Stores the bundle under the digest of its manifest, `sha256:HEX`, and removes the least recently used entries
    /// that exceed the cache's limits. The caller has checked the content.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] if `digest` is not a digest, if the bundle alone exceeds the limit of the cache, or if it cannot be
    /// written.
    pub fn store(self, digest: &str) -> Result<HeldFile, Error> {
        let cache = self.cache;
        let store = || {
            let path = cache.path.join(bundle_name(digest)?.as_str());
            let bytes = self.file.as_file().metadata()?.len();
            if bytes > cache.limits.bytes {
                let limit = cache.limits.bytes;
                return Err(io::Error::other(format!("a bundle of {bytes} bytes exceeds its limit of {limit} bytes")));
            }
            refuse_other(&path)?;
            self.file.as_file().sync_all()?;
            let mut file = self.file;
            for _ in 0..MAX_STORE_ATTEMPTS {
                // One that another process has stored meanwhile stays: it may be in use.
                match owner_only::persist_new(file, &path) {
                    Ok(file) => return Ok(HeldFile { path, lock: FileLock::of_locked(file) }),
                    Err((error, left)) if error.kind() == ErrorKind::AlreadyExists => file = left,
                    Err((error, _)) => return Err(error),
                }
                if let Some(held) = cache.hold(path.clone())? {
                    return Ok(held);
                }
            }
            Err(io::Error::other("another process removes each bundle at once"))
        };
        let held = store().map_err(|error| cache.fault(error))?;
        cache.apply_limits();
        Ok(held)
    }
}

impl Cache {
    /// Returns the bundle with this manifest digest, `sha256:HEX`, and records that it is used; `None` if it is not
    /// stored.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] if `digest` is not a digest, or if the folder or file is a link, belongs to or can be written by
    /// another user, or cannot be read.
    pub fn bundle(&self, digest: &str) -> Result<Option<HeldFile>, Error> {
        bundle_name(digest).and_then(|name| self.hold(self.path.join(name.as_str()))).map_err(|error| self.fault(error))
    }

    /// Removes a damaged bundle. Returns `true` if it existed.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] if `digest` is not a digest, or the file cannot be removed.
    pub fn remove_bundle(&self, digest: &str) -> Result<bool, Error> {
        bundle_name(digest)
            .and_then(|name| owner_only::remove(&self.path.join(name.as_str())))
            .map_err(|error| self.fault(error))
    }

    /// Begins a bundle. It is visible to nobody before it is stored.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] if the folder is a link or can be written by other users, or if no file can be created in it.
    pub fn new_bundle(&self) -> Result<NewBundle<'_>, Error> {
        let create = || {
            let folder = self.bundle_folder()?;
            remove_unfinished(&folder);
            let file = owner_only::temporary(&folder, TEMPORARY_PREFIX)?;
            // The lock belongs to the file under each of its names, so that nothing removes it before or after it is stored.
            // Some file systems have no locks.
            let _ = file.as_file().try_lock_shared();
            Ok(file)
        };
        Ok(NewBundle { cache: self, file: create().map_err(|error| self.fault(error))? })
    }

    /// Returns the files for the download of a blob with this digest, `sha256:HEX`.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] if `digest` is not a digest, or if the folder is a link or can be written by other users.
    pub fn download_files(&self, digest: &str) -> Result<DownloadFiles, Error> {
        let files = || {
            self.bundle_folder()?;
            let (partial, complete) = EntryName::download(digest).ok_or_else(not_a_digest)?;
            let path = |name: EntryName| self.path.join(name.as_str());
            Ok(DownloadFiles { partial: path(partial), complete: path(complete) })
        };
        files().map_err(|error| self.fault(error))
    }

    /// Returns a completed download; `None` if the file does not exist. The caller compares its content with the digest.
    ///
    /// # Errors
    ///
    /// As for [`Cache::bundle`].
    pub fn downloaded(&self, files: &DownloadFiles) -> Result<Option<HeldFile>, Error> {
        self.hold(files.complete.clone()).map_err(|error| self.fault(error))
    }

    /// Creates the folder of bundles.
    fn bundle_folder(&self) -> io::Result<PathBuf> {
        owner_only::create_folder(&self.path)?;
        let folder = self.path.join(BUNDLES);
        owner_only::create_folder(&folder)?;
        Ok(folder)
    }

    /// Opens and locks a file, and records that it is used.
    fn hold(&self, path: PathBuf) -> io::Result<Option<HeldFile>> {
        if !owner_only::folder_exists(&self.path)? || !owner_only::folder_exists(&self.path.join(BUNDLES))? {
            return Ok(None);
        }
        let Some(file) = owner_only::open(&path, SharedAccess::Read)? else { return Ok(None) };
        match owner_only::lock_shared(&file, MAX_HOLD_WAIT) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(error),
            // Some file systems have no locks. A reader then keeps the content of its open file.
            _locked => {}
        }
        // It may have been removed before it was locked, and another stored in its place, which has another lock.
        if !owner_only::is_file_at(&file, &path) {
            return Ok(None);
        }
        let _ = file.set_modified(SystemTime::now());
        Ok(Some(HeldFile { path, lock: FileLock::of_locked(file) }))
    }
}

/// Removes the unfinished bundles of processes that were killed. They count for no limit.
pub(super) fn remove_unfinished(folder: &Path) {
    owner_only::remove_unlocked(folder, TEMPORARY_PREFIX, MAX_UNLOCKED_AGE);
}

fn bundle_name(digest: &str) -> io::Result<EntryName> {
    EntryName::bundle(digest).ok_or_else(not_a_digest)
}

fn not_a_digest() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "the name of a bundle is not `sha256:` and 64 hexadecimal digits")
}

/// Refuses to replace a link or a folder.
pub(super) fn refuse_other(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path).is_ok_and(|existing| !existing.is_file()) {
        true => Err(io::Error::new(ErrorKind::AlreadyExists, "the name of the entry belongs to a link or a folder")),
        false => Ok(()),
    }
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
