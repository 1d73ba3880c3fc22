//! Files of guests: the engine keeps a guest inside its folders; this module adds a quota, a budget of descriptors, protected
//! paths and a record of denials, and opens only regular files and folders.

mod beneath;
mod change;
mod descriptors;
#[cfg(unix)]
mod entry;
#[cfg(windows)]
#[path = "entry_windows.rs"]
mod entry;
mod granted;
mod guard;
mod interface;
mod listing;
#[cfg(unix)]
mod moved;
#[cfg(windows)]
#[path = "moved_windows.rs"]
mod moved;
mod open;
mod quota;
mod reads;
mod request;
mod single;
#[cfg(target_os = "linux")]
mod staged;
#[cfg(not(target_os = "linux"))]
#[path = "staged_none.rs"]
mod staged;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod staged_tests;
mod state;
mod times;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod undo_tests;

pub(in crate::sandbox) use guard::PathGuard;
pub(in crate::sandbox) use state::{FileState, Files, HasFiles};
