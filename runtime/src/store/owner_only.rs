//! Files and folders with owner-only rights, the one primitive under every store of the host.
//!
//! - Created files have mode 0600 and created folders mode 0700.
//! - A file is opened first and its handle is checked afterwards: it must be a regular file of this user, without access
//!   by other users beyond [`SharedAccess`]. Symbolic links are never followed, and opening a FIFO does not block.
//! - A file is written under a temporary name and renamed once it is complete.
//! - Locks are advisory file locks with a bounded wait.
//!
//! On Windows, created files and folders have an access list for the user, the system and the administrators alone, and the
//! owner and the access list of an existing file take the place of its mode. A rename waits within a bound for a program that
//! holds the file open.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::{NamedTempFile, TempDir};
use toolcrib_private_files as system;

pub use toolcrib_private_files::{FileLock, SharedAccess, options, persist, rename};
pub(crate) use toolcrib_private_files::{is_file_at, persist_new};

/// Interval between two attempts to take a lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_micros(200);
/// Prefix of temporary file names. A store that removes its own at once has a prefix of its own: others may share its
/// folder.
pub(crate) const TEMPORARY_PREFIX: &str = ".unfinished-";
/// Number of random letters and digits in a temporary file's name.
const RANDOM_CHARS: usize = 6;
/// Minimum age of a temporary file that counts as left behind by a killed process.
const MAX_TEMPORARY_AGE: Duration = Duration::from_hours(1);
/// Maximum wait for the lock of a folder with a store.
pub(crate) const MAX_LOCK_WAIT: Duration = Duration::from_secs(10);
/// Minimum age of a temporary folder that counts as left behind: longer than any call.
const MAX_FOLDER_AGE: Duration = Duration::from_hours(24);
/// Name of the lock file in a folder that several processes share.
const FOLDER_LOCK: &str = "lock";
/// Extra capacity for reading a file, so that the buffer is not reallocated at the end of the file.
const READ_MARGIN: usize = 64;

/// A file with owner-only rights that is read whole and replaced whole. It may be missing.
#[derive(Debug, Clone)]
pub struct OwnerOnlyFile {
    path: PathBuf,
    max_len: u64,
    shared: SharedAccess,
}

impl OwnerOnlyFile {
    /// Names a file of at most `max_len` bytes, without opening it.
    pub fn new(path: impl Into<PathBuf>, max_len: u64, shared: SharedAccess) -> Self {
        Self { path: path.into(), max_len, shared }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file in the same folder: this path with another extension appended.
    pub fn beside(&self, extension: &str) -> PathBuf {
        self.path.with_added_extension(extension)
    }

    /// Reads the file; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The file is a link or not a regular file, belongs to someone else, grants other users more than the accepted
    /// access, exceeds its maximum length, or cannot be read.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = open(&self.path, self.shared)? else { return Ok(None) };
        let expected = usize::try_from(file.metadata()?.len().min(self.max_len)).unwrap_or_default();
        let mut bytes = Vec::with_capacity(expected + READ_MARGIN);
        file.take(self.max_len + 1).read_to_end(&mut bytes)?;
        self.check_len(&bytes)?;
        Ok(Some(bytes))
    }

    /// Creates the folder if it is missing and locks the file against other processes. The lock is a file of its own
    /// with the extension `lock`, because the file itself is replaced.
    ///
    /// # Errors
    ///
    /// The folder is shared although [`SharedAccess::None`] is required, the lock file cannot be opened, or another
    /// process holds the lock for longer than `timeout`.
    pub fn lock(&self, timeout: Duration) -> io::Result<FileLock> {
        let folder = self.folder();
        system::create_folder(folder)?;
        if self.shared == SharedAccess::None {
            system::refuse_shared_target(folder)?;
        }
        let file = options().write(true).create(true).truncate(false).open(self.beside("lock"))?;
        lock(&file, timeout)?;
        Ok(FileLock::of_locked(file))
    }

