//! Changes of a folder's entries: creating, moving, linking and removing. Each change is checked and performed through
//! the handle of the entry's folder, so that nothing can be swapped in between.

use std::fs::File;
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, PathFlags};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::runtime::spawn_blocking;

use crate::tool::Access;

use super::entry::FolderEntry;
use super::guard::PathGuard;
use super::request::refuse_misread;
use super::state::Files;

/// Change of an entry.
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
    /// Changes an entry, within the grant.
    pub(super) async fn change(&mut self, fd: &Resource<Descriptor>, path: &str, change: Change) -> FsResult<()> {
        self.perform(fd, path, change, None).await
    }

    async fn perform(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        change: Change,
        into: Option<&Resource<Descriptor>>,
    ) -> FsResult<()> {
        self.admit_change(fd)?;
        let folder = self.folder(fd)?;
        if folder.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        refuse_misread(path)?;
        if let Change::Link(other) | Change::Name(_, other) | Change::Move(_, other) = &change {
            refuse_misread(other)?;
        }
        if let Some(staged) = self.staged(fd) {
            return self.change_staged(staged, path, change, into.and_then(|into| self.staged(into))).await;
        }
        let (dir, path, guard) = (folder.dir.clone(), path.to_owned(), self.state.guard.clone());
        Ok(spawn_blocking(move || system::apply(&dir, &path, &change, &guard)).await?)
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
    ) -> FsResult<()> {
        self.admit_change(fd)?;
        self.admit_change(into)?;
        let target = self.folder(into)?;
        if target.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(ErrorCode::Invalid.into());
        }
        let change = change(target.dir.clone(), to.to_owned());
        self.note_renamed(fd, from).await;
        self.perform(fd, from, change, Some(into)).await
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
        let is_protected = spawn_blocking(move || is_protected(&dir, &path, &guard)).await;
        self.record(Access::Write, if is_protected { from } else { to }, result)
    }
}

/// Returns `true` if the path names a protected entry.
fn is_protected(folder: &File, path: &str, guard: &PathGuard) -> bool {
    FolderEntry::resolve(folder, path).is_ok_and(|entry| entry.judge(guard).is_err())
}

#[cfg(windows)]
#[path = "change_windows.rs"]
mod system;

#[cfg(unix)]
mod system {
    use std::io;
    use std::path::Path;

    use cap_fs_ext::OpenOptionsFollowExt;
    use cap_primitives::fs::{FollowSymlinks, OpenOptions, OpenOptionsExt};
    use rustix::fs::{FileType, Gid, Mode, Uid, fchmod, fchown, fstat};
    use rustix::io::Errno;

    use crate::policy::{Identity, lock_moves, protects_names_below};
    use crate::sandbox::wasi::files::entry::{UNBLOCKED, code, errno};
    use crate::sandbox::wasi::files::moved;

    use super::{Change, ErrorCode, File, FolderEntry, PathGuard};

    /// Performs a change. Changes that place a link or a folder hold a lock from the check on.
    pub(super) fn apply(folder: &File, path: &str, change: &Change, guard: &PathGuard) -> Result<(), ErrorCode> {
        let makes_folder = matches!(change, Change::MakeFolder);
        let _turn = match change {
            Change::RemoveFile | Change::RemoveFolder => None,
            _ => Some(lock_moves(guard.end()).ok_or(ErrorCode::Busy)?),
        };
        let entry = match FolderEntry::resolve(folder, path) {
            // `.` and `..` exist.
            Err(ErrorCode::Invalid) if makes_folder => return Err(ErrorCode::Exist),
            entry => entry?,
        };
        // A program that creates every folder on the way to a file continues past an existing one, protected or not.
        if makes_folder && entry.stat().is_ok() {
            return Err(ErrorCode::Exist);
        }
        entry.judge(guard)?;
        let (folder, name) = (&entry.folder, entry.name.as_str());
        let notes = Notes(guard);
        let done = match change {
            Change::MakeFolder => notes.made(&entry, || folder.create_dir(name)),
            Change::RemoveFile => {
                entry.require_folder_after_slash()?;
                notes.removed(&entry, || folder.remove_file(name))
            }
            Change::RemoveFolder => notes.removed(&entry, || folder.remove_dir(name)),
            Change::Link(_) if entry.slash => Err(no_name(&entry)),
            Change::Link(target) => {
                refuse_above(&entry)?;
                moved::check_link(&entry, Path::new(target), guard)?;
                notes.made(&entry, || folder.symlink_contents(target, name))
            }
            Change::Name(into, to) => {
                let to = FolderEntry::resolve(into, to)?;
                to.judge(guard)?;
                entry.require_folder_after_slash()?;
                if to.slash {
                    return Err(code(no_name(&to)));
                }
                check_moved(&entry, &to, guard)?;
                notes.made(&to, || folder.hard_link(name, &to.folder, &to.name))
            }
            Change::Move(into, to) => {
                let to = FolderEntry::resolve(into, to)?;
                to.judge(guard)?;
                entry.require_folder_after_slash()?;
                if to.slash && entry.kind()? != FileType::Directory {
                    return Err(ErrorCode::NotDirectory);
                }
                check_moved(&entry, &to, guard)?;
                take_mode(&entry, &to, guard)?;
                notes.moved(&entry, &to, || folder.rename(name, &to.folder, &to.name))
            }
        };
        done.map_err(code)
    }

