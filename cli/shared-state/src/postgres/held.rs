//! Claims in a database. What becomes of one whose statement had no answer is settled later, so that no key stays held by mistake.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_postgres::Row;

use super::Inner;
use super::later::{LateChange, LateEffect};
use crate::entry::{HeldState, StateName, UnheldState};
use crate::error::StoreError;

/// Entry that this server holds.
pub(super) struct DatabaseEntry {
    inner: Arc<Inner>,
    name: StateName,
    version: i64,
    /// Last value, which is to be written.
    last: Option<Vec<u8>>,
    /// `false` once the entry is no longer held.
    is_held: bool,
}

/// Entry that no server holds.
pub(super) struct FoundEntry {
    pub(super) inner: Arc<Inner>,
    pub(super) name: StateName,
    pub(super) version: i64,
}

impl DatabaseEntry {
    pub(super) fn new(inner: Arc<Inner>, name: StateName, version: i64) -> Self {
        Self { inner, name, version, last: None, is_held: true }
    }
}

impl HeldState for DatabaseEntry {
    fn finish(mut self: Box<Self>, value: Vec<u8>) -> BoxFuture<'static, Result<(), StoreError>> {
        async move {
            self.name.check(&value)?;
            let value = self.last.insert(value);
            let change = self.inner.change(&self.name, (self.version, rand::random()), Some(value), None).await;
            self.is_held = change.as_ref().is_err_and(StoreError::is_temporary);
            match change {
                Ok(true) => Ok(()),
                Ok(false) => Err(StoreError::Unusable("another server has taken over the call".to_owned())),
                // It is written later.
                Err(error) if error.is_temporary() => Ok(()),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }
}

impl UnheldState for FoundEntry {
    fn hold(self: Box<Self>, value: Vec<u8>) -> BoxFuture<'static, Result<Option<Box<dyn HeldState>>, StoreError>> {
        async move {
            self.name.check(&value)?;
            let Self { inner, name, version } = *self;
            let new = rand::random();
            // Dropped without an answer, it gives the entry back.
            let mut held = DatabaseEntry::new(inner.clone(), name.clone(), new);
            let change = inner.change(&name, (version, new), Some(&value), Some(&inner.server)).await;
            held.is_held = match &change {
                Ok(is_held) => *is_held,
                Err(error) => error.is_temporary(),
            };
            Ok(change?.then(|| Box::new(held) as Box<dyn HeldState>))
        }
        .boxed()
    }
}

impl Drop for DatabaseEntry {
    fn drop(&mut self) {
        if self.is_held {
            let effect = LateEffect::Release(self.last.take());
            let change = LateChange { name: self.name.clone(), version: self.version, effect, due: Instant::now() };
            self.inner.late.change(change);
        }
    }
}

impl fmt::Debug for DatabaseEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for FoundEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Claim without an answer yet. Its entry is removed later if it gets none: its call is not made.
pub(super) struct UncertainClaim<'a> {
    inner: &'a Inner,
    claim: Option<(&'a StateName, i64)>,
}

impl<'a> UncertainClaim<'a> {
    pub(super) fn new(inner: &'a Inner, name: &'a StateName, version: i64) -> Self {
        Self { inner, claim: Some((name, version)) }
    }

    /// Ends the doubt if there is an answer.
    pub(super) fn settle(mut self, answer: &Result<Row, StoreError>) {
        if !answer.as_ref().is_err_and(StoreError::is_temporary) {
            self.claim = None;
        }
    }
}

impl Drop for UncertainClaim<'_> {
    fn drop(&mut self) {
        if let Some((name, version)) = self.claim.take() {
            self.inner.late.change(LateChange::uncertain(name.clone(), version, LateEffect::Remove));
        }
    }
}

/// Place of a call, with places to return, without an answer yet.
pub(super) struct UncertainPlace<'a> {
    inner: &'a Inner,
    owner: &'a Arc<str>,
    place: Option<i64>,
    /// Places of calls that have ended.
    pub(super) released: Vec<i64>,
}

impl<'a> UncertainPlace<'a> {
    pub(super) fn new(inner: &'a Inner, owner: &'a Arc<str>, place: Option<i64>) -> Self {
        Self { inner, owner, place, released: inner.late.released_by(owner) }
    }

    /// Ends the doubt if there is an answer.
    pub(super) fn settle(mut self, answer: &Result<Row, StoreError>) {
        if answer.is_ok() {
            self.place = None;
            self.released.clear();
        }
    }
}

impl Drop for UncertainPlace<'_> {
    fn drop(&mut self) {
        let mut places = std::mem::take(&mut self.released);
        places.extend(self.place);
        self.inner.late.release(self.owner, places);
    }
}
