//! Opening of a path beneath a folder, without races and without blocking: the path is resolved by handles within the
//! folder, the opened file is checked by its handle, and a FIFO that appears in between does not block.

use std::fs::File;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::guard::PathGuard;
use super::quota::Quota;
use super::request::OpenRequest;

pub(super) use system::open;

/// Opened file or folder.
pub(super) enum OpenedFile {
    Regular(File),
    Folder(File),
}

#[cfg(windows)]
#[path = "beneath_windows.rs"]
mod system;

#[cfg(unix)]
mod system {
    use std::io::{self, ErrorKind};
    use std::path::Path;

    use cap_fs_ext::OpenOptionsFollowExt;
    use cap_primitives::fs::{self, FollowSymlinks, MetadataExt, OpenOptions, OpenOptionsExt};
    use rustix::fs::{FileType, OFlags, RawMode, Stat, fcntl_setfl, fstat, ftruncate};

    use toolcrib_staging::PlannedChange;

    use crate::policy::Identity;
    use crate::sandbox::wasi::files::entry::{FolderEntry, UNBLOCKED, code, errno, path_of};

    use super::{ErrorCode, File, OpenRequest, OpenedFile, PathGuard, Quota};

    /// Number of attempts to open a file that others create and remove.
    const ATTEMPTS: usize = 16;
    /// Maximum number of links followed to a file that is created.
    const MAX_LINKS: usize = 40;

    /// Opens a regular file or a folder. A file for writing is checked after it is open, and truncated only then.
    pub(in crate::sandbox::wasi::files) fn open(
        folder: &File,
        request: &OpenRequest,
        quota: &Quota,
        guard: &PathGuard,
    ) -> Result<OpenedFile, ErrorCode> {
        if request.is_folder() {
            return open_folder(folder, request);
        }
        for _ in 0..ATTEMPTS {
            // Metadata wakes no device and blocks on no FIFO.
            match fs::stat(folder, request.path.as_ref(), links_to_kind(request)) {
                Err(error) if is_absent(&error) && request.creates() => match create(folder, request, quota, guard)? {
                    Some(created) => return Ok(created),
                    None => continue,
                },
                found => is_folder(found.map_err(code)?.mode() as RawMode)?,
            };
            if request.is_exclusive() {
                return Err(ErrorCode::Exist);
            }
            match fs::open(folder, request.path.as_ref(), &options(request)) {
                // The file was removed in the meantime.
                Err(error) if is_absent(&error) && request.creates() => {}
                opened => return check_opened(opened.map_err(code)?, request, guard),
            }
        }
        Err(ErrorCode::Busy)
    }

    /// Opens a folder, and nothing else in its place.
    fn open_folder(folder: &File, request: &OpenRequest) -> Result<OpenedFile, ErrorCode> {
        let open = if request.follows() { fs::open_dir } else { fs::open_dir_nofollow };
        let found = open(folder, request.path.as_ref()).map_err(code)?;
        // The same folder, with a handle that can list it.
        fs::open(&found, ".".as_ref(), &options(request)).map(OpenedFile::Folder).map_err(code)
    }

    fn is_absent(error: &io::Error) -> bool {
        error.kind() == ErrorKind::NotFound
    }

    /// Creates a file at the end of the path, or where a link there leads; `None` if the file exists by now.
    fn create(
        folder: &File,
        request: &OpenRequest,
        quota: &Quota,
        guard: &PathGuard,
    ) -> Result<Option<OpenedFile>, ErrorCode> {
        let mut path = request.path.clone();
        for _ in 0..MAX_LINKS {
            let entry = FolderEntry::resolve(folder, &path)?;
            entry.judge(guard)?;
            if entry.slash {
                return Err(ErrorCode::IsDirectory);
            }
            quota.entry().map_err(|_| ErrorCode::Quota)?;
            let mut options = options(request);
            options.create_new(true).follow(FollowSymlinks::No);
            let planned = guard.notes.as_ref().map(|notes| notes.making(&entry.path));
            match entry.folder.open_with(&entry.name, &options) {
                Ok(created) => {
                    let created = created.into_std();
                    guard.created.add(Identity::of(&fstat(&created).map_err(errno)?));
                    if let Some(notes) = &guard.notes {
                        notes.made(&created);
                    }
                    return check_opened(created, request, guard).map(Some);
                }
                Err(error) => {
                    quota.uncount_entry();
                    planned.into_iter().for_each(PlannedChange::failed);
                    // The existing entry may be a dangling link, which an exclusive creation does not follow.
                    if error.kind() != ErrorKind::AlreadyExists || request.is_exclusive() {
                        return Err(code(error));
                    }
                }
            }
            let Ok(target) = entry.folder.read_link_contents(&entry.name) else { return Ok(None) };
            let above = path.rsplit_once('/').map_or(".", |(above, _)| above);
            path = match target.to_str() {
                Some(target) if request.follows() && target.starts_with('/') => target.to_owned(),
                Some(target) if request.follows() => format!("{above}/{target}"),
                _ => return Ok(None),
            };
        }
        Err(ErrorCode::Loop)
    }

    /// Refuses an open file that must not be written.
    fn judge_written(file: &File, about: &Stat, request: &OpenRequest, guard: &PathGuard) -> Result<(), ErrorCode> {
        let protected = &guard.protected;
        let is_protected = protected.holds_file(Identity::of(about), about.st_nlink > 1, &path_of(file)?);
        match is_protected || protected.is_named(Path::new(&request.path)) {
            true => Err(ErrorCode::NotPermitted),
            false => Ok(()),
        }
    }

    /// Returns the options for opening, without those for creating.
    fn options(request: &OpenRequest) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(request.reads()).write(request.writes()).custom_flags(UNBLOCKED).follow(links(request.follows()));
        options
    }

    fn links(are_followed: bool) -> FollowSymlinks {
        if are_followed { FollowSymlinks::Yes } else { FollowSymlinks::No }
    }

    /// Returns the treatment of a link at the end of the path. A path that ends in a slash or a dot follows it.
    fn links_to_kind(request: &OpenRequest) -> FollowSymlinks {
        links(request.follows() || matches!(request.path.rsplit('/').next(), Some("" | ".")))
    }

    /// Returns `true` for a folder, `false` for a regular file; anything else is refused.
    fn is_folder(mode: RawMode) -> Result<bool, ErrorCode> {
        match FileType::from_raw_mode(mode) {
            FileType::RegularFile => Ok(false),
            FileType::Directory => Ok(true),
            FileType::Symlink => Err(ErrorCode::Loop),
            _ => Err(ErrorCode::NotPermitted),
        }
    }

    fn check_opened(file: File, request: &OpenRequest, guard: &PathGuard) -> Result<OpenedFile, ErrorCode> {
        let about = fstat(&file).map_err(errno)?;
        if is_folder(about.st_mode)? {
            return Ok(OpenedFile::Folder(file));
        }
        // Another hard link may belong to the host's own files.
        if about.st_nlink > 1 && guard.protected.is_own(Identity::of(&about)) {
            return Err(ErrorCode::NotPermitted);
        }
        if request.writes() {
            judge_written(&file, &about, request, guard)?;
            if let Some(notes) = &guard.notes {
                notes.writing(&file, guard.until);
            }
        }
        if request.truncates() {
            ftruncate(&file, 0).map_err(errno)?;
        }
        // Reads and writes of a regular file need no flags.
        fcntl_setfl(&file, OFlags::empty()).map_err(errno)?;
        Ok(OpenedFile::Regular(file))
    }
}
