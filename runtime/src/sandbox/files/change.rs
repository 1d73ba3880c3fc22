//! Changes of the entries of a folder: what is made, moved, linked or removed. Each is judged and done by the handle of
//! the folder that the entry is in, so that nothing can be swapped between the two.

use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{ErrorCode, PathFlags};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::runtime::spawn_blocking;

use crate::policy::{Grant, Identity, Protected, is_link_out, protects_names_below};
use crate::tool::Access;

use super::Files;
use super::beneath::Unopened;

/// Bounds of the changes of a call's guests: the files that they leave alone, and the folders out of which they make no link.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "entries are judged by their names alone there"))]
pub(in crate::sandbox) struct Fence {
    pub(super) protected: Arc<Protected>,
    pub(super) roots: Arc<[Identity]>,
    /// The end of the call, where it has one: nothing is looked through past it.
    pub(super) until: Option<Instant>,
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "entries are judged by their names alone there"))]
impl Fence {
    pub(in crate::sandbox) fn new(grant: &Grant) -> Self {
        Self { protected: grant.protected().clone(), roots: grant.roots(), until: None }
    }

    /// The end of the call.
    pub(super) fn end(&self) -> Instant {
        self.until.unwrap_or_else(Instant::now)
    }
}

/// A change of an entry.
pub(super) enum Change {
    MakeFolder,
    /// Makes a link with this target.
    Link(String),
    /// Gives a file another name besides, in this folder.
    Name(Arc<File>, String),
    /// Moves it to a name in this folder.
    Move(Arc<File>, String),
    RemoveFile,
    RemoveFolder,
}

impl Files<'_> {
    /// Changes an entry, as far as the grant allows; `None` where this system cannot do it by handles, and the change was
    /// judged by its names alone.
    pub(super) async fn change(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        change: Change,
    ) -> FsResult<Option<()>> {
        let folder = self.folder(fd)?;
        if folder.perms.write_not_permitted() {
            return Err(ErrorCode::NotPermitted.into());
        }
        let (dir, path, fence) = (folder.dir.clone(), path.to_owned(), self.allowance.fence.clone());
        match spawn_blocking(move || act(&dir, &path, &change, &fence)).await {
            Ok(()) => Ok(Some(())),
            Err(Unopened::Unsupported) => Ok(None),
            Err(Unopened::Refused(code)) => Err(code.into()),
        }
    }

    /// The same for a change that puts an entry into another folder, which has to be granted like the first.
    pub(super) async fn change_into(
        &mut self,
        fd: &Resource<Descriptor>,
        from: &str,
        flags: PathFlags,
        into: &Resource<Descriptor>,
        change: fn(Arc<File>, String) -> Change,
        to: &str,
    ) -> FsResult<Option<()>> {
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

    /// Notes a refusal of such a change: under the first name where that is protected, else under the second.
    pub(super) async fn note_either<T>(
        &mut self,
        fd: &Resource<Descriptor>,
        (from, to): (&str, &str),
        result: FsResult<T>,
    ) -> FsResult<T> {
        let is_refused = |error: &FsError| matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted));
        if !result.as_ref().is_err_and(is_refused) {
            return result;
        }
        let (dir, path, fence) = (self.folder(fd)?.dir.clone(), from.to_owned(), self.allowance.fence.clone());
        let is_held = spawn_blocking(move || system::is_held(&dir, &path, &fence)).await;
        self.note(Access::Write, if is_held { from } else { to }, result)
    }
}

fn act(folder: &File, path: &str, change: &Change, fence: &Fence) -> Result<(), Unopened> {
    let done = system::act(folder, path, change, fence);
    if matches!(done, Err(Unopened::Unsupported)) {
        by_names(path, change, fence)?;
    }
    done
}

/// Judges a change by the names that the guest gives, where its folders cannot be asked for theirs.
fn by_names(path: &str, change: &Change, fence: &Fence) -> Result<(), ErrorCode> {
    use std::path::Path;
    let depth = Path::new(path).components().count().saturating_sub(1);
    let leads_out = matches!(change, Change::Link(target) if is_link_out(Path::new(target), depth));
    let settles = match change {
        Change::Link(_) => protects_names_below(Path::new(path)),
        Change::Move(_, to) => protects_names_below(Path::new(to)),
        _ => false,
    };
    let to = match change {
        Change::Name(_, to) | Change::Move(_, to) => Some(to.as_str()),
        _ => None,
    };
    let is_protected = |path: &str| fence.protected.is_named(Path::new(path));
    if leads_out || settles || is_protected(path) || to.is_some_and(is_protected) {
        return Err(ErrorCode::NotPermitted);
    }
    Ok(())
}

