//! Protection of key files by Unix owner and mode.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use tempfile::NamedTempFile;

use crate::error::Error;

/// Opens a file for reading. A pipe or a device does not block.
pub(super) fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// Accepts only a regular file of the current user without permissions for group and others.
pub(super) fn check(file: &File, path: &Path) -> Result<(), Error> {
    let metadata = file.metadata().map_err(|source| Error::File { action: "read", path: path.into(), source })?;
    let refuse = |expected, found| Err(Error::KeyFile { path: path.into(), expected, found });
    if !metadata.is_file() {
        return refuse("a regular file", "something else".to_owned());
    }
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return refuse("a file of the current user", format!("a file of user {}", metadata.uid()));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return refuse("no permission for group and others (mode 0600)", format!("mode {mode:04o}"));
    }
    Ok(())
}

/// Creates a temporary file with mode 0600, as the library does by itself.
pub(super) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    NamedTempFile::new_in(folder)
}

/// Gives a complete temporary file its final name, which must be free.
pub(super) fn persist_new(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.persist_noclobber(path).map(drop).map_err(|failed| failed.error)
}
