//! Folders of the host, opened once when they are granted: what a path means later, a guest with a writable folder above
//! it could change. It knows which folders no guest may have.

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;

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

/// A folder that is there, by its real path and by an open handle.
#[derive(Debug, Clone)]
pub(super) struct RealFolder {
    pub(super) path: PathBuf,
    pub(super) handle: Arc<File>,
}

impl RealFolder {
    /// Opens a folder that is to be granted.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] where it is missing, is no folder, or is or holds a window into the host.
    pub(super) fn open(path: &Path, written: &str) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Permission { permission: written.to_owned(), reason };
        let path = path.canonicalize().map_err(|error| refuse(error.to_string()))?;
        if !path.is_dir() {
            return Err(refuse("not a folder".into()));
        }
        if let Some(window) = host_windows().into_iter().find(|window| overlap(window, &path)) {
            let window = window.display();
            return Err(refuse(format!("`{window}` shows the host itself and is never granted; name other folders")));
        }
        let handle = File::open(&path).map_err(|error| refuse(error.to_string()))?;
        Ok(Self { path, handle: Arc::new(handle) })
    }
}

impl RealFolder {
    /// Opens a folder inside this one, by the names that lead to it. No link leads out.
    ///
    /// # Errors
    ///
    /// The system's own.
    #[cfg(target_os = "linux")]
    pub(super) fn inside(&self, names: &[&str]) -> std::io::Result<Self> {
        use rustix::fs::{Mode, OFlags, ResolveFlags};
        let within: PathBuf = std::iter::once(".").chain(names.iter().copied()).collect();
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat2(&*self.handle, &within, flags, Mode::empty(), beneath)?;
        Ok(Self { path: self.path.join(within), handle: Arc::new(File::from(handle)) })
    }

    /// The same by its path, where folders cannot be opened by their names alone.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn inside(&self, names: &[&str]) -> std::io::Result<Self> {
        let path = self.path.join(names.iter().collect::<PathBuf>()).canonicalize()?;
        if !path.starts_with(&self.path) || !path.is_dir() {
            return Err(std::io::ErrorKind::PermissionDenied.into());
        }
        let handle = File::open(&path)?;
        Ok(Self { path, handle: Arc::new(handle) })
    }
}

/// Whether one of two folders is the other or lies in it.
pub(crate) fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The real path of something that need not be there: what exists of it is resolved, the rest is appended.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                real.pop();
            }
            part => real.push(part),
        }
        if let Ok(resolved) = real.canonicalize() {
            real = resolved;
        }
    }
    real
}

/// The mounts that are windows into the host, and the usual places.
fn host_windows() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let listed = mounts.lines().filter_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let kind = kind.split(' ').next()?;
        HOST_WINDOWS.contains(&kind).then(|| PathBuf::from(place.split(' ').nth(4).unwrap_or_default()))
    });
    listed.chain(WINDOW_PATHS.map(PathBuf::from)).collect()
}
