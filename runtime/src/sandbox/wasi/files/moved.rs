//! Checks of links and folders at their new place: no link may lead out of its granted folder when it is created or
//! moved, and no folder with a protected entry is moved.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, FileType};
use rustix::fs::fstat;
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::{Identity, MAX_PARENT_NAMES, is_link_out};

use super::entry::{FolderEntry, code, errno};
use super::guard::PathGuard;

/// Maximum number of entries in a folder that is moved.
const MAX_MOVED: usize = 20_000;
/// Maximum depth of a folder inside one that is moved.
const MAX_INNER: usize = 256;
/// Maximum depth of an entry below its granted folder.
const MAX_DEPTH: usize = 4096;

/// Refuses a link that would lead out of its granted folder.
pub(super) fn check_link(at: &FolderEntry, target: &Path, guard: &PathGuard) -> Result<(), ErrorCode> {
    let (root, depth) = root(&at.folder, guard)?;
    if is_link_out(target, depth) {
        return Err(ErrorCode::NotPermitted);
    }
    // Links of others could lead further from there.
    let folder = at.path.parent().unwrap_or(&at.path);
    let names: Vec<_> = folder.components().rev().take(depth).collect();
    let through: PathBuf =
        std::iter::once(Path::new(".").components()).flatten().chain(names.into_iter().rev()).collect();
    match root.metadata(through.join(target)) {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            // The target does not exist.
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
            _ => Err(code(error)),
        },
    }
}

/// Refuses a folder that contains a protected entry, or a link that would lead out of its granted folder from the new
/// place. The folders above both places were checked with them, so that only the last names of each inner path are
/// checked here.
pub(super) fn check_folder(from: &FolderEntry, to: &FolderEntry, guard: &PathGuard) -> Result<(), ErrorCode> {
    let protected = &guard.protected;
    if protected.has_below(&from.path) || protected.has_below(&to.path) {
        return Err(ErrorCode::NotPermitted);
    }
    let (_, above) = root(&to.folder, guard)?;
    let top = from.folder.open_dir_nofollow(&from.name).map_err(code)?;
    let (mut pending, mut count) = (vec![(PathBuf::new(), 0)], 0);
    let in_time = || if Instant::now() < guard.end() { Ok(()) } else { Err(ErrorCode::Busy) };
    while let Some((inner, depth)) = pending.pop() {
        // Before each folder too: those without entries also take time.
        in_time()?;
        let open = descend(&top, &inner).map_err(code)?;
        let owner = Identity::of(&fstat(&open).map_err(errno)?);
        let (before, after) = (last_names(&from.path.join(&inner)), last_names(&to.path.join(&inner)));
        for entry in open.entries().map_err(code)? {
            let entry = entry.map_err(code)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            count += 1;
            in_time()?;
            let kind = kind(&entry).map_err(code)?;
            let leads_out = || match open.read_link_contents(entry.file_name()) {
                Ok(target) => is_link_out(Path::new(&*target.to_string_lossy()), above + 1 + depth),
                Err(_) => true,
            };
            let is_settled = || {
                protected.holds_entry(owner, &before.join(&name))
                    || after != before && protected.is_named(&after.join(&name))
            };
            if count > MAX_MOVED || is_settled() || kind.is_symlink() && leads_out() {
                return Err(ErrorCode::NotPermitted);
            }
            if kind.is_dir() {
                if depth == MAX_INNER {
                    return Err(ErrorCode::NotPermitted);
                }
                pending.push((inner.join(&name), depth + 1));
            }
        }
    }
    Ok(())
}

/// Returns the last names of a folder's path, as many as are needed with an entry's own name to recognise a protected
/// path.
fn last_names(folder: &Path) -> PathBuf {
    let names: Vec<_> = folder.components().rev().take(MAX_PARENT_NAMES).collect();
    names.into_iter().rev().filter(|part| matches!(part, Component::Normal(_))).collect()
}

/// Returns the kind of an entry, which some file systems do not report in a listing.
fn kind(entry: &DirEntry) -> io::Result<FileType> {
    match entry.file_type()? {
        kind if kind.is_dir() || kind.is_file() || kind.is_symlink() => Ok(kind),
        _ => Ok(entry.metadata()?.file_type()),
    }
}

/// Opens a folder below another without following links.
fn descend(top: &Dir, inner: &Path) -> io::Result<Dir> {
    inner.iter().try_fold(top.try_clone()?, |folder, name| folder.open_dir_nofollow(name))
}

/// Returns the nearest granted folder above a folder, and the distance to it.
fn root(folder: &Dir, guard: &PathGuard) -> Result<(Dir, usize), ErrorCode> {
    let mut at = folder.try_clone().map_err(code)?;
    for depth in 0..MAX_DEPTH {
        if guard.roots.contains(&Identity::of(&fstat(&at).map_err(errno)?)) {
            return Ok((at, depth));
        }
        at = at.open_parent_dir(ambient_authority()).map_err(code)?;
    }
    // Another process moved the folder out.
    Err(ErrorCode::NotPermitted)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_folder_is_looked_through_no_longer_than_its_call_lasts() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("from/inner")).unwrap();
        let root = File::open(dir.path()).unwrap();
        let roots = [Identity::of(&fstat(&root).unwrap())].into();
        let mut guard = PathGuard { roots, until: Some(Instant::now()), ..PathGuard::default() };
        let entry = |name| FolderEntry::resolve(&root, name).ok().unwrap();
        let (from, to) = (entry("from"), entry("to"));
        assert!(matches!(check_folder(&from, &to, &guard), Err(ErrorCode::Busy)));
        assert!(matches!(check_folder(&entry("from/inner"), &to, &guard), Err(ErrorCode::Busy)), "an empty folder");
        guard.until = Some(Instant::now() + std::time::Duration::from_secs(600));
        assert!(check_folder(&from, &to, &guard).is_ok());
    }
}
