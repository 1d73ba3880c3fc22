//! Checks of links and folders at their new place: no link may lead out of its granted folder when it is created or
//! moved, and no folder with a protected entry is moved.

use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::{Identity, MAX_PARENT_NAMES, is_link_out};

use super::entry::FolderEntry;
use super::guard::PathGuard;
use super::resolve::{OpenError, resolve};

/// Maximum number of entries in a folder that is moved.
const MAX_MOVED: usize = 20_000;
/// Maximum depth of a folder inside one that is moved.
const MAX_INNER: usize = 256;
/// Maximum depth of an entry below its granted folder.
const MAX_DEPTH: usize = 4096;

/// Refuses a link that would lead out of its granted folder.
pub(super) fn check_link(at: &FolderEntry, target: &Path, guard: &PathGuard) -> Result<(), OpenError> {
    let (root, depth) = root(&at.folder, guard)?;
    if is_link_out(target, depth) {
        return Err(ErrorCode::NotPermitted.into());
    }
    // Links of others could lead further from there.
    let folder = at.path.parent().unwrap_or(&at.path);
    let names: Vec<_> = folder.components().rev().take(depth).collect();
    let through: PathBuf =
        std::iter::once(Path::new(".").components()).flatten().chain(names.into_iter().rev()).collect();
    match resolve(&root, &*through.join(target), OFlags::PATH, Mode::empty()) {
        // The target is inside the folder, or does not exist.
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a folder that contains a protected entry, or a link that would lead out of its granted folder from the new
/// place. The folders above both places were checked with them, so that only the last names of each inner path are
/// checked here.
pub(super) fn check_folder(from: &FolderEntry, to: &FolderEntry, guard: &PathGuard) -> Result<(), OpenError> {
    let protected = &guard.protected;
    if protected.has_below(&from.path) || protected.has_below(&to.path) {
        return Err(ErrorCode::NotPermitted.into());
    }
    let (_, above) = root(&to.folder, guard)?;
    let top = folder(&from.folder, Path::new(&from.name))?;
    let (mut pending, mut count) = (vec![(PathBuf::new(), 0)], 0);
    while let Some((inner, depth)) = pending.pop() {
        let open = folder(&top, &Path::new(".").join(&inner))?;
        let owner = Identity::of(&fstat(&open)?);
        let (before, after) = (last_names(&from.path.join(&inner)), last_names(&to.path.join(&inner)));
        for entry in Dir::read_from(&open)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if matches!(name.as_str(), "." | "..") {
                continue;
            }
            count += 1;
            if Instant::now() >= guard.end() {
                return Err(ErrorCode::Busy.into());
            }
            let kind = kind(&open, &entry)?;
            let leads_out = || match readlinkat(&open, entry.file_name(), Vec::new()) {
                Ok(target) => is_link_out(Path::new(&*target.to_string_lossy()), above + 1 + depth),
                Err(_) => true,
            };
            let is_settled = || {
                protected.holds_entry(owner, &before.join(&name))
                    || after != before && protected.is_named(&after.join(&name))
            };
            if count > MAX_MOVED || is_settled() || kind == FileType::Symlink && leads_out() {
                return Err(ErrorCode::NotPermitted.into());
            }
            if kind == FileType::Directory {
                if depth == MAX_INNER {
                    return Err(ErrorCode::NotPermitted.into());
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
fn kind(folder: &OwnedFd, entry: &DirEntry) -> Result<FileType, OpenError> {
    match entry.file_type() {
        FileType::Unknown => {
            let about = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(FileType::from_raw_mode(about.st_mode))
        }
        kind => Ok(kind),
    }
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

fn folder(below: impl AsFd, path: &Path) -> Result<OwnedFd, OpenError> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(openat2(below, path, FOLDER, Mode::empty(), resolve)?)
}

/// Returns the nearest granted folder above a folder, and the distance to it.
fn root(folder: &OwnedFd, guard: &PathGuard) -> Result<(OwnedFd, usize), OpenError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(folder, ".", flags, Mode::empty())?;
    for depth in 0..MAX_DEPTH {
        if guard.roots.contains(&Identity::of(&fstat(&at)?)) {
            return Ok((at, depth));
        }
        at = openat(&at, "..", flags, Mode::empty())?;
    }
    // Another process moved the folder out.
    Err(ErrorCode::NotPermitted.into())
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
        assert!(matches!(check_folder(&from, &to, &guard), Err(OpenError::Refused(ErrorCode::Busy))));
        guard.until = Some(Instant::now() + std::time::Duration::from_secs(600));
        assert!(check_folder(&from, &to, &guard).is_ok());
    }
}
