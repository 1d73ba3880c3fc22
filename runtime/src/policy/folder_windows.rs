//! Opening of folders on Windows, by path: an open folder is pinned, so that neither it nor a folder above it can be moved,
//! removed or replaced until the handle is closed.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use cap_primitives::ambient_authority;
use cap_primitives::fs::{open_ambient_dir, open_dir};

use crate::policy::identity::Identity;
use crate::policy::location::identity;
use crate::policy::open_error::OpenError;
use crate::tool::names::{NameRules, canonical};

use super::EntryKind;

/// Maximum number of links on one path.
const MAX_LINKS: usize = 40;

/// Opens a folder, without following links in writable folders.
pub(super) fn open(path: &Path, writable: &[Identity]) -> Result<File, OpenError> {
    let here = Path::new(".");
    let mut path = std::path::absolute(if path.as_os_str().is_empty() { here } else { path })?;
    if !writable.is_empty() {
        for _ in 0..=MAX_LINKS {
            let Some((link, rest)) = first_link(&path) else { break };
            let folder = link.parent().unwrap_or(&link);
            if folder.ancestors().filter_map(identity).any(|above| writable.contains(&above)) {
                return Err(OpenError::Link(link));
            }
            path = std::path::absolute(folder.join(link.read_link()?).join(rest))?;
        }
    }
    pinned(&path)
}

/// Returns the kind of an entry in a pinned folder, which stays at its path.
pub(super) fn kind(_: &File, folder: &Path, name: &OsStr) -> io::Result<EntryKind> {
    let about = folder.join(name).symlink_metadata()?;
    Ok(match about.is_file() {
        true => EntryKind::Regular,
        false if about.is_symlink() => EntryKind::Link,
        false => EntryKind::Other,
    })
}

/// Opens a folder below another without following links.
pub(super) fn below(_: &File, named: &Path, path: &Path) -> Result<File, OpenError> {
    let text = path.to_str().ok_or(io::ErrorKind::InvalidFilename).map_err(io::Error::from)?;
    if let Some(reason) = NameRules::HERE.misread(text) {
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, reason).into());
    }
    let mut shown = named.to_path_buf();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(shown.pop()),
            part => shown.push(part),
        }
        if is_link(&shown) {
            return Err(OpenError::Link(shown));
        }
    }
    let opened = pinned(&shown)?;
    // A name that became a link in between led elsewhere.
    match canonical(&shown)?.starts_with(canonical(named)?) {
        true => Ok(opened),
        false => Err(OpenError::Link(shown)),
    }
}

/// Opens a folder below another without following links.
pub(super) fn inside(outer: &File, named: &Path, within: &Path) -> io::Result<File> {
    below(outer, named, within).map_err(OpenError::into)
}

/// Opens a folder anew, with a handle that keeps it at its path.
pub(super) fn listable(folder: &File) -> io::Result<File> {
    open_dir(folder, Path::new("."))
}

/// Opens a folder that no other handle can move or remove.
fn pinned(path: &Path) -> Result<File, OpenError> {
    Ok(open_ambient_dir(path, ambient_authority())?)
}

/// Finds the first link on a path, with the rest of the path.
fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut folders: Vec<&Path> = path.ancestors().collect();
    folders.reverse();
    let link = folders.into_iter().find(|folder| is_link(folder))?;
    Some((link.to_path_buf(), path.strip_prefix(link).ok()?.to_path_buf()))
}

/// Returns `true` for a symbolic link or a junction.
fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_symlink())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    use crate::policy::folder::RealFolder;
    use crate::policy::location::Mounts;

    #[test]
    fn an_open_folder_stays_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("above/inner")).unwrap();
        let held = open(&dir.path().join("above/inner"), &[]).unwrap();
        assert!(fs::rename(dir.path().join("above/inner"), dir.path().join("moved")).is_err());
        fs::write(dir.path().join("above/inner/file"), "x").unwrap();
        drop(held);
        fs::rename(dir.path().join("above"), dir.path().join("moved")).unwrap();
    }

    #[test]
    fn a_folder_is_one_by_any_spelling_and_a_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let (lower, upper) = (dir.path().join("sub"), dir.path().join("SUB"));
        assert!(identity(&lower).is_some() && identity(&lower) == identity(&upper));
        assert_eq!(canonical(&upper).unwrap(), canonical(&lower).unwrap());
        assert!(!canonical(&lower).unwrap().to_string_lossy().starts_with(r"\\?\"));
        assert!(open(&dir.path().join("file"), &[]).is_err());
    }

    #[test]
    fn a_folder_has_the_path_that_people_write_however_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("Sub")).unwrap();
        let shown = canonical(&dir.path().join("Sub")).unwrap();
        for path in [shown.canonicalize().unwrap(), dir.path().join("SUB"), dir.path().join(r"sub\..\sub\")] {
            let opened = RealFolder::open(&path, "--allow-read", &Mounts::default(), &[]).unwrap();
            assert_eq!(opened.path, shown, "{}", path.display());
        }
        for path in ["NUL", r"\\.\NUL", r"\\.\pipe\", r"\\?\Volume{0}\"] {
            assert!(RealFolder::open(Path::new(path), "--allow-read", &Mounts::default(), &[]).is_err(), "{path}");
        }
    }

    #[test]
    fn no_name_below_a_folder_means_another_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        let outer = open(dir.path(), &[]).unwrap();
        assert!(below(&outer, dir.path(), Path::new("./sub")).is_ok());
        for path in ["sub::$INDEX_ALLOCATION", "sub.", "NUL", "SUB~1", r"\\server\share", "C:sub"] {
            assert!(below(&outer, dir.path(), Path::new(path)).is_err(), "{path}");
        }
    }
}