    /// Notes of a call about its changes, if they are kept.
    struct Notes<'a>(&'a PathGuard);

    impl Notes<'_> {
        /// Notes an entry before it is made.
        fn made(&self, entry: &FolderEntry, make: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
            let Some(notes) = &self.0.notes else { return make() };
            let planned = notes.making(&entry.path);
            make().inspect_err(|_| planned.failed())
        }

        /// Notes an entry before it is removed.
        fn removed(&self, entry: &FolderEntry, remove: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
            let Some(notes) = &self.0.notes else { return remove() };
            let planned = notes.removing(&entry.folder, &entry.name, &entry.path, self.0.until);
            remove().inspect_err(|_| planned.failed())
        }

        /// Notes an entry before it is moved.
        fn moved(
            &self,
            from: &FolderEntry,
            to: &FolderEntry,
            rename: impl FnOnce() -> io::Result<()>,
        ) -> io::Result<()> {
            let Some(notes) = &self.0.notes else { return rename() };
            let planned =
                notes.moving((&from.folder, &from.name, &from.path), (&to.folder, &to.name, &to.path), self.0.until);
            rename().inspect_err(|_| planned.failed())
        }
    }

    /// Returns the system's error for a path that ends with a slash as the name of a new link.
    fn no_name(entry: &FolderEntry) -> io::Error {
        let there = entry.stat().map(|about| FileType::from_raw_mode(about.st_mode));
        io::Error::from(match there {
            Ok(FileType::Directory) => Errno::EXIST,
            Ok(_) => Errno::NOTDIR,
            Err(error) => error,
        })
    }

    /// Gives a file that the call created, and that now replaces another, the mode and the owner of that. A read-only file is
    /// not replaced.
    fn take_mode(from: &FolderEntry, to: &FolderEntry, guard: &PathGuard) -> Result<(), ErrorCode> {
        let Ok(old) = to.stat() else { return Ok(()) };
        if FileType::from_raw_mode(old.st_mode) != FileType::RegularFile || from.kind()? != FileType::RegularFile {
            return Ok(());
        }
        let old_mode = Mode::from_raw_mode(old.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
        if !old_mode.intersects(Mode::WUSR | Mode::WGRP | Mode::WOTH) {
            return Err(ErrorCode::Access);
        }
        let new = from.stat().map_err(errno)?;
        let is_same = (new.st_mode ^ old.st_mode) & 0o777 == 0 && (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid);
        if is_same || !guard.created.has(Identity::of(&new)) {
            return Ok(());
        }
        // What another process puts there in between does not block, and is not changed.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(UNBLOCKED).follow(FollowSymlinks::No);
        let file = from.folder.open_with(&from.name, &options).map_err(code)?;
        if Identity::of(&fstat(&file).map_err(errno)?) != Identity::of(&new) {
            return Err(ErrorCode::Busy);
        }
        // Only a privileged process can give a file away; another one keeps what it made.
        let _ = fchown(&file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid)));
        fchmod(&file, old_mode).map_err(errno)
    }

    /// Refuses a link or a moved folder if its new name could turn names below it into protected ones.
    fn refuse_above(entry: &FolderEntry) -> Result<(), ErrorCode> {
        match protects_names_below(&entry.path) {
            true => Err(ErrorCode::NotPermitted),
            false => Ok(()),
        }
    }

    /// Refuses a moved entry that would lead out of its folder, or become a protected one at its new place.
    fn check_moved(from: &FolderEntry, to: &FolderEntry, guard: &PathGuard) -> Result<(), ErrorCode> {
        match from.kind()? {
            FileType::Symlink => {
                refuse_above(to)?;
                let target = from.folder.read_link_contents(&from.name).map_err(code)?;
                moved::check_link(to, Path::new(&*target.to_string_lossy()), guard)
            }
            FileType::Directory => {
                refuse_above(to)?;
                moved::check_folder(from, to, guard)
            }
            _ => {
                // Another name for a protected file would bypass its protection.
                let about = from.stat().map_err(errno)?;
                match guard.protected.holds_file(Identity::of(&about), about.st_nlink > 1, &from.path) {
                    true => Err(ErrorCode::NotPermitted),
                    false => Ok(()),
                }
            }
        }
    }
}
