//! Records on the disk: begun, listed and removed.

use std::collections::BTreeMap;
use std::fs::{self, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolcrib_private_files::{FileLock, create_folder, options};

use super::line::{Line, Noted};
use super::record::{OpenRecord, Record};
use crate::linux::journal::{self, Journal};
use crate::linux::lock::{LOCK, lock};
use crate::linux::stage::{random, remove_folder};
use crate::types::{HistoryLimits, RecordHeader, RecordSummary, Recorded, StagedCall};

pub(super) const JOURNAL: &str = "journal";
pub(super) const CONTENTS: &str = "contents";
/// File with the number of kept bytes, once the record is closed.
const BYTES: &str = "bytes";
/// File that a record has if changes are missing in it.
const INCOMPLETE: &str = "incomplete";
/// Prefix for a record that is being made.
const UNFINISHED: &str = ".new-";
/// Prefix for a record that is being removed.
const GONE: &str = ".gone-";
/// Attempts to lock a record, and the interval between them.
const LOCK_ATTEMPTS: usize = 50;
const LOCK_INTERVAL: Duration = Duration::from_millis(2);
/// Maximum number of records.
const MAX_RECORDS: usize = 1_000;

/// History of one user's changes, in one folder.
#[derive(Debug, Clone)]
pub struct History {
    folder: PathBuf,
    pub(super) limits: HistoryLimits,
}

impl History {
    /// Names the folder, without opening it.
    pub fn new(folder: impl Into<PathBuf>, limits: HistoryLimits) -> Self {
        Self { folder: folder.into(), limits }
    }

    /// Folder of the history.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Begins a record. Its files are made with the first change.
    pub fn begin(&self, header: RecordHeader) -> Arc<Record> {
        Arc::new(Record::new(self.clone(), header))
    }

    /// Opens a record to which an interrupted commit adds.
    pub(crate) fn go_on(&self, id: &str) -> io::Result<Arc<Record>> {
        let folder = self.folder_of(id)?;
        let lock = lock_soon(&folder)?;
        let journal = options().read(true).write(true).open(folder.join(JOURNAL))?;
        let room = self.prune(0, None)?;
        let (mut header, mut lines) = (RecordHeader::default(), Vec::new());
        let journal = Journal::open(journal, |line| match line {
            Line::Begun(begun) => header = begun,
            line => lines.push(line),
        })?;
        let open = OpenRecord::continued(folder, lock, journal, room, &lines)?;
        Ok(Arc::new(Record::opened(self.clone(), header, open)))
    }

    /// Makes the files of a record, after older ones made room for it.
    pub(super) fn create(&self, header: &RecordHeader) -> io::Result<OpenRecord> {
        create_folder(&self.folder)?;
        let room = self.prune(0, None)?;
        // Under its name it is whole, and locked.
        let unfinished = self.folder.join(format!("{UNFINISHED}{}", random()?));
        let made = self.make(&unfinished, header, room);
        made.inspect_err(|_| drop(fs::remove_dir_all(unfinished)))
    }

    fn make(&self, unfinished: &Path, header: &RecordHeader, room: u64) -> io::Result<OpenRecord> {
        create_folder(unfinished)?;
        let lock = lock(unfinished)?;
        create_folder(&unfinished.join(CONTENTS))?;
        let file = options().read(true).write(true).create_new(true).open(unfinished.join(JOURNAL))?;
        let mut journal = Journal::open(file, |_| {})?;
        journal.add(&[Line::Begun(header.clone())])?;
        let folder = self.folder.join(new_id()?);
        fs::rename(unfinished, &folder)?;
        OpenRecord::continued(folder, lock, journal, room, &[])
    }

    /// Removes records that are too old, and then the oldest ones until so many bytes are free. Returns the free bytes. `own` is the
    /// record that needs them, with the bytes that it keeps.
    pub(super) fn prune(&self, needed: u64, own: Option<(&Path, u64)>) -> io::Result<u64> {
        let mut records = self.ids()?;
        let now = milliseconds();
        let max_age = self.limits.age.as_millis();
        let bytes_of = |id: &str| match (self.folder.join(id), own) {
            (folder, Some((own, bytes))) if folder == own => bytes,
            (folder, _) => kept_bytes(&folder),
        };
        let mut used: u64 = records.iter().map(|id| bytes_of(id)).sum();
        while let Some(id) = records.first().cloned() {
            let is_over = used.saturating_add(needed) > self.limits.bytes || records.len() >= MAX_RECORDS;
            if !is_over && now.saturating_sub(begun_of(&id)) <= max_age {
                break;
            }
            records.remove(0);
            let (folder, bytes) = (self.folder.join(&id), bytes_of(&id));
            // One that is being written, or removed by another process, stays.
            if lock(&folder).is_ok_and(|_lock| remove_folder(&folder).is_ok()) {
                used = used.saturating_sub(bytes);
            }
        }
        Ok(self.limits.bytes.saturating_sub(used))
    }

    /// Takes the lock of undos, which is held until the value is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WouldBlock`] if another process has it, or the error of the system.
    pub fn lock_undo(&self) -> io::Result<FileLock> {
        create_folder(&self.folder)?;
        lock(&self.folder)
    }

    /// Removes the records that are too old.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn remove_old(&self) -> io::Result<()> {
        self.prune(0, None).map(drop)
    }

    /// Lists the records by the time of their begin, and removes what killed processes left.
    pub(super) fn ids(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut records = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            if is_id(&name) {
                records.push(name);
            } else if name.starts_with(GONE) || name.starts_with(UNFINISHED) && lock(&entry.path()).is_ok() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        records.sort();
        Ok(records)
    }

    /// Lists the records, the oldest one first.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn records(&self) -> io::Result<Vec<RecordSummary>> {
        let mut records = Vec::new();
        for id in self.ids()? {
            match self.summary(id.clone()) {
                // Another process has removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    records.push(RecordSummary { id, error: Some(error.to_string()), ..RecordSummary::default() })
                }
                Ok(record) => records.push(record),
            }
        }
        // An undo that was taken back itself counts no more: the newest one decides first.
        let mut in_force: Vec<(String, Recorded)> = Vec::new();
        for record in records.iter_mut().rev() {
            let of_record = || in_force.iter().filter(|(_, undone)| undone.record == record.id);
            record.undone_by = of_record().find(|(_, undone)| undone.call.is_none()).map(|(by, _)| by.clone());
            record.undone_calls = of_record().filter_map(|(_, undone)| undone.call.clone()).collect();
            let is_left = |call: &StagedCall| !record.undone_calls.contains(&call.id);
            if record.undone_by.is_none() && !record.calls.is_empty() && !record.calls.iter().any(is_left) {
                record.undone_by = of_record().next().map(|(by, _)| by.clone());
            }
            if record.undone_by.is_none() {
                in_force.extend(record.header.undoes.iter().map(|undone| (record.id.clone(), undone.clone())));
            }
        }
        Ok(records)
    }

    fn summary(&self, id: String) -> io::Result<RecordSummary> {
        let folder = self.folder_of(&id)?;
        let is_open = is_locked(&folder)?;
        let mut record =
            RecordSummary { id, is_open, is_incomplete: folder.join(INCOMPLETE).exists(), ..RecordSummary::default() };
        let mut open = Vec::new();
        // By path, whether an entry was there before the first change, and is there after the last.
        let mut paths = BTreeMap::<String, (bool, bool)>::new();
        self.read(&record.id.clone(), |line| match line {
            Line::Begun(begun) => record.header = begun,
            Line::Call(call) => record.calls.push(call),
            Line::Change(noted) => {
                for (path, was_there) in noted.action.touched() {
                    paths.entry(path.to_owned()).or_insert((was_there, true));
                }
                open.push(noted);
            }
            Line::End { calls, paths: ends } => {
                for (path, about) in ends {
                    paths.entry(path).and_modify(|(_, is_there)| *is_there = about.is_some());
                }
                open.retain(|noted: &Noted| !noted.is_of(&calls));
            }
            Line::Base { .. } | Line::Failed(_) | Line::Seen { .. } | Line::Like { .. } => {}
        })?;
        record.is_cut_off = !is_open && !open.is_empty();
        // What was made and is gone again was no change in the end.
        let changed = paths.into_iter().filter(|(_, (was_there, is_there))| *was_there || *is_there);
        record.paths = changed.map(|(path, _)| PathBuf::from(path)).collect();
        Ok(record)
    }

    /// Reads the lines of a record.
    pub(super) fn read(&self, id: &str, apply: impl FnMut(Line)) -> io::Result<()> {
        let file = options().read(true).open(self.folder_of(id)?.join(JOURNAL))?;
        journal::read(&file, apply).map(drop)
    }

    pub(super) fn folder_of(&self, id: &str) -> io::Result<PathBuf> {
        if is_id(id) { Ok(self.folder.join(id)) } else { Err(ErrorKind::InvalidInput.into()) }
    }
}

