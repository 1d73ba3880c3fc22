//! Lock of a folder that one process writes.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use toolcrib_private_files::options;

/// File that is locked.
pub(crate) const LOCK: &str = "lock";

/// Locks a folder until the returned file is closed.
///
/// # Errors
///
/// [`ErrorKind::WouldBlock`] if another process has the lock, or the error of the system.
pub(crate) fn lock(folder: &Path) -> io::Result<File> {
    let lock = options().write(true).create(true).truncate(false).open(folder.join(LOCK))?;
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(lock),
    }
}
