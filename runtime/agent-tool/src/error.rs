//! Errors of the recorder.

use std::io;
use std::path::PathBuf;

/// Error of an [`AgentToolRecorder`](crate::AgentToolRecorder).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder or a file in it cannot be opened.
    #[error("records {}: {source}", folder.display())]
    Open {
        /// Folder of the records.
        folder: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// Records could not be written.
    #[error("records {}: {source}; records lost: {lost}", folder.display())]
    Write {
        /// Folder of the records.
        folder: PathBuf,
        /// Number of records lost.
        lost: u64,
        /// Cause of the first loss.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Advice for the person who chose the folder.
    pub fn hint(&self) -> &'static str {
        "check that only you own and can write the directory and that it has free space"
    }
}
