//! Files that are written beside their final path and then renamed, so that the path holds the old or the whole new content.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;
use toolcrib::owner_only;

/// Prefix of temporary files.
const TEMPORARY: &str = ".toolcrib-";

/// Users that can read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The user alone.
    Owner,
    /// The same as for the user's other files.
    Default,
}

/// Returns the folder of a path; `.` for a name alone.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a file. An existing file is never replaced.
///
/// # Errors
///
/// The file exists or cannot be written.
pub fn create(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    Ok(written(path, content, readers)?.persist_noclobber(path).map(drop)?)
}

/// Creates or replaces a file.
///
/// # Errors
///
/// The file cannot be written.
pub fn replace(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    owner_only::persist(written(path, content, readers)?, path).map(drop)
}

/// Writes the content to a temporary file in the folder of a path.
fn written(path: &Path, content: &[u8], readers: Readers) -> io::Result<NamedTempFile> {
    let folder = folder_of(path);
    let mut file = match readers {
        Readers::Owner => owner_only::temporary_file(folder, TEMPORARY)?,
        Readers::Default => {
            tempfile::Builder::new().prefix(TEMPORARY).make_in(folder, |path| File::create_new(path))?
        }
    };
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_created_and_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        create(&path, b"abc", Readers::Default).unwrap();
        assert_eq!(create(&path, b"x", Readers::Owner).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"abc");
        for readers in [Readers::Owner, Readers::Default] {
            replace(&path, b"x", readers).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"x");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_the_owner_is_for_nobody_else() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        create(&path, b"abc", Readers::Owner).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
