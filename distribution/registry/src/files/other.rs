//! Opening files on other systems. Access is governed by the folder in the user's profile.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

pub(crate) fn open_read(path: &Path) -> io::Result<File> {
    File::open(path)
}

pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is a symbolic link"));
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}
