//! Locks among processes that end with their value.

use std::fs::{File, TryLockError};

/// Lock of an open file, released on drop.
///
/// It is released by name and not by the close of the file: a process that starts at the same moment has a copy of each handle
/// until its program is loaded, and a copy keeps a lock.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks a file for this value alone.
    ///
    /// # Errors
    ///
    /// Somebody else has a lock of the file, or the file system has none.
    pub fn exclusive(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self(file))
    }

    /// Takes a file that is locked already.
    pub fn of_locked(file: File) -> Self {
        Self(file)
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options;

    #[test]
    fn a_lock_ends_with_its_value_though_a_copy_of_its_handle_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || options().write(true).create(true).open(&path).unwrap();
        let file = open();
        let copy = file.try_clone().unwrap();
        let lock = FileLock::exclusive(file).unwrap();
        assert!(matches!(FileLock::exclusive(open()), Err(TryLockError::WouldBlock)));
        drop(lock);
        drop(FileLock::exclusive(open()).unwrap());
        let shared = open();
        shared.try_lock_shared().unwrap();
        let _other = shared.try_clone().unwrap();
        drop(FileLock::of_locked(shared));
        FileLock::exclusive(open()).unwrap();
        drop(copy);
    }
}
