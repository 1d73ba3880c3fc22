//! Facts about an entry of a folder, as it was when it was seen.

use cap_std::fs::{Metadata, MetadataExt};
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

use crate::types::EntryKind;

impl EntryKind {
    pub(crate) fn of(kind: cap_std::fs::FileType) -> Self {
        match kind {
            kind if kind.is_file() => Self::File,
            kind if kind.is_dir() => Self::Folder,
            kind if kind.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

/// Entry as it was when it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Kind.
    pub kind: EntryKind,
    /// Number of the device.
    pub device: u64,
    /// Number of the entry on its device.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time at which the content last changed, in nanoseconds since 1970.
    pub modified: i128,
    /// Time at which the content or its facts last changed, in nanoseconds since 1970.
    pub changed: i128,
    /// Time of the last access, in nanoseconds since 1970.
    #[serde(skip)]
    pub accessed: i128,
    /// Permissions.
    pub mode: u32,
    /// Owner and group.
    pub owner: (u32, u32),
    /// Number of names.
    pub names: u64,
}

impl About {
    pub(crate) fn of(found: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            kind: EntryKind::of(found.file_type()),
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: nanoseconds(found.mtime(), found.mtime_nsec()),
            changed: nanoseconds(found.ctime(), found.ctime_nsec()),
            accessed: nanoseconds(found.atime(), found.atime_nsec()),
            mode: found.mode() & 0o7777,
            owner: (found.uid(), found.gid()),
            names: found.nlink(),
        }
    }

    #[allow(clippy::unnecessary_cast, reason = "the numbers have other types on other systems")]
    pub(crate) fn of_stat(found: &Stat) -> Self {
        let nanoseconds = |seconds, rest| i128::from(seconds as i64) * 1_000_000_000 + i128::from(rest as i64);
        Self {
            kind: match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Folder,
                FileType::Symlink => EntryKind::Link,
                _ => EntryKind::Other,
            },
            device: found.st_dev as u64,
            inode: found.st_ino as u64,
            size: found.st_size as u64,
            modified: nanoseconds(found.st_mtime, found.st_mtime_nsec),
            changed: nanoseconds(found.st_ctime, found.st_ctime_nsec),
            accessed: nanoseconds(found.st_atime, found.st_atime_nsec),
            mode: found.st_mode as u32 & 0o7777,
            owner: (found.st_uid, found.st_gid),
            names: found.st_nlink as u64,
        }
    }

    /// Device and number.
    pub(crate) fn file(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns `true` if both are one entry of the file system, whatever happened to its content.
    pub(crate) fn is_same_entry(&self, other: &Self) -> bool {
        (self.kind, self.device, self.inode) == (other.kind, other.device, other.inode)
    }

    /// Returns `true` if both are one entry, and nobody changed its content. A folder's entries are not its content here.
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        self.is_same_entry(other)
            && (self.kind == EntryKind::Folder || (self.size, self.modified) == (other.size, other.modified))
    }
}