/// Elsewhere there is no such way.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Change, Fence, File, Unopened};

    pub(super) fn act(_: &File, _: &str, _: &Change, _: &Fence) -> Result<(), Unopened> {
        Err(Unopened::Unsupported)
    }

    pub(super) fn is_held(_: &File, path: &str, fence: &Fence) -> bool {
        fence.protected.is_named(std::path::Path::new(path))
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::path::Path;

    use rustix::fs::{AtFlags, FileType, Mode, linkat, mkdirat, readlinkat, renameat, statat, symlinkat, unlinkat};
    use rustix::io::Errno;

    use crate::policy::lock_moves;
    use crate::sandbox::files::entry::Entry;
    use crate::sandbox::files::moved;

    use super::{Change, ErrorCode, Fence, File, Identity, Unopened, protects_names_below};

    /// Does a change, or tells why not. Those that put a link or a folder somewhere take turns, from the judgement on.
    pub(super) fn act(folder: &File, path: &str, change: &Change, fence: &Fence) -> Result<(), Unopened> {
        let makes_folder = matches!(change, Change::MakeFolder);
        let _turn = match change {
            Change::RemoveFile | Change::RemoveFolder => None,
            _ => Some(lock_moves(fence.end()).ok_or(ErrorCode::Busy)?),
        };
        let entry = match Entry::resolve(folder, path) {
            // `.` and `..` are there.
            Err(Unopened::Refused(ErrorCode::Invalid)) if makes_folder => return Err(ErrorCode::Exist.into()),
            entry => entry?,
        };
        // Who makes each folder on the way to a file goes on where one is there, be it protected.
        if makes_folder && statat(&entry.folder, &entry.name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(ErrorCode::Exist.into());
        }
        entry.judge(fence)?;
        let folder = &entry.folder;
        let name = entry.name.as_str();
        let done = match change {
            Change::MakeFolder => mkdirat(folder, name, Mode::from_raw_mode(0o777)),
            Change::RemoveFile => {
                entry.require_folder_after_slash()?;
                unlinkat(folder, name, AtFlags::empty())
            }
            Change::RemoveFolder => unlinkat(folder, name, AtFlags::REMOVEDIR),
            Change::Link(_) if entry.slash => Err(Errno::NOTDIR),
            Change::Link(target) => {
                refuse_above(&entry)?;
                moved::check_link(&entry, Path::new(target), fence)?;
                symlinkat(target.as_str(), folder, name)
            }
            Change::Name(into, to) => {
                let to = Entry::resolve(into, to)?;
                to.judge(fence)?;
                if entry.slash || to.slash {
                    return Err(ErrorCode::NotDirectory.into());
                }
                check_moved(&entry, &to, fence)?;
                linkat(folder, name, &to.folder, to.name.as_str(), AtFlags::empty())
            }
            Change::Move(into, to) => {
                let to = Entry::resolve(into, to)?;
                to.judge(fence)?;
                entry.require_folder_after_slash()?;
                if to.slash && entry.kind()? != FileType::Directory {
                    return Err(ErrorCode::NotDirectory.into());
                }
                check_moved(&entry, &to, fence)?;
                renameat(folder, name, &to.folder, to.name.as_str())
            }
        };
        done.map_err(|error| Unopened::Refused(std::io::Error::from(error).into()))
    }

    /// Refuses a link or a moved folder whose name makes names below it settle something.
    fn refuse_above(entry: &Entry) -> Result<(), Unopened> {
        match protects_names_below(&entry.path) {
            true => Err(ErrorCode::NotPermitted.into()),
            false => Ok(()),
        }
    }

    /// Returns true where a path is that of a protected entry.
    pub(super) fn is_held(folder: &File, path: &str, fence: &Fence) -> bool {
        Entry::resolve(folder, path).is_ok_and(|entry| entry.judge(fence).is_err())
    }

    /// Refuses what would lead out of its folder or settle something from its new place.
    fn check_moved(from: &Entry, to: &Entry, fence: &Fence) -> Result<(), Unopened> {
        match from.kind()? {
            FileType::Symlink => {
                refuse_above(to)?;
                let target = readlinkat(&from.folder, from.name.as_str(), Vec::new())?;
                moved::check_link(to, Path::new(&*target.to_string_lossy()), fence)
            }
            FileType::Directory => {
                refuse_above(to)?;
                moved::check_folder(from, to, fence)
            }
            _ => {
                // Another name for what is protected would be a way to it.
                let about = statat(&from.folder, from.name.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
                let file = Identity::of(&about);
                match fence.protected.holds_file(file, about.st_nlink > 1, &from.path) {
                    true => Err(ErrorCode::NotPermitted.into()),
                    false => Ok(()),
                }
            }
        }
    }
}
