//! Lock of a folder that one process writes.

use std::io;
use std::path::Path;

use toolcrib_private_files::{FileLock, options};

/// File that is locked.
pub(crate) const LOCK: &str = "lock";

/// Locks a folder.
///
/// # Errors
///
/// [`WouldBlock`](io::ErrorKind::WouldBlock) if another process has the lock, or the error of the system.
pub(crate) fn lock(folder: &Path) -> io::Result<FileLock> {
    let lock = options().write(true).create(true).truncate(false).open(folder.join(LOCK))?;
    Ok(FileLock::exclusive(lock)?)
}
