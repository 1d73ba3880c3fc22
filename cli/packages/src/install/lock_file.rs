//! The file `toolcrib.lock`: in a folder, or the user's for all folders. It is read whole and replaced whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toolcrib::owner_only;
use toolcrib::policy::real_path;
use toolcrib_base::{input, render};

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

    /// Real path of the lock's folder, which paths in it are relative to.
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
        match input::regular_file(&path, MAX_LOCK_BYTES).with_context(|| format!("cannot read the lock `{name}`"))? {
            None if path.is_symlink() => bail!("cannot read the lock `{name}`: a link to a file that does not exist"),
            None => Ok(Lock::default()),
            Some(bytes) => {
                let text = String::from_utf8(bytes).ok().context("the text is not UTF-8");
                Lock::parse(&name, &text.with_context(|| format!("cannot read the lock `{name}`"))?)
            }
        }
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
            let fresh = |path: &Path| File::create_new(path);
            let mut file = tempfile::Builder::new().prefix(TEMPORARY).make_in(&self.folder, fresh)?;
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
