//! Opening of a path beneath a folder, without races and without blocking: the kernel resolves the path within the
//! folder, the opened file is checked by its handle, and a FIFO that appears in between does not block.

use std::fs::File;

use super::guard::PathGuard;
use super::quota::Quota;
use super::request::OpenRequest;
use super::resolve::OpenError;

/// Opened file or folder.
#[cfg_attr(
    not(any(target_os = "linux", windows)),
    allow(dead_code, reason = "nothing is opened beneath a folder there")
)]
pub(super) enum OpenedFile {
    Regular(File),
    Folder(File),
}

#[cfg(target_os = "linux")]
pub(super) use linux::open;
#[cfg(windows)]
pub(super) use windows::open;

#[cfg(windows)]
#[path = "beneath_windows.rs"]
mod windows;

/// Reports that this system cannot open beneath a folder.
#[cfg(not(any(target_os = "linux", windows)))]
pub(super) fn open(_: &File, _: &OpenRequest, _: &Quota, _: &PathGuard) -> Result<OpenedFile, OpenError> {
    Err(OpenError::Unsupported)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;

    use rustix::fd::{AsFd, OwnedFd};
    use rustix::fs::{FileType, Mode, OFlags, Stat, fcntl_setfl, fstat, ftruncate, readlinkat};
    use rustix::io::Errno;
    use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

    use crate::policy::Identity;
    use crate::sandbox::wasi::files::entry::{FolderEntry, path_of};
    use crate::sandbox::wasi::files::resolve::{ATTEMPTS, resolve};

    use super::{File, OpenError, OpenRequest, OpenedFile, PathGuard, Quota};

    /// Maximum number of links followed to a file that is created.
    const MAX_LINKS: usize = 40;

    /// Opens a regular file or a folder. A file for writing is checked after it is open, and truncated only then.
    pub(in crate::sandbox::wasi::files) fn open(
        folder: &File,
        request: &OpenRequest,
        quota: &Quota,
        guard: &PathGuard,
    ) -> Result<OpenedFile, OpenError> {
        for _ in 0..ATTEMPTS {
            // A path handle wakes no device and blocks on no FIFO.
            match open_path(folder, request, OFlags::PATH) {
                Err(Errno::NOSYS) => return Err(OpenError::Unsupported),
                Err(Errno::NOENT) if request.creates() => match create(folder, request, quota, guard)? {
                    Some(created) => return Ok(created),
                    None => continue,
                },
                found => is_folder(&fstat(&found?)?)?,
            };
            if request.is_exclusive() {
                return Err(ErrorCode::Exist.into());
            }
            match open_path(folder, request, open_flags(request)) {
                // The file was removed in the meantime.
                Err(Errno::NOENT) if request.creates() => {}
                there => return check_opened(there?, request, guard),
            }
        }
        Err(ErrorCode::Busy.into())
    }

    /// Creates a file at the end of the path, or where a link there leads; `None` if the file exists by now.
    fn create(
        folder: &File,
        request: &OpenRequest,
        quota: &Quota,
        guard: &PathGuard,
    ) -> Result<Option<OpenedFile>, OpenError> {
        let mut path = request.path.clone();
        for _ in 0..MAX_LINKS {
            let entry = FolderEntry::resolve(folder, &path)?;
            entry.judge(guard)?;
            if entry.slash {
                return Err(ErrorCode::IsDirectory.into());
            }
            quota.entry().map_err(|_| ErrorCode::Quota)?;
            let flags = open_flags(request) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            match resolve(&entry.folder, entry.name.as_str(), flags, Mode::from_raw_mode(0o666)) {
                Ok(created) => {
                    guard.created.add(Identity::of(&fstat(&created)?));
                    return check_opened(created, request, guard).map(Some);
                }
                Err(Errno::EXIST) => {
                    quota.uncount_entry();
                    // The existing entry may be a dangling link, which an exclusive creation does not follow.
                    if request.is_exclusive() {
                        return Err(ErrorCode::Exist.into());
                    }
                }
                Err(error) => {
                    quota.uncount_entry();
                    return Err(error.into());
                }
            }
            let Ok(target) = readlinkat(&entry.folder, entry.name.as_str(), Vec::new()) else { return Ok(None) };
            let above = path.rsplit_once('/').map_or(".", |(above, _)| above);
            path = match target.to_str() {
                Ok(target) if request.follows() && target.starts_with('/') => target.to_owned(),
                Ok(target) if request.follows() => format!("{above}/{target}"),
                _ => return Ok(None),
            };
        }
        Err(ErrorCode::Loop.into())
    }

    /// Refuses an open file that must not be written.
    fn judge_written(
        file: &impl AsFd,
        about: &Stat,
        request: &OpenRequest,
        guard: &PathGuard,
    ) -> Result<(), OpenError> {
        let protected = &guard.protected;
        let is_protected = protected.holds_file(Identity::of(about), about.st_nlink > 1, &path_of(file)?);
        match is_protected || protected.is_named(Path::new(&request.path)) {
            true => Err(ErrorCode::NotPermitted.into()),
            false => Ok(()),
        }
    }

    /// Returns the flags for opening, without those for creating.
    fn open_flags(request: &OpenRequest) -> OFlags {
        let flags = match (request.reads(), request.writes()) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        // No terminal becomes the controlling one, and no FIFO waits for its other end.
        flags | OFlags::NOCTTY | OFlags::NONBLOCK
    }

    fn open_path(folder: &File, request: &OpenRequest, mut flags: OFlags) -> Result<OwnedFd, Errno> {
        flags.set(OFlags::NOFOLLOW, !request.follows());
        flags.set(OFlags::DIRECTORY, request.is_folder());
        resolve(folder, request.path.as_str(), flags, Mode::empty())
    }

    /// Returns `true` for a folder, `false` for a regular file; anything else is refused.
    fn is_folder(about: &Stat) -> Result<bool, OpenError> {
        match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => Ok(false),
            FileType::Directory => Ok(true),
            FileType::Symlink => Err(ErrorCode::Loop.into()),
            _ => Err(ErrorCode::NotPermitted.into()),
        }
    }

    fn check_opened(handle: OwnedFd, request: &OpenRequest, guard: &PathGuard) -> Result<OpenedFile, OpenError> {
        let about = fstat(&handle)?;
        if is_folder(&about)? {
            return Ok(OpenedFile::Folder(handle.into()));
        }
        // Another hard link may belong to the host's own files.
        if about.st_nlink > 1 && guard.protected.is_own(Identity::of(&about)) {
            return Err(ErrorCode::NotPermitted.into());
        }
        if request.writes() {
            judge_written(&handle, &about, request, guard)?;
        }
        if request.truncates() {
            ftruncate(&handle, 0)?;
        }
        // Reads and writes of a regular file need no flags.
        fcntl_setfl(&handle, OFlags::empty())?;
        Ok(OpenedFile::Regular(handle.into()))
    }
}
