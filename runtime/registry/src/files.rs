//! Files of the caller: opened first, judged by their handle, read within a bound, replaced in one step.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use toolcrib_private_files::{SharedAccess, check_file, create_folder, open_linked, options, persist, temporary};
use zeroize::Zeroizing;

/// Result of a bounded read.
pub(crate) enum Bounded {
    /// The whole content.
    Content(Zeroizing<Vec<u8>>),
    /// The file does not exist.
    Missing,
    /// The path leads to something other than a regular file.
    NotAFile,
    /// The file is larger than the limit.
    TooLarge,
}

/// Reads a regular file of at most `limit` bytes. The content is overwritten in memory when it is dropped.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Bounded> {
    let file = match open_linked(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Bounded::Missing),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Bounded::NotAFile);
    }
    if metadata.len() > limit {
        return Ok(Bounded::TooLarge);
    }
    // The full capacity at once: growth would leave copies of the content behind.
    let mut content =
        Zeroizing::new(Vec::with_capacity(usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1)));
    file.take(limit + 1).read_to_end(&mut content)?;
    Ok(if content.len() as u64 > limit { Bounded::TooLarge } else { Bounded::Content(content) })
}

/// Opens a regular file for reading.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = open_linked(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Opens or creates a regular file of this user for reading and writing. A symbolic link is refused.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let file = options().read(true).write(true).create(true).truncate(false).open(path)?;
    check_file(&file, SharedAccess::Read)?;
    Ok(file)
}

/// Replaces a file in one step with content that its owner alone may read. Links are followed to the file.
pub(crate) fn replace_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = match std::fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder(folder)?;
    let mut file = temporary(tempfile::Builder::new().prefix(".toolcrib-"), folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    persist(file, &target).map(drop)
}
