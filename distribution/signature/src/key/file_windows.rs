//! Key files on Windows: their protection is inherited from the folder, and a profile's folder is private.

use std::{fs::File, io, path::Path};

use crate::error::Error;

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Accepts only a regular file.
pub(super) fn check(file: &File, path: &Path) -> Result<(), Error> {
    let metadata = file.metadata().map_err(|source| Error::File { action: "read", path: path.into(), source })?;
    if metadata.is_file() {
        return Ok(());
    }
    Err(Error::KeyFile { path: path.into(), expected: "a regular file", found: "something else".to_owned() })
}
