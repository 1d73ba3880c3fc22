//! Opening files on Windows: a private file has an access list of its own, is never a link, and is judged by its handle.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::NamedTempFile;
use toolcrib_windows_files::access::OtherAccess;
use toolcrib_windows_files::{PrivateOptions, check, patience};

pub(crate) use toolcrib_windows_files::{create_folder as create_private_folder, temporary};

pub(crate) fn open_read(path: &Path) -> io::Result<File> {
    File::open(path)
}

pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let file = PrivateOptions::new().read(true).write(true).create(true).open(path)?;
    check(&file, OtherAccess::Read)?;
    Ok(file)
}

/// Gives a complete temporary file its final name, in place of the file that has it.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    toolcrib_windows_files::persist(file, path).map(drop)
}

/// Renames a file over another, and waits for a program that holds one of the two open.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    patience::patiently(|| std::fs::rename(from, to))
}
