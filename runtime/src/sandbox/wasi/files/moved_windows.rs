//! Checks of a folder that is moved on Windows: no folder with a protected entry is moved, nor one with a link that would
//! lead out from the new place.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use crate::policy::{Identity, is_link_out};

use super::entry::{FolderEntry, code, pinned};
use super::guard::PathGuard;

/// Maximum number of entries in a folder that is moved.
const MAX_MOVED: usize = 20_000;
/// Maximum depth of a folder inside one that is moved.
const MAX_INNER: usize = 256;

/// Refuses a folder that contains a protected entry, or a link that would lead out from the new place.
pub(super) fn check_folder(from: &FolderEntry, to: &FolderEntry, guard: &PathGuard) -> Result<(), ErrorCode> {
    let protected = &guard.protected;
    if protected.has_below(&from.path) || protected.has_below(&to.path) {
        return Err(ErrorCode::NotPermitted);
    }
    let top = from.system_path();
    let (mut pending, mut count) = (vec![(PathBuf::new(), 0)], 0);
    while let Some((inner, depth)) = pending.pop() {
        let folder = top.join(&inner);
        // The handle keeps the folder at its path while it is listed.
        let open = pinned(&folder).map_err(code)?;
        let owner = Identity::of(&open).map_err(code)?;
        for entry in fs::read_dir(&folder).map_err(code)? {
            let entry = entry.map_err(code)?;
            count += 1;
            if Instant::now() >= guard.end() {
                return Err(ErrorCode::Busy);
            }
            let inner = inner.join(entry.file_name());
            let kind = entry.file_type().map_err(code)?;
            let leads_out = || match fs::read_link(entry.path()) {
                Ok(target) => is_link_out(&target, to.depth() + 1 + depth),
                Err(_) => true,
            };
            let is_settled =
                || protected.holds_entry(owner, &from.path.join(&inner)) || protected.is_named(&to.path.join(&inner));
            if count > MAX_MOVED || is_settled() || kind.is_symlink() && leads_out() {
                return Err(ErrorCode::NotPermitted);
            }
            if kind.is_dir() {
                if depth == MAX_INNER {
                    return Err(ErrorCode::NotPermitted);
                }
                pending.push((inner, depth + 1));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_looked_through_no_longer_than_its_call_lasts() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("from/inner")).unwrap();
        let root = pinned(dir.path()).unwrap();
        let mut guard = PathGuard { until: Some(Instant::now()), ..PathGuard::default() };
        let entry = |name| FolderEntry::resolve(&root, name).ok().unwrap();
        let (from, to) = (entry("from"), entry("to"));
        assert!(matches!(check_folder(&from, &to, &guard), Err(ErrorCode::Busy)));
        guard.until = Some(Instant::now() + std::time::Duration::from_secs(600));
        assert!(check_folder(&from, &to, &guard).is_ok());
    }
}