    /// Replaces the whole file, or leaves it unchanged on failure. One lock may guard several files of a folder.
    ///
    /// # Errors
    ///
    /// The bytes exceed the maximum length, or the file cannot be written or renamed.
    pub fn replace(&self, _lock: &FileLock, bytes: &[u8]) -> io::Result<()> {
        self.check_len(bytes)?;
        // The holder of the lock is the only writer of this name, so a file of it was left by a killed process.
        let temporary = self.beside("new");
        remove(&temporary)?;
        let write = || {
            let mut file = options().write(true).create_new(true).open(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            drop(file);
            system::rename(&temporary, &self.path)
        };
        write().inspect_err(|_| {
            // Frees the space of the incomplete file.
            let _ = fs::remove_file(&temporary);
        })?;
        // A rename survives a crash once its folder is synced; some systems cannot sync folders.
        let _ = File::open(self.folder()).and_then(|folder| folder.sync_all());
        Ok(())
    }

    fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn check_len(&self, bytes: &[u8]) -> io::Result<()> {
        match bytes.len() as u64 <= self.max_len {
            true => Ok(()),
            false => Err(io::Error::other(format!("more than the {} bytes allowed", self.max_len))),
        }
    }
}

/// Opens an existing file for reading and checks the handle; `None` if there is no such file.
pub(crate) fn open(path: &Path, shared: SharedAccess) -> io::Result<Option<File>> {
    let file = match options().read(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(_) if path.is_symlink() => {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "it is a link, and no link is followed here"));
        }
        opened => opened?,
    };
    system::check_file(&file, shared)?;
    Ok(Some(file))
}

/// Creates a folder and its missing parents with mode 0700, and refuses it if it is a link, belongs to someone else or
/// can be written by someone else.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    system::create_folder(folder)?;
    system::refuse_shared(folder)
}

/// Returns `true` if a folder exists. A folder that [`create_folder`] would refuse is an error.
pub(crate) fn folder_exists(folder: &Path) -> io::Result<bool> {
    match system::refuse_shared(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        checked => checked.map(|()| folder.is_dir()),
    }
}

/// Creates a folder as [`create_folder`] does and takes the lock of its stores.
pub(crate) fn lock_folder(folder: &Path, timeout: Duration) -> io::Result<FileLock> {
    create_folder(folder)?;
    let file = options().write(true).create(true).truncate(false).open(folder.join(FOLDER_LOCK))?;
    lock(&file, timeout)?;
    Ok(FileLock::of_locked(file))
}

/// Locks an open file. The wait is bounded, so that a process that hangs with the lock does not block all others: the
/// error is then of the kind [`ErrorKind::WouldBlock`].
pub fn lock(file: &File, timeout: Duration) -> io::Result<()> {
    attempt(|| file.try_lock(), timeout)
}

/// Locks an open file together with other readers, like [`lock`].
pub(crate) fn lock_shared(file: &File, timeout: Duration) -> io::Result<()> {
    attempt(|| file.try_lock_shared(), timeout)
}

fn attempt(lock: impl Fn() -> Result<(), TryLockError>, timeout: Duration) -> io::Result<()> {
    let deadline = Instant::now() + timeout;
    loop {
        match lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(ErrorKind::WouldBlock, "another process holds its lock"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_INTERVAL),
        }
    }
}

/// Creates a temporary file in a folder, to be persisted under its final name once it is complete. Abandoned temporary
/// files with the same prefix are removed first.
pub(crate) fn temporary(folder: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    remove_abandoned(folder, prefix);
    system::temporary(tempfile::Builder::new().prefix(prefix).rand_bytes(RANDOM_CHARS), folder)
}

/// Creates a temporary file with owner-only rights in a folder, whose name starts with `prefix`. It is removed unless
/// [`persist`] gives it another name.
///
/// # Errors
///
/// The error of the system.
pub fn temporary_file(folder: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    system::temporary(tempfile::Builder::new().prefix(prefix), folder)
}

