//! Version of a file: its times, its inode and its size. A change is noticed without reading the file: a program can set the time of
//! modification back, but neither the inode nor the change time.

use std::fs::Metadata;
use std::time::SystemTime;

/// Version of a file or folder. Different versions mean that it may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileVersion {
    /// File size in bytes; 0 for a folder, as a folder's size depends on its file system.
    bytes: u64,
    modified: Option<SystemTime>,
    own: [u64; 4],
}

impl FileVersion {
    /// Returns the version of a file or folder.
    pub fn of(about: &Metadata) -> Self {
        let bytes = if about.is_file() { about.len() } else { 0 };
        Self { bytes, modified: about.modified().ok(), own: system::own(about) }
    }
}

#[cfg(unix)]
mod system {
    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt;

    /// Device, inode, and the time of its last change.
    pub(super) fn own(about: &Metadata) -> [u64; 4] {
        [about.dev(), about.ino(), about.ctime().cast_unsigned(), about.ctime_nsec().cast_unsigned()]
    }
}

#[cfg(windows)]
mod system {
    use std::fs::Metadata;
    use std::os::windows::fs::MetadataExt;

    /// Time of creation, and attributes: the system reports the rest only for open files.
    pub(super) fn own(about: &Metadata) -> [u64; 4] {
        [about.creation_time(), u64::from(about.file_attributes()), 0, 0]
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn a_change_is_noticed_although_size_and_time_are_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one").unwrap();
        let before = fs::metadata(&path).unwrap();
        let version = FileVersion::of(&before);
        assert_eq!(FileVersion::of(&fs::metadata(&path).unwrap()), version);
        fs::write(folder.path().join("b"), "two").unwrap();
        fs::rename(folder.path().join("b"), &path).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.len(), after.modified().unwrap()), (before.len(), before.modified().unwrap()));
        assert_ne!(FileVersion::of(&after), version);
    }
}
