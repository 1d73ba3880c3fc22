//! Lock of a run whose calls wait. The system releases it when the process ends, also when it is killed, so that every process
//! recognizes calls for which nobody waits any more.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toolcrib::owner_only;

/// Length of the name of a lock, in hexadecimal digits.
const NAME_LEN: usize = 16;

/// Lock that is held until it is dropped.
#[derive(Debug)]
pub(super) struct Waiter {
    name: String,
    path: PathBuf,
    /// The open file holds the lock.
    file: Option<File>,
}

impl Waiter {
    /// Takes a new lock beside the file of the calls; `None` if the system or the file system has no locks.
    pub(super) fn hold(calls: &Path) -> Option<Self> {
        let name = format!("{:0NAME_LEN$x}", rand::random::<u64>());
        let path = lock_path(calls, &name)?;
        owner_only::create_folder(path.parent()?).ok()?;
        let file = owner_only::options().write(true).create_new(true).open(&path).ok()?;
        let waiter = Self { name, path, file: Some(file) };
        waiter.file.as_ref()?.try_lock().ok()?;
        Some(waiter)
    }

    /// Name of the lock in the file of the calls.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // Some systems remove no open file.
        self.file = None;
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns `true` if no process holds a lock.
pub(super) fn is_gone(calls: &Path, name: &str) -> bool {
    let Some(path) = lock_path(calls, name) else { return true };
    match owner_only::options().read(true).open(path) {
        // Shared, so that two processes that look at the same time do not take each other for the holder.
        Ok(file) => !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock | TryLockError::Error(_))),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Removes the file of a lock that nobody holds.
pub(super) fn remove(calls: &Path, name: &str) {
    if let Some(path) = lock_path(calls, name) {
        let _ = fs::remove_file(path);
    }
}

/// Returns the file of a lock; `None` for a text that is no name of one.
fn lock_path(calls: &Path, name: &str) -> Option<PathBuf> {
    let is_name = name.len() == NAME_LEN && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| calls.with_added_extension(format!("{name}.run")))
}
