//! Private files on Unix: by owner and mode.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::{Builder, NamedTempFile};

use crate::SharedAccess;

/// Options that open a file.
pub use std::fs::OpenOptions as Options;

/// Creates a folder and its missing parents with mode 0700.
///
/// # Errors
///
/// The error of the system.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(without_trailing_slash(folder))
}

/// Returns `true` if an open file is still the one at a path.
pub fn is_file_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.metadata()) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Refuses a path that is a link, belongs to someone else or can be written by someone else.
///
/// # Errors
///
/// The reason, or the error of the system.
pub fn refuse_shared(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(without_trailing_slash(path))?;
    match is_own(&metadata) && metadata.mode() & 0o022 == 0 && !metadata.is_symlink() {
        true => Ok(()),
        false => Err(io::Error::other("it is a link, or belongs to or can be written by someone else")),
    }
}

/// Refuses a folder in which other users could replace files. Links to it are followed.
///
/// # Errors
///
/// The reason, or the error of the system.
pub fn refuse_shared_target(folder: &Path) -> io::Result<()> {
    let metadata = fs::metadata(folder)?;
    match is_own(&metadata) && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => {
            let folder = folder.display();
            Err(io::Error::other(format!("its folder `{folder}` belongs to or can be written by someone else")))
        }
    }
}

/// Checks that an open file is a regular one of this user, without further access by others.
///
/// # Errors
///
/// [`ErrorKind::PermissionDenied`] with the reason, or the error of the system.
pub fn check_file(file: &File, shared: SharedAccess) -> io::Result<()> {
    let metadata = file.metadata()?;
    // A refusal says nothing about the content, which may be intact.
    let refuse = |reason: String| Err(io::Error::new(ErrorKind::PermissionDenied, reason));
    if !metadata.is_file() {
        return refuse("it is not a regular file".to_owned());
    }
    if !is_own(&metadata) {
        return refuse(format!("it belongs to user {}", metadata.uid()));
    }
    let (refused, access) = match shared {
        SharedAccess::None => (0o077, "read or write"),
        SharedAccess::Read => (0o022, "write"),
    };
    let mode = metadata.mode() & 0o777;
    match mode & refused {
        0 => Ok(()),
        _ => refuse(format!("other users may {access} it (its mode is {mode:04o}): run `chmod 600` on it")),
    }
}

/// Options that create files with mode 0600, follow no symbolic link at the path, and do not block on a FIFO.
pub fn options() -> Options {
    let mut options = Options::new();
    options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Opens a file for reading. Links are followed, and neither a FIFO nor a terminal takes effect.
///
/// # Errors
///
/// The error of the system.
pub fn open_linked(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    Options::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Creates a temporary file with mode 0600, as the library does by itself.
///
/// # Errors
///
/// The error of the system.
pub fn temporary(builder: &Builder<'_, '_>, folder: &Path) -> io::Result<NamedTempFile> {
    builder.tempfile_in(folder)
}

/// Gives a complete temporary file its final name, in place of the file that has it.
///
/// # Errors
///
/// The error of the system.
pub fn persist(file: NamedTempFile, path: &Path) -> io::Result<File> {
    file.persist(path).map_err(|failed| failed.error)
}

/// Gives a complete temporary file its final name, which must be free.
///
/// # Errors
///
/// The error of the system, with the file.
pub fn persist_new(file: NamedTempFile, path: &Path) -> Result<File, (io::Error, NamedTempFile)> {
    file.persist_noclobber(path).map_err(|failed| (failed.error, failed.file))
}

/// Renames a file or folder over another.
///
/// # Errors
///
/// The error of the system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// With a slash at its end, the path of a link names the link's target.
fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}
