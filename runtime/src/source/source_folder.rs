//! Files below one folder, on disk or inside a bundle. On disk each file is reached by the folder's handle, no link leads out of
//! the folder, and an opened file is judged by its own handle.

use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::bundle::{self, Kind, OpenBundle};

/// A folder of a source.
pub(super) enum SourceFolder {
    Disk(Dir),
    /// Folder of a bundle, with its path inside.
    Bundled(Arc<OpenBundle>, String),
}

/// Entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FolderItem {
    /// Name; `None` if it is not Unicode text.
    pub(super) name: Option<String>,
    pub(super) kind: ItemKind,
}

/// Kind of an entry, without following a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    File,
    Folder,
    Link,
    Other,
}

impl SourceFolder {
    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// The folder does not exist, or cannot be opened.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        match folder.metadata() {
            Ok(found) if found.is_dir() => Ok(Self::Disk(Dir::open_ambient_dir(folder, ambient_authority())?)),
            _ => match bundle::containing(folder)? {
                Some((bundle, inner)) => Ok(Self::Bundled(bundle, inner)),
                None => Err(bundle::missing()),
            },
        }
    }

    /// Returns `true` for the root of a bundle. It has no name, and also holds the bundle's own files.
    pub(super) fn is_root_of_bundle(&self) -> bool {
        matches!(self, Self::Bundled(_, inner) if inner.is_empty())
    }

    /// Lists the first `max` entries of a folder below; the empty path is the folder itself.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub(super) fn list(&self, folder: &str, max: usize) -> io::Result<Vec<FolderItem>> {
        match self {
            Self::Disk(dir) => {
                let entries = dir.read_dir(if folder.is_empty() { "." } else { folder })?.take(max);
                entries.map(|entry| FolderItem::of(&entry?)).collect()
            }
            Self::Bundled(bundle, inner) => {
                let folder = join(inner, folder);
                let item = |name: &str| {
                    let kind = match bundle.kind(&join(&folder, name)) {
                        Some(Kind::Folder) => ItemKind::Folder,
                        _ => ItemKind::File,
                    };
                    FolderItem { name: Some(name.to_owned()), kind }
                };
                Ok(bundle.names(&folder).into_iter().take(max).map(item).collect())
            }
        }
    }

    /// Reads a regular file of at most `max` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], [`ErrorKind::FileTooLarge`], or another reason why the file cannot be read.
    pub(super) fn read(&self, path: &str, max: u64) -> io::Result<Vec<u8>> {
        let dir = match self {
            Self::Disk(dir) => dir,
            Self::Bundled(bundle, inner) => return bundle.read(&join(inner, path), max),
        };
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No);
        system::without_waiting(&mut options);
        let file = dir.open_with(path, &options)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        if found.len() > max {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.len() + 1).map_err(io::Error::other)?);
        file.take(max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }
}

impl FolderItem {
    fn of(entry: &cap_std::fs::DirEntry) -> io::Result<Self> {
        let found = entry.file_type()?;
        let kind = match () {
            () if found.is_symlink() => ItemKind::Link,
            () if found.is_dir() => ItemKind::Folder,
            () if found.is_file() => ItemKind::File,
            () => ItemKind::Other,
        };
        Ok(Self { name: entry.file_name().into_string().ok(), kind })
    }
}

fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", name) => name.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}

#[cfg(unix)]
mod system {
    use cap_primitives::fs::OpenOptionsExt;
    use cap_std::fs::OpenOptions;
    use rustix::fs::OFlags;

    /// Opens a named pipe without waiting for its other end.
    pub(super) fn without_waiting(options: &mut OpenOptions) {
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    }
}

#[cfg(not(unix))]
mod system {
    use cap_std::fs::OpenOptions;

    /// No file of a folder waits here.
    pub(super) fn without_waiting(_: &mut OpenOptions) {}
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_leads_out_and_only_a_regular_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir_all(inner.join("sub")).unwrap();
        fs::write(dir.path().join("secret"), "s").unwrap();
        fs::write(inner.join("sub/a"), "abc").unwrap();
        symlink("../secret", inner.join("link")).unwrap();
        symlink("..", inner.join("up")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            inner.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let root = SourceFolder::open(&inner).unwrap();
        for path in ["link", "up/secret", "../secret", "/etc/passwd", "sub/../../secret", "pipe", "sub", "none"] {
            assert!(root.read(path, 9).is_err(), "{path}");
        }
        assert_eq!(root.read("sub/a", 3).unwrap(), b"abc");
        assert_eq!(root.read("sub/a", 2).unwrap_err().kind(), ErrorKind::FileTooLarge);
        let mut items = root.list("", 9).unwrap();
        items.sort_by(|one, other| one.name.cmp(&other.name));
        let kinds: Vec<_> = items.iter().map(|item| (item.name.as_deref().unwrap(), item.kind)).collect();
        let expected =
            [("link", ItemKind::Link), ("pipe", ItemKind::Other), ("sub", ItemKind::Folder), ("up", ItemKind::Link)];
        assert_eq!(kinds, expected);
        assert_eq!(root.list("", 2).unwrap().len(), 2);
    }
}
