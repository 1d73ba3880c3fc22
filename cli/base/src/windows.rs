//! Calls of Windows that the standard library does not offer, each behind a safe interface. Nothing here decides anything: the
//! callers do.

pub mod console;
pub mod integrity;
pub mod job_object;
pub mod known_folder;
