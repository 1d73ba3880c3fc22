//! Writes held back from folders.
//!
//! A stage lies over real folders. A caller that works through it sees its own changes, and the folders stay as they are. The
//! changes can be listed, compared and dropped one by one, and committed together: each file is then replaced in one step, in
//! the order of a plan that a killed process takes up again. An entry that others have changed since is a conflict, and is
//! never overwritten.
//!
//! The cost of an operation does not depend on the size of the folders: an entry that nobody touches is not looked at. The
//! exception is a file with several names, whose other names are searched before a commit.
//!
//! Stages are for Linux so far: elsewhere, names that differ in case alone can be one name.

#[cfg(target_os = "linux")]
mod base;
#[cfg(target_os = "linux")]
mod changes;
#[cfg(target_os = "linux")]
mod checks;
#[cfg(target_os = "linux")]
mod commit;
#[cfg(target_os = "linux")]
mod edit;
#[cfg(target_os = "linux")]
mod entry;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod journal;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod resolve;
#[cfg(target_os = "linux")]
mod rules;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(not(target_os = "linux"))]
#[path = "stage_unsupported.rs"]
mod stage;
#[cfg(target_os = "linux")]
mod stages;
#[cfg(target_os = "linux")]
mod state;
#[cfg(target_os = "linux")]
mod tree;
mod types;
#[cfg(target_os = "linux")]
mod withdraw;

#[cfg(target_os = "linux")]
pub use edit::Open;
#[cfg(target_os = "linux")]
pub use entry::About;
#[cfg(target_os = "linux")]
pub use folder::{FolderId, Opened, StagedFolder};
#[cfg(target_os = "linux")]
pub use rules::Rules;
pub use stage::Stage;
#[cfg(not(target_os = "linux"))]
pub use stage::Stages;
#[cfg(target_os = "linux")]
pub use stages::Stages;
pub use types::{Change, ChangeKind, CommitError, Committed, Conflict, EntryKind, Limits, Refused, StagedCall};
