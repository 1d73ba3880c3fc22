//! Opening what lies beneath a folder without a race and without waiting: the kernel resolves the path and lets it leave
//! the folder by no name and no link, what was opened is judged by its handle, and a FIFO that was put there meanwhile
//! keeps nobody waiting.

use std::fs::File;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::open::Asked;
use super::quota::Quota;

/// What was opened.
pub(super) enum Opened {
    Regular(File),
    Folder(File),
}

/// Why nothing was opened.
pub(super) enum Unopened {
    /// This system cannot open so.
    Unsupported,
    Refused(ErrorCode),
}

#[cfg(target_os = "linux")]
pub(super) use linux::open;

/// Elsewhere there is no such way.
#[cfg(not(target_os = "linux"))]
pub(super) fn open(_: &File, _: &Asked, _: &Quota) -> Result<Opened, Unopened> {
    Err(Unopened::Unsupported)
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fd::OwnedFd;
    use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fcntl_setfl, fstat, openat2};
    use rustix::io::Errno;

    use super::{Asked, ErrorCode, File, Opened, Quota, Unopened};

    /// How often a path is resolved anew where something on the way is renamed meanwhile.
    const ATTEMPTS: usize = 16;

    impl From<ErrorCode> for Unopened {
        fn from(code: ErrorCode) -> Self {
            Self::Refused(code)
        }
    }

    impl From<Errno> for Unopened {
        fn from(error: Errno) -> Self {
            Self::Refused(match error {
                // The path leaves the folder.
                Errno::XDEV => ErrorCode::NotPermitted,
                // A socket, or a FIFO that nobody reads.
                Errno::NXIO => ErrorCode::NotPermitted,
                // The process has no room for another file now.
                Errno::MFILE | Errno::NFILE => ErrorCode::Busy,
                other => std::io::Error::from(other).into(),
            })
        }
    }

    /// Opens a regular file or a folder.
    pub(in crate::sandbox::files) fn open(folder: &File, asked: &Asked, quota: &Quota) -> Result<Opened, Unopened> {
        for _ in 0..ATTEMPTS {
            // A handle that reads and writes nothing wakes no device and waits for nobody.
            match beneath(folder, asked, OFlags::PATH) {
                Err(Errno::NOSYS | Errno::PERM) => return Err(Unopened::Unsupported),
                Err(Errno::NOENT) if asked.creates() => {
                    quota.entry().map_err(|_| ErrorCode::Quota)?;
                    let made = beneath(folder, asked, wanted(asked) | OFlags::CREATE);
                    return made.map_err(Unopened::from).and_then(opened).inspect_err(|_| quota.no_entry());
                }
                found => is_folder(&found?)?,
            };
            if asked.is_exclusive() {
                return Err(ErrorCode::Exist.into());
            }
            match beneath(folder, asked, wanted(asked)) {
                // It went away since.
                Err(Errno::NOENT) if asked.creates() => {}
                there => return opened(there?),
            }
        }
        Err(ErrorCode::Busy.into())
    }

    /// How it is opened, but for making it.
    fn wanted(asked: &Asked) -> OFlags {
        let mut flags = match (asked.reads(), asked.writes()) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        flags.set(OFlags::TRUNC, asked.truncates());
        flags.set(OFlags::EXCL, asked.is_exclusive());
        // No terminal becomes the process's own, and no FIFO waits for its other end.
        flags | OFlags::NOCTTY | OFlags::NONBLOCK
    }

    fn beneath(folder: &File, asked: &Asked, mut flags: OFlags) -> Result<OwnedFd, Errno> {
        flags.set(OFlags::NOFOLLOW, !asked.follows());
        flags.set(OFlags::DIRECTORY, asked.is_folder());
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..ATTEMPTS {
            match openat2(folder, asked.path.as_str(), flags | OFlags::CLOEXEC, mode, resolve) {
                // Something was renamed while the path was resolved.
                Err(Errno::AGAIN | Errno::INTR) => {}
                done => return done,
            }
        }
        Err(Errno::BUSY)
    }

    /// Whether a handle leads to a folder or a regular file; anything else is refused.
    fn is_folder(handle: &OwnedFd) -> Result<bool, Unopened> {
        match FileType::from_raw_mode(fstat(handle)?.st_mode) {
            FileType::RegularFile => Ok(false),
            FileType::Directory => Ok(true),
            FileType::Symlink => Err(ErrorCode::Loop.into()),
            _ => Err(ErrorCode::NotPermitted.into()),
        }
    }

    fn opened(handle: OwnedFd) -> Result<Opened, Unopened> {
        if is_folder(&handle)? {
            return Ok(Opened::Folder(handle.into()));
        }
        // A regular file is read and written as ever.
        fcntl_setfl(&handle, OFlags::empty())?;
        Ok(Opened::Regular(handle.into()))
    }
}
