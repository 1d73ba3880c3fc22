//! The user's own records of installations, in the state directory: agreed bundles with their grants, and the times at which
//! releases were first seen. A lock counts only as far as these records agree with it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolcrib::ListFile;
use toolcrib::owner_only::{FileLock, OwnerOnlyFile, SharedAccess};
use toolcrib_base::render::Advice;

use super::lock::LockedBundle;
use super::lock_file::LockFile;

/// Maximum size of a file in bytes.
const MAX_BYTES: u64 = 32 << 20;
/// Maximum number of releases with a known first time. The oldest are forgotten, and then count as new.
const MAX_SEEN: usize = 8192;
/// Maximum wait for another process that installs.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Bundle that the user agreed to at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installation {
    /// Lock file that the agreement is for.
    pub(crate) lock: PathBuf,
    /// Bundle as its lock has it.
    pub bundle: LockedBundle,
    /// Digest of the review that trust pins, as `sha256:HEX`.
    pub(crate) review: String,
    /// Time of the agreement.
    pub(crate) agreed: Timestamp,
}

/// First time at which this user saw a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeenRelease {
    digest: String,
    first: Timestamp,
}

/// The records.
#[derive(Debug, Clone)]
pub struct InstallRecords {
    installed: ListFile<Installation>,
    seen: ListFile<SeenRelease>,
    lock: OwnerOnlyFile,
}

impl InstallRecords {
    /// Names the records in the user's state directory.
    pub(crate) fn folder(folder: &Path) -> Self {
        Self {
            installed: ListFile::new(folder.join("installed.json"), "installed", MAX_BYTES),
            seen: ListFile::new(folder.join("releases.json"), "seen", MAX_BYTES),
            lock: OwnerOnlyFile::new(folder.join("installing"), 0, SharedAccess::Read),
        }
    }

    /// Waits until no other process of this user installs.
    ///
    /// # Errors
    ///
    /// The state directory cannot be written, or another process installs for longer than a minute.
    pub fn lock(&self) -> anyhow::Result<FileLock> {
        let hint = "wait until the other `toolcrib install`, `update` or `remove` has ended";
        let failed = || Advice::new("cannot take the lock of installations", hint);
        self.lock.lock(MAX_WAIT).with_context(failed)
    }

    /// Reads all installations, oldest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read or parsed, or can be written by other users.
    pub fn read(&self) -> anyhow::Result<Vec<Installation>> {
        self.installed.read().with_context(|| self.unreadable())
    }

    /// Adds an installation, in place of one with the same bundle file and place.
    ///
    /// # Errors
    ///
    /// As for [`InstallRecords::read`], and if the file cannot be written.
    pub(crate) fn add(&self, installation: Installation) -> anyhow::Result<()> {
        let change = |all: &mut Vec<Installation>| {
            all.retain(|other| {
                other.lock != installation.lock
                    || other.bundle.name != installation.bundle.name
                    || other.bundle.digest != installation.bundle.digest
            });
            all.push(installation);
        };
        self.installed.change(change).with_context(|| self.unreadable())
    }

    /// Removes the installations of a name at a place, except one with this digest. Returns the number of removed ones.
    ///
    /// # Errors
    ///
    /// As for [`InstallRecords::add`].
    pub(crate) fn remove(&self, lock: &LockFile, name: &str, except: Option<&str>) -> anyhow::Result<usize> {
        let lock = lock.path();
        let change = |all: &mut Vec<Installation>| {
            let before = all.len();
            all.retain(|other| {
                other.lock != lock || other.bundle.name != name || Some(other.bundle.digest.as_str()) == except
            });
            before - all.len()
        };
        self.installed.change(change).with_context(|| self.unreadable())
    }

    /// Returns the time at which a release was first seen: now, if it was not seen before.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub fn first_seen(&self, digest: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
        let change = |seen: &mut Vec<SeenRelease>| match seen.iter().find(|release| release.digest == digest) {
            Some(release) => release.first,
            None => {
                let surplus = (seen.len() + 1).saturating_sub(MAX_SEEN);
                seen.drain(..surplus);
                seen.push(SeenRelease { digest: digest.to_owned(), first: now });
                now
            }
        };
        let failed = || format!("cannot use the times of releases in `{}`", self.seen.path().display());
        self.seen.change(change).with_context(failed)
    }

    fn unreadable(&self) -> Advice {
        let message = format!("cannot use the installations in `{}`", self.installed.path().display());
        Advice::new(message, "repair the file, or move it away and run `toolcrib install` to review the bundles again")
    }
}

/// Finds the installation of a name at a place: the one with the digest in the lock, or else the latest.
pub fn installation<'a>(
    all: &'a [Installation],
    lock: &LockFile,
    name: &str,
    digest: Option<&str>,
) -> Option<&'a Installation> {
    let lock = lock.path();
    let mut of_name = all.iter().filter(|it| it.lock == lock && it.bundle.name == name);
    let exact = of_name.clone().find(|it| Some(it.bundle.digest.as_str()) == digest);
    exact.or_else(|| of_name.next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_seen_for_the_first_time_once_and_the_oldest_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let records = InstallRecords::folder(folder.path());
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(records.first_seen("a", at(5)).unwrap(), at(5));
        assert_eq!(records.first_seen("a", at(9)).unwrap(), at(5));
        let many = (0..MAX_SEEN).map(|n| SeenRelease { digest: n.to_string(), first: at(1) });
        records.seen.change(|seen| seen.extend(many)).unwrap();
        assert_eq!(records.first_seen("b", at(10)).unwrap(), at(10));
        assert_eq!(records.seen.read().unwrap().len(), MAX_SEEN);
        assert_eq!(records.first_seen("a", at(11)).unwrap(), at(11), "forgotten, and so young again");
    }

    #[test]
    fn the_installation_of_the_lock_is_found_before_the_latest() {
        let folder = tempfile::tempdir().unwrap();
        let lock = LockFile::new(folder.path(), false);
        let bundle = |digest: &str| LockedBundle {
            name: "a".to_owned(),
            source: "./a.tar".to_owned(),
            version: None,
            digest: digest.to_owned(),
            signers: Vec::new(),
            granted: Vec::new(),
            declined: Vec::new(),
            tools: Vec::new(),
        };
        let records = InstallRecords::folder(folder.path());
        for digest in ["1", "2", "2"] {
            let (bundle, review) = (bundle(digest), String::new());
            records.add(Installation { lock: lock.path(), bundle, review, agreed: Timestamp::UNIX_EPOCH }).unwrap();
        }
        let all = records.read().unwrap();
        assert_eq!(all.len(), 2);
        let found = |digest| installation(&all, &lock, "a", digest).map(|it| it.bundle.digest.clone());
        assert_eq!(
            (found(Some("1")), found(Some("3")), found(None)),
            (Some("1".into()), Some("2".into()), Some("2".into()))
        );
        assert!(installation(&all, &LockFile::new(Path::new("/"), false), "a", None).is_none(), "another place");
        assert_eq!(records.remove(&lock, "a", Some("2")).unwrap(), 1);
        assert_eq!(records.remove(&lock, "a", None).unwrap(), 1);
        assert!(records.read().unwrap().is_empty());
    }
}
