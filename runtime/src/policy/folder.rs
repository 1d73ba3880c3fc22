//! Folders of the host, opened before they are checked. The checked and recorded path, identity and position belong to
//! the open handle, so the folder cannot be replaced between the check and its use.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::tool::names::NameRules;

use super::identity::Identity;
use super::location::{Location, Mounts, path_of};
use super::open_error::OpenError;
use super::open_folder::OpenFolder;

/// File systems that expose the host itself, and are never granted.
const HOST_FILE_SYSTEMS: [&str; 12] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "bpf",
    "efivarfs",
];
/// Their usual mount points, for systems that do not list mounts.
const HOST_FILE_SYSTEM_PATHS: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Maximum attempts to open a folder that is moved while its path is queried.
const MAX_ATTEMPTS: usize = 64;

/// An existing folder: its open handle, its path and its location; or one file in it.
#[derive(Debug, Clone)]
pub(super) struct RealFolder {
    pub(super) path: PathBuf,
    pub(super) handle: Arc<File>,
    /// Location of the folder or file.
    pub(super) location: Arc<Location>,
    /// Name of the file, if only this one is granted.
    pub(super) file: Option<String>,
}

impl RealFolder {
    /// Opens a folder for a grant. Links on its path are followed, except those in folders that tools may write.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] if it is missing, is not a folder, is or contains a file system that exposes the host, or
    /// is behind such a link.
    pub(super) fn open(path: &Path, written: &str, mounts: &Mounts, writable: &[Identity]) -> Result<Self, Error> {
        Self::checked(|| opening::open(path, writable), path, written, mounts)
    }

    /// Opens a held folder for a grant.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] if it was removed, or is or contains a file system that exposes the host.
    pub(super) fn held(folder: &OpenFolder, written: &str, mounts: &Mounts) -> Result<Self, Error> {
        Self::checked(|| Ok(opening::listable(folder.handle())?), folder.path(), written, mounts)
    }

    /// Opens a folder below another. Links on the path of the outer folder are followed as by [`RealFolder::open`], links below
    /// it are not.
    ///
    /// # Errors
    ///
    /// As for [`RealFolder::open`], and if a link is on the path below the outer folder.
    pub(super) fn open_below(
        outer: &Path,
        path: &Path,
        written: &str,
        mounts: &Mounts,
        writable: &[Identity],
    ) -> Result<Self, Error> {
        let open = || opening::below(&opening::open(outer, writable)?, outer, path);
        Self::checked(open, &outer.join(path), written, mounts)
    }

    /// Reduces an opened folder to a regular file in it.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] if there is no such file, or if it is a link.
    pub(super) fn only(self, name: &OsStr, written: &str, mounts: &Mounts) -> Result<Self, Error> {
        let refuse = |reason: &str| Error::Permission { permission: written.to_owned(), reason: reason.to_owned() };
        let file = name.to_str().ok_or_else(|| refuse("the file name is not Unicode text"))?;
        match opening::kind(&self.handle, &self.path, name) {
            Ok(EntryKind::Regular) => {}
            Ok(EntryKind::Link) => return Err(refuse("the file is a link: name the file that it leads to")),
            Ok(EntryKind::Other) => return Err(refuse("it is neither a folder nor a regular file")),
            Err(_) => return Err(refuse("the file is gone")),
        }
        let location = Location::of(&self.path.join(name), mounts);
        Ok(Self { location: Arc::new(location), file: Some(file.to_owned()), ..self })
    }

