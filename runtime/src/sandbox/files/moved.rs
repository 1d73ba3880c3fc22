//! Links and folders at their new place: no link may lead out of the granted folder that it is in, neither when it is made
//! nor when it is moved, and no folder is moved that holds what settles something.

use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, DirEntry, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::{Identity, MAX_PARENT_NAMES, is_link_out};

use super::beneath::{Unopened, resolve};
use super::change::Fence;
use super::entry::Entry;

/// The most entries that are looked through in a folder that is moved; one with more is not moved.
const MAX_MOVED: usize = 20_000;
/// The deepest that a folder may be inside one that is moved.
const MAX_INNER: usize = 256;
/// The deepest that a granted folder may be above an entry.
const MAX_DEPTH: usize = 4096;

/// Refuses a link that would lead out of its granted folder.
pub(super) fn check_link(at: &Entry, target: &Path, fence: &Fence) -> Result<(), Unopened> {
    let (root, depth) = root(&at.folder, fence)?;
    if is_link_out(target, depth) {
        return Err(ErrorCode::NotPermitted.into());
    }
    // Links that somebody else made could lead on from there.
    let folder = at.path.parent().unwrap_or(&at.path);
    let names: Vec<_> = folder.components().rev().take(depth).collect();
    let through: PathBuf =
        std::iter::once(Path::new(".").components()).flatten().chain(names.into_iter().rev()).collect();
    match resolve(&root, &*through.join(target), OFlags::PATH, Mode::empty()) {
        // It leads to something inside, or to nothing.
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(untold) => Err(untold.into()),
    }
}

/// Refuses a folder that holds a protected entry, or a link that would lead out from its new place. What lies above the two
/// places was judged with them, so that of each path inside only the last names are looked at.
pub(super) fn check_folder(from: &Entry, to: &Entry, fence: &Fence) -> Result<(), Unopened> {
    let protected = &fence.protected;
    if protected.has_below(&from.path) || protected.has_below(&to.path) {
        return Err(ErrorCode::NotPermitted.into());
    }
    let (_, above) = root(&to.folder, fence)?;
    let top = folder(&from.folder, Path::new(&from.name))?;
    let (mut left, mut looked) = (vec![(PathBuf::new(), 0)], 0);
    while let Some((inner, depth)) = left.pop() {
        let open = folder(&top, &Path::new(".").join(&inner))?;
        let owner = Identity::of(&fstat(&open)?);
        let (before, after) = (last_names(&from.path.join(&inner)), last_names(&to.path.join(&inner)));
        for entry in Dir::read_from(&open)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if matches!(name.as_str(), "." | "..") {
                continue;
            }
            looked += 1;
            if Instant::now() >= fence.end() {
                return Err(ErrorCode::Busy.into());
            }
            let kind = kind(&open, &entry)?;
            let leads_out = || match readlinkat(&open, entry.file_name(), Vec::new()) {
                Ok(target) => is_link_out(Path::new(&*target.to_string_lossy()), above + 1 + depth),
                Err(_) => true,
            };
            let settles = || {
                protected.holds_entry(owner, &before.join(&name))
                    || after != before && protected.is_named(&after.join(&name))
            };
            if looked > MAX_MOVED || settles() || kind == FileType::Symlink && leads_out() {
                return Err(ErrorCode::NotPermitted.into());
            }
            if kind == FileType::Directory {
                if depth == MAX_INNER {
                    return Err(ErrorCode::NotPermitted.into());
                }
                left.push((inner.join(&name), depth + 1));
            }
        }
    }
    Ok(())
}

/// The last names of the path of a folder, as many as decide with an entry's own what that settles.
fn last_names(folder: &Path) -> PathBuf {
    let names: Vec<_> = folder.components().rev().take(MAX_PARENT_NAMES).collect();
    names.into_iter().rev().filter(|part| matches!(part, Component::Normal(_))).collect()
}

/// Kind of an entry, which some file systems do not say in a listing.
fn kind(folder: &OwnedFd, entry: &DirEntry) -> Result<FileType, Unopened> {
    match entry.file_type() {
        FileType::Unknown => {
            let about = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(FileType::from_raw_mode(about.st_mode))
        }
        kind => Ok(kind),
    }
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

fn folder(below: impl AsFd, path: &Path) -> Result<OwnedFd, Unopened> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(openat2(below, path, FOLDER, Mode::empty(), resolve)?)
}

/// The granted folder that is nearest above a folder, and how far above.
fn root(folder: &OwnedFd, fence: &Fence) -> Result<(OwnedFd, usize), Unopened> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(folder, ".", flags, Mode::empty())?;
    for depth in 0..MAX_DEPTH {
        if fence.roots.contains(&Identity::of(&fstat(&at)?)) {
            return Ok((at, depth));
        }
        at = openat(&at, "..", flags, Mode::empty())?;
    }
    // Somebody moved it out.
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
        let mut fence = Fence { roots, until: Some(Instant::now()), ..Fence::default() };
        let entry = |name| Entry::resolve(&root, name).ok().unwrap();
        let (from, to) = (entry("from"), entry("to"));
        assert!(matches!(check_folder(&from, &to, &fence), Err(Unopened::Refused(ErrorCode::Busy))));
        fence.until = Some(Instant::now() + std::time::Duration::from_secs(600));
        assert!(check_folder(&from, &to, &fence).is_ok());
    }
}
