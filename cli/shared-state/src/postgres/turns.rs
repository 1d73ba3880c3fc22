//! Turns of owners: one with many requests waits for its own operations, and does not take all connections from the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::StoreError;

/// Maximum number of an owner's operations at once.
const MAX_AT_ONCE: usize = 2;
/// Number of owners above which those without an operation are forgotten.
const MAX_IDLE: usize = 1024;

/// Turns of all owners.
#[derive(Debug, Default)]
pub(super) struct OwnerTurns(Mutex<HashMap<String, Arc<Semaphore>>>);

impl OwnerTurns {
    /// Waits for a turn of an owner.
    pub(super) async fn of(&self, owner: &str) -> Result<OwnedSemaphorePermit, StoreError> {
        let turns = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MAX_IDLE {
                all.retain(|_, turns| Arc::strong_count(turns) > 1);
            }
            all.entry(owner.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(MAX_AT_ONCE))).clone()
        };
        turns.acquire_owned().await.map_err(|_| StoreError::Unavailable("the server ends".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn an_owner_waits_for_its_own_operations_alone() {
        let turns = OwnerTurns::default();
        let held = [turns.of("ada").await.unwrap(), turns.of("ada").await.unwrap()];
        assert!(turns.of("ada").now_or_never().is_none());
        assert!(turns.of("bob").now_or_never().is_some());
        for number in 0..MAX_IDLE * 2 {
            drop(turns.of(&number.to_string()).await);
        }
        assert!(turns.0.lock().unwrap().len() <= MAX_IDLE && turns.of("ada").now_or_never().is_none());
        drop(held);
        assert!(turns.of("ada").now_or_never().is_some());
    }
}
