//! What the host keeps on disk for itself: folders and files with owner-only rights, files that get their name when they
//! are whole, and the lock by which several processes share them. It does not know what is kept.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

pub use system::{make_folder, options, refuse_shared};

/// How often a lock is tried.
const LOCK_AGAIN: Duration = Duration::from_micros(200);

/// Takes a file's lock, which goes with the file. Others hold it for moments; one that stands still must not stand in
/// everybody's way, so `longest` bounds the wait.
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

/// How the name of an unfinished file begins, and how old one is that a process left which was killed.
const UNFINISHED: &str = ".unfinished-";
const LEFT: Duration = Duration::from_hours(1);

/// A file that is to get its name when it is whole. What was left unfinished by processes that are gone is removed first.
pub fn unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    sweep(folder);
    tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)
}

/// What cannot be looked at or removed stays: it takes room and nothing else.
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

    /// Makes a folder, and those above it that are missing, for the owner alone.
    pub fn make_folder(folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(bare(folder))
    }

    /// Refuses what others own or may write, and a link in its place.
    pub fn refuse_shared(path: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(bare(path))?;
        let ours = metadata.uid() == rustix::process::geteuid().as_raw();
        if ours && metadata.mode() & 0o022 == 0 && !metadata.is_symlink() {
            Ok(())
        } else {
            Err(io::Error::other("it is a link, or belongs to or can be written by someone else"))
        }
    }

    /// The path without what follows its last name: with a slash behind it, a link is what it leads to.
    fn bare(path: &Path) -> PathBuf {
        path.components().collect()
    }

    /// Options that make a file for the owner alone, follow no link in its place, and do not wait for who is at the other
    /// end of a FIFO.
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

    /// Makes a folder and those above it that are missing. A user's folders are private by inheritance.
    pub fn make_folder(folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)
    }

    /// Nothing is told of a folder's rights here.
    pub fn refuse_shared(_: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Options that make a file with the rights of its folder.
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
