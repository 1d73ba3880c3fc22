//! File changes that calls have made in a chat, as the program keeps them.

use std::ops::Range;

use futures::future::BoxFuture;

/// Outcome of taking file changes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenBack {
    /// The changes of so many calls were taken back.
    All(usize),
    /// Some changes stay, and were named.
    Part,
    /// The user has decided against it.
    Declined,
    /// Nobody can answer here.
    Unasked,
    /// There are none.
    Nothing,
}

/// Access to the file changes that this process has made in a chat.
pub trait FileChanges: Send + Sync {
    /// Returns the number of calls so far that have changed files.
    ///
    /// # Errors
    ///
    /// The changes cannot be read.
    fn count(&self) -> anyhow::Result<usize>;

    /// Shows the changes of these calls, asks the user, and takes them back. Names each change that stays.
    fn take_back(&self, calls: Range<usize>) -> BoxFuture<'_, anyhow::Result<TakenBack>>;
}
