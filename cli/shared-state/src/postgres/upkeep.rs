//! Upkeep by each server: its signs of life, work that waited, and the removal of expired rows in small pieces.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use toolcrib_base::render;

use super::Inner;
use super::later::{LateChange, LateEffect};
use super::operation::StoreOperation;
use crate::error::StoreError;

/// Time between two signs of life.
const INTERVAL: Duration = Duration::from_secs(2);
/// The same while the database does not answer.
const RETRY: Duration = Duration::from_millis(500);
/// Time after the last sign of life until a server counts as ended, in seconds.
pub(super) const ALIVE: f64 = 10.0;
/// Time between two removals.
const SWEEP: Duration = Duration::from_secs(30);
/// Maximum number of entries in one removal.
const MAX_SWEPT: i64 = 500;
/// Maximum time of the last work.
const MAX_CLOSE: Duration = Duration::from_secs(3);

/// Keeps up a store as long as it exists.
pub(super) async fn keep_up(store: Weak<Inner>) {
    let (mut next_sign, mut next_sweep) = (Instant::now(), Instant::now() + SWEEP);
    let mut was_available = true;
    loop {
        let Some(inner) = store.upgrade() else { return };
        if next_sign <= Instant::now() {
            let alive = inner.live(ALIVE).await;
            if alive.is_ok() != was_available {
                match &alive {
                    Err(error) => render::warning(&error.to_string()),
                    Ok(()) => render::aside("the shared store answers again"),
                }
            }
            was_available = alive.is_ok();
            next_sign = Instant::now() + if was_available { INTERVAL } else { RETRY };
        }
        let is_done = was_available && inner.work_off().await.is_ok();
        if was_available && next_sweep <= Instant::now() {
            let more = inner.sweep().await.is_ok_and(|more| more);
            next_sweep = Instant::now() + if more { RETRY } else { SWEEP };
        }
        let late = inner.late.clone();
        drop(inner);
        let wait = next_sign.saturating_duration_since(Instant::now());
        tokio::select! {
            () = tokio::time::sleep(wait.min(RETRY)), if !late.is_empty() => {}
            () = tokio::time::sleep(wait) => {}
            () = late.added.notified(), if is_done => {}
        }
    }
}

impl Inner {
    /// Extends the life of this server.
    pub(super) async fn live(&self, seconds: f64) -> Result<(), StoreError> {
        self.pool.run(StoreOperation::Live, &[&self.server, &seconds]).await.map(drop)
    }

    /// Does the work that waits, as far as it is due.
    async fn work_off(&self) -> Result<(), StoreError> {
        for (owner, ended) in self.late.released() {
            self.pool.run(StoreOperation::Release, &[&self.space, &super::hashed(&owner), &ended]).await?;
            self.late.forget(&owner, &ended);
        }
        for ((owner, seconds), used) in self.late.used() {
            if let Err(error) = self.add(&owner, seconds, used).await {
                self.late.charge((owner, seconds), used);
                return Err(error);
            }
        }
        while let Some(change) = self.late.next_change(Instant::now()) {
            let done = match &change.effect {
                LateEffect::Remove => self.remove(&change.name, change.version).await,
                LateEffect::Release(value) => {
                    self.change(&change.name, (change.version, rand::random()), value.as_deref(), None).await.map(drop)
                }
            };
            match done {
                Ok(()) => {}
                Err(error) if error.is_temporary() => {
                    self.late.change(LateChange { due: Instant::now() + RETRY, ..change });
                    return Err(error);
                }
                Err(error) => render::warning(&format!("the result of a call with a key is not kept: {error}")),
            }
        }
        Ok(())
    }

    async fn sweep(&self) -> Result<bool, StoreError> {
        let row = self.pool.run(StoreOperation::Sweep, &[&MAX_SWEPT]).await?;
        super::read(&row, 0)
    }

    /// Does the last work, and gives back all that this server holds.
    pub(super) async fn end(self: &Arc<Self>) {
        let end = async {
            while !self.late.is_empty() && self.work_off().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            self.live(0.0).await
        };
        let _ = tokio::time::timeout(MAX_CLOSE, end).await;
    }
}
