//! Entries that no server holds: they are read, listed and removed by their names, changed by their versions, and some give way to newer
//! ones of their owner.

use toolcrib::ExpectedVersion;

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

    /// Returns the version of an entry, with its value unless the version is the `known` one; `None` if there is no entry. The
    /// operation is in turn with the others of `owner`.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub(crate) async fn read(
        &self,
        name: &StateName,
        known: Option<i64>,
        owner: Option<&str>,
    ) -> Result<Option<(i64, Option<Vec<u8>>)>, StoreError> {
        let (group, key) = (hashed(&name.owner), hashed(&name.key));
        let Self { inner, .. } = self;
        let row = inner
            .pool
            .run_in_turn(owner, StoreOperation::Read, &[&inner.space, &name.kind.as_str(), &group, &key, &known])
            .await?;
        let version: Option<i64> = read(&row, 0)?;
        version.map(|version| Ok((version, read(&row, 1)?))).transpose()
    }

    /// Replaces an entry's value, or removes the entry without a value. Returns its new version; `None` if it has another one
    /// than the expected.
    ///
    /// # Errors
    ///
    /// The value is too large, the group is full, or the database does not answer.
    pub(crate) async fn swap(
        &self,
        name: &StateName,
        expected: ExpectedVersion,
        value: Option<&[u8]>,
        owner: Option<&str>,
    ) -> Result<Option<i64>, StoreError> {
        name.check(value.unwrap_or_default())?;
        let (kind, seconds) = (name.kind.as_str(), name.kind.lifetime().as_secs_f64());
        let (entries, bytes) = name.kind.max_of_owner();
        let (entries, bytes, new) = (bounded(entries), bounded(bytes), rand::random::<i64>());
        let (group, key) = (hashed(&name.owner), hashed(&name.key));
        let is_any = expected == ExpectedVersion::Any;
        let version = match expected {
            ExpectedVersion::Present(version) => Some(version),
            ExpectedVersion::Any | ExpectedVersion::Absent => None,
        };
        let Self { inner, .. } = self;
        let row = inner
            .pool
            .run_in_turn(
                owner,
                StoreOperation::Swap,
                &[&inner.space, &kind, &group, &key, &is_any, &version, &new, &value, &seconds, &entries, &bytes],
            )
            .await?;
        Ok(read::<bool>(&row, 0)?.then_some(new))
    }

    /// Returns the beginnings of a group's values.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub(crate) async fn beginnings(
        &self,
        kind: StateKind,
        group: &str,
        max_len: usize,
        owner: Option<&str>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let (group, most) = (hashed(group), bounded(kind.max_of_owner().0));
        let max_len = i32::try_from(max_len).unwrap_or(i32::MAX);
        let Self { inner, .. } = self;
        let row = inner
            .pool
            .run_in_turn(owner, StoreOperation::Beginnings, &[&inner.space, &kind.as_str(), &group, &most, &max_len])
            .await?;
        read(&row, 0)
    }
}
