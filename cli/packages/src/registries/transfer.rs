//! Progress of one bundle's blobs as one bar.

use std::sync::Arc;

use indicatif::ProgressBar;
use toolcrib_base::progress;
use toolcrib_registry::{OnProgress, Progress};

/// Transfer of one bundle's blobs.
pub(super) struct Transfer {
    pub(super) bar: ProgressBar,
    /// Bytes of the blobs that are complete.
    done: u64,
}

impl Transfer {
    /// Starts the transfer of `total` bytes.
    pub(super) fn new(what: &'static str, total: u64) -> Self {
        Self { bar: progress::bytes(what, total), done: 0 }
    }

    /// Returns the callback for the next blob, of this size.
    pub(super) fn next(&mut self, size: u64) -> OnProgress {
        let (bar, before) = (self.bar.clone(), self.done);
        self.done += size;
        Arc::new(move |progress: Progress| bar.set_position(before + progress.done))
    }
}
