//! Calls of Windows that the standard library does not offer, each behind a safe interface. Nothing here decides anything: the
//! callers do.

pub(crate) mod console;
pub(crate) mod integrity;
pub(crate) mod job_object;
pub(crate) mod known_folder;
