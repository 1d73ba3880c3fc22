//! An entry of a folder, found by the path that a guest gives: the handle of the folder that it is in, and its name there.

use std::fs::File;
use std::path::PathBuf;

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, statat};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::Identity;

use super::guard::PathGuard;
use super::resolve::{OpenError, resolve};

/// An entry, whether or not something has its name.
pub(super) struct FolderEntry {
    pub(super) folder: OwnedFd,
    pub(super) name: String,
    /// Path of the entry on the host.
    pub(super) path: PathBuf,
    /// The path as the guest gave it.
    request: PathBuf,
    /// A slash was behind the name, which only a folder may have.
    pub(super) slash: bool,
}

impl FolderEntry {
    /// Finds the folder that a path leads to below another, but for its last name.
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
            Err(Errno::NOSYS | Errno::PERM) => Err(OpenError::Unsupported),
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

    /// Refuses an entry that is protected, by its place or by the names that lead to it: the operator may have a link there.
    pub(super) fn judge(&self, guard: &PathGuard) -> Result<(), OpenError> {
        let folder = Identity::of(&fstat(&self.folder)?);
        match guard.protected.holds_entry(folder, &self.path) || guard.protected.is_named(&self.request) {
            true => Err(ErrorCode::NotPermitted.into()),
            false => Ok(()),
        }
    }

    /// Kind of what has the name, links not followed.
    pub(super) fn kind(&self) -> Result<FileType, OpenError> {
        let about = statat(&self.folder, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(about.st_mode))
    }

    /// Refuses what is no folder though its path ends in a slash.
    pub(super) fn require_folder_after_slash(&self) -> Result<(), OpenError> {
        match self.slash && self.kind()? != FileType::Directory {
            true => Err(ErrorCode::NotDirectory.into()),
            false => Ok(()),
        }
    }
}

/// Path on the host of what is open.
pub(super) fn path_of(handle: &impl AsFd) -> Result<PathBuf, OpenError> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd()));
    // What has no path cannot be judged.
    path.map_err(|_| ErrorCode::NotPermitted.into())
}
