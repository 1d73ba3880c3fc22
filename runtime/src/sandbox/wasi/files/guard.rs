//! Rules for changes in folders: the paths that no guest may change, and the folders that no link may leave.

use std::sync::Arc;
use std::time::Instant;

use crate::policy::{Grant, Identity, Protected};

/// Rules for the changes of one call: the files that it must not change, and the folders that no link may leave.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "entries are judged by their names alone there"))]
pub(in crate::sandbox) struct PathGuard {
    pub(super) protected: Arc<Protected>,
    pub(super) roots: Arc<[Identity]>,
    /// End of the call, if it has one. No folder is searched for longer.
    pub(super) until: Option<Instant>,
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "entries are judged by their names alone there"))]
impl PathGuard {
    pub(in crate::sandbox) fn new(grant: &Grant) -> Self {
        Self { protected: grant.protected().clone(), roots: grant.roots(), until: None }
    }

    /// Returns the end of the call.
    pub(super) fn end(&self) -> Instant {
        self.until.unwrap_or_else(Instant::now)
    }
}
