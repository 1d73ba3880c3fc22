//! History of changes in real folders: what each call did, and what was there before. An undo puts it back through a stage,
//! so that it is shown first, meets the changes of others, and goes on after a kill.

mod call;
mod committed;
mod line;
mod plan;
mod record;
mod restore;
mod store;

pub use call::{CallHistory, PlannedChange, Withhold};
pub use plan::Undo;
pub use record::Record;
pub use store::History;

pub(crate) use committed::CommitNotes;
