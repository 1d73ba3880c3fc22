//! Lock of a run whose calls wait. The system releases it when the process ends, also when it is killed, so that every process
//! recognizes calls for which nobody waits any more.

use std::fs::{self, DirEntry, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toolcrib::owner_only;

/// Length of the name of a lock, in hexadecimal digits.
const NAME_LEN: usize = 16;

/// Extension of a lock.
const EXTENSION: &str = "run";
/// Maximum number of locks that a process tries to take.
const MAX_ATTEMPTS: usize = 4;
/// Maximum number of files beside a new lock that are looked at, and of old locks that are tried.
const MAX_LISTED: usize = 4096;
const MAX_REMOVED: usize = 256;

/// Lock that is held until it is dropped.
#[derive(Debug)]
pub(super) struct Waiter {
    name: String,
    path: PathBuf,
    /// The open file holds the lock.
    file: Option<File>,
}

impl Waiter {
    /// Takes a new lock next to the file of the calls, and removes the locks of killed runs; `None` if the system or
    /// the file system has no locks.
    pub(super) fn hold(calls: &Path) -> Option<Self> {
        owner_only::create_folder(calls.parent()?).ok()?;
        remove_free(calls);
        (0..MAX_ATTEMPTS).find_map(|_| Self::take(calls))
    }

    /// Takes a new lock; `None` if another process removes its file before the lock is taken.
    fn take(calls: &Path) -> Option<Self> {
        let name = format!("{:0NAME_LEN$x}", rand::random::<u64>());
        let path = lock_path(calls, &name)?;
        let file = owner_only::options().write(true).create_new(true).open(&path).ok()?;
        let waiter = Self { name, path, file: Some(file) };
        waiter.file.as_ref()?.try_lock().ok()?;
        // Nobody removes the file of a lock that is held.
        waiter.path.try_exists().is_ok_and(|exists| exists).then_some(waiter)
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

/// Removes the files of locks that nobody holds, some at a time. Each is removed while its lock is held, so that nobody takes
/// the lock of a file that goes.
fn remove_free(calls: &Path) {
    let Some(files) = calls.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    let of_lock = |file: DirEntry| {
        let file_name = file.file_name();
        let name = file_name.to_str()?.strip_prefix(calls.file_name()?.to_str()?)?.strip_prefix('.')?;
        let path = lock_path(calls, name.strip_suffix(EXTENSION)?.strip_suffix('.')?)?;
        file.file_type().ok()?.is_file().then_some(path)
    };
    for path in files.take(MAX_LISTED).filter_map(Result::ok).filter_map(of_lock).take(MAX_REMOVED) {
        let Ok(file) = owner_only::options().write(true).open(&path) else { continue };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Returns the file of a lock; `None` for a text that is no name of one.
fn lock_path(calls: &Path, name: &str) -> Option<PathBuf> {
    let is_name = name.len() == NAME_LEN && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| calls.with_added_extension(format!("{name}.{EXTENSION}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_lock_removes_those_of_killed_runs_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let calls = folder.path().join("pending.json");
        let held = Waiter::hold(&calls).unwrap();
        let killed = lock_path(&calls, "0123456789abcdef").unwrap();
        let others = ["pending.json", "pending.json.0123.run", "other.json.0123456789abcdef.run"];
        let others = others.map(|name| folder.path().join(name));
        others.iter().chain([&killed]).for_each(|path| fs::write(path, "").unwrap());
        let second = Waiter::hold(&calls).unwrap();
        assert!(!killed.exists() && is_gone(&calls, "0123456789abcdef"));
        assert!(others.iter().all(|path| path.exists()), "{others:?}");
        for waiter in [&held, &second] {
            assert!(waiter.path.exists() && !is_gone(&calls, waiter.name()));
        }
        drop((held, second));
        assert_eq!(folder.path().read_dir().unwrap().count(), others.len());
    }
}