/// Writes down the number of bytes that a closed record keeps.
pub(super) fn close(folder: &Path, bytes: u64) {
    // Without it, the contents are counted.
    let file = options().write(true).create(true).truncate(true).open(folder.join(BYTES));
    let _ = file.and_then(|mut file| file.write_all(bytes.to_string().as_bytes()));
}

/// Marks a record as incomplete.
pub(super) fn mark_incomplete(folder: &Path) {
    // The command itself says it too.
    let _ = options().write(true).create(true).truncate(true).open(folder.join(INCOMPLETE));
}

/// Returns the number of bytes that a record keeps.
fn kept_bytes(folder: &Path) -> u64 {
    let journal = fs::metadata(folder.join(JOURNAL)).map_or(0, |found| found.len());
    if let Some(bytes) = fs::read_to_string(folder.join(BYTES)).ok().and_then(|text| text.parse::<u64>().ok()) {
        return journal.saturating_add(bytes);
    }
    let entries = fs::read_dir(folder.join(CONTENTS)).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len());
    sizes.fold(journal, u64::saturating_add)
}

/// Returns a new name: the time in milliseconds since 1970, and random digits. Names sort by time.
fn new_id() -> io::Result<String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(format!("{:011x}{:05x}", milliseconds() & 0xfff_ffff_ffff, u32::from_le_bytes(random) & 0xf_ffff))
}

/// Returns the time of a record's begin.
fn begun_of(id: &str) -> u128 {
    u128::from_str_radix(id.get(..11).unwrap_or_default(), 16).unwrap_or_default()
}

/// Returns the time in milliseconds since 1970.
fn milliseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

/// Returns `true` for the name of a record.
fn is_id(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Locks a record that a reader may look at meanwhile.
fn lock_soon(folder: &Path) -> io::Result<FileLock> {
    for _ in 0..LOCK_ATTEMPTS {
        match lock(folder) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOCK_INTERVAL),
            lock => return lock,
        }
    }
    lock(folder)
}

/// Returns `true` if a process writes the record.
fn is_locked(folder: &Path) -> io::Result<bool> {
    let lock = options().read(true).open(folder.join(LOCK))?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(false),
    }
}
