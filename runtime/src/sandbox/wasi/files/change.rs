//! Changes of a folder's entries: creating, moving, linking and removing. Each change is checked and performed through
//! the handle of the entry's folder, so that nothing can be swapped in between.

use std::fs::File;
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, PathFlags};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::runtime::spawn_blocking;

use crate::policy::{is_link_out, protects_names_below};
use crate::tool::Access;

use super::guard::PathGuard;
use super::request::refuse_misread;
use super::resolve::OpenError;
use super::state::Files;

/// Change of an entry.
#[cfg_attr(
    not(any(target_os = "linux", windows)),
    allow(dead_code, reason = "a change is checked by its names alone there")
)]
pub(super) enum Change {
    MakeFolder,
    /// Creates a link with this target.
    Link(String),
    /// Creates another name for a file, in this folder.
    Name(Arc<File>, String),
    /// Moves the entry to a name in this folder.
    Move(Arc<File>, String),
    RemoveFile,
    RemoveFolder,
}

impl Files<'_> {
    /// Changes an entry, within the grant; `None` if this system cannot change entries by handles, and the change was
    /// checked by its names alone.
    pub(super) async fn change(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        change: Change,
    ) -> FsResult<Option<()>> {
        self.admit_change(fd)?;
        let folder = self.folder(fd)?;
        if folder.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        refuse_misread(path)?;
        if let Change::Link(other) | Change::Name(_, other) | Change::Move(_, other) = &change {
            refuse_misread(other)?;
        }
        let (dir, path, guard) = (folder.dir.clone(), path.to_owned(), self.state.guard.clone());
        match spawn_blocking(move || apply(&dir, &path, &change, &guard)).await {
            Ok(()) => Ok(Some(())),
            Err(OpenError::Unsupported) => Ok(None),
            Err(OpenError::Refused(code)) => Err(code.into()),
        }
    }

    /// Performs a change that puts an entry into another folder, which must be granted too.
    pub(super) async fn change_into(
        &mut self,
        fd: &Resource<Descriptor>,
        from: &str,
        flags: PathFlags,
        into: &Resource<Descriptor>,
        change: fn(Arc<File>, String) -> Change,
        to: &str,
    ) -> FsResult<Option<()>> {
        self.admit_change(fd)?;
        self.admit_change(into)?;
        let into = self.folder(into)?;
        if into.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(ErrorCode::Invalid.into());
        }
        let change = change(into.dir.clone(), to.to_owned());
        self.change(fd, from, change).await
    }

    /// Records a denial of such a change: under the first name if that is protected, else under the second.
    pub(super) async fn record_either<T>(
        &mut self,
        fd: &Resource<Descriptor>,
        (from, to): (&str, &str),
        result: FsResult<T>,
    ) -> FsResult<T> {
        let is_refused = |error: &FsError| matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted));
        if !result.as_ref().is_err_and(is_refused) {
            return result;
        }
        let (dir, path, guard) = (self.folder(fd)?.dir.clone(), from.to_owned(), self.state.guard.clone());
        let is_protected = spawn_blocking(move || system::is_protected(&dir, &path, &guard)).await;
        self.record(Access::Write, if is_protected { from } else { to }, result)
    }
}

fn apply(folder: &File, path: &str, change: &Change, guard: &PathGuard) -> Result<(), OpenError> {
    let done = system::apply(folder, path, change, guard);
    if matches!(done, Err(OpenError::Unsupported)) {
        check_names(path, change, guard)?;
    }
    done
}

/// Checks a change by the names that the guest gives, on systems that cannot resolve folders by handles.
fn check_names(path: &str, change: &Change, guard: &PathGuard) -> Result<(), ErrorCode> {
    use std::path::Path;
    let depth = Path::new(path).components().count().saturating_sub(1);
    let leads_out = matches!(change, Change::Link(target) if is_link_out(Path::new(target), depth));
    let becomes_protected = match change {
        Change::Link(_) => protects_names_below(Path::new(path)),
        Change::Move(_, to) => protects_names_below(Path::new(to)),
        _ => false,
    };
    let to = match change {
        Change::Name(_, to) | Change::Move(_, to) => Some(to.as_str()),
        _ => None,
    };
    let is_protected = |path: &str| guard.protected.is_named(Path::new(path));
    if leads_out || becomes_protected || is_protected(path) || to.is_some_and(is_protected) {
        return Err(ErrorCode::NotPermitted);
    }
    Ok(())
}

/// Reports that this system cannot change entries by handles.
#[cfg(not(any(target_os = "linux", windows)))]
mod system {
    use super::{Change, File, OpenError, PathGuard};

    pub(super) fn apply(_: &File, _: &str, _: &Change, _: &PathGuard) -> Result<(), OpenError> {
        Err(OpenError::Unsupported)
    }

    pub(super) fn is_protected(_: &File, path: &str, guard: &PathGuard) -> bool {
        guard.protected.is_named(std::path::Path::new(path))
    }
}

#[cfg(windows)]
#[path = "change_windows.rs"]
mod system;

#[cfg(target_os = "linux")]
mod system {
    use std::path::Path;

    use rustix::fs::{
        AtFlags, FileType, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, linkat, mkdirat, readlinkat, renameat,
        statat, symlinkat, unlinkat,
    };
    use rustix::io::Errno;

    use crate::policy::{Identity, lock_moves};
    use crate::sandbox::wasi::files::entry::FolderEntry;
    use crate::sandbox::wasi::files::moved;
    use crate::sandbox::wasi::files::resolve::resolve;

    use super::{Change, ErrorCode, File, OpenError, PathGuard, protects_names_below};

