//! Rules for changes in folders: the paths that no guest may change, and the folders that no link may leave.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use toolcrib_staging::CallHistory;

use crate::policy::{Grant, Identity, Protected};

/// Rules for the changes of one call: the files that it must not change, and the folders that no link may leave.
#[derive(Debug, Clone, Default)]
#[cfg_attr(windows, expect(dead_code, reason = "no entry of a folder is judged by the folders above it there"))]
pub(in crate::sandbox) struct PathGuard {
    pub(super) protected: Arc<Protected>,
    pub(super) roots: Arc<[Identity]>,
    /// Files that the call created.
    pub(super) created: Arc<CreatedFiles>,
    /// Notes about what the call changes.
    pub(super) notes: Option<Arc<CallHistory>>,
    /// End of the call, if it has one. No folder is searched for longer.
    pub(super) until: Option<Instant>,
}

impl PathGuard {
    pub(in crate::sandbox) fn new(grant: &Grant) -> Self {
        Self { protected: grant.protected().clone(), roots: grant.roots(), ..Self::default() }
    }

    /// Returns the end of the call.
    pub(super) fn end(&self) -> Instant {
        self.until.unwrap_or_else(Instant::now)
    }
}

/// Files that one call created, at most as many as its quota of entries. One that replaces another file takes its mode.
#[derive(Debug, Default)]
pub(super) struct CreatedFiles(Mutex<HashSet<Identity>>);

#[cfg_attr(windows, expect(dead_code, reason = "files have no modes there"))]
impl CreatedFiles {
    pub(super) fn add(&self, file: Identity) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(file);
    }

    pub(super) fn has(&self, file: Identity) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&file)
    }
}
