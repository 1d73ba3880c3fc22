//! Protection of key files by owner and access list on Windows.

use std::{fs::File, io, path::Path};

use tempfile::{Builder, NamedTempFile};
use toolcrib_windows_files::{PrivateOptions, access::OtherAccess};

use crate::error::Error;

/// Opens a file for reading. Neither a link is followed nor a device or a pipe opened.
pub(super) fn open(path: &Path) -> io::Result<File> {
    PrivateOptions::new().read(true).open(path)
}

/// Accepts only a regular file of the current user. Only the system and the administrators may have access too.
pub(super) fn check(file: &File, path: &Path) -> Result<(), Error> {
    toolcrib_windows_files::check(file, OtherAccess::None).map_err(|refused| match refused.kind() {
        io::ErrorKind::PermissionDenied => Error::KeyFile {
            path: path.into(),
            expected: "a file of the current user without access for others",
            found: refused.to_string(),
        },
        _ => Error::File { action: "read", path: path.into(), source: refused },
    })
}

/// Creates a temporary file for the user alone.
pub(super) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    toolcrib_windows_files::temporary(&Builder::new(), folder)
}

/// Gives a complete temporary file its final name, which must be free.
pub(super) fn persist_new(file: NamedTempFile, path: &Path) -> io::Result<()> {
    toolcrib_windows_files::persist_new(file, path).map(drop).map_err(|(error, _)| error)
}

#[cfg(test)]
mod tests {
    use super::super::{read_key_file, write_key_file};

    #[test]
    fn a_written_key_is_private_and_is_read_back_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_key_file(&path, b"secret").unwrap();
        assert_eq!(read_key_file(&path).unwrap().as_bytes(), b"secret");
        assert!(write_key_file(&path, b"other").is_err());
        assert_eq!(read_key_file(&path).unwrap().as_bytes(), b"secret");
        assert!(read_key_file(folder.path()).is_err() && read_key_file(std::path::Path::new("NUL")).is_err());
    }
}