    /// Opens a folder inside this one by a sequence of names. Links cannot lead out of this folder.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(super) fn inside(&self, names: &[&str]) -> io::Result<Self> {
        let within: PathBuf = std::iter::once(".").chain(names.iter().copied()).collect();
        let handle = opening::inside(&self.handle, &self.path, &within)?;
        let path = path_of(&handle, &self.path.join(within))?;
        let location = Location::of_open(&handle, &path, &Mounts::none());
        Ok(Self { path, handle: Arc::new(handle), location: Arc::new(location), file: None })
    }

    /// Path of the folder or file.
    pub(super) fn whole_path(&self) -> PathBuf {
        self.file.as_ref().map_or_else(|| self.path.clone(), |file| self.path.join(file))
    }

    /// Returns `true` if both are the same folder or file, under any name.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.whole_path() == other.whole_path()
            || self.location.identity().is_some_and(|own| Some(own) == other.location.identity())
    }

    /// Checks the opened handle. `named` is its path on systems that do not report the path of a handle.
    fn checked(
        open: impl Fn() -> Result<File, OpenError>,
        named: &Path,
        written: &str,
        mounts: &Mounts,
    ) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Permission { permission: written.to_owned(), reason };
        for _ in 0..MAX_ATTEMPTS {
            let handle = open().map_err(|error| refuse(error.reason()))?;
            // Fails if something else is at the path by now; then the folder is opened again.
            let Ok(path) = path_of(&handle, named) else { continue };
            if let Some(reason) = path.to_str().and_then(|path| NameRules::HERE.never_granted(path)) {
                return Err(refuse(reason.to_owned()));
            }
            if let Some(mount) = host_file_systems(mounts).find(|mount| overlap(mount, &path)) {
                let mount = mount.display();
                return Err(refuse(format!(
                    "`{mount}` shows the host itself and is never granted; name other folders"
                )));
            }
            let location = Location::of_open(&handle, &path, mounts);
            return Ok(Self { path, handle: Arc::new(handle), location: Arc::new(location), file: None });
        }
        Err(refuse("it is moved or replaced while it is opened; name a folder that stays where it is".to_owned()))
    }
}

/// Kind of folder entry.
enum EntryKind {
    Regular,
    Link,
    Other,
}

/// Returns `true` if one of two folders is the other or is inside it.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Lists the mount points of file systems that expose the host, and their usual paths.
fn host_file_systems(mounts: &Mounts) -> impl Iterator<Item = &Path> {
    mounts.of_kinds(&HOST_FILE_SYSTEMS).chain(HOST_FILE_SYSTEM_PATHS.iter().map(Path::new))
}

#[cfg(unix)]
mod opening {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use cap_primitives::fs::open_dir;
    use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};

    use crate::policy::identity::Identity;
    use crate::policy::location::lineage;
    use crate::policy::walk::{Step, root, walk};

    use crate::policy::open_error::OpenError;

    use super::EntryKind;

    const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

    /// Opens a folder, without following links in writable folders.
    pub(super) fn open(path: &Path, writable: &[Identity]) -> Result<File, OpenError> {
        let here = Path::new(".");
        let path = std::path::absolute(if path.as_os_str().is_empty() { here } else { path })?;
        let may_follow = |step: &Step<'_>| !lineage(step.folder, &path).iter().any(|above| writable.contains(above));
        let found = walk(root()?, &path, |step| {
            if !step.is_link() || may_follow(step) { Ok(()) } else { Err(OpenError::Link(step.name.into())) }
        })?;
        Ok(listable(&found)?)
    }

    /// Opens a folder below another without following links.
    pub(super) fn below(outer: &File, named: &Path, path: &Path) -> Result<File, OpenError> {
        let refuse_link = |step: &Step<'_>| match step.is_link() {
            true => Err(OpenError::Link(named.join(path))),
            false => Ok(()),
        };
        Ok(listable(&walk(outer.try_clone()?, path, refuse_link)?)?)
    }

    /// Returns the kind of an entry in an open folder.
    pub(super) fn kind(folder: &File, _: &Path, name: &OsStr) -> io::Result<EntryKind> {
        let about = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => EntryKind::Regular,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        })
    }

    /// Reopens a folder with a handle that can list it.
    pub(super) fn listable(folder: &File) -> io::Result<File> {
        Ok(openat(folder, ".", FOLDER, Mode::empty())?.into())
    }

    /// Opens a folder below another, following links that stay below it.
    pub(super) fn inside(outer: &File, _: &Path, within: &Path) -> io::Result<File> {
        listable(&open_dir(outer, within)?)
    }
}

#[cfg(windows)]
#[path = "folder_windows.rs"]
mod opening;
