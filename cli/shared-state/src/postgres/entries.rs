//! Entries that no server holds: they are read, listed and removed by their names, and some give way to newer ones of their owner.

use super::{PostgresStore, bounded, hashed, read};
use crate::entry::{StateKind, StateName};
use crate::error::StoreError;
use crate::postgres::StoreOperation;

impl PostgresStore {
    /// Creates an entry with a new name. If the owner has too many entries of the kind, the oldest ones give way.
    ///
    /// # Errors
    ///
    /// The value is too large, or the database does not answer.
    pub async fn put(&self, name: &StateName, value: &[u8]) -> Result<(), StoreError> {
        name.check(value)?;
        let (kind, seconds) = (name.kind.as_str(), name.kind.lifetime().as_secs_f64());
        let (entries, bytes) = name.kind.max_of_owner();
        let (entries, bytes, version) = (bounded(entries), bounded(bytes), rand::random::<i64>());
        let (owner, key) = (hashed(&name.owner), hashed(&name.key));
        let Self { inner, .. } = self;
        inner
            .pool
            .run_for(
                &owner,
                StoreOperation::Put,
                &[&inner.space, &kind, &owner, &key, &value, &version, &seconds, &entries, &bytes],
            )
            .await
            .map(drop)
    }

    /// Returns the value of an entry; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn get(&self, name: &StateName) -> Result<Option<Vec<u8>>, StoreError> {
        let (owner, key) = (hashed(&name.owner), hashed(&name.key));
        let Self { inner, .. } = self;
        let row =
            inner.pool.run_for(&owner, StoreOperation::Get, &[&inner.space, &name.kind.as_str(), &owner, &key]).await?;
        read(&row, 0)
    }

    /// Returns an owner's values, the oldest first.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn list(&self, kind: StateKind, owner: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        let (owner, most) = (hashed(owner), bounded(kind.max_of_owner().0));
        let Self { inner, .. } = self;
        let row = inner.pool.run(StoreOperation::List, &[&inner.space, &kind.as_str(), &owner, &most]).await?;
        read(&row, 0)
    }

    /// Removes an entry; returns `false` if there is none.
    ///
    /// # Errors
    ///
    /// The database does not answer: the entry may be removed.
    pub async fn forget(&self, name: &StateName) -> Result<bool, StoreError> {
        let (owner, key) = (hashed(&name.owner), hashed(&name.key));
        let Self { inner, .. } = self;
        let row = inner.pool.run(StoreOperation::Forget, &[&inner.space, &name.kind.as_str(), &owner, &key]).await?;
        read(&row, 0)
    }
}
