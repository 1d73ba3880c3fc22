//! Resolution of a path name by name and by handles, so that each name on the way can be judged or noted, links included.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::folder::Unopened;
use super::location::Identity;

/// Flags that open a folder in which nothing is listed.
#[cfg(target_os = "linux")]
pub(super) const ANY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
pub(super) const ANY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// The most links that one path may lead through, which is the system's own bound.
const MAX_LINKS: usize = 40;

/// A name on the way of a path.
pub(super) struct Step<'a> {
    /// The folder in which it is looked for.
    pub(super) folder: &'a File,
    pub(super) name: &'a OsStr,
    /// The system's word on the name, links not followed.
    about: Option<Stat>,
}

impl Step<'_> {
    fn kind(&self) -> Option<FileType> {
        self.about.map(|about| FileType::from_raw_mode(about.st_mode))
    }

    /// Returns true where the name is that of a link.
    pub(super) fn is_link(&self) -> bool {
        self.kind() == Some(FileType::Symlink)
    }

    /// Identity of the file that has the name; `None` for a folder, a link or nothing.
    pub(super) fn file(&self) -> Option<Identity> {
        let about = self.about.filter(|_| self.kind() == Some(FileType::RegularFile))?;
        Some(Identity::of(&about))
    }
}

/// Opens the folder of all folders.
pub(super) fn top() -> io::Result<File> {
    Ok(rustix::fs::open("/", ANY, Mode::empty()).map(File::from)?)
}

/// Walks a path from a folder on, and shows every name before it is entered. Gives the folder at its end.
///
/// # Errors
///
/// The first refusal of `meets`, or the error of the system.
pub(super) fn walk(
    from: File,
    path: &Path,
    mut meets: impl FnMut(&Step<'_>) -> Result<(), Unopened>,
) -> Result<File, Unopened> {
    let (mut folder, mut links) = (from, 0);
    let mut left = reversed(path);
    while let Some(name) = left.pop() {
        if name == "/" {
            folder = top()?;
            continue;
        }
        if name == ".." {
            folder = enter(&folder, &name)?;
            continue;
        }
        let about = match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Some(about),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(io::Error::from(error).into()),
        };
        let step = Step { folder: &folder, name: &name, about };
        meets(&step)?;
        match step.kind() {
            None => return Err(io::Error::from(Errno::NOENT).into()),
            Some(FileType::Symlink) if links == MAX_LINKS => return Err(io::Error::from(Errno::LOOP).into()),
            Some(FileType::Symlink) => {
                links += 1;
                let target = readlinkat(&folder, &name, Vec::new()).map_err(io::Error::from)?;
                left.extend(reversed(Path::new(OsStr::from_bytes(target.as_bytes()))));
            }
            Some(_) => folder = enter(&folder, &name)?,
        }
    }
    Ok(folder)
}

fn enter(folder: &File, name: &OsStr) -> Result<File, Unopened> {
    Ok(openat(folder, name, ANY | OFlags::NOFOLLOW, Mode::empty()).map(File::from).map_err(io::Error::from)?)
}

/// The names of a path, the last one first.
fn reversed(path: &Path) -> Vec<OsString> {
    let names = path.components().filter(|part| *part != Component::CurDir);
    let mut names: Vec<_> = names.map(|part| part.as_os_str().to_owned()).collect();
    names.reverse();
    names
}
