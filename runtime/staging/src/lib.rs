//! Writes held back from folders.
//!
//! A stage lies over real folders. A caller that works through it sees its own changes, and the folders stay as they are. The
//! changes can be listed, compared and dropped one by one, and committed together: each file is then replaced in one step, in
//! the order of a plan that a killed process takes up again. An entry that others have changed since is a conflict, and is
//! never overwritten.
//!
//! The cost of an operation does not depend on the size of the folders, nor on the number of changes: an entry that nobody
//! touches is not looked at.
//!
//! Stages are for Linux so far: elsewhere, names that differ in case alone can be one name.

#[cfg(unix)]
mod base;
#[cfg(unix)]
mod changes;
#[cfg(unix)]
mod checks;
#[cfg(unix)]
mod commit;
#[cfg(unix)]
mod edit;
#[cfg(unix)]
mod entry;
#[cfg(unix)]
mod folder;
#[cfg(unix)]
mod journal;
#[cfg(unix)]
mod names;
#[cfg(unix)]
mod plan;
#[cfg(unix)]
mod resolve;
#[cfg(unix)]
mod rules;
#[cfg(unix)]
mod stage;
#[cfg(not(unix))]
#[path = "stage_unsupported.rs"]
mod stage;
#[cfg(unix)]
mod state;
#[cfg(unix)]
mod tree;
mod types;
#[cfg(unix)]
mod withdraw;

#[cfg(unix)]
pub use edit::{Listing, Open};
#[cfg(unix)]
pub use entry::About;
#[cfg(unix)]
pub use folder::{FolderId, Opened, StagedFolder};
#[cfg(unix)]
pub use rules::Rules;
pub use stage::{Stage, Stages};
pub use types::{Change, ChangeKind, CommitError, Conflict, EntryKind, Limits, Refused, StagedCall};
