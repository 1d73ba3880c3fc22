//! Entries of the cache on disk, and the removal of those that were used least recently. Only regular files with the
//! name of an entry count; links and folders of such a name stay.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::store::owner_only;

use super::Removal;
use super::name::{EntryKind, EntryName};

/// Time by which a last use may lie in the future, because clocks differ. An entry with a later time sorts as the oldest:
/// it would stay forever otherwise.
const MAX_CLOCK_SKEW: Duration = Duration::from_hours(1);

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
    /// Modification time of the file, which is the time of the last use.
    pub(super) used: SystemTime,
}

/// Reads the entries of a folder, at most `max`.
pub(super) fn scan(folder: &Path, max: usize) -> io::Result<Scan> {
    let mut scan = Scan { entries: Vec::new(), is_partial: false };
    for file in fs::read_dir(folder)? {
        let file = file?;
        let Some((name, kind)) = file.file_name().to_str().and_then(EntryName::parse) else { continue };
        if scan.entries.len() == max {
            scan.is_partial = true;
            break;
        }
        // The metadata of the file itself, even if it is a link. Another process may have removed it.
        let Ok(metadata) = file.metadata() else { continue };
        if metadata.is_file() {
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            scan.entries.push(FoundEntry { name, kind, bytes: metadata.len(), used });
        }
    }
    let latest = SystemTime::now() + MAX_CLOCK_SKEW;
    let last_use = |entry: &FoundEntry| if entry.used > latest { SystemTime::UNIX_EPOCH } else { entry.used };
    scan.entries.sort_by(|one, other| (last_use(other), &other.name).cmp(&(last_use(one), &one.name)));
    Ok(scan)
}

/// Removes the least recently used entries until the others are within the limits, as far as one scan reads. Returns
/// `true` in addition if another scan would find more to remove.
///
/// An entry that another process uses at the same time is removed too: the process has the file open and reads it to its
/// end, or does not find it and makes it again.
///
/// # Errors
///
/// The folder cannot be read. If entries cannot be removed, the others are, and the first failure is returned.
pub(super) fn evict(folder: &Path, limits: &Limits) -> io::Result<(Removal, bool)> {
    let scan = scan(folder, limits.scanned)?;
    let (mut removal, mut left, mut is_full, mut failed) = (Removal::default(), limits.bytes, false, None);
    for (newer, entry) in scan.entries.iter().enumerate() {
        is_full |= newer >= limits.entries || entry.bytes > left;
        if !is_full {
            left -= entry.bytes;
            continue;
        }
        match owner_only::remove(&folder.join(entry.name.as_str())) {
            Ok(true) => removal.add(1, entry.bytes),
            Ok(false) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        Some(error) => Err(io::Error::new(error.kind(), format!("an entry cannot be removed: {error}"))),
        None => Ok((removal, scan.is_partial && removal.entries > 0)),
    }
}
