//! Owner-only files: folders and files with permissions for the owner alone, files that get their name once they are
//! complete, and a lock with a bounded wait. The host stores its own data with them, and so can an embedder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

pub use system::{make_folder, options, refuse_shared};

/// Interval between attempts to take a lock.
const LOCK_AGAIN: Duration = Duration::from_micros(200);

/// Takes the lock of a file, which is released with the file. The wait is bounded by `longest`, so that a process that hangs
/// does not block the others.
///
/// # Errors
///
/// Fails if the system refuses the lock, or if another process still holds it after `longest`.
pub fn lock(file: &File, longest: Duration) -> io::Result<()> {
    let until = Instant::now() + longest;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                return Err(io::Error::other("another process holds its lock"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_AGAIN),
        }
    }
}

/// Prefix of the names of unfinished files.
const UNFINISHED: &str = ".unfinished-";
/// Age from which an unfinished file counts as left by a killed process.
const LEFT: Duration = Duration::from_hours(1);

/// Creates a file that gets its name once it is complete. Files left unfinished by killed processes are removed first.
///
/// # Errors
///
/// Fails if the file cannot be created.
pub fn unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    sweep(folder);
    tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)
}

/// Removes old unfinished files. A file that cannot be removed only takes space.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(UNFINISHED));
        let modified = || entry.metadata().and_then(|about| about.modified()).ok();
        if ours && modified().and_then(|then| then.elapsed().ok()).is_some_and(|age| age > LEFT) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(unix)]
mod system {
    use std::fs::{self, DirBuilder, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::{Path, PathBuf};

    use rustix::fs::OFlags;

    /// Creates a folder and its missing parents, with permissions for the owner alone.
    ///
    /// # Errors
    ///
    /// Fails if a folder cannot be created.
    pub fn make_folder(folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(bare(folder))
    }

    /// Refuses a file or folder that others own or can write, and a symbolic link.
    ///
    /// # Errors
    ///
    /// Fails if the path is shared, is a link or does not exist.
    pub fn refuse_shared(path: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(bare(path))?;
        let ours = metadata.uid() == rustix::process::geteuid().as_raw();
        if ours && metadata.mode() & 0o022 == 0 && !metadata.is_symlink() {
            Ok(())
        } else {
            Err(io::Error::other("it is a link, or belongs to or can be written by someone else"))
        }
    }

    /// Returns the path without a trailing slash, which would follow a link.
    fn bare(path: &Path) -> PathBuf {
        path.components().collect()
    }

    /// Returns options that create a file for the owner alone, follow no link, and do not wait for the other end of a FIFO.
    pub fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        options
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::OpenOptions;
    use std::io;
    use std::path::Path;

    /// Creates a folder and its missing parents. A user's folders are private by inheritance.
    ///
    /// # Errors
    ///
    /// Fails if a folder cannot be created.
    pub fn make_folder(folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)
    }

    /// Accepts any folder: this system has no such permissions.
    ///
    /// # Errors
    ///
    /// Never fails.
    pub fn refuse_shared(_: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Returns options that create a file with the permissions of its folder.
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_a_killed_process_left_unfinished_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::now() - 2 * LEFT;
        let left = |name: &str, age: SystemTime| {
            let path = folder.path().join(name);
            File::create(&path).unwrap().set_modified(age).unwrap();
            path
        };
        let old = left(&format!("{UNFINISHED}old"), long_ago);
        let kept = [left(&format!("{UNFINISHED}now"), SystemTime::now()), left("approvals.json", long_ago)];
        let file = unfinished(folder.path()).unwrap();
        assert!(!old.exists() && kept.iter().all(|path| path.exists()));
        file.persist(folder.path().join("whole")).unwrap();
        assert!(folder.path().join("whole").exists());
    }
}
