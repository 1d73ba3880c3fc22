//! Folders of the host, opened before they are judged: the path, the identity and the position that are judged and
//! recorded are those of the open handle, so that nobody can put another folder in its place in between.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;

use super::location::{Identity, Location, Mounts, path_of};

/// File systems that are windows into the host itself, not places for files.
const HOST_WINDOWS: [&str; 12] = [
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
/// Where they are, on systems that do not list their mounts.
const WINDOW_PATHS: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Most attempts to open a folder that is moved while its path is asked for.
const MAX_ATTEMPTS: usize = 64;

/// A folder that is there, by an open handle and by where that leads.
#[derive(Debug, Clone)]
pub(super) struct RealFolder {
    pub(super) path: PathBuf,
    pub(super) handle: Arc<File>,
    pub(super) location: Arc<Location>,
}

impl RealFolder {
    /// Opens a folder that is to be granted, through the links of its path, but through none that lies in a folder that
    /// tools may write.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] where it is missing, is no folder, is or holds a window into the host, or lies behind such a
    /// link.
    pub(super) fn open(path: &Path, written: &str, mounts: &Mounts, writable: &[Identity]) -> Result<Self, Error> {
        Self::judged(|| opening::open(path, writable), path, written, mounts)
    }

    /// Opens a folder below another, which is opened through the links of its path. Below it none is followed.
    ///
    /// # Errors
    ///
    /// As of [`RealFolder::open`], and where a link is on the way.
    pub(super) fn open_below(outer: &Path, path: &Path, written: &str, mounts: &Mounts) -> Result<Self, Error> {
        Self::judged(|| opening::below(&opening::open(outer, &[])?, outer, path), &outer.join(path), written, mounts)
    }

    /// Opens a folder inside this one, by the names that lead to it. No link leads out.
    ///
    /// # Errors
    ///
    /// The system's own.
    pub(super) fn inside(&self, names: &[&str]) -> io::Result<Self> {
        let within: PathBuf = std::iter::once(".").chain(names.iter().copied()).collect();
        let handle = opening::inside(&self.handle, &self.path, &within)?;
        let path = path_of(&handle, &self.path.join(within))?;
        let location = Location::of_open(&handle, &path, &Mounts::default());
        Ok(Self { path, handle: Arc::new(handle), location: Arc::new(location) })
    }

    /// Returns true where the other is the same folder, by whatever name.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.path == other.path || self.location.identity().is_some_and(|own| Some(own) == other.location.identity())
    }

    /// Judges what was opened, by its handle. `named` is its path where the system tells none of a handle.
    fn judged(
        open: impl Fn() -> Result<File, Unopened>,
        named: &Path,
        written: &str,
        mounts: &Mounts,
    ) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Permission { permission: written.to_owned(), reason };
        for _ in 0..MAX_ATTEMPTS {
            let handle = open().map_err(|unopened| refuse(unopened.reason()))?;
            // Something else may be there by now, and then this path is not the folder's.
            let Ok(path) = path_of(&handle, named) else { continue };
            if let Some(window) = host_windows(mounts).find(|window| overlap(window, &path)) {
                let window = window.display();
                let told = format!("`{window}` shows the host itself and is never granted; name other folders");
                return Err(refuse(told));
            }
            let location = Location::of_open(&handle, &path, mounts);
            return Ok(Self { path, handle: Arc::new(handle), location: Arc::new(location) });
        }
        Err(refuse("it is moved or replaced while it is opened; name a folder that stays where it is".to_owned()))
    }
}

/// Returns true where one of two folders is the other or lies in it.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The mounts that are windows into the host, and the usual places.
fn host_windows(mounts: &Mounts) -> impl Iterator<Item = &Path> {
    mounts.of_kinds(&HOST_WINDOWS).chain(WINDOW_PATHS.iter().map(Path::new))
}

/// Reason why a folder was not opened.
#[derive(Debug)]
pub(super) enum Unopened {
    /// The error of the system.
    System(io::Error),
    /// A link on the way, by its path.
    Link(PathBuf),
}

