//! Rules for changes in folders: the paths that no guest may change, and the folders that no link may leave.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::policy::{Grant, Identity, Protected};

use super::single::SingleFiles;

/// Rules for the changes of one call: the files that it must not change, and the folders that no link may leave.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "entries are judged by their names alone there"))]
pub(in crate::sandbox) struct PathGuard {
    pub(super) protected: Arc<Protected>,
    pub(super) roots: Arc<[Identity]>,
    /// Folders with only some files granted.
    pub(super) single: SingleFiles,
    /// Files that the call created.
    pub(super) created: Arc<CreatedFiles>,
    /// End of the call, if it has one. No folder is searched for longer.
    pub(super) until: Option<Instant>,
}

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "entries are judged by their names alone there"))]
impl PathGuard {
    pub(in crate::sandbox) fn new(grant: &Grant) -> Self {
        let (protected, roots) = (grant.protected().clone(), grant.roots());
        Self { protected, roots, single: SingleFiles::new(grant), ..Self::default() }
    }

    /// Returns the end of the call.
    pub(super) fn end(&self) -> Instant {
        self.until.unwrap_or_else(Instant::now)
    }
}

/// Files that one call created, at most as many as its quota of entries. One that replaces another file takes its mode.
#[derive(Debug, Default)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "modes are kept on Linux alone"))]
pub(super) struct CreatedFiles(Mutex<HashSet<Identity>>);

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "modes are kept on Linux alone"))]
impl CreatedFiles {
    pub(super) fn add(&self, file: Identity) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(file);
    }

    pub(super) fn has(&self, file: Identity) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&file)
    }
}
