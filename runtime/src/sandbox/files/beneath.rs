//! Opening what lies beneath a folder without a race and without waiting: the kernel resolves the path and lets it leave
//! the folder by no name and no link, what was opened is judged by its handle, and a FIFO that was put there meanwhile
//! keeps nobody waiting.

use std::fs::File;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::change::Fence;
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
pub(super) use linux::{open, resolve};

/// Elsewhere there is no such way.
#[cfg(not(target_os = "linux"))]
pub(super) fn open(_: &File, _: &Asked, _: &Quota, _: &Fence) -> Result<Opened, Unopened> {
    Err(Unopened::Unsupported)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;

    use rustix::fd::{AsFd, OwnedFd};
    use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fcntl_setfl, fstat, ftruncate, openat2, readlinkat};
    use rustix::io::Errno;
    use rustix::path::Arg;

    use crate::policy::Identity;
    use crate::sandbox::files::entry::{Entry, path_of};

    use super::{Asked, ErrorCode, Fence, File, Opened, Quota, Unopened};

    /// How often a path is resolved anew where something on the way is renamed meanwhile.
    const ATTEMPTS: usize = 16;
    /// The most links that lead on to a file that is made.
    const MAX_LINKS: usize = 40;

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

    /// Opens a regular file or a folder. What is to be written is judged when it is open, and only then cut.
    pub(in crate::sandbox::files) fn open(
        folder: &File,
        asked: &Asked,
        quota: &Quota,
        fence: &Fence,
    ) -> Result<Opened, Unopened> {
        for _ in 0..ATTEMPTS {
            // A handle that reads and writes nothing wakes no device and waits for nobody.
            match beneath(folder, asked, OFlags::PATH) {
                Err(Errno::NOSYS | Errno::PERM) => return Err(Unopened::Unsupported),
                Err(Errno::NOENT) if asked.creates() => match create(folder, asked, quota, fence)? {
                    Some(made) => return Ok(made),
                    None => continue,
                },
                found => is_folder(&fstat(&found?)?)?,
            };
            if asked.is_exclusive() {
                return Err(ErrorCode::Exist.into());
            }
            match beneath(folder, asked, wanted(asked)) {
                // It went away since.
                Err(Errno::NOENT) if asked.creates() => {}
                there => return opened(there?, asked, fence),
            }
        }
        Err(ErrorCode::Busy.into())
    }

    /// Makes a file where the path or a link that it leads to ends; `None` where something is there by now.
    fn create(folder: &File, asked: &Asked, quota: &Quota, fence: &Fence) -> Result<Option<Opened>, Unopened> {
        let mut path = asked.path.clone();
        for _ in 0..MAX_LINKS {
            let entry = Entry::resolve(folder, &path)?;
            entry.judge(fence)?;
            if entry.slash {
                return Err(ErrorCode::IsDirectory.into());
            }
            quota.entry().map_err(|_| ErrorCode::Quota)?;
            let flags = wanted(asked) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            match resolve(&entry.folder, entry.name.as_str(), flags, Mode::from_raw_mode(0o666)) {
                Ok(made) => return opened(made, asked, fence).map(Some),
                Err(Errno::EXIST) => {
                    quota.no_entry();
                    // What is there may be a link to nothing, and its target is not what was asked for.
                    if asked.is_exclusive() {
                        return Err(ErrorCode::Exist.into());
                    }
                }
                Err(error) => {
                    quota.no_entry();
                    return Err(error.into());
                }
            }
            let Ok(target) = readlinkat(&entry.folder, entry.name.as_str(), Vec::new()) else { return Ok(None) };
            let above = path.rsplit_once('/').map_or(".", |(above, _)| above);
            path = match target.to_str() {
                Ok(target) if asked.follows() && target.starts_with('/') => target.to_owned(),
                Ok(target) if asked.follows() => format!("{above}/{target}"),
                _ => return Ok(None),
            };
        }
        Err(ErrorCode::Loop.into())
    }

    /// Refuses a file that is open and not to be written.
    fn judge_written(file: &impl AsFd, about: &Stat, asked: &Asked, fence: &Fence) -> Result<(), Unopened> {
        let protected = &fence.protected;
        let is_held = protected.holds_file(Identity::of(about), about.st_nlink > 1, &path_of(file)?);
        match is_held || protected.is_named(Path::new(&asked.path)) {
            true => Err(ErrorCode::NotPermitted.into()),
            false => Ok(()),
        }
    }

    /// How it is opened, but for making it.
    fn wanted(asked: &Asked) -> OFlags {
        let flags = match (asked.reads(), asked.writes()) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        // No terminal becomes the process's own, and no FIFO waits for its other end.
        flags | OFlags::NOCTTY | OFlags::NONBLOCK
    }

    fn beneath(folder: &File, asked: &Asked, mut flags: OFlags) -> Result<OwnedFd, Errno> {
        flags.set(OFlags::NOFOLLOW, !asked.follows());
        flags.set(OFlags::DIRECTORY, asked.is_folder());
        resolve(folder, asked.path.as_str(), flags, Mode::empty())
    }

    /// Opens what a path leads to below a folder, without leaving it on the way.
    pub(in crate::sandbox::files) fn resolve(
        folder: impl AsFd,
        path: impl Arg + Copy,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..ATTEMPTS {
            match openat2(&folder, path, flags | OFlags::CLOEXEC, mode, resolve) {
                // Something was renamed while the path was resolved.
                Err(Errno::AGAIN | Errno::INTR) => {}
                done => return done,
            }
        }
        Err(Errno::BUSY)
    }

    /// Tells a folder from a regular file; anything else is refused.
    fn is_folder(about: &Stat) -> Result<bool, Unopened> {
        match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => Ok(false),
            FileType::Directory => Ok(true),
            FileType::Symlink => Err(ErrorCode::Loop.into()),
            _ => Err(ErrorCode::NotPermitted.into()),
        }
    }

    fn opened(handle: OwnedFd, asked: &Asked, fence: &Fence) -> Result<Opened, Unopened> {
        let about = fstat(&handle)?;
        if is_folder(&about)? {
            return Ok(Opened::Folder(handle.into()));
        }
        // What has another name may be the host's own by that.
        if about.st_nlink > 1 && fence.protected.is_own(Identity::of(&about)) {
            return Err(ErrorCode::NotPermitted.into());
        }
        if asked.writes() {
            judge_written(&handle, &about, asked, fence)?;
        }
        if asked.truncates() {
            ftruncate(&handle, 0)?;
        }
        // A regular file is read and written as ever.
        fcntl_setfl(&handle, OFlags::empty())?;
        Ok(Opened::Regular(handle.into()))
    }
}
