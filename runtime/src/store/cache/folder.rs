//! Cache entries on disk, and the removal of those that were used least recently. Only regular files with the name of
//! an entry count; links and folders of such a name stay.

use std::fs::{self, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::store::owner_only::{self, FileLock};

use super::Removal;
use super::name::{BUNDLES, EntryKind, EntryName};

/// Maximum time that a last use may lie in the future, because clocks differ. An entry with a later time sorts as the
/// oldest: it would stay forever otherwise.
const MAX_CLOCK_SKEW: Duration = Duration::from_hours(1);

/// Minimum age of an abandoned download. A pull of the same bundle continues a younger one.
const MAX_DOWNLOAD_AGE: Duration = Duration::from_hours(24);

/// Limits on the entries of a folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum bytes of all entries together.
    pub(super) bytes: u64,
    /// Maximum number of entries.
    pub(super) entries: usize,
    /// Maximum number of entries that one scan reads. Further entries are neither counted nor removed by it.
    pub(super) scanned: usize,
}

/// Entries that a scan found.
pub(super) struct Scan {
    /// The entries, the most recently used first.
    pub(super) entries: Vec<FoundEntry>,
    /// `true` if the folder may have more entries.
    is_partial: bool,
}

/// File of an entry.
pub(super) struct FoundEntry {
    pub(super) name: EntryName,
    pub(super) kind: EntryKind,
    pub(super) bytes: u64,
    /// File modification time, which is the time of the last use.
    pub(super) used: SystemTime,
}

/// Reads the entries of a cache, at most `max`.
///
/// # Errors
///
/// A folder cannot be read, or the folder of bundles is a link or can be written by other users.
pub(super) fn scan(folder: &Path, max: usize) -> io::Result<Scan> {
    let mut scan = Scan { entries: Vec::new(), is_partial: false };
    let bundles = folder.join(BUNDLES);
    if owner_only::folder_exists(&bundles)? {
        scan.add(&bundles, EntryName::parse_bundle, max)?;
    }
    scan.add(folder, EntryName::parse, max)?;
    let latest = SystemTime::now() + MAX_CLOCK_SKEW;
    let last_use = |entry: &FoundEntry| if entry.used > latest { SystemTime::UNIX_EPOCH } else { entry.used };
    scan.entries.sort_by(|one, other| (last_use(other), &other.name).cmp(&(last_use(one), &one.name)));
    Ok(scan)
}

impl Scan {
    /// Adds the entries of one folder, until there are `max`.
    fn add(
        &mut self,
        folder: &Path,
        parse: impl Fn(&str) -> Option<(EntryName, EntryKind)>,
        max: usize,
    ) -> io::Result<()> {
        for file in fs::read_dir(folder)? {
            let file = file?;
            let Some((name, kind)) = file.file_name().to_str().and_then(&parse) else { continue };
            if self.entries.len() == max {
                self.is_partial = true;
                break;
            }
            // The metadata of the file itself, even if it is a link. Another process may have removed it.
            let Ok(metadata) = file.metadata() else { continue };
            if metadata.is_file() {
                let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                self.entries.push(FoundEntry { name, kind, bytes: metadata.len(), used });
            }
        }
        Ok(())
    }
}

impl FoundEntry {
    /// `true` for a download that nobody continues any more.
    fn is_abandoned(&self) -> bool {
        let age = self.used.elapsed().unwrap_or_default();
        self.kind == EntryKind::Download && age >= MAX_DOWNLOAD_AGE
    }

    /// Removes the entry; `None` if another process uses it, and `false` if it did not exist.
    fn remove(&self, folder: &Path) -> io::Result<Option<bool>> {
        let path = folder.join(self.name.as_str());
        if !matches!(self.kind, EntryKind::Bundle | EntryKind::Download) {
            return owner_only::remove(&path).map(Some);
        }
        // Bundles and downloads are locked as long as they are used.
        let file = match owner_only::options().read(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(false)),
            opened => opened?,
        };
        // Some file systems have no locks.
        match FileLock::exclusive(file) {
            Err(TryLockError::WouldBlock) => Ok(None),
            _ => owner_only::remove(&path).map(Some),
        }
    }
}

/// Removes the least recently used entries until the others are within the limits, as far as one scan reads. Returns
/// `true` in addition if another scan would find more to remove.
///
/// Compiled code that another process uses at the same time is removed too: the process has the file open and reads it to
/// its end, or does not find it and makes it again. Bundles and downloads in use stay, and count. Abandoned downloads are
/// removed even within the limits.
///
/// # Errors
///
/// The folder cannot be read. If entries cannot be removed, the others are, and the first failure is returned.
pub(super) fn evict(folder: &Path, limits: &Limits) -> io::Result<(Removal, bool)> {
    let scan = scan(folder, limits.scanned)?;
    let (mut removal, mut left, mut is_full, mut failed) = (Removal::default(), limits.bytes, false, None);
    for (newer, entry) in scan.entries.iter().enumerate() {
        is_full |= newer >= limits.entries || entry.bytes > left;
        if !is_full && !entry.is_abandoned() {
            left -= entry.bytes;
            continue;
        }
        match entry.remove(folder) {
            Ok(Some(true)) => removal.add(1, entry.bytes),
            Ok(Some(false)) => {}
            Ok(None) => left = left.saturating_sub(entry.bytes),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        Some(error) => Err(io::Error::new(error.kind(), format!("an entry cannot be removed: {error}"))),
        None => Ok((removal, scan.is_partial && removal.entries > 0)),
    }
}
