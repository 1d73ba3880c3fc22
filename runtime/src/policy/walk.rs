//! Path resolution name by name with open handles, so that every name on the path, links included, can be checked or
//! recorded.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use cap_primitives::ambient_authority;
use cap_primitives::fs::{open_ambient_dir, open_dir_nofollow, open_parent_dir};
use rustix::fs::{AtFlags, FileType, Stat, readlinkat, statat};
use rustix::io::Errno;

use super::identity::Identity;
use super::open_error::OpenError;

/// Maximum number of links on one path, equal to the system's maximum.
const MAX_LINKS: usize = 40;

/// A name on a path.
pub(super) struct Step<'a> {
    /// Folder that contains it.
    pub(super) folder: &'a File,
    pub(super) name: &'a OsStr,
    /// Metadata of the name, without following links; `None` if it does not exist.
    stat: Option<Stat>,
}

impl<'a> Step<'a> {
    /// Looks up a name in a folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be searched.
    pub(super) fn at(folder: &'a File, name: &'a OsStr) -> io::Result<Self> {
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { folder, name, stat })
    }

    fn kind(&self) -> Option<FileType> {
        self.stat.map(|stat| FileType::from_raw_mode(stat.st_mode))
    }

    /// Returns `true` if the name is a link.
    pub(super) fn is_link(&self) -> bool {
        self.kind() == Some(FileType::Symlink)
    }

    /// Identity of the file with this name; `None` for a folder, a link or a missing file.
    pub(super) fn file(&self) -> Option<Identity> {
        let stat = self.stat.filter(|_| self.kind() == Some(FileType::RegularFile))?;
        Some(Identity::of(&stat))
    }
}

/// Opens the root folder.
pub(super) fn root() -> io::Result<File> {
    open_ambient_dir(Path::new("/"), ambient_authority())
}

/// Walks a path from a folder, and passes every name to `visit` before it is entered. Returns the folder at its end.
///
/// # Errors
///
/// The first refusal of `visit`, or the error of the system.
pub(super) fn walk(
    from: File,
    path: &Path,
    mut visit: impl FnMut(&Step<'_>) -> Result<(), OpenError>,
) -> Result<File, OpenError> {
    let (mut folder, mut links) = (from, 0);
    let mut left = reversed(path);
    while let Some(name) = left.pop() {
        if name == "/" {
            folder = root()?;
            continue;
        }
        if name == ".." {
            folder = open_parent_dir(&folder, ambient_authority())?;
            continue;
        }
        let step = Step::at(&folder, &name)?;
        visit(&step)?;
        match step.kind() {
            None => return Err(io::Error::from(Errno::NOENT).into()),
            Some(FileType::Symlink) if links == MAX_LINKS => return Err(io::Error::from(Errno::LOOP).into()),
            Some(FileType::Symlink) => {
                links += 1;
                let target = readlinkat(&folder, &name, Vec::new()).map_err(io::Error::from)?;
                left.extend(reversed(Path::new(OsStr::from_bytes(target.as_bytes()))));
            }
            Some(_) => folder = open_dir_nofollow(&folder, name.as_ref())?,
        }
    }
    Ok(folder)
}

/// Lists the names of a path, last first.
fn reversed(path: &Path) -> Vec<OsString> {
    let names = path.components().filter(|part| *part != Component::CurDir);
    let mut names: Vec<_> = names.map(|part| part.as_os_str().to_owned()).collect();
    names.reverse();
    names
}
