//! Errors of a storage, by the way out.

use object_store::Error;

/// Failure of an operation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    /// The object or the bucket does not exist.
    #[error("the object or its bucket does not exist")]
    Missing,
    /// The credentials do not allow the operation.
    #[error("the credentials are refused: {0}")]
    Refused(#[source] Error),
    /// The storage did not answer in time.
    #[error("no answer within {0} s")]
    Late(u64),
    /// Another failure; a later attempt may succeed.
    #[error(transparent)]
    Failed(Error),
}

impl From<Error> for StorageError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound { .. } => Self::Missing,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Self::Refused(error),
            error => Self::Failed(error),
        }
    }
}
