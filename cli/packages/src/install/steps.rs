//! Installation and removal in steps. Each step leaves the old or the new state if the process ends after it.
//!
//! | step | install, update | remove |
//! |---|---|---|
//! | 1 | the bundle file is stored under its digest | the lock is replaced, or removed with its last bundle: the bundle is no longer available |
//! | 2 | the agreement is recorded beside an earlier one | the agreements are removed |
//! | 3 | the lock is replaced: the new release is available | the file is removed |
//! | 4 | the earlier agreement and its file are removed | |
//!
//! A bundle is available if the lock names it and an agreement of the same digest exists, so step 3 and step 1 decide. The
//! others leave a file or an agreement that nothing uses, and that the next step 4 removes.

use jiff::Timestamp;
use toolcrib::owner_only::FileLock;
use toolcrib_base::render;

use super::bundle_folder::BundleFolder;
use super::lock::{Lock, LockedBundle};
use super::lock_file::LockFile;
use super::records::{InstallRecords, Installation};
use super::release::Release;

/// Stores of installations.
#[derive(Debug, Clone)]
pub struct Installer {
    /// Records of the user.
    pub records: InstallRecords,
    /// Folder of installed bundles.
    pub bundles: BundleFolder,
}

impl Installer {
    /// Installs a release in place of an earlier one with its name. With `keeps_lock`, the lock names the release
    /// already and is not written. The caller holds the lock of installations.
    ///
    /// # Errors
    ///
    /// A step failed. Nothing changed then, except for files that nothing uses.
    pub fn install(
        &self,
        _lock: &FileLock,
        place: &LockFile,
        release: &Release,
        entry: LockedBundle,
        keeps_lock: bool,
    ) -> anyhow::Result<()> {
        let mut lock = place.read()?;
        let writes_lock = !keeps_lock && lock.bundle(&entry.name) != Some(&entry);
        if writes_lock {
            lock.insert(entry.clone());
            place.checked(&lock)?;
        }
        self.bundles.store(&release.file, &entry.digest)?;
        let (name, digest) = (entry.name.clone(), entry.digest.clone());
        let (review, agreed) = (release.review.clone(), Timestamp::now());
        self.records.add(Installation { lock: place.path(), bundle: entry.clone(), review, agreed })?;
        if writes_lock {
            place.write(&lock)?;
        }
        self.records.remove(place, &name, Some(&digest))?;
        self.remove_unused();
        Ok(())
    }

    /// Removes a bundle. Returns `false` if it is neither in the lock nor on record. The caller holds the lock of
    /// installations.
    ///
    /// # Errors
    ///
    /// A step failed.
    pub fn remove(&self, _lock: &FileLock, place: &LockFile, name: &str) -> anyhow::Result<bool> {
        let mut lock: Lock = place.read()?;
        let is_locked = lock.remove(name);
        match (is_locked, lock.bundles.is_empty()) {
            (false, _) => {}
            // The folder is as it was before the first installation.
            (true, true) => place.remove()?,
            (true, false) => place.write(&lock)?,
        }
        let recorded = self.records.remove(place, name, None)?;
        self.remove_unused();
        Ok(is_locked || recorded > 0)
    }

    /// Removes files that no agreement names. Files that stay only take space.
    fn remove_unused(&self) {
        let removed = self.records.read().and_then(|all| {
            let digests: Vec<&str> = all.iter().map(|it| it.bundle.digest.as_str()).collect();
            Ok(self.bundles.remove_except(&digests)?)
        });
        if let Err(error) = removed {
            render::warning(&format!("unused bundle files were not removed: {}", render::message(&error)));
        }
    }
}
