//! Data of the interface, the same on every system.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Record;

/// Limits of a stage.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of written files.
    pub bytes: u64,
    /// Changed entries, and folders held in memory.
    pub entries: usize,
    /// Real entries that are searched for other names of written files.
    pub searched: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 4 << 30, entries: 200_000, searched: 200_000 }
    }
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// Regular file.
    File,
    /// Folder.
    Folder,
    /// Symbolic link.
    Link,
    /// FIFO, socket or device.
    Other,
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The entry is new.
    Added,
    /// The file has another content, or the entry is another one.
    Modified,
    /// The entry has another path, and perhaps another content.
    Moved,
    /// The entry is gone.
    Removed,
}

/// Reason for which a change cannot be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conflict {
    /// The real entry has changed since it was first touched.
    Changed,
    /// The real entry, or the folder of a new one, is gone.
    Gone,
    /// Another entry has taken the place of the new one.
    Occupied,
    /// The real folder that is removed has entries which the stage has not seen.
    NotEmpty,
}

/// Change of one entry.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Path; for a removed entry, its path before.
    pub path: PathBuf,
    /// Path before, of a moved entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Kind of the entry.
    pub entry: EntryKind,
    /// Kind of the replaced entry, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<EntryKind>,
    /// Size of the file before, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Size of the file after, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Number of the real file's other names. Those in the same folders get the new content with the commit, the others
    /// keep the old one.
    #[serde(skip_serializing_if = "is_zero")]
    pub other_names: u64,
    /// Calls that made the change, the first one first.
    pub calls: Vec<StagedCall>,
    /// Reason for which the change cannot be committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
    #[serde(skip)]
    pub(crate) node: Option<u64>,
    /// Path of the real entry.
    #[serde(skip)]
    pub(crate) real: Option<String>,
}

impl Change {
    /// Returns `true` if both change one entry: a stage and its part can show it at two paths.
    pub fn is_of_entry(&self, other: &Self) -> bool {
        match (self.node, other.node) {
            (None, None) => self.real == other.real,
            (one, other) => one == other,
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Call that changed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedCall {
    /// Identifier of the call.
    pub id: String,
    /// Name of its tool.
    pub tool: String,
}

/// State of a stage at one time. Another one means that something was written in between, by an open handle too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageMark {
    /// Length of the journal.
    pub(crate) journal: u64,
    /// Name, size and time of change for each content.
    pub(crate) contents: Vec<(String, u64, i128)>,
}

/// Change that cannot be taken back alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Path of the change.
    pub path: PathBuf,
    /// Reason.
    pub reason: &'static str,
}

/// Result of a commit.
#[derive(Debug, Clone)]
pub struct Committed {
    /// Number of steps.
    pub steps: usize,
    /// Paths that were left out, each with its conflict.
    pub skipped: Vec<(PathBuf, Conflict)>,
    /// Number of changes that stay in the stage: only its part was committed.
    pub left: usize,
    /// Record that notes it: of a commit that was interrupted, the first one.
    pub record: Option<Arc<Record>>,
}

/// Error of a commit.
#[derive(Debug)]
pub enum CommitError {
    /// A path has changed since it was first touched. Nothing was overwritten there.
    Conflict(PathBuf, Conflict),
    /// Error of the system at a path.
    System(PathBuf, io::Error),
}

/// Limits of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Bytes of all kept contents and journals; one record takes at most half of them. With 0, nothing is kept. Processes that write
    /// at the same time can exceed it together.
    pub bytes: u64,
    /// Bytes of one kept content.
    pub file: u64,
    /// Age at which a record is removed.
    pub age: Duration,
}

/// Facts about a record's origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordHeader {
    /// Name of the command that made the changes.
    pub command: String,
    /// Identifier of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Name of the stage that was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Time at which the command began, in seconds since 1970.
    pub begun: u64,
    /// Records and calls that the changes take back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<Recorded>,
}

/// Record, or one call of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Identifier of the record.
    pub record: String,
    /// Identifier of the call; all calls without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

/// Record of a history.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordSummary {
    /// Identifier.
    pub id: String,
    /// Facts about its origin.
    #[serde(flatten)]
    pub header: RecordHeader,
    /// Calls that changed something, the first one first.
    pub calls: Vec<StagedCall>,
    /// Paths that were changed, by name.
    pub paths: Vec<PathBuf>,
    /// `true` if another process writes the record.
    pub is_open: bool,
    /// `true` if a process was killed before the end of a change.
    pub is_cut_off: bool,
    /// `true` if changes are missing, because they could not be noted.
    pub is_incomplete: bool,
    /// Record of the undo that took it back as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<String>,
    /// Calls that were taken back alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undone_calls: Vec<String>,
    /// Error of a record that cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
