//! Kept runs: the conversation of each run in a file of its own, written as it happens, so that another process can go on
//! with it after an interruption, a kill or a crash.
//!
//! A file has one JSON object a line and only grows. A line that was not completed is cut off before the next one is written.
//! Nothing that the audit log masks is written.

mod file;
mod line;
mod masks;
mod missing;
mod reading;
mod selection;
mod shown;
mod store;
mod summary;

pub(crate) use file::RunFile;
pub(crate) use line::{Header, Line, RunFigures};
pub(crate) use masks::{MAX_SPELLING, RunMasks};
pub(crate) use missing::{BROKEN_OFF, CallState, MissingResult, broken_off};
pub(crate) use reading::{KeptRun, RunState};
pub(crate) use selection::RunSelection;
pub(crate) use shown::{ShownPart, ShownParts};
pub(crate) use store::{RunStore, StoredRun};
pub(crate) use summary::RunSummary;
