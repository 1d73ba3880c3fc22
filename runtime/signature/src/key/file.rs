//! Files with secret keys.
//!
//! A file is opened first and judged by its handle, so that no swap between the check and the reading matters.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _, Write as _},
    path::Path,
};

use toolcrib_private_files::{SharedAccess, check_file, open_linked, persist_new, temporary};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::limits::MAX_PART_BYTES;

/// Content of a file with a secret key; erased when dropped.
pub struct KeyFile(Zeroizing<Vec<u8>>);

impl KeyFile {
    /// Returns the bytes of the file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile").field("bytes", &self.0.len()).finish_non_exhaustive()
    }
}

/// Reads a file with a secret key that only its owner, the current user, can access.
///
/// On Windows the owner and the access list are judged: the system and the administrators may have access.
///
/// # Errors
/// [`Error::File`] when the file cannot be opened or read; [`Error::KeyFile`] when it is not a regular file, belongs to
/// another user or gives any access to others; [`Error::Limit`] over [`MAX_PART_BYTES`].
pub fn read_key_file(path: &Path) -> Result<KeyFile, Error> {
    let file = open_linked(path).map_err(|source| Error::File { action: "open", path: path.into(), source })?;
    check_file(&file, SharedAccess::None).map_err(|refused| match refused.kind() {
        io::ErrorKind::PermissionDenied => Error::KeyFile { path: path.into(), reason: refused.to_string() },
        _ => Error::File { action: "read", path: path.into(), source: refused },
    })?;
    read(&file, path)
}

fn read(file: &File, path: &Path) -> Result<KeyFile, Error> {
    // Allocated once: growth would leave copies of the secret behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_PART_BYTES + 1));
    file.take(MAX_PART_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|source| Error::File {
        action: "read",
        path: path.into(),
        source,
    })?;
    Error::limit("key file, bytes", bytes.len(), MAX_PART_BYTES)?;
    Ok(KeyFile(bytes))
}

/// Creates a file with a secret key that only the current user can access; an existing file is never replaced.
///
/// The file appears under its name complete, or not at all.
///
/// # Errors
/// [`Error::File`] when the file exists or cannot be created, written or flushed to the disk.
pub fn write_key_file(path: &Path, content: &[u8]) -> Result<(), Error> {
    Error::limit("key file, bytes", content.len(), MAX_PART_BYTES)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut file = temporary(&tempfile::Builder::new(), folder)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        persist_new(file, path).map_err(|(error, _)| error)
    };
    write().map(drop).map_err(|source| Error::File { action: "write", path: path.into(), source })
}
