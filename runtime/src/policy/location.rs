//! Location of a file or folder: its identity, the folders above it and its position in its file system, so that one
//! place is recognized under every name.

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

#[cfg(unix)]
pub(crate) use system::path_by_handle;
pub(crate) use system::present_path;
pub(super) use system::{identity, identity_of, lineage, path_of};

use crate::tool::names::{NameRules, canonical};

use super::identity::Identity;

/// Location of a file or folder, existing or not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Location {
    path: PathBuf,
    /// Its own identity, if it exists.
    own: Option<Identity>,
    /// Its own identity, if it exists, and the identities of the folders above it, nearest first.
    lineage: Vec<Identity>,
    /// Its position in its file system.
    position: Option<Position>,
    /// Positions of the mounts below it.
    mounted: Vec<Position>,
}

impl Location {
    /// Finds the location of a path, following links. For a missing file, the existing part of the path determines it.
    pub(crate) fn of(path: &Path, mounts: &Mounts) -> Self {
        let path = real_path(path);
        let own = identity(&path);
        let is_folder = own.is_some() && path.is_dir();
        let mut folders = path.ancestors().skip(usize::from(!is_folder));
        let above = folders.find_map(|folder| Some(lineage(&system::open_any(folder)?, folder))).unwrap_or_default();
        let lineage = own.filter(|_| !is_folder).into_iter().chain(above).collect();
        Self::at(path, own, lineage, mounts)
    }

    /// Finds the location of an open folder with a known path.
    pub(super) fn of_open(folder: &File, path: &Path, mounts: &Mounts) -> Self {
        let lineage = lineage(folder, path);
        Self::at(path.to_path_buf(), lineage.first().copied(), lineage, mounts)
    }

    fn at(path: PathBuf, own: Option<Identity>, lineage: Vec<Identity>, mounts: &Mounts) -> Self {
        let path = NameRules::HERE.without_second_root(path);
        let (position, mounted) = (mounts.position(&path), mounts.below(&path));
        Self { path, own, lineage, position, mounted }
    }

    /// Returns the location that contains every other.
    pub(super) fn everywhere() -> Self {
        Self::default()
    }

    /// Path of the location, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Identity of the file or folder, if it exists.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.own
    }

    /// Returns `true` if this location is the other or is inside it, under any name.
    pub(crate) fn is_in(&self, other: &Self) -> bool {
        let by_position = |own: &Position| other.position.as_ref().is_some_and(|other| own.is_in(other));
        self.path.starts_with(&other.path)
            || other.own.is_some_and(|other| self.lineage.contains(&other))
            || self.position.as_ref().is_some_and(by_position)
    }

    /// Returns `true` if one contains the other, or a mount inside one shows a part of the other.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let shows = |one: &Self, other: &Self| {
            let meets = |mounted: &Position, at: &Position| mounted.is_in(at) || at.is_in(mounted);
            one.mounted.iter().any(|mounted| other.position.as_ref().is_some_and(|at| meets(mounted, at)))
        };
        self.is_in(other) || other.is_in(self) || shows(self, other) || shows(other, self)
    }
}

/// A path in a file system, independent of its mount point.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Position {
    device: String,
    path: PathBuf,
}

impl Position {
    fn is_in(&self, other: &Self) -> bool {
        self.device == other.device && self.path.starts_with(&other.path)
    }
}

/// Mounts of the system, read when a path is compared with them; empty if the system does not list them.
#[derive(Debug, Default)]
pub(crate) struct Mounts(OnceLock<Vec<Mount>>);

#[derive(Debug)]
struct Mount {
    /// Mount point.
    on: PathBuf,
    /// Part of its file system that is visible at the mount point.
    shows: Position,
    /// Type of its file system.
    kind: String,
}

impl Mounts {
    /// Creates a list without mounts.
    pub(super) fn none() -> Self {
        Self(OnceLock::from(Vec::new()))
    }

    fn all(&self) -> &[Mount] {
        self.0.get_or_init(|| {
            let list = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            list.lines().filter_map(mount).collect()
        })
    }

    /// Lists the mount points for file systems of these types.
    pub(super) fn of_kinds<'a>(&'a self, kinds: &'a [&str]) -> impl Iterator<Item = &'a Path> {
        self.all().iter().filter(|mount| kinds.contains(&mount.kind.as_str())).map(|mount| mount.on.as_path())
    }