impl From<io::Error> for Unopened {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<Unopened> for io::Error {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::System(error) => error,
            Unopened::Link(_) => Self::from(io::ErrorKind::PermissionDenied),
        }
    }
}

impl Unopened {
    fn reason(self) -> String {
        match self {
            Self::System(error) if error.kind() == io::ErrorKind::NotADirectory => "not a folder".to_owned(),
            Self::System(error) => error.to_string(),
            Self::Link(link) => format!(
                "`{}` is a link, and none is followed here, for a tool could have made it; name the folder that it leads to",
                link.display()
            ),
        }
    }
}

#[cfg(unix)]
mod opening {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags, openat};

    use crate::policy::location::{Identity, lineage};
    use crate::policy::walk::{Step, top, walk};

    use super::Unopened;

    pub(super) use system::inside;

    const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

    /// Opens a folder, and nothing else, through no link that lies in one of the writable ones.
    pub(super) fn open(path: &Path, writable: &[Identity]) -> Result<File, Unopened> {
        let here = Path::new(".");
        let path = std::path::absolute(if path.as_os_str().is_empty() { here } else { path })?;
        let may_follow = |step: &Step<'_>| !lineage(step.folder).iter().any(|above| writable.contains(above));
        listed(&walk(top()?, &path, |step| {
            if !step.is_link() || may_follow(step) { Ok(()) } else { Err(Unopened::Link(step.name.into())) }
        })?)
    }

    /// Opens a folder below another through no link.
    pub(super) fn below(outer: &File, named: &Path, path: &Path) -> Result<File, Unopened> {
        let refuse_link = |step: &Step<'_>| match step.is_link() {
            true => Err(Unopened::Link(named.join(path))),
            false => Ok(()),
        };
        listed(&walk(outer.try_clone()?, path, refuse_link)?)
    }

    /// The same folder by a handle that can list it.
    fn listed(folder: &File) -> Result<File, Unopened> {
        Ok(openat(folder, ".", FOLDER, Mode::empty()).map(File::from).map_err(io::Error::from)?)
    }

    #[cfg(target_os = "linux")]
    mod system {
        use std::fs::File;
        use std::io;
        use std::path::Path;

        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

        /// Opens a folder below another through links that stay below it.
        pub(in crate::policy) fn inside(outer: &File, _: &Path, within: &Path) -> io::Result<File> {
            let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(openat2(outer, within, flags, Mode::empty(), beneath).map(File::from)?)
        }
    }

    #[cfg(not(target_os = "linux"))]
    mod system {
        use std::fs::File;
        use std::io;
        use std::path::Path;

        /// Opens a folder below another through no link, where the system cannot be told to follow those that stay below.
        pub(in crate::policy) fn inside(outer: &File, named: &Path, within: &Path) -> io::Result<File> {
            super::below(outer, named, within).map_err(super::Unopened::into)
        }
    }
}

#[cfg(not(unix))]
mod opening {
    use std::fs::File;
    use std::io;
    use std::path::{Component, Path};

    use crate::policy::location::Identity;

    use super::Unopened;

    /// Opens a folder, and nothing else.
    pub(super) fn open(path: &Path, _: &[Identity]) -> Result<File, Unopened> {
        if !path.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory).into());
        }
        Ok(File::open(path)?)
    }

    /// Opens a folder below another, after a look at each name on the way.
    pub(super) fn below(_: &File, named: &Path, path: &Path) -> Result<File, Unopened> {
        let mut shown = named.to_path_buf();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(shown.pop()),
                part => shown.push(part),
            }
            if shown.symlink_metadata()?.is_symlink() {
                return Err(Unopened::Link(shown));
            }
        }
        open(&shown, &[])
    }

    /// Opens a folder below another through no link.
    pub(super) fn inside(outer: &File, named: &Path, within: &Path) -> io::Result<File> {
        below(outer, named, within).map_err(Unopened::into)
    }
}