    /// Performs a change. Changes that place a link or a folder hold a lock from the check on.
    pub(super) fn apply(folder: &File, path: &str, change: &Change, guard: &PathGuard) -> Result<(), OpenError> {
        let makes_folder = matches!(change, Change::MakeFolder);
        let _turn = match change {
            Change::RemoveFile | Change::RemoveFolder => None,
            _ => Some(lock_moves(guard.end()).ok_or(ErrorCode::Busy)?),
        };
        let entry = match FolderEntry::resolve(folder, path) {
            // `.` and `..` exist.
            Err(OpenError::Refused(ErrorCode::Invalid)) if makes_folder => return Err(ErrorCode::Exist.into()),
            entry => entry?,
        };
        // A program that creates every folder on the way to a file continues past an existing one, protected or not.
        if makes_folder && statat(&entry.folder, &entry.name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(ErrorCode::Exist.into());
        }
        entry.judge(guard)?;
        let folder = &entry.folder;
        let name = entry.name.as_str();
        let done = match change {
            Change::MakeFolder => mkdirat(folder, name, Mode::from_raw_mode(0o777)),
            Change::RemoveFile => {
                entry.require_folder_after_slash()?;
                unlinkat(folder, name, AtFlags::empty())
            }
            Change::RemoveFolder => unlinkat(folder, name, AtFlags::REMOVEDIR),
            Change::Link(_) if entry.slash => Err(no_name(&entry)),
            Change::Link(target) => {
                refuse_above(&entry)?;
                moved::check_link(&entry, Path::new(target), guard)?;
                symlinkat(target.as_str(), folder, name)
            }
            Change::Name(into, to) => {
                let to = FolderEntry::resolve(into, to)?;
                to.judge(guard)?;
                entry.require_folder_after_slash()?;
                if to.slash {
                    return Err(OpenError::Refused(std::io::Error::from(no_name(&to)).into()));
                }
                check_moved(&entry, &to, guard)?;
                linkat(folder, name, &to.folder, to.name.as_str(), AtFlags::empty())
            }
            Change::Move(into, to) => {
                let to = FolderEntry::resolve(into, to)?;
                to.judge(guard)?;
                entry.require_folder_after_slash()?;
                if to.slash && entry.kind()? != FileType::Directory {
                    return Err(ErrorCode::NotDirectory.into());
                }
                check_moved(&entry, &to, guard)?;
                take_mode(&entry, &to, guard)?;
                renameat(folder, name, &to.folder, to.name.as_str())
            }
        };
        done.map_err(|error| OpenError::Refused(std::io::Error::from(error).into()))
    }

    /// Returns the system's error for a path that ends with a slash as the name of a new link.
    fn no_name(entry: &FolderEntry) -> Errno {
        match statat(&entry.folder, &entry.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(at) if FileType::from_raw_mode(at.st_mode) == FileType::Directory => Errno::EXIST,
            Ok(_) => Errno::NOTDIR,
            Err(error) => error,
        }
    }

    /// Gives a file that the call created, and that now replaces another, the mode and the owner of that. A read-only file is
    /// not replaced.
    fn take_mode(from: &FolderEntry, to: &FolderEntry, guard: &PathGuard) -> Result<(), OpenError> {
        let Ok(old) = statat(&to.folder, to.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
        if FileType::from_raw_mode(old.st_mode) != FileType::RegularFile || from.kind()? != FileType::RegularFile {
            return Ok(());
        }
        let old_mode = Mode::from_raw_mode(old.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
        if !old_mode.intersects(Mode::WUSR | Mode::WGRP | Mode::WOTH) {
            return Err(ErrorCode::Access.into());
        }
        let new = statat(&from.folder, from.name.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        let is_same = (new.st_mode ^ old.st_mode) & 0o777 == 0 && (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid);
        if is_same || !guard.created.has(Identity::of(&new)) {
            return Ok(());
        }
        // What another process puts there in between does not block, and is not changed.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = resolve(&from.folder, from.name.as_str(), flags, Mode::empty())?;
        if Identity::of(&fstat(&file)?) != Identity::of(&new) {
            return Err(ErrorCode::Busy.into());
        }
        // Only a privileged process can give a file away; another one keeps what it made.
        let _ = fchown(&file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
        Ok(fchmod(&file, old_mode)?)
    }

    /// Refuses a link or a moved folder if its new name could turn names below it into protected ones.
    fn refuse_above(entry: &FolderEntry) -> Result<(), OpenError> {
        match protects_names_below(&entry.path) {
            true => Err(ErrorCode::NotPermitted.into()),
            false => Ok(()),
        }
    }

    /// Returns `true` if the path names a protected entry.
    pub(super) fn is_protected(folder: &File, path: &str, guard: &PathGuard) -> bool {
        FolderEntry::resolve(folder, path).is_ok_and(|entry| entry.judge(guard).is_err())
    }

    /// Refuses a moved entry that would lead out of its folder, or become a protected one at its new place.
    fn check_moved(from: &FolderEntry, to: &FolderEntry, guard: &PathGuard) -> Result<(), OpenError> {
        match from.kind()? {
            FileType::Symlink => {
                refuse_above(to)?;
                let target = readlinkat(&from.folder, from.name.as_str(), Vec::new())?;
                moved::check_link(to, Path::new(&*target.to_string_lossy()), guard)
            }
            FileType::Directory => {
                refuse_above(to)?;
                moved::check_folder(from, to, guard)
            }
            _ => {
                // Another name for a protected file would bypass its protection.
                let about = statat(&from.folder, from.name.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
                let file = Identity::of(&about);
                match guard.protected.holds_file(file, about.st_nlink > 1, &from.path) {
                    true => Err(ErrorCode::NotPermitted.into()),
                    false => Ok(()),
                }
            }
        }
    }
}
