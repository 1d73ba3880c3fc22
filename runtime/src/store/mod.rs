//! Data that the host stores on disk for itself: the primitives for files and folders with owner-only rights, the store
//! of large results, the key-value stores of tools, the sessions of programs, and the cache of files that can be made again. None of them knows a
//! guest or a model.

pub mod cache;
pub(crate) mod keyvalue;
mod list_file;
pub mod owner_only;
pub mod programs;
pub mod results;
mod shared_entries;

pub use list_file::ListFile;
pub use shared_entries::{EntryGroup, ExpectedVersion, SharedEntries, SharedValue};
