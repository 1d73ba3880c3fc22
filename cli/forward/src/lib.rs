//! Forwarding of the audit log: a process reads the log as any reader does, and sends its records in order to a target, each at
//! least once. A cursor beside the log names the last record that the target has acknowledged. Each record is sent with its number
//! and chain value, so that the target can prove that none is missing and none was changed.
//!
//! The modules from the bottom up: `record` and `batch` (what is sent), `storage` (buckets), `target` (where), `cursor` (how far),
//! `folder`, `bucket`, `collector` and `syslog` (one way to send each), `forwarding` (the loop), `copy_lines`, `copy_window`,
//! `copy_proof` and `copy` (a copy compared with the log), and `retention` (old files).

mod batch;
mod bucket;
mod collector;
mod copy;
mod copy_lines;
mod copy_proof;
mod copy_window;
mod cursor;
mod folder;
mod forwarding;
mod record;
mod retention;
#[cfg(test)]
mod sample_log;
mod storage;
mod syslog;
mod target;

pub use bucket::fetch_copy;
pub use copy::{CopyDifference, CopyReport, compare};
pub use cursor::{RegisteredCursor, registered};
pub use forwarding::{ForwardSummary, Forwarding};
pub use record::host_name;
pub use retention::{PrunedLog, prune};
pub use storage::BucketAddress;
pub use target::ForwardTarget;
