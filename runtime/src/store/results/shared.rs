//! Results outside of this machine, so that each of several servers can read those of the others.

use std::{fmt, io};

/// Store of results that several servers share. All methods block, and end within a bounded time.
pub trait SharedResults: fmt::Debug + Send + Sync {
    /// Maximum length of a result with its description, in bytes. A longer one stays in the folder of its server.
    fn max_len(&self) -> u64;

    /// Stores a result under a new reference of an owner. The oldest ones of the owner may give way.
    ///
    /// # Errors
    ///
    /// The store does not answer, or refuses the result: it stays in the folder of its server.
    fn put(&self, owner: Option<&str>, reference: &str, result: Vec<u8>) -> io::Result<()>;

    /// Returns a result of an owner; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn get(&self, owner: Option<&str>, reference: &str) -> io::Result<Option<Vec<u8>>>;
}
