//! Key files on systems whose permissions are not known: every file is refused.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

use crate::error::Error;

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Creates a file.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Refuses every file.
pub(super) fn check(_: &File, path: &Path) -> Result<(), Error> {
    Err(Error::KeyFile {
        path: path.into(),
        expected: "a file that only its owner can read",
        found: "a system whose file permissions cannot be checked".to_owned(),
    })
}
