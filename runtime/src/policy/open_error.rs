//! Reason why a folder cannot be opened.

use std::io;
use std::path::PathBuf;

/// Reason why a folder cannot be opened.
#[derive(Debug)]
pub(super) enum OpenError {
    /// The error of the system.
    System(io::Error),
    /// The path has a link that is not followed.
    Link(PathBuf),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::System(error) => error,
            OpenError::Link(_) => Self::from(io::ErrorKind::PermissionDenied),
        }
    }
}

impl OpenError {
    /// Returns the reason for a message.
    pub(super) fn reason(self) -> String {
        match self {
            Self::System(error) if error.kind() == io::ErrorKind::NotADirectory => {
                "neither a folder nor a regular file".to_owned()
            }
            Self::System(error) if error.kind() == io::ErrorKind::NotFound => {
                "the folder does not exist; create it, or name another folder".to_owned()
            }
            Self::System(error) => error.to_string(),
            Self::Link(link) => format!(
                "`{}` is a link that a tool could have created, so it is not followed; name its target",
                link.display()
            ),
        }
    }
}
