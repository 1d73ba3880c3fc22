//! Kept runs: each run's conversation in a file of its own, written as it happens, so that another process can resume
//! it after an interruption, a kill or a crash.
//!
//! A file has one JSON object a line and only grows. A line that was not completed is cut off before the next one is written.
//! Nothing that the audit log masks is written.

mod continued;
mod file;
mod given;
mod line;
mod masks;
mod missing;
mod options;
mod reading;
mod selection;
mod shown;
mod store;
mod summary;

pub use continued::continued;
pub(crate) use file::RunFile;
pub(crate) use given::kept as kept_options;
pub use given::{GivenOptions, is_permission, use_given};
pub use line::{Header, Line, RunFigures};
pub(crate) use masks::{MAX_SPELLING, RunMasks};
pub use missing::{BROKEN_OFF, CallState, MissingResult, broken_off};
pub use options::{EarlierRun, KeepOptions, RunsFolder};
pub use reading::{KeptRun, RunState};
pub use selection::RunSelection;
pub use shown::{ShownPart, ShownParts};
pub use store::{RunStore, StoredRun};
pub use summary::RunSummary;
