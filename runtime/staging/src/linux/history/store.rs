//! Records on the disk: begun, listed and removed.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use toolcrib_private_files::{create_folder, options};

use super::line::{Line, Noted};
use super::record::{OpenRecord, Record};
use crate::linux::journal::{self, Journal};
use crate::linux::stage::{random, remove_folder};
use crate::types::{HistoryLimits, RecordHeader, RecordSummary, Recorded, StagedCall};

pub(super) const JOURNAL: &str = "journal";
pub(super) const CONTENTS: &str = "contents";
/// File with the number of kept bytes, once the record is closed.
const BYTES: &str = "bytes";
const LOCK: &str = "lock";
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
        let lock = lock(&folder)?;
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
        let folder = self.folder.join(random()?);
        create_folder(&folder)?;
        let lock = lock(&folder)?;
        create_folder(&folder.join(CONTENTS))?;
        let file = options().read(true).write(true).create_new(true).open(folder.join(JOURNAL))?;
        let mut journal = Journal::open(file, |_| {})?;
        journal.add(&[Line::Begun(header.clone())])?;
        OpenRecord::new(folder, lock, journal, room)
    }

    /// Removes records that are too old, and then the oldest ones until so many bytes are free. Returns the free bytes. `own` is the
    /// record that needs them, with the bytes that it keeps.
    pub(super) fn prune(&self, needed: u64, own: Option<(&Path, u64)>) -> io::Result<u64> {
        let mut records = self.by_age()?;
        let now = SystemTime::now();
        let is_old = |begun: SystemTime| now.duration_since(begun).is_ok_and(|age| age > self.limits.age);
        let bytes_of = |id: &str| match (self.folder.join(id), own) {
            (folder, Some((own, bytes))) if folder == own => bytes,
            (folder, _) => kept_bytes(&folder),
        };
        let mut used: u64 = records.iter().map(|(_, id)| bytes_of(id)).sum();
        while let Some((begun, id)) = records.first().cloned() {
            let is_over = used.saturating_add(needed) > self.limits.bytes || records.len() >= MAX_RECORDS;
            if !is_over && !is_old(begun) {
                break;
            }
            records.remove(0);
            let (folder, bytes) = (self.folder.join(&id), bytes_of(&id));
            // One that is being written stays.
            if let Ok(_lock) = lock(&folder) {
                remove_folder(&folder)?;
                used = used.saturating_sub(bytes);
            }
        }
        Ok(self.limits.bytes.saturating_sub(used))
    }

    /// Lists the records by the time of their begin.
    fn by_age(&self) -> io::Result<Vec<(SystemTime, String)>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut records = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            let lock = self.folder.join(&name).join(LOCK);
            if let (true, Ok(begun)) = (is_id(&name), fs::metadata(lock).and_then(|found| found.modified())) {
                records.push((begun, name));
            }
        }
        records.sort();
        Ok(records)
    }

    /// Finds records, and calls in them, by the identifier of a record, a run, a stage or a call; the oldest one first.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn find(&self, id: &str) -> io::Result<Vec<Recorded>> {
        let mut found = Vec::new();
        for record in self.records()? {
            let RecordSummary { id: record, header, calls, .. } = record;
            if record == id || header.run.as_deref() == Some(id) || header.stage.as_deref() == Some(id) {
                found.push(Recorded { record, call: None });
            } else if calls.iter().any(|call| call.id == id) {
                found.push(Recorded { record, call: Some(id.to_owned()) });
            }
        }
        Ok(found)
    }

    /// Lists the records, the oldest one first. One that cannot be read is left out.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn records(&self) -> io::Result<Vec<RecordSummary>> {
        let mut records: Vec<RecordSummary> =
            self.by_age()?.into_iter().filter_map(|(_, id)| self.summary(id).ok()).collect();
        let undone: Vec<(String, Recorded)> = records
            .iter()
            .flat_map(|record| record.header.undoes.iter().map(|undone| (record.id.clone(), undone.clone())))
            .collect();
        for record in &mut records {
            // An undo that was taken back itself counts no more.
            let by = undone.iter().filter(|(_, undone)| undone.record == record.id).map(|(by, _)| by);
            let is_in_force = |by: &&String| !undone.iter().any(|(_, undone)| undone.record == **by);
            record.undone_by = by.rev().find(is_in_force).cloned();
        }
        Ok(records)
    }

    fn summary(&self, id: String) -> io::Result<RecordSummary> {
        let is_open = lock(&self.folder_of(&id)?).is_err();
        let (mut header, mut calls, mut open) = (RecordHeader::default(), Vec::<StagedCall>::new(), Vec::new());
        // By path, whether an entry was there before the first change, and is there after the last.
        let mut paths = BTreeMap::<String, (bool, bool)>::new();
        self.read(&id, |line| match line {
            Line::Begun(begun) => header = begun,
            Line::Call(call) => calls.push(call),
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
            Line::Base { .. } | Line::Failed(_) | Line::Like { .. } => {}
        })?;
        let is_cut_off = !is_open && !open.is_empty();
        // What was made and is gone again was no change in the end.
        let changed = paths.into_iter().filter(|(_, (was_there, is_there))| *was_there || *is_there);
        let paths = changed.map(|(path, _)| PathBuf::from(path)).collect();
        Ok(RecordSummary { id, header, calls, paths, is_open, is_cut_off, undone_by: None })
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

/// Returns the number of bytes that a record keeps.
fn kept_bytes(folder: &Path) -> u64 {
    if let Some(bytes) = fs::read_to_string(folder.join(BYTES)).ok().and_then(|text| text.parse().ok()) {
        return bytes;
    }
    let entries = fs::read_dir(folder.join(CONTENTS)).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
}

/// Returns `true` for the name of a record.
fn is_id(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Locks a record.
fn lock(folder: &Path) -> io::Result<File> {
    let path = folder.join(LOCK);
    let lock = match options().write(true).open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            options().write(true).create(true).truncate(false).open(&path)?
        }
        lock => lock?,
    };
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(lock),
    }
}
