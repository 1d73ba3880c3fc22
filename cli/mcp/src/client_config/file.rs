//! A settings file on the disk: read with a limit, and replaced in one step with its mode. A link stays, and its target
//! file is replaced.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toolcrib::owner_only;
use toolcrib::policy::canonical;
use toolcrib_base::input;
use toolcrib_base::render::Advice;

/// Maximum size of a settings file, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Name prefix of temporary files.
const UNFINISHED: &str = ".toolcrib-";

/// Settings file, which need not exist.
#[derive(Debug)]
pub struct SettingsFile {
    /// Path without links.
    path: PathBuf,
    /// Text, if the file exists.
    text: Option<String>,
    /// `true` if a new file is for all users to read.
    is_for_all: bool,
}

impl SettingsFile {
    /// Reads a file; one that does not exist is empty.
    ///
    /// # Errors
    ///
    /// The path leads to anything but a file, or the file cannot be read, is too large or is not UTF-8.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let real = match canonical(path) {
            Ok(real) => real,
            Err(error) if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => {
                return Ok(Self { path: path.to_owned(), text: None, is_for_all: false });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let hint = "create the file or remove the link";
                return Err(Advice::new(format!("`{shown}` is a link to a file that does not exist"), hint).into());
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read `{shown}`")),
        };
        let text = Self::text_of(&real).with_context(|| format!("cannot read `{shown}`"))?;
        Ok(Self { path: real, text: Some(text), is_for_all: false })
    }

    /// Lets all users read the file and its folder if they are created.
    pub fn for_all(self) -> Self {
        Self { is_for_all: true, ..self }
    }

    fn text_of(path: &Path) -> anyhow::Result<String> {
        let bytes = input::regular_file(path, MAX_FILE_BYTES)?.context("no such file")?;
        String::from_utf8(bytes).context("the text is not UTF-8")
    }

    /// Path without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if the file existed when it was read.
    pub fn exists(&self) -> bool {
        self.text.is_some()
    }

    /// Text of the file; empty if it does not exist.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Replaces the file by one with this text and the same mode. A new file belongs to the user alone, unless it is
    /// [`SettingsFile::for_all`].
    ///
    /// # Errors
    ///
    /// The file may not be written, has changed since it was read, or cannot be replaced.
    pub fn replace(&self, text: &str) -> anyhow::Result<()> {
        let shown = self.path.display();
        let folder = self.path.parent().context("the path has no folder")?;
        self.write(folder, text).with_context(|| format!("cannot write `{shown}`: nothing was changed"))
    }

    fn write(&self, folder: &Path, text: &str) -> anyhow::Result<()> {
        if self.text.is_none() && !folder.is_dir() {
            fs::create_dir_all(folder)?;
            if self.is_for_all {
                mode::let_all_read(folder)?;
            }
        }
        let mut new = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        new.write_all(text.as_bytes())?;
        let Some(old) = &self.text else {
            if self.is_for_all {
                mode::let_all_read(new.path())?;
            }
            new.as_file().sync_all()?;
            new.persist_noclobber(&self.path)?;
            return Ok(());
        };
        let permissions = self.path.metadata()?.permissions();
        if permissions.readonly() {
            return Err(io::Error::from(ErrorKind::PermissionDenied)).context("the file is read-only");
        }
        new.as_file().set_permissions(permissions)?;
        new.as_file().sync_all()?;
        // Clients write their settings at any time.
        if Self::text_of(&self.path)? != *old {
            bail!("the file changed while it was edited; run the command again");
        }
        owner_only::persist(new, &self.path)?;
        Ok(())
    }
}

#[cfg(unix)]
mod mode {
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// Lets all users read a new file, or list a new folder, whatever the umask is.
    pub(super) fn let_all_read(path: &Path) -> io::Result<()> {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode))
    }
}

#[cfg(not(unix))]
mod mode {
    use std::io;
    use std::path::Path;

    /// A new file has the access list of its folder.
    #[expect(clippy::unnecessary_wraps, reason = "the other systems may fail")]
    pub(super) fn let_all_read(_: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn folder_with(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("settings.json");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn a_missing_file_is_empty_and_is_created_with_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/settings.json");
        let file = SettingsFile::read(&path).unwrap();
        assert_eq!(file.text(), "");
        file.replace("{}\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
        assert!(file.replace("{}\n").is_err(), "a file that appeared in the meantime stays");
    }

    #[test]
    fn a_file_that_changed_in_the_meantime_stays() {
        let (_folder, path) = folder_with("{}");
        let file = SettingsFile::read(&path).unwrap();
        fs::write(&path, "{\"new\": 1}").unwrap();
        let error = format!("{:#}", file.replace("{\"mine\": 1}").unwrap_err());
        assert!(error.contains("the file changed while it was edited"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"new\": 1}");
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn too_large_a_file_and_other_bytes_are_refused() {
        let (folder, path) = folder_with("");
        File::options().write(true).open(&path).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let error = format!("{:#}", SettingsFile::read(&path).unwrap_err());
        assert!(error.contains("larger than the 16777216 bytes allowed"), "{error}");
        fs::write(&path, b"{\"a\": \"\xff\"}").unwrap();
        assert!(format!("{:#}", SettingsFile::read(&path).unwrap_err()).contains("not UTF-8"));
        assert!(format!("{:#}", SettingsFile::read(folder.path()).unwrap_err()).contains("not a regular file"));
    }
}