    fn position(&self, path: &Path) -> Option<Position> {
        let holding = self.all().iter().filter(|mount| path.starts_with(&mount.on));
        let mount = holding.max_by_key(|mount| mount.on.components().count())?;
        let Position { device, path: shown } = &mount.shows;
        Some(Position { device: device.clone(), path: shown.join(path.strip_prefix(&mount.on).ok()?) })
    }

    fn below(&self, path: &Path) -> Vec<Position> {
        let below = self.all().iter().filter(|mount| mount.on != path && mount.on.starts_with(path));
        below.map(|mount| mount.shows.clone()).collect()
    }
}

/// Parses a line of the kernel's list: `36 35 98:0 /shown /on opts - kind source opts`.
fn mount(line: &str) -> Option<Mount> {
    let (mount, kind) = line.split_once(" - ")?;
    let fields: Vec<&str> = mount.split(' ').collect();
    let [_, _, device, shown, on, ..] = fields[..] else { return None };
    let shows = Position { device: device.to_owned(), path: unescaped(shown) };
    Some(Mount { on: unescaped(on), shows, kind: kind.split(' ').next()?.to_owned() })
}

/// Decodes a path of that list, in which spaces and line breaks are octal numbers.
fn unescaped(text: &str) -> PathBuf {
    let whole = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    whole.into_iter().fold(text.to_owned(), |text, (octal, plain)| text.replace(octal, plain)).into()
}

