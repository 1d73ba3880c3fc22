//! EventKind a conversation remembers: what the model was shown, what a person agreed to, what scripts kept and added. It
//! ends with the conversation.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::OnceCell;

use crate::delegate::Task;
use crate::keyvalue::Store;
use crate::observe::Observer;
use crate::policy::Approval;
use crate::tool::Tool;

use super::listener::Scripted;
use super::ready::Ready;

/// The most tools, and the most hooks, that scripts add to one run.
const MAX_ADDED: usize = 32;
/// The most values that scripts keep in one run, the most bytes of all of them with their keys, and of one key.
const MAX_KEPT: usize = 1000;
const MAX_KEPT_BYTES: usize = 4 << 20;
const MAX_KEY_LEN: usize = 1024;

/// EventKind a conversation remembers.
#[derive(Default)]
pub(crate) struct Memory {
    /// Whether every tool counts as loaded.
    open: bool,
    /// How many agents have handed on before this conversation.
    pub(super) depth: u32,
    loaded: Mutex<HashSet<usize>>,
    approved: Mutex<HashSet<Approval>>,
    /// Whether an answer was kept, so that there is something to open.
    pub(super) has_kept: AtomicBool,
    pub(super) cache: Cache,
    /// EventKind tools keep, by the digest of the program and the name of the tool.
    stores: Mutex<HashMap<[String; 3], Store>>,
    /// How many agents the run has begun, in whatever depth.
    pub(super) agents: Arc<AtomicU32>,
    adding: Mutex<()>,
    /// Who is told what happens in its calls, beside those who are told of all.
    watcher: OnceLock<Arc<dyn Observer>>,
    prepared: Mutex<HashMap<String, Arc<Preparing>>>,
    pub(super) tools: Additions<Added>,
    pub(super) hooks: Additions<Scripted>,
}

/// EventKind a tool prepares for a session, while and once it does.
pub(super) type Preparing = OnceCell<Arc<str>>;

/// A tool that a script added.
pub(super) struct Added {
    pub(super) tool: Tool,
    pub(super) ready: Ready,
}

/// EventKind scripts keep while it lasts.
#[derive(Default)]
pub(super) struct Cache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    values: HashMap<String, String>,
    bytes: usize,
}

impl Memory {
    /// The memory of calls that belong to no conversation.
    pub(crate) fn open() -> Self {
        Self { open: true, ..Self::default() }
    }

    /// The memory of an agent to which a task was handed.
    pub(crate) fn of_task(task: &Task) -> Self {
        Self { depth: task.depth, agents: task.agents.clone(), ..Self::default() }
    }

    /// Tells somebody of its calls from now on: the first who asks.
    pub(super) fn watch(&self, watcher: Arc<dyn Observer>) {
        let _ = self.watcher.set(watcher);
    }

    /// Who is told of its calls.
    pub(super) fn watcher(&self) -> Option<&Arc<dyn Observer>> {
        self.watcher.get()
    }

    /// Keeps others from adding meanwhile.
    pub(super) fn adding(&self) -> MutexGuard<'_, ()> {
        locked(&self.adding)
    }

    /// Whether its caller knows every tool.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn has_loaded(&self, index: usize) -> bool {
        self.open || locked(&self.loaded).contains(&index)
    }

    pub(super) fn load(&self, index: usize) {
        locked(&self.loaded).insert(index);
    }

    /// Where what a tool prepares is kept: whoever comes second waits for the first.
    pub(super) fn preparing(&self, key: String) -> Arc<Preparing> {
        locked(&self.prepared).entry(key).or_default().clone()
    }

    /// Where a tool keeps values for as long as it lasts; of calls that belong to no conversation each has its own.
    pub(super) fn store(&self, owner: [&str; 3]) -> Store {
        match self.open {
            true => Store::default(),
            false => locked(&self.stores).entry(owner.map(str::to_owned)).or_default().clone(),
        }
    }

    /// EventKind a tool has prepared, if it has.
    pub(super) fn prepared(&self, key: &str) -> Option<Arc<str>> {
        locked(&self.prepared).get(key).and_then(|preparing| preparing.get().cloned())
    }

    pub(super) fn approves(&self, approval: &Approval) -> bool {
        locked(&self.approved).contains(approval)
    }

    pub(super) fn approve(&self, approval: Approval) {
        locked(&self.approved).insert(approval);
    }
}

impl Cache {
    /// The value that a script kept under a key.
    pub(super) fn get(&self, key: &str) -> Option<String> {
        locked(&self.0).values.get(key).cloned()
    }

    /// Keeps a value.
    ///
    /// # Errors
    ///
    /// EventKind it is too large for; what was kept before stays.
    pub(super) fn set(&self, key: String, value: String) -> Result<(), String> {
        if key.len() > MAX_KEY_LEN {
            return Err(format!("the key has {} bytes, more than the {MAX_KEY_LEN} allowed", key.len()));
        }
        let mut kept = locked(&self.0);
        let before = kept.values.get(&key).map_or(0, |value| key.len() + value.len());
        let bytes = kept.bytes - before + key.len() + value.len();
        if bytes > MAX_KEPT_BYTES {
            return Err(format!("the run would store {bytes} bytes, more than the {MAX_KEPT_BYTES} allowed"));
        }
        if before == 0 && kept.values.len() == MAX_KEPT {
            return Err(format!("the run already stores {MAX_KEPT} values, the maximum"));
        }
        kept.bytes = bytes;
        kept.values.insert(key, value);
        Ok(())
    }
}

/// Things that are added and never taken away, so that whoever looks may hold on to what he sees.
pub(super) struct Additions<T>([OnceLock<Box<T>>; MAX_ADDED]);

impl<T> Default for Additions<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }
}

impl<T> Additions<T> {
    /// Adds one, or gives it back where there is no more room.
    pub(super) fn add(&self, one: T) -> Result<(), T> {
        let mut one = Box::new(one);
        for place in &self.0 {
            match place.set(one) {
                Ok(()) => return Ok(()),
                Err(back) => one = back,
            }
        }
        Err(*one)
    }

    /// EventKind was added so far, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map_while(OnceLock::get).map(AsRef::as_ref)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_keeps_so_many_values_of_so_many_bytes() {
        let memory = Cache::default();
        (0..MAX_KEPT).for_each(|n| memory.set(format!("k{n}"), "1".into()).unwrap());
        assert!(memory.set("one more".into(), "1".into()).unwrap_err().contains("1000 values"));
        memory.set("k0".into(), "2".into()).unwrap();
        assert_eq!(memory.get("k0").as_deref(), Some("2"));
        assert!(memory.set("k0".into(), "x".repeat(MAX_KEPT_BYTES)).unwrap_err().contains("more than the 4194304"));
        assert_eq!(memory.get("k0").as_deref(), Some("2"));
        assert!(memory.set("k".repeat(MAX_KEY_LEN + 1), "1".into()).unwrap_err().contains("the key has 1025 bytes"));
    }

    #[test]
    fn so_many_are_added_and_stay_in_order() {
        let added = Additions::default();
        (0..MAX_ADDED).for_each(|n| added.add(n).unwrap());
        assert_eq!(added.add(99), Err(99));
        assert!(added.iter().copied().eq(0..MAX_ADDED));
    }
}
