//! Bundle files of the user: each installed bundle once, named by its manifest's digest, in the data directory.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use toolcrib::owner_only;

use super::release;

/// Maximum size of a bundle file in bytes.
const MAX_BYTES: u64 = toolcrib_bundle::MAX_ARCHIVE_SIZE;
/// Prefix of files that are not complete.
const TEMPORARY: &str = ".unfinished-";
/// Extension of bundle files.
const EXTENSION: &str = ".tar";

/// Folder of bundle files.
#[derive(Debug, Clone)]
pub struct BundleFolder(PathBuf);

impl BundleFolder {
    /// Names the folder without opening it.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the file of a bundle, which may be missing.
    pub fn file(&self, digest: &str) -> PathBuf {
        self.0.join(format!("{}{EXTENSION}", digest.replace(':', "-")))
    }

    /// Returns `true` if the bundle is stored and intact.
    pub fn has(&self, digest: &str) -> bool {
        let stored = release::open(&self.file(digest)).and_then(|mut bundle| {
            bundle.verify()?;
            Ok(bundle.digest().to_string())
        });
        stored.is_ok_and(|stored| stored == digest)
    }

    /// Copies a bundle file into the folder. The copy is complete and has this digest, or there is none.
    ///
    /// # Errors
    ///
    /// The file cannot be copied, or its content no longer has the digest.
    pub fn store(&self, file: &Path, digest: &str) -> anyhow::Result<PathBuf> {
        let target = self.file(digest);
        if self.has(digest) {
            return Ok(target);
        }
        let failed = || format!("cannot store the bundle in `{}`; nothing was changed", self.0.display());
        owner_only::create_folder(&self.0).with_context(failed)?;
        let mut copy = owner_only::temporary_file(&self.0, TEMPORARY).with_context(failed)?;
        let read = io::copy(&mut File::open(file)?.take(MAX_BYTES + 1), copy.as_file_mut()).with_context(failed)?;
        if read > MAX_BYTES {
            bail!("`{}` has more than the {MAX_BYTES} bytes allowed", file.display());
        }
        copy.as_file().sync_all().with_context(failed)?;
        let mut bundle = release::open(copy.path()).with_context(failed)?;
        bundle.verify().with_context(failed)?;
        if bundle.digest().to_string() != digest {
            bail!("`{}` changed while it was installed; nothing was changed", file.display());
        }
        owner_only::persist(copy, &target).with_context(failed)?;
        // A rename survives a crash once its folder is synced; some systems cannot sync folders.
        let _ = File::open(&self.0).and_then(|folder| folder.sync_all());
        Ok(target)
    }

    /// Removes bundle files that are not installed, and incomplete files that killed processes left. The caller holds
    /// the lock of all installations of this user.
    pub(crate) fn remove_except(&self, installed: &[&str]) -> io::Result<()> {
        let kept: Vec<PathBuf> = installed.iter().map(|digest| self.file(digest)).collect();
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_old = || {
                let modified = entry.metadata().and_then(|file| file.modified());
                modified.is_ok_and(|time| time.elapsed().unwrap_or_default() > Duration::from_hours(1))
            };
            let is_bundle = name.starts_with("sha256-") && name.ends_with(EXTENSION) && !kept.contains(&entry.path());
            if is_bundle || name.starts_with(TEMPORARY) && is_old() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}
