//! What the host keeps on disk for itself: folders and files with owner-only rights, and the lock by which several
//! processes share them. It does not know what is kept.

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

pub(crate) use system::{make_folder, options, refuse_shared};

/// How often a lock is tried.
const LOCK_AGAIN: Duration = Duration::from_micros(200);

/// Takes a file's lock, which goes with the file. Others hold it for moments; one that stands still must not stand in
/// everybody's way, so `longest` bounds the wait.
pub(crate) fn lock(file: &File, longest: Duration) -> io::Result<()> {
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

#[cfg(unix)]
mod system {
    use std::fs::{self, DirBuilder, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    use rustix::fs::OFlags;

    /// Makes a folder, and those above it that are missing, for the owner alone.
    pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    /// Refuses what others own or may write, and a link in its place.
    pub(crate) fn refuse_shared(path: &Path) -> io::Result<()> {
        let metadata = fs::symlink_metadata(path)?;
        let ours = metadata.uid() == rustix::process::geteuid().as_raw();
        if ours && metadata.mode() & 0o022 == 0 && !metadata.is_symlink() {
            Ok(())
        } else {
            Err(io::Error::other("it is a link, or belongs to or can be written by someone else"))
        }
    }

    /// Options that make a file for the owner alone, follow no link in its place, and do not wait for who is at the other
    /// end of a FIFO.
    pub(crate) fn options() -> OpenOptions {
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
    pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)
    }

    /// Nothing is told of a folder's rights here.
    pub(crate) fn refuse_shared(_: &Path) -> io::Result<()> {
        Ok(())
    }

    /// Options that make a file with the rights of its folder.
    pub(crate) fn options() -> OpenOptions {
        OpenOptions::new()
    }
}
