//! Stages on Linux: the overlay, its changes and their commit.

mod base;
mod begun;
mod changes;
mod checks;
mod commit;
mod edit;
mod entry;
mod fact;
mod folder;
mod history;
mod journal;
mod lock;
mod mark;
mod names;
mod part;
mod plan;
mod rebase;
mod resolve;
mod rules;
mod stage;
mod stages;
mod state;
mod tree;
mod withdraw;

pub use edit::Open;
pub use entry::About;
pub use folder::{FolderId, Mark, Opened, StagedFolder};
pub use history::{CallHistory, History, PlannedChange, Record, Undo, Withhold};
pub use rules::Rules;
pub use stage::Stage;
pub use stages::Stages;
