//! The file `toolcrib.lock`: of a folder, or of the user for all folders. It is read whole and replaced whole.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toolcrib::owner_only;
use toolcrib::policy::real_path;
use toolcrib_base::render;

use super::lock::Lock;
use super::lock_reader::MAX_LOCK_BYTES;

/// Name of the file.
pub const LOCK_FILE: &str = "toolcrib.lock";
/// Prefix of the temporary file that replaces it.
const TEMPORARY: &str = ".toolcrib.lock-";

/// A lock file. It may be missing, and is then empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFile {
    /// Real path of its folder.
    folder: PathBuf,
    /// `true` for the bundles of the user.
    pub is_global: bool,
}

impl LockFile {
    /// Names the lock file of a folder, which exists or can be created.
    pub(crate) fn new(folder: &Path, is_global: bool) -> Self {
        Self { folder: real_path(folder), is_global }
    }

    /// Real path of the folder of the lock, which paths in it are relative to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of the file.
    pub fn path(&self) -> PathBuf {
        self.folder.join(LOCK_FILE)
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or has a mistake.
    pub fn read(&self) -> anyhow::Result<Lock> {
        let path = self.path();
        let name = render::from_here(&path).display().to_string();
        match path.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => return Ok(Lock::default()),
            Ok(file) if !file.is_file() => bail!("cannot read the lock `{name}`: not a regular file"),
            _ => {}
        }
        let mut text = String::new();
        let read = |text: &mut String| File::open(&path)?.take(MAX_LOCK_BYTES + 1).read_to_string(text);
        read(&mut text).with_context(|| format!("cannot read the lock `{name}`"))?;
        Lock::parse(&name, &text)
    }

    /// Returns the text of a lock, which [`LockFile::read`] accepts.
    ///
    /// # Errors
    ///
    /// The lock exceeds a limit, or two of its tools have one name.
    pub(crate) fn checked(&self, lock: &Lock) -> anyhow::Result<String> {
        let text = lock.text();
        let name = render::from_here(&self.path()).display().to_string();
        match Lock::parse(&name, &text).context("the bundle does not fit into the lock; nothing was changed")? {
            read if read == *lock => Ok(text),
            _ => bail!("`{name}` would be read differently; nothing was changed"),
        }
    }

    /// Replaces the file, or leaves it unchanged on failure.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn write(&self, lock: &Lock) -> anyhow::Result<()> {
        let path = self.path();
        let text = self.checked(lock)?;
        let write = || {
            fs::create_dir_all(&self.folder)?;
            self.remove_abandoned();
            let mut file = builder().tempfile_in(&self.folder)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            owner_only::persist(file, &path)?;
            // A rename survives a crash once its folder is synced; some systems cannot sync folders.
            let _ = File::open(&self.folder).and_then(|folder| folder.sync_all());
            io::Result::Ok(())
        };
        write().with_context(|| format!("cannot write `{}`", render::from_here(&path).display()))
    }

    /// Removes the file.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        let path = self.path();
        fs::remove_file(&path).with_context(|| format!("cannot remove `{}`", render::from_here(&path).display()))
    }

    /// Removes temporary files of processes that were killed. The caller holds the lock of all installations of this user.
    fn remove_abandoned(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY));
            if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                // A file that stays only takes space.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// A temporary file that other users may read, like other files of a project.
#[cfg(unix)]
fn builder() -> tempfile::Builder<'static, 'static> {
    use std::os::unix::fs::PermissionsExt;
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY).permissions(fs::Permissions::from_mode(0o666));
    builder
}

#[cfg(not(unix))]
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    builder
}
