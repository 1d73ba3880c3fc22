//! Tools as they were read at one time.

use std::sync::Arc;
use std::time::Instant;

use toolcrib::Runtime;

/// Tools, and the permissions that they were loaded with.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) at: Instant,
    pub(super) permissions: Permissions,
    pub(super) runtime: Arc<Runtime>,
}

/// Value that differs once a permission was given or taken back, by the console or in its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Permissions(pub(super) u64);
