//! Failures of a store, by the reaction that they need.

/// Failure of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store does not answer, or not in time: the same operation may succeed later.
    #[error("the shared store does not answer: {0}")]
    Unavailable(String),
    /// Other operations of the same owner, or on the same entry, took too long: the same operation may succeed later.
    #[error("the shared store is busy: {0}")]
    Busy(String),
    /// The owner has too many entries, or entries that are too large.
    #[error("{0}")]
    Full(String),
    /// The store answers, and cannot be used.
    #[error("{0}")]
    Unusable(String),
}

impl StoreError {
    /// Returns `true` if the operation may have been done, and may be tried again.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Busy(_))
    }

    /// Name of the failure's kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Busy(_) => "busy",
            Self::Full(_) => "full",
            Self::Unusable(_) => "unusable",
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::Unusable(error.to_string())
    }
}
