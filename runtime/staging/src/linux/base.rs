//! The real folders under a stage. Each is reached by its handle, no path leads out of it, and no link on the way is followed.

use std::fs::File;
use std::io;

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, ReadDir};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::entry::About;
use crate::types::EntryKind;

/// Flags for a handle that reads nothing: it wakes no device and waits for no FIFO.
const AT: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Flags for reading a file: what takes its place does not block.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// Flags for listing a folder.
const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Real folders by their paths.
#[derive(Debug, Default)]
pub(crate) struct Bases(Vec<Base>);

#[derive(Debug)]
struct Base {
    path: String,
    folder: Dir,
}

impl Bases {
    /// Adds a folder; `false` if it is known.
    pub(crate) fn add(&mut self, path: &str, folder: Dir) -> bool {
        let is_known = self.0.iter().any(|base| base.path == path);
        if !is_known {
            self.0.push(Base { path: path.to_owned(), folder });
        }
        !is_known
    }

    /// Paths of the folders.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|base| base.path.as_str())
    }

    /// Finds the nearest folder above a path, and the rest of the path below it.
    pub(crate) fn find<'p>(&self, path: &'p str) -> io::Result<(&Dir, &'p str)> {
        let found = self.0.iter().filter_map(|base| Some((base, below(&base.path, path)?)));
        let (base, rest) = found.max_by_key(|(base, _)| base.path.len()).ok_or(Errno::NOENT)?;
        Ok((&base.folder, if rest.is_empty() { "." } else { rest }))
    }

    /// Opens a path below its folder.
    fn open(&self, path: &str, flags: OFlags) -> io::Result<File> {
        let (folder, rest) = self.find(path)?;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(folder, rest, flags, Mode::empty(), how) {
            // This kernel resolves no path in one step.
            Err(Errno::NOSYS | Errno::PERM) => {
                let (above, name) = rest.rsplit_once('/').unwrap_or((".", rest));
                let names = above.split('/').filter(|name| *name != ".");
                let above = names.into_iter().try_fold(folder.try_clone()?, |at, name| at.open_dir_nofollow(name))?;
                Ok(openat(&above, name, flags, Mode::empty())?.into())
            }
            opened => Ok(opened?.into()),
        }
    }

    /// Describes an entry, without following a link; `None` if there is none.
    pub(crate) fn about(&self, path: &str) -> io::Result<Option<About>> {
        match self.open(path, AT) {
            Ok(found) => Ok(Some(About::of_stat(&fstat(found)?))),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Reads the target of a link.
    pub(crate) fn link(&self, path: &str) -> io::Result<String> {
        let target = readlinkat(self.open(path, AT)?, "", Vec::new())?;
        target.into_string().map_err(|_| Errno::ILSEQ.into())
    }

    /// Opens a regular file for reading, and nothing else in its place.
    pub(crate) fn read(&self, path: &str) -> io::Result<(File, About)> {
        let file = self.open(path, READ)?;
        let found = fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok((file, About::of_stat(&found))),
            _ => Err(Errno::PERM.into()),
        }
    }

    /// Opens a folder to list it.
    pub(crate) fn folder(&self, path: &str) -> io::Result<File> {
        self.open(path, LIST)
    }

    /// Lists a folder.
    pub(crate) fn list(&self, path: &str) -> io::Result<ReadDir> {
        Dir::from_std_file(self.folder(path)?).entries()
    }

    /// Refuses what the rights of an entry do not allow.
    pub(crate) fn check_access(&self, path: &str, access: rustix::fs::Access) -> io::Result<()> {
        let (above, name) = split(path);
        // A granted folder itself has no folder above it here.
        match self.open(above, AT) {
            Ok(above) => Ok(rustix::fs::accessat(above, name, access, AtFlags::EACCESS)?),
            Err(_) => Ok(rustix::fs::accessat(self.open(path, AT)?, ".", access, AtFlags::EACCESS)?),
        }
    }
}

/// Returns the kind of an entry, which some file systems do not report in a listing.
pub(crate) fn kind_of(entry: &cap_std::fs::DirEntry) -> io::Result<EntryKind> {
    match EntryKind::of(entry.file_type()?) {
        EntryKind::Other => Ok(EntryKind::of(entry.metadata()?.file_type())),
        kind => Ok(kind),
    }
}

/// Returns the rest of a path below a folder; empty for the folder itself.
pub(crate) fn below<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix(folder)?;
    match folder.ends_with('/') || rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix('/'),
    }
}

/// Joins a folder's path and a name.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.ends_with('/') { format!("{folder}{name}") } else { format!("{folder}/{name}") }
}

/// Splits a path into its folder and its name.
pub(crate) fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(parts) => parts,
        None => ("/", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_a_folder_by_whole_names() {
        assert_eq!(below("/a", "/a/b/c"), Some("b/c"));
        assert_eq!(below("/a", "/a"), Some(""));
        assert_eq!(below("/", "/a"), Some("a"));
        assert_eq!(below("/a", "/ab"), None);
        assert_eq!((join("/", "a"), join("/a", "b")), ("/a".to_owned(), "/a/b".to_owned()));
        assert_eq!((split("/a"), split("/a/b")), (("/", "a"), ("/a", "b")));
    }
}
