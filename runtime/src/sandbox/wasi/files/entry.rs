//! Entry of a folder, found by the path that a guest gives: its folder's handle, and its name there.

use std::fs::File;
use std::path::PathBuf;

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, statat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::Identity;

use super::guard::PathGuard;
use super::resolve::{OpenError, resolve};

/// Entry, existing or not.
pub(super) struct FolderEntry {
    pub(super) folder: OwnedFd,
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
    pub(super) fn resolve(root: &File, path: &str) -> Result<Self, OpenError> {
        let request = PathBuf::from(path);
        let whole = path.trim_end_matches('/');
        let (above, name) = match whole.rsplit_once('/') {
            Some(("", _)) => ("/", ""),
            Some(parts) => parts,
            None if whole.is_empty() && !path.is_empty() => ("/", ""),
            None => (".", whole),
        };
        let open = |path, flags| match resolve(root, path, OFlags::PATH | flags, Mode::empty()) {
            Err(Errno::NOSYS) => Err(OpenError::Unsupported),
            opened => Ok(opened?),
        };
        let folder = open(above, OFlags::DIRECTORY)?;
        match name {
            "" => return Err(ErrorCode::NoEntry.into()),
            "." => return Err(ErrorCode::Invalid.into()),
            ".." => return open(path, OFlags::empty()).and(Err(ErrorCode::Invalid.into())),
            _ => {}
        }
        let slash = whole.len() != path.len();
        let path = path_of(&folder)?.join(name);
        Ok(Self { folder, name: name.to_owned(), path, request, slash })
    }

    /// Refuses an entry that is protected by its place or by the names of its path, on which the operator may have a
    /// link.
    pub(super) fn judge(&self, guard: &PathGuard) -> Result<(), OpenError> {
        let folder = Identity::of(&fstat(&self.folder)?);
        match guard.protected.holds_entry(folder, &self.path) || guard.protected.is_named(&self.request) {
            true => Err(ErrorCode::NotPermitted.into()),
            false => Ok(()),
        }
    }

    /// Returns the kind of the entry; links are not followed.
    pub(super) fn kind(&self) -> Result<FileType, OpenError> {
        let about = statat(&self.folder, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(about.st_mode))
    }

    /// Refuses an entry that is no folder although its path ends in a slash.
    pub(super) fn require_folder_after_slash(&self) -> Result<(), OpenError> {
        match self.slash && self.kind()? != FileType::Directory {
            true => Err(ErrorCode::NotDirectory.into()),
            false => Ok(()),
        }
    }
}

/// Returns the path of an open file on the host.
pub(super) fn path_of(handle: &impl AsFd) -> Result<PathBuf, OpenError> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd()));
    // A file without a path cannot be checked.
    path.map_err(|_| ErrorCode::NotPermitted.into())
}