/// Creates a folder with owner-only rights in a folder, whose name starts with `prefix`. It is removed when it is dropped; those that
/// killed processes left a day ago are removed first.
///
/// # Errors
///
/// The folder belongs to someone else, or the error of the system.
pub(crate) fn temporary_folder(folder: &Path, prefix: &str) -> io::Result<TempDir> {
    system::create_folder(folder)?;
    system::refuse_shared_target(folder)?;
    for entry in fs::read_dir(folder)?.flatten() {
        let is_meant = entry.file_name().to_str().is_some_and(|name| is_temporary(name, prefix));
        let found = entry.metadata().ok().filter(fs::Metadata::is_dir).filter(|_| is_meant);
        let age = found.and_then(|found| found.modified().ok()?.elapsed().ok()).unwrap_or_default();
        if age >= MAX_FOLDER_AGE {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    tempfile::Builder::new().prefix(prefix).rand_bytes(RANDOM_CHARS).tempdir_in(folder)
}

/// Removes the files of [`temporary`] that are older than an hour: the process that wrote them was killed.
pub(crate) fn remove_abandoned(folder: &Path, prefix: &str) {
    remove_files(folder, MAX_TEMPORARY_AGE, |name| is_temporary(name, prefix), |_| true);
}

/// Removes the files of [`temporary`] of at least this age that no process has locked: each process that writes one of this
/// store locks it.
pub(crate) fn remove_unlocked(folder: &Path, prefix: &str, min_age: Duration) {
    let is_unlocked = |path: &Path| options().read(true).open(path).is_ok_and(|file| file.try_lock().is_ok());
    remove_files(folder, min_age, |name| is_temporary(name, prefix), is_unlocked);
}

fn is_temporary(name: &str, prefix: &str) -> bool {
    let is_random = |end: &str| end.len() == RANDOM_CHARS && end.bytes().all(|byte| byte.is_ascii_alphanumeric());
    name.strip_prefix(prefix).is_some_and(is_random)
}

/// Removes files with a prefix, of any age. The prefix belongs to one store, and the caller holds its lock.
pub(crate) fn remove_temporary(folder: &Path, prefix: &str) {
    remove_files(folder, Duration::ZERO, |name| name.starts_with(prefix), |_| true);
}

/// Removes regular files of at least this age. Files that cannot be inspected or removed stay: they only take space.
fn remove_files(folder: &Path, min_age: Duration, is_meant: impl Fn(&str) -> bool, is_free: impl Fn(&Path) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(&is_meant) {
            continue;
        }
        // The metadata of the entry itself, even if it is a link.
        let file = entry.metadata().ok().filter(fs::Metadata::is_file);
        // A time in the future counts as now.
        let age = |modified: std::time::SystemTime| modified.elapsed().unwrap_or_default();
        let is_old = file.and_then(|file| file.modified().ok()).is_some_and(|modified| age(modified) >= min_age);
        if is_old && is_free(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes a file or link; `false` if it did not exist.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn temporary_files_of_killed_processes_are_removed_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::now() - 2 * MAX_TEMPORARY_AGE;
        let create = |name: &str, modified: SystemTime| {
            let path = folder.path().join(name);
            File::create(&path).unwrap().set_modified(modified).unwrap();
            path
        };
        let old = create(&format!("{TEMPORARY_PREFIX}Killed"), long_ago);
        let recent = create(&format!("{TEMPORARY_PREFIX}Recent"), SystemTime::now());
        let kept =
            ["approvals.json".to_owned(), format!("{TEMPORARY_PREFIX}notes.md"), format!("{TEMPORARY_PREFIX}st-one")]
                .map(|name| create(&name, long_ago));
        fs::create_dir(folder.path().join(format!("{TEMPORARY_PREFIX}Folder"))).unwrap();
        let file = temporary(folder.path(), TEMPORARY_PREFIX).unwrap();
        assert!(!old.exists() && recent.exists() && kept.iter().all(|path| path.exists()));
        let name = file.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name.len(), TEMPORARY_PREFIX.len() + RANDOM_CHARS, "{name}");
        file.persist(folder.path().join("whole")).unwrap();
        assert!(folder.path().join("whole").exists());
        // The name of an abandoned file is one that is created.
        let old = create(&name, long_ago);
        remove_abandoned(folder.path(), ".another-");
        assert!(old.exists(), "another store's file");
        remove_abandoned(folder.path(), TEMPORARY_PREFIX);
        assert!(!old.exists() && recent.exists());
        remove_temporary(folder.path(), ".another-");
        assert!(recent.exists(), "another store's file");
        remove_temporary(folder.path(), TEMPORARY_PREFIX);
        assert!(!recent.exists() && !kept[1].exists() && kept[0].exists());
        assert!(folder.path().join(format!("{TEMPORARY_PREFIX}Folder")).exists());
    }

    #[test]
    fn a_file_is_replaced_whole_and_within_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let file = OwnerOnlyFile::new(folder.path().join("new/file"), 8, SharedAccess::None);
        assert_eq!(file.read().unwrap(), None);
        let lock = file.lock(Duration::ZERO).unwrap();
        assert!(file.lock(Duration::ZERO).unwrap_err().to_string().contains("another process holds its lock"));
        fs::write(file.beside("new"), "left by a killed process").unwrap();
        file.replace(&lock, b"12345678").unwrap();
        assert!(file.replace(&lock, b"123456789").is_err());
        assert_eq!(file.read().unwrap().as_deref(), Some(&b"12345678"[..]));
        assert!(!file.beside("new").exists());
        drop(lock);
        file.lock(Duration::ZERO).unwrap();
        assert!(OwnerOnlyFile::new(file.path(), 7, SharedAccess::None).read().is_err());
    }
}
