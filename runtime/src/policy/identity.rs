//! Identity of a file or folder.

/// Device and inode of a file or folder, which are the same under all its names.
/// Volumes of Windows with ReFS need all bits of the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u128,
}

#[cfg(unix)]
impl Identity {
    /// Returns the identity with these numbers.
    #[cfg(target_os = "linux")]
    pub(crate) fn new(device: u64, inode: u64) -> Self {
        Self { device, inode: inode.into() }
    }

    /// Reads the identity from the metadata of a file.
    #[allow(clippy::unnecessary_cast, reason = "the numbers have other types on other systems")]
    pub(crate) fn of(about: &rustix::fs::Stat) -> Self {
        Self { device: about.st_dev as u64, inode: about.st_ino as u128 }
    }
}

#[cfg(windows)]
impl Identity {
    /// Finds an open file's identity: the serial number of its volume and its number there.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(crate) fn of(file: &std::fs::File) -> std::io::Result<Self> {
        let found = toolcrib_windows_files::identity(file)?;
        Ok(Self { device: found.volume, inode: found.number })
    }

    /// Finds the identity of an open file, and returns `true` with it if the file has several names.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(crate) fn of_linked(file: &std::fs::File) -> std::io::Result<(Self, bool)> {
        Ok((Self::of(file)?, winapi_util::file::information(file)?.number_of_links() > 1))
    }
}
