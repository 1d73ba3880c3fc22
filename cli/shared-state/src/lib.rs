//! State that servers share, behind one trait: entries that are created once, claims of calls that run, and counters with limits.
//! [`FileStore`] keeps it in files and in this process, [`PostgresStore`] in a database for many servers. Neither knows the content of
//! an entry.

mod entry;
mod error;
mod file_store;
mod postgres;
mod quotas;
mod results;
mod shared_entries;
mod used_list;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

pub use entry::{HeldState, StateClaim, StateKind, StateName, UnheldState};
pub use error::StoreError;
pub use file_store::FileStore;
pub use postgres::{PostgresStore, StoreObserver, StoreOperation};
pub use quotas::{AdmittedCall, QuotaExceeded, QuotaLimits, QuotaPart, QuotaUse};
pub use results::DatabaseResults;
pub use shared_entries::DatabaseEntries;

/// Result of an operation that may wait for the store.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Store of shared state. Each operation is atomic for all servers that share the store, and ends within a bounded time.
pub trait StateStore: fmt::Debug + Send + Sync {
    /// Creates an entry, unless it exists: its value is returned then.
    fn insert(&self, entry: StateName, value: Vec<u8>) -> StoreFuture<'_, Option<Vec<u8>>>;

    /// Creates an entry and holds it, unless it exists. The entry is held until the claim is finished or dropped, or its server ends.
    fn claim(&self, entry: StateName, value: Vec<u8>) -> StoreFuture<'_, StateClaim>;

    /// Counts a call of an owner if no quota is used up. One that goes on after a question (`is_continued`) needs no place among the
    /// calls at once: the call may have one already.
    fn admit<'a>(
        &'a self,
        owner: &'a Arc<str>,
        limits: &'a QuotaLimits,
        is_continued: bool,
    ) -> StoreFuture<'a, Result<AdmittedCall, QuotaExceeded>>;

    /// Counts what a part of a call has used, in the present window. The store may do it later.
    fn charge(&self, owner: &Arc<str>, limits: &QuotaLimits, used: QuotaUse);

    /// Returns `false` while the store does not answer.
    fn is_available(&self) -> bool {
        true
    }

    /// Writes the rest and gives back all that this server holds, within a bounded time.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
