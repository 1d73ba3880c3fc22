//! Writes held back from folders.
//!
//! A stage lies over real folders. A caller that works through it sees its own changes, and the folders stay as they are. The
//! changes can be listed, compared, and dropped or committed, all or some of them: each file is then replaced in one step, in
//! the order of a plan that a killed process takes up again. An entry that others have changed since is a conflict, and is
//! never overwritten.
//!
//! The cost of an operation does not depend on the size of the folders: an entry that nobody touches is not looked at. The
//! exception is a file with several names, because its other names are searched before a commit.
//!
//! Stages are for Linux so far: elsewhere, names that differ in case alone can be one name.

#[cfg(target_os = "linux")]
mod linux;
mod types;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub use linux::{
    About, CallHistory, FolderId, History, Mark, Open, Opened, PlannedChange, Record, Rules, Stage, StagedFolder,
    Stages, Undo, Withhold,
};
pub use types::{
    Change, ChangeKind, CommitError, Committed, Conflict, EntryKind, HistoryLimits, Limits, RecordHeader,
    RecordSummary, Recorded, Refused, StageMark, StagedCall,
};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{CallHistory, History, PlannedChange, Record, Stage, Stages, Undo, Withhold};
