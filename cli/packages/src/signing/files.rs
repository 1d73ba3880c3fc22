//! Small files of signatures and public keys: bounded reading, and writing that leaves the old or the new content.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use tempfile::NamedTempFile;
use toolcrib::owner_only;

/// Reads a regular file of at most `max` bytes; `None` if there is none.
///
/// # Errors
///
/// The file cannot be read, is longer, or is not a regular file.
pub(super) fn read(path: &Path, max: usize) -> anyhow::Result<Option<Vec<u8>>> {
    let shown = path.display();
    // Judged before it is opened: opening a pipe would wait for its writer.
    match fs::metadata(path) {
        Ok(metadata) => ensure!(metadata.is_file(), "`{shown}` is not a regular file"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{shown}`")),
    }
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read `{shown}`"))?;
    file.take(max as u64 + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read `{shown}`"))?;
    ensure!(bytes.len() <= max, "`{shown}` is too large: the limit is {max} bytes");
    Ok(Some(bytes))
}

/// Creates a file with the permissions of the user's other files. An existing file is never replaced.
///
/// # Errors
///
/// The file exists or cannot be written.
pub fn create(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let written = written(path, content)?;
    written.persist_noclobber(path).map(drop).with_context(|| format!("cannot create `{}`", path.display()))
}

/// Creates or replaces a file.
///
/// # Errors
///
/// The file cannot be written.
pub fn replace(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let written = written(path, content)?;
    owner_only::persist(written, path).map(drop).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Writes the content to a temporary file in the same folder.
fn written(path: &Path, content: &[u8]) -> anyhow::Result<NamedTempFile<File>> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut file = tempfile::Builder::new().make_in(folder, |path| File::create_new(path))?;
        file.as_file_mut().write_all(content)?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().map_err(|error: io::Error| anyhow::Error::new(error).context(format!("cannot write `{}`", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_created_replaced_and_read_within_their_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        assert!(read(&path, 3).expect("no file").is_none());
        create(&path, b"abc").expect("a new file");
        assert!(create(&path, b"x").is_err());
        assert_eq!(read(&path, 3).expect("a file"), Some(b"abc".to_vec()));
        assert!(read(&path, 2).is_err());
        replace(&path, b"x").expect("an existing file");
        assert_eq!(read(&path, 3).expect("a file"), Some(b"x".to_vec()));
        assert!(read(folder.path(), 3).is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "no temporary file is left");
    }
}