/// Resolves a path that may not exist: links in its existing part are followed, and the rest is appended.
pub fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    // Most paths exist as a whole, or except for their last name: each is resolved once, from its longest existing part.
    let mut parts: Vec<Component<'_>> = Vec::new();
    let mut existing = path.components();
    let mut real = loop {
        match canonical(existing.as_path()) {
            Ok(real) => break real,
            Err(_) => match existing.next_back() {
                Some(part) => parts.push(part),
                None => break PathBuf::new(),
            },
        }
    };
    while let Some(part) = parts.pop() {
        match part {
            Component::ParentDir => {
                real.pop();
            }
            part => real.push(part),
        }
        // A part after `..` may exist again.
        if let Ok(resolved) = canonical(&real) {
            real = resolved;
        }
    }
    real
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::{Path, PathBuf};

    use cap_primitives::ambient_authority;
    use cap_primitives::fs::{open_ambient_dir, open_parent_dir};
    use rustix::fs::{fstat, stat};

    use crate::policy::identity::Identity;
    use crate::tool::names::canonical;

    pub(crate) use path_by_handle::path as path_by_handle;

    /// Finds the present path of an open file or folder; `None` if the system does not report it.
    pub(crate) fn present_path(file: &File) -> Option<PathBuf> {
        // The system has a name for a file that has none.
        path_by_handle(file).ok().filter(|path| identity(path) == identity_of(file))
    }

    /// Maximum number of parent folders that are visited.
    const MAX_DEPTH: usize = 4096;

    /// Finds the identity of the file or folder at a path.
    pub(in crate::policy) fn identity(path: &Path) -> Option<Identity> {
        stat(path).ok().map(|about| Identity::of(&about))
    }

    /// Finds the identity of an open file or folder.
    pub(in crate::policy) fn identity_of(file: &File) -> Option<Identity> {
        fstat(file).ok().map(|about| Identity::of(&about))
    }

    pub(super) fn open_any(path: &Path) -> Option<File> {
        open_ambient_dir(path, ambient_authority()).ok()
    }

    /// Finds the identities of a folder and its ancestors, nearest first, by walking up from its handle.
    pub(in crate::policy) fn lineage(folder: &File, _: &Path) -> Vec<Identity> {
        let mut all: Vec<Identity> = identity_of(folder).into_iter().collect();
        let mut above = open_parent_dir(folder, ambient_authority());
        while let Ok(folder) = above {
            match identity_of(&folder) {
                Some(identity) if all.last() != Some(&identity) && all.len() < MAX_DEPTH => all.push(identity),
                _ => break,
            }
            above = open_parent_dir(&folder, ambient_authority());
        }
        all
    }

    /// Finds the current path of an open file or folder.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if the path no longer leads to it.
    pub(in crate::policy) fn path_of(file: &File, named: &Path) -> io::Result<PathBuf> {
        let path = match path_by_handle(file) {
            // The system does not report the path of a handle.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => canonical(named)?,
            found => found?,
        };
        if identity(&path) == identity_of(file) { Ok(path) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    #[cfg(target_os = "linux")]
    mod path_by_handle {
        use std::fs::File;
        use std::io;
        use std::os::fd::AsRawFd;
        use std::path::PathBuf;

        /// Finds the current path of an open file or folder.
        pub(crate) fn path(file: &File) -> io::Result<PathBuf> {
            std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
        }
    }

    #[cfg(target_vendor = "apple")]
    mod path_by_handle {
        use std::ffi::OsString;
        use std::fs::File;
        use std::io;
        use std::os::unix::ffi::OsStringExt;
        use std::path::PathBuf;

        /// Returns the path as the file system stores it, whatever spelling opened the file.
        pub(crate) fn path(file: &File) -> io::Result<PathBuf> {
            Ok(OsString::from_vec(rustix::fs::getpath(file)?.into_bytes()).into())
        }
    }

    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    mod path_by_handle {
        use std::fs::File;
        use std::io;
        use std::path::PathBuf;

        /// Reports that this system does not know the path of a handle.
        pub(crate) fn path(_: &File) -> io::Result<PathBuf> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

#[cfg(windows)]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::{Path, PathBuf};

    use crate::policy::identity::Identity;
    use crate::tool::names::{canonical, plain};

    /// Finds the present path of an open file or folder; `None` if the system does not report it.
    pub(crate) fn present_path(file: &File) -> Option<PathBuf> {
        toolcrib_windows_files::final_path(file).ok().map(plain)
    }

    /// Finds the identity of the file or folder at a path.
    pub(in crate::policy) fn identity(path: &Path) -> Option<Identity> {
        identity_of(&open_any(path)?)
    }

    /// Finds the identity of an open file or folder.
    pub(in crate::policy) fn identity_of(file: &File) -> Option<Identity> {
        Identity::of(file).ok()
    }

    pub(super) fn open_any(path: &Path) -> Option<File> {
        toolcrib_windows_files::open_attributes(path, true).ok()
    }

    /// Finds the identities of a folder and its ancestors, nearest first. While a folder is open, no folder above it
    /// can be moved.
    pub(in crate::policy) fn lineage(folder: &File, path: &Path) -> Vec<Identity> {
        identity_of(folder).into_iter().chain(path.ancestors().skip(1).filter_map(identity)).collect()
    }

    /// Finds the current path of an open file or folder.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if the path no longer leads to it.
    pub(in crate::policy) fn path_of(file: &File, named: &Path) -> io::Result<PathBuf> {
        // A volume without a drive letter has no path by its handle.
        let path = match toolcrib_windows_files::final_path(file) {
            Ok(path) => plain(path),
            Err(_) => canonical(named)?,
        };
        if identity(&path) == identity_of(file) { Ok(path) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_shows_the_same_place_under_another_name() {
        let text = "1 0 8:1 / / rw - ext4 d rw\n2 1 8:1 /home/u/state/sub /mnt/b\\040c rw shared:1 - ext4 d rw\n\
                    3 1 0:5 / /proc rw - proc proc rw\n";
        let mounts = Mounts(OnceLock::from(text.lines().filter_map(mount).collect::<Vec<_>>()));
        let at = |path: &str| Location::at(path.into(), None, Vec::new(), &mounts);
        let state = at("/home/u/state");
        for other in ["/mnt/b c", "/mnt/b c/deep", "/mnt", "/home/u/state/sub", "/home/u"] {
            assert!(at(other).overlaps(&state) && state.overlaps(&at(other)), "{other}");
        }
        for other in ["/mnt/other", "/home/u/states", "/proc"] {
            assert!(!at(other).overlaps(&state), "{other}");
        }
        assert_eq!(mounts.of_kinds(&["proc"]).collect::<Vec<_>>(), [Path::new("/proc")]);
    }

    #[cfg(unix)]
    #[test]
    fn a_location_is_in_each_folder_above_it_and_in_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let mounts = Mounts::none();
        let at = |name: &str| Location::of(&dir.path().join(name), &mounts);
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/file"), "").unwrap();
        std::os::unix::fs::symlink("a/b", dir.path().join("link")).unwrap();
        for inner in ["a/b", "a/file", "link", "a/absent/deep", "link/absent"] {
            assert!(at(inner).is_in(&at("a")) && !at("a").is_in(&at(inner)), "{inner}");
        }
        assert!(at("link").is_in(&at("a/b")) && at("a/b").is_in(&at("link")));
        assert!(!at("a/file").overlaps(&at("a/b")));
    }
}
