//! Connections that operations share: few, each used by one operation at a time, and none waited for without a bound. The pool
//! knows if the database answers.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use tokio::sync::Semaphore;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::connect::{Connected, Connector, failure};
use super::operation::StoreOperation;
use super::turns::OwnerTurns;
use crate::StoreFuture;
use crate::error::StoreError;

/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 8;
/// Maximum time of an operation, with its wait for a connection. Statements end before.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// Message about an owner with too many operations.
const LATE_TURN: &str = "other operations of the same owner take too long";
/// Time after a failed connection in which no other is tried.
const PAUSE: Duration = Duration::from_millis(200);

/// Observer of operations, such as figures.
pub trait StoreObserver: Send + Sync {
    /// Notes an operation with its time; `failure` is its kind: `unavailable`, `busy`, `full` or `unusable`.
    fn operated(&self, operation: StoreOperation, time: Duration, failure: Option<&'static str>);
}

/// Pool of connections.
pub(super) struct Pool {
    connector: Connector,
    idle: Mutex<Vec<Connected>>,
    room: Semaphore,
    turns: OwnerTurns,
    is_available: AtomicBool,
    /// Last failed connection.
    failed: Mutex<Option<(Instant, StoreError)>>,
    observer: OnceLock<Arc<dyn StoreObserver>>,
}

impl Pool {
    /// Connects, and upgrades the schema.
    ///
    /// # Errors
    ///
    /// The database does not answer, or cannot be used.
    pub(super) async fn connect(connector: Connector) -> Result<Self, StoreError> {
        let first = connector.first().await?;
        Ok(Self {
            connector,
            idle: Mutex::new(vec![first]),
            room: Semaphore::new(MAX_CONNECTIONS),
            turns: OwnerTurns::default(),
            is_available: AtomicBool::new(true),
            failed: Mutex::default(),
            observer: OnceLock::new(),
        })
    }

    /// Notes all later operations.
    pub(super) fn observe(&self, observer: Arc<dyn StoreObserver>) {
        // The first one stays.
        let _ = self.observer.set(observer);
    }

    /// Returns `false` after an operation without an answer, until another gets one.
    pub(super) fn is_available(&self) -> bool {
        self.is_available.load(Relaxed)
    }

    /// Runs an operation of the server. If it fails, it may have been done.
    ///
    /// # Errors
    ///
    /// The database does not answer in time, or refuses the operation.
    pub(super) fn run<'a>(
        &'a self,
        operation: StoreOperation,
        values: &'a [&'a (dyn ToSql + Sync)],
    ) -> StoreFuture<'a, Row> {
        self.observed(None, operation, values).boxed()
    }

    /// Runs an operation of an owner, as [`Pool::run`] does.
    pub(super) fn run_for<'a>(
        &'a self,
        owner: &'a str,
        operation: StoreOperation,
        values: &'a [&'a (dyn ToSql + Sync)],
    ) -> StoreFuture<'a, Row> {
        self.observed(Some(owner), operation, values).boxed()
    }

    /// Runs an operation of an owner, if there is one, as [`Pool::run`] does.
    pub(super) fn run_in_turn<'a>(
        &'a self,
        owner: Option<&'a str>,
        operation: StoreOperation,
        values: &'a [&'a (dyn ToSql + Sync)],
    ) -> StoreFuture<'a, Row> {
        self.observed(owner, operation, values).boxed()
    }

    async fn observed(
        &self,
        owner: Option<&str>,
        operation: StoreOperation,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, StoreError> {
        let begin = Instant::now();
        let end = tokio::time::Instant::now() + MAX_WAIT;
        let done = async {
            let _turn = match owner {
                None => None,
                Some(owner) => {
                    let turn = tokio::time::timeout_at(end, self.turns.of(owner)).await;
                    Some(turn.unwrap_or_else(|_| Err(StoreError::Busy(LATE_TURN.to_owned())))?)
                }
            };
            let done = tokio::time::timeout_at(end, self.attempt(operation, values)).await;
            let late = || StoreError::Unavailable(format!("no answer within {} s", MAX_WAIT.as_secs()));
            done.unwrap_or_else(|_| Err(late()))
        };
        let done = done.await;
        match &done {
            Err(StoreError::Unavailable(_)) => self.is_available.store(false, Relaxed),
            Err(StoreError::Busy(_)) => {}
            _ => self.is_available.store(true, Relaxed),
        }
        if let Some(observer) = self.observer.get() {
            observer.operated(operation, begin.elapsed(), done.as_ref().err().map(StoreError::kind));
        }
        done
    }

    async fn attempt(&self, operation: StoreOperation, values: &[&(dyn ToSql + Sync)]) -> Result<Row, StoreError> {
        let closed = |_| StoreError::Unavailable("the server ends".to_owned());
        let _room = self.room.acquire().await.map_err(closed)?;
        // Dropped, and so closed, if the operation is not awaited to its end.
        let connected = self.connected().await?;
        let answer = connected.client.query_one(connected.statement(operation), values).await;
        let answer = answer.map_err(|error| failure(&error));
        if !matches!(answer, Err(StoreError::Unavailable(_))) {
            self.idle().push(connected);
        }
        answer
    }

    async fn connected(&self) -> Result<Connected, StoreError> {
        let idle = {
            let mut idle = self.idle();
            idle.retain(|connected| !connected.client.is_closed());
            idle.pop()
        };
        if let Some(connected) = idle {
            return Ok(connected);
        }
        if let Some((at, error)) = &*self.failed.lock().unwrap_or_else(PoisonError::into_inner)
            && at.elapsed() < PAUSE
        {
            return Err(error.clone());
        }
        let connected = self.connector.again().await;
        let failed = connected.as_ref().err().map(|error| (Instant::now(), error.clone()));
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        connected
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connected>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
