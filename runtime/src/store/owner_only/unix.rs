//! Files and folders with owner-only rights on Unix: by owner and mode.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::{Builder, NamedTempFile};

use super::SharedAccess;

pub(super) use std::fs::OpenOptions as Options;

pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(without_trailing_slash(folder))
}

/// Refuses a path that is a link, belongs to someone else or can be written by someone else.
pub(super) fn refuse_shared(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(without_trailing_slash(path))?;
    match is_own(&metadata) && metadata.mode() & 0o022 == 0 && !metadata.is_symlink() {
        true => Ok(()),
        false => Err(io::Error::other("it is a link, or belongs to or can be written by someone else")),
    }
}

/// Refuses a folder in which other users could replace files. Links to it are followed.
pub(super) fn refuse_shared_target(folder: &Path) -> io::Result<()> {
    let metadata = fs::metadata(folder)?;
    match is_own(&metadata) && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => {
            let folder = folder.display();
            Err(io::Error::other(format!("its folder `{folder}` belongs to or can be written by someone else")))
        }
    }
}

/// Checks the type, the owner and the mode of an open file.
pub(super) fn check_file(file: &File, shared: SharedAccess) -> io::Result<()> {
    let metadata = file.metadata()?;
    // A refusal says nothing about the content, which may be intact.
    let refuse = |reason: String| Err(io::Error::new(ErrorKind::PermissionDenied, reason));
    if !metadata.is_file() || !is_own(&metadata) {
        return refuse("it is not a regular file, or it belongs to someone else".to_owned());
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

pub(super) fn options() -> Options {
    let mut options = Options::new();
    options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

/// Creates a temporary file with mode 0600, as the library does by itself.
pub(super) fn temporary(builder: &Builder<'_, '_>, folder: &Path) -> io::Result<NamedTempFile> {
    builder.tempfile_in(folder)
}

/// Gives a complete temporary file its final name, in place of the file that has it.
pub(super) fn persist(file: NamedTempFile, path: &Path) -> io::Result<File> {
    file.persist(path).map_err(|failed| failed.error)
}

/// Gives a complete temporary file its final name, which must be free.
pub(super) fn persist_new(file: NamedTempFile, path: &Path) -> Result<File, (io::Error, NamedTempFile)> {
    file.persist_noclobber(path).map_err(|failed| (failed.error, failed.file))
}

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// With a slash at its end, the path of a link names the link's target.
fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}
