//! Work that waits for a database that did not answer: entries to write or to remove, calls that have ended, and their use. It is
//! bounded; the rest is lost with a warning, and its entries then end with their server.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use toolcrib_base::render;

use crate::entry::StateName;
use crate::quotas::QuotaUse;

/// Maximum number of entries that wait.
const MAX_ENTRIES: usize = 10_000;
/// Maximum size of their values in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of owners with calls that have ended, and with their use.
const MAX_OWNERS: usize = 10_000;
/// Time after which a statement without an answer has ended in the database.
const UNCERTAIN: Duration = Duration::from_secs(3);

/// Change of an entry that waits.
#[derive(Debug)]
pub(super) struct LateChange {
    pub(super) name: StateName,
    pub(super) version: i64,
    pub(super) effect: LateEffect,
    /// Earliest time of the change.
    pub(super) due: Instant,
}

/// Effect of a change that waits.
#[derive(Debug)]
pub(super) enum LateEffect {
    /// The entry is removed: its call was not made.
    Remove,
    /// The entry is held no longer, and gets this value, if any.
    Release(Option<Vec<u8>>),
}

impl LateChange {
    /// Creates a change of an entry after a statement that may still run.
    pub(super) fn uncertain(name: StateName, version: i64, effect: LateEffect) -> Self {
        Self { name, version, effect, due: Instant::now() + UNCERTAIN }
    }

    fn len(&self) -> usize {
        match &self.effect {
            LateEffect::Release(Some(value)) => value.len(),
            _ => 0,
        }
    }
}

/// Window of an owner, by its length in seconds.
pub(super) type OwnerWindow = (Arc<str>, u64);

/// Work that waits.
#[derive(Debug, Default)]
pub(super) struct LateWork {
    waiting: Mutex<Waiting>,
    /// Notified of new work.
    pub(super) added: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    changes: VecDeque<LateChange>,
    bytes: usize,
    released: HashMap<Arc<str>, Vec<i64>>,
    used: HashMap<OwnerWindow, QuotaUse>,
}

impl LateWork {
    /// Adds a change of an entry.
    pub(super) fn change(&self, change: LateChange) {
        let mut waiting = self.waiting();
        if waiting.changes.len() >= MAX_ENTRIES || waiting.bytes + change.len() > MAX_BYTES {
            drop(waiting);
            render::warning("too many results of calls with a key wait for the shared store: one is not kept");
            return;
        }
        waiting.bytes += change.len();
        waiting.changes.push_back(change);
        drop(waiting);
        self.added.notify_one();
    }

    /// Takes the next change that is due.
    pub(super) fn next_change(&self, now: Instant) -> Option<LateChange> {
        let mut waiting = self.waiting();
        let at = waiting.changes.iter().position(|change| change.due <= now)?;
        let change = waiting.changes.remove(at)?;
        waiting.bytes -= change.len();
        Some(change)
    }

    /// Adds calls of an owner that have ended.
    pub(super) fn release(&self, owner: &Arc<str>, ended: Vec<i64>) {
        let mut waiting = self.waiting();
        if ended.is_empty() || (waiting.released.len() >= MAX_OWNERS && !waiting.released.contains_key(owner)) {
            return;
        }
        let all = waiting.released.entry(owner.clone()).or_default();
        all.extend(ended);
        // Places beyond this number end with the server.
        all.truncate(MAX_ENTRIES);
        drop(waiting);
        self.added.notify_one();
    }

    /// Takes the calls of an owner that have ended.
    pub(super) fn released_by(&self, owner: &str) -> Vec<i64> {
        self.waiting().released.remove(owner).unwrap_or_default()
    }

    /// Returns the calls of all owners that have ended. They stay until they are released: an owner's next call must not find them
    /// gone before that.
    pub(super) fn released(&self) -> HashMap<Arc<str>, Vec<i64>> {
        self.waiting().released.clone()
    }

    /// Forgets calls that were released.
    pub(super) fn forget(&self, owner: &str, ended: &[i64]) {
        let mut waiting = self.waiting();
        if let Some(all) = waiting.released.get_mut(owner) {
            all.retain(|id| !ended.contains(id));
            if all.is_empty() {
                waiting.released.remove(owner);
            }
        }
    }

    /// Adds the use of a window.
    pub(super) fn charge(&self, of: OwnerWindow, used: QuotaUse) {
        let mut waiting = self.waiting();
        if waiting.used.len() >= MAX_OWNERS && !waiting.used.contains_key(&of) {
            return;
        }
        let all = waiting.used.entry(of).or_default();
        all.cpu = all.cpu.saturating_add(used.cpu);
        all.bytes = all.bytes.saturating_add(used.bytes);
        drop(waiting);
        self.added.notify_one();
    }

    /// Takes the use of all windows.
    pub(super) fn used(&self) -> HashMap<OwnerWindow, QuotaUse> {
        std::mem::take(&mut self.waiting().used)
    }

    /// Returns `true` if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        let waiting = self.waiting();
        waiting.changes.is_empty() && waiting.released.is_empty() && waiting.used.is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::StateKind;

    fn change(number: usize, value: usize) -> LateChange {
        let name = StateName::new(StateKind::Call, "ada", number.to_string());
        LateChange { name, version: 1, effect: LateEffect::Release(Some(vec![0; value])), due: Instant::now() }
    }

    #[test]
    fn work_that_waits_is_bounded() {
        let late = LateWork::default();
        (0..MAX_ENTRIES + 5).for_each(|number| late.change(change(number, 1)));
        assert_eq!(late.waiting().changes.len(), MAX_ENTRIES);
        let late = LateWork::default();
        (0..2).for_each(|number| late.change(change(number, MAX_BYTES / 2 + 1)));
        assert_eq!(late.waiting().changes.len(), 1);
        assert!(late.next_change(Instant::now()).is_some() && late.is_empty() && late.waiting().bytes == 0);
        for number in 0..MAX_OWNERS + 5 {
            let owner: Arc<str> = number.to_string().into();
            late.release(&owner, vec![1]);
            late.charge((owner, 3600), QuotaUse { bytes: 1, ..QuotaUse::default() });
        }
        assert_eq!((late.released().len(), late.used().len()), (MAX_OWNERS, MAX_OWNERS));
        late.forget("7", &[1]);
        assert_eq!(
            (late.released().len(), late.released_by("7"), late.released_by("8")),
            (MAX_OWNERS - 1, vec![], vec![1])
        );
    }

    #[test]
    fn a_change_after_a_statement_that_may_run_waits_for_its_end() {
        let late = LateWork::default();
        late.change(LateChange::uncertain(change(1, 0).name, 1, LateEffect::Remove));
        assert!(late.next_change(Instant::now()).is_none() && !late.is_empty());
        assert!(late.next_change(Instant::now() + UNCERTAIN).is_some());
    }
}
