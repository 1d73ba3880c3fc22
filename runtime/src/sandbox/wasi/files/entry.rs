//! Entry of a folder, found by the path that a guest gives: its folder's handle, and its name there.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use cap_primitives::fs::open_dir;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::{Identity, path_by_handle};

use super::guard::PathGuard;

/// Flags for opening: no terminal becomes the controlling one, and no FIFO waits for its other end.
pub(super) const UNBLOCKED: i32 = libc::O_NOCTTY | libc::O_NONBLOCK;

/// Entry, existing or not.
pub(super) struct FolderEntry {
    pub(super) folder: Dir,
    pub(super) name: String,
    /// Path of the entry on the host.
    pub(super) path: PathBuf,
    /// Path as the guest gave it.
    request: PathBuf,
    /// `true` if the path ends in a slash, which only a folder may have.
    pub(super) slash: bool,
}

impl FolderEntry {
    /// Resolves all of a path but its last name, beneath a folder.
    pub(super) fn resolve(root: &File, path: &str) -> Result<Self, ErrorCode> {
        let request = PathBuf::from(path);
        let whole = path.trim_end_matches('/');
        let (above, name) = match whole.rsplit_once('/') {
            Some(("", _)) => ("/", ""),
            Some(parts) => parts,
            None if whole.is_empty() && !path.is_empty() => ("/", ""),
            None => (".", whole),
        };
        let open = |path: &str| open_dir(root, path.as_ref()).map_err(code);
        let folder = open(above)?;
        match name {
            "" => return Err(ErrorCode::NoEntry),
            "." => return Err(ErrorCode::Invalid),
            ".." => return open(path).and(Err(ErrorCode::Invalid)),
            _ => {}
        }
        let slash = whole.len() != path.len();
        let path = path_of(&folder)?.join(name);
        Ok(Self { folder: Dir::from_std_file(folder), name: name.to_owned(), path, request, slash })
    }

    /// Refuses an entry that is protected by its place or by the names of its path, on which the operator may have a
    /// link.
    pub(super) fn judge(&self, guard: &PathGuard) -> Result<(), ErrorCode> {
        let folder = Identity::of(&fstat(&self.folder).map_err(errno)?);
        match guard.protected.holds_entry(folder, &self.path) || guard.protected.is_named(&self.request) {
            true => Err(ErrorCode::NotPermitted),
            false => Ok(()),
        }
    }

    /// Returns the metadata of the entry; links are not followed.
    pub(super) fn stat(&self) -> Result<Stat, Errno> {
        statat(&self.folder, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Returns the kind of the entry; links are not followed.
    pub(super) fn kind(&self) -> Result<FileType, ErrorCode> {
        Ok(FileType::from_raw_mode(self.stat().map_err(errno)?.st_mode))
    }

    /// Refuses an entry that is no folder although its path ends in a slash.
    pub(super) fn require_folder_after_slash(&self) -> Result<(), ErrorCode> {
        match self.slash && self.kind()? != FileType::Directory {
            true => Err(ErrorCode::NotDirectory),
            false => Ok(()),
        }
    }
}

/// Returns the path of an open file on the host.
pub(super) fn path_of(file: &File) -> Result<PathBuf, ErrorCode> {
    // A file without a path cannot be checked.
    path_by_handle(file).map_err(|_| ErrorCode::NotPermitted)
}

/// Returns the identity of an open file, `true` if it has several names, and its path on the host.
pub(super) fn opened(file: &File) -> Result<(Identity, bool, PathBuf), ErrorCode> {
    let about = fstat(file).map_err(errno)?;
    Ok((Identity::of(&about), about.st_nlink > 1, path_of(file)?))
}

/// Converts an error of the system. A path that leads out of its folder is not permitted.
pub(super) fn code(error: io::Error) -> ErrorCode {
    match Errno::from_io_error(&error) {
        // The file is a socket, or a FIFO without a reader.
        Some(Errno::NXIO) => ErrorCode::NotPermitted,
        // The process has no free descriptor.
        Some(Errno::MFILE | Errno::NFILE) => ErrorCode::Busy,
        // The engine has no code for it.
        Some(Errno::DQUOT) => ErrorCode::Quota,
        _ => error.into(),
    }
}

/// Converts an error of the system.
pub(super) fn errno(error: Errno) -> ErrorCode {
    code(error.into())
}
