//! Identity of a file or folder.

/// Device and inode of a file or folder, which are the same under all its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

#[cfg(unix)]
impl Identity {
    /// Reads the identity from the metadata of a file.
    #[allow(clippy::unnecessary_cast, reason = "the numbers have other types on other systems")]
    pub(crate) fn of(about: &rustix::fs::Stat) -> Self {
        Self { device: about.st_dev as u64, inode: about.st_ino as u64 }
    }
}

#[cfg(windows)]
impl Identity {
    /// Reads the identity from the information of an open file: the serial number of its volume and its index there.
    pub(crate) fn of(about: &winapi_util::file::Information) -> Self {
        Self { device: about.volume_serial_number(), inode: about.file_index() }
    }
}
