//! Opening files on Unix: a named pipe does not block, and a partial file is never a link.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use tempfile::{Builder, NamedTempFile};

pub(crate) fn open_read(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)
}

pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a temporary file with mode 0600, as the library does by itself.
pub(crate) fn temporary(builder: &Builder<'_, '_>, folder: &Path) -> io::Result<NamedTempFile> {
    builder.tempfile_in(folder)
}

/// Gives a complete temporary file its final name, in place of the file that has it.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.persist(path).map(drop).map_err(|failed| failed.error)
}

/// Renames a file over another.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}
