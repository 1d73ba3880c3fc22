//! Errors of a key-value store, worded for the guest: no text names a host path.

use std::io::{self, ErrorKind};

use super::{MAX_BYTES, MAX_KEY_LEN, MAX_KEYS, MAX_VALUE_LEN};

/// Reason why an operation on a store failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the key has {0} bytes, more than the {MAX_KEY_LEN} allowed")]
    KeyLength(usize),
    #[error("the value has {0} bytes, more than the {MAX_VALUE_LEN} allowed")]
    ValueLength(usize),
    #[error("the store has {0} keys already, and at most {MAX_KEYS} are allowed")]
    KeyCount(usize),
    #[error("the store would have {0} bytes, more than the {MAX_BYTES} allowed")]
    StoreSize(usize),
    #[error("the store would have more than the {MAX_KEYS} keys or the {MAX_BYTES} bytes allowed")]
    Full(#[source] io::Error),
    #[error("{0} keys at once, more than the {MAX_KEYS} allowed")]
    RequestedKeys(usize),
    #[error("the values have more than the {MAX_BYTES} bytes that are given at once")]
    RequestedBytes,
    #[error("the value under the key is not a whole number in the range of this function")]
    NotANumber,
    #[error("the sum is outside the range of this function; the value stays as it was")]
    Overflow,
    #[error("the stored value is damaged; set it again or delete it")]
    Damaged(#[source] io::Error),
    /// The message has only the kind of the error, because its own text could name a path.
    #[error("the store cannot be used now: {}", .0.kind())]
    Io(#[source] io::Error),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidData => Self::Damaged(error),
            _ => Self::Io(error),
        }
    }
}
