//! Memory of one conversation: loaded tools, approvals, values that tools keep, and the tools and hooks that scripts add.
//! It ends with the conversation.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::OnceCell;

use crate::delegate::Task;
use crate::flow::{ConversationLabels, Label};
use crate::observe::Observer;
use crate::policy::Approval;
use crate::store::keyvalue::{MAX_KEY_LEN, MAX_KEYS, Store};
use crate::tool::Tool;

use crate::pipeline::prepared::PreparedTool;

use super::hook_chain::ChainedHook;

/// Maximum number of tools, and maximum number of hooks, that scripts add to one run.
const MAX_ADDED: usize = 32;
/// Maximum number of stored answers that a conversation knows as its own. Of others it assumes the worst.
const MAX_STORED: usize = 10_000;
/// Maximum total bytes of the values in a cache with their keys.
const MAX_CACHE_BYTES: usize = 4 << 20;

/// Memory of one conversation.
#[derive(Default)]
pub(crate) struct Memory {
    /// Identifier of the conversation in records.
    session: String,
    /// Owner of all that the conversation stores; `None` if it is the operator's own.
    owner: Option<Arc<str>>,
    /// `true` if the calls belong to no conversation: every tool counts as loaded, and nothing is kept.
    open: bool,
    /// `true` if every tool counts as loaded.
    has_all_loaded: bool,
    /// Number of agents that delegated before this conversation.
    pub(crate) depth: u32,
    loaded: Mutex<HashSet<usize>>,
    approved: Mutex<HashSet<Approval>>,
    /// `true` if a long answer was stored, so that a model can open it.
    pub(crate) has_stored_results: AtomicBool,
    pub(crate) cache: Cache,
    /// Key-value stores by the digest of the program and the tool's name.
    stores: Mutex<HashMap<[String; 3], Store>>,
    /// Number of agents that the run has started, at any depth.
    pub(crate) agents: Arc<AtomicU32>,
    /// Labels of all that calls have read, left and shown. An agent that works on a task shares them.
    labels: ConversationLabels,
    /// Labels of the answers that were stored, by their references.
    stored: Arc<Mutex<HashMap<String, Arc<Label>>>>,
    registering: Mutex<()>,
    /// Observer for the calls in this conversation alone.
    watcher: OnceLock<Arc<dyn Observer>>,
    prepared: Mutex<HashMap<String, Arc<Preparation>>>,
    /// Tools that scripts added.
    pub(crate) tools: Additions<AddedTool>,
    /// Hooks that scripts added.
    pub(crate) hooks: Additions<ChainedHook>,
}

/// State that a rich tool prepares once for a session.
pub(crate) type Preparation = OnceCell<Arc<str>>;

/// A tool that a script added.
pub(crate) struct AddedTool {
    pub(crate) tool: Tool,
    pub(crate) prepared: PreparedTool,
}

/// Values that tools keep while the conversation lasts.
#[derive(Default)]
pub(crate) struct Cache(Mutex<CachedValues>);

/// Values by key, and their total bytes.
#[derive(Default)]
struct CachedValues {
    values: HashMap<String, String>,
    bytes: usize,
}

impl Memory {
    /// Creates the memory of a conversation with this identifier.
    pub(crate) fn new(session: String) -> Self {
        Self { session, ..Self::default() }
    }

    /// Creates the memory of calls that belong to no conversation.
    pub(crate) fn open(session: String) -> Self {
        Self { open: true, ..Self::new(session) }
    }

    /// Creates the memory of a conversation in which every tool is loaded.
    pub(crate) fn full(session: String) -> Self {
        Self { has_all_loaded: true, ..Self::new(session) }
    }

    /// Sets the owner of all that the conversation stores.
    pub(crate) fn owned_by(self, owner: Arc<str>) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// Continues with the label of another conversation.
    pub(crate) fn with_label_of(self, other: &Self) -> Self {
        Self { labels: other.labels.clone(), stored: other.stored.clone(), ..self }
    }

    /// Creates the memory of an agent that works on a delegated task.
    pub(crate) fn of_task(session: String, task: &Task) -> Self {
        let (agents, labels, owner) = (task.agents.clone(), task.labels.clone(), task.owner.clone());
        Self { depth: task.depth, agents, labels, owner, ..Self::new(session) }
    }

    /// Returns the identifier of the conversation in records.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Returns the owner of all that the conversation stores; `None` if it is the operator's own.
    pub(crate) fn owner(&self) -> Option<&Arc<str>> {
        self.owner.as_ref()
    }

    /// Sets the observer of this conversation's calls; only the first one is kept.
    pub(crate) fn watch(&self, watcher: Arc<dyn Observer>) {
        let _ = self.watcher.set(watcher);
    }

    /// Returns the observer of this conversation's calls.
    pub(crate) fn watcher(&self) -> Option<&Arc<dyn Observer>> {
        self.watcher.get()
    }

    /// Excludes other registrations while the guard lives.
    pub(crate) fn registering(&self) -> MutexGuard<'_, ()> {
        locked(&self.registering)
    }

    /// Returns `true` for calls that belong to no conversation.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Returns `true` if the tool at an index of the registry is loaded.
    pub(crate) fn has_loaded(&self, index: usize) -> bool {
        self.open || self.has_all_loaded || locked(&self.loaded).contains(&index)
    }

    /// Loads the tool at an index of the registry.
    pub(crate) fn load(&self, index: usize) {
        locked(&self.loaded).insert(index);
    }

    /// Returns the cell of a tool's prepared state: a second caller waits for the first.
    pub(crate) fn preparation(&self, key: String) -> Arc<Preparation> {
        locked(&self.prepared).entry(key).or_default().clone()
    }

    /// Returns the key-value store of a tool in this conversation. Each call outside a conversation has its own.
    pub(crate) fn store(&self, owner: [&str; 3]) -> Store {
        match self.open {
            true => Store::default(),
            false => locked(&self.stores).entry(owner.map(str::to_owned)).or_default().clone(),
        }
    }

    /// Returns the prepared state of a tool, if it exists.
    pub(crate) fn prepared(&self, key: &str) -> Option<Arc<str>> {
        locked(&self.prepared).get(key).and_then(|preparation| preparation.get().cloned())
    }

    /// Label of the conversation; empty for calls outside one.
    pub(crate) fn label(&self) -> Label {
        locked(&self.labels.seen).clone()
    }

    /// Adds a label to that of the conversation. Calls outside one have none.
    pub(crate) fn join_label(&self, label: &Label) {
        if !self.open {
            locked(&self.labels.seen).join(label);
        }
    }

    /// Adds the label that the conversation had before: its earlier calls may have left something.
    pub(crate) fn join_earlier(&self, label: &Label) {
        self.join_label(label);
        locked(&self.labels.left).join(label);
    }

    /// Adds the labels of another conversation.
    pub(crate) fn join_labels_of(&self, other: &Self) {
        let (seen, left) = (other.label(), locked(&other.labels.left).clone());
        self.join_label(&seen);
        locked(&self.labels.left).join(&left);
    }

    /// Returns the labels that all calls of the conversation share; `None` outside one.
    pub(crate) fn shared_labels(&self) -> Option<ConversationLabels> {
        (!self.open).then(|| self.labels.clone())
    }

    /// Returns the labels for an agent that works on a task, with that of the delegating call.
    pub(crate) fn labels_for_agent(&self, given: &Label) -> ConversationLabels {
        let labels = self.shared_labels().unwrap_or_default();
        locked(&labels.seen).join(given);
        labels
    }

    /// Notes the label of a stored answer.
    pub(crate) fn note_stored(&self, reference: String, label: Label) {
        self.has_stored_results.store(true, Relaxed);
        let mut stored = locked(&self.stored);
        if stored.len() < MAX_STORED {
            stored.insert(reference, Arc::new(label));
        }
    }

    /// Returns the label of an answer that was stored in this conversation.
    pub(crate) fn label_of_stored(&self, reference: &str) -> Option<Arc<Label>> {
        locked(&self.stored).get(reference).cloned()
    }

    /// Returns `true` if a person gave this approval for the session.
    pub(crate) fn approves(&self, approval: &Approval) -> bool {
        locked(&self.approved).contains(approval)
    }

    /// Keeps an approval for the session.
    pub(crate) fn approve(&self, approval: Approval) {
        locked(&self.approved).insert(approval);
    }
}

impl Cache {
    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        locked(&self.0).values.get(key).cloned()
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    ///
    /// The exceeded limit; the previous value remains.
    pub(crate) fn set(&self, key: String, value: String) -> Result<(), String> {
        if key.len() > MAX_KEY_LEN {
            return Err(format!("the key has {} bytes, more than the {MAX_KEY_LEN} allowed", key.len()));
        }
        let mut cached = locked(&self.0);
        let before = cached.values.get(&key).map_or(0, |value| key.len() + value.len());
        let bytes = cached.bytes - before + key.len() + value.len();
        if bytes > MAX_CACHE_BYTES {
            return Err(format!("the run would store {bytes} bytes, more than the {MAX_CACHE_BYTES} allowed"));
        }
        if before == 0 && cached.values.len() == MAX_KEYS {
            return Err(format!("the run already stores {MAX_KEYS} values, the maximum"));
        }
        cached.bytes = bytes;
        cached.values.insert(key, value);
        Ok(())
    }
}

/// Items that are added and never removed, so that references to them remain valid.
pub(crate) struct Additions<T>([OnceLock<Box<T>>; MAX_ADDED]);

impl<T> Default for Additions<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }
}

impl<T> Additions<T> {
    /// Adds an item, or returns it if there is no room.
    pub(crate) fn add(&self, item: T) -> Result<(), T> {
        let mut item = Box::new(item);
        for slot in &self.0 {
            match slot.set(item) {
                Ok(()) => return Ok(()),
                Err(back) => item = back,
            }
        }
        Err(*item)
    }

    /// Returns the items in the order in which they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
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
        (0..MAX_KEYS).for_each(|n| memory.set(format!("k{n}"), "1".into()).unwrap());
        assert!(memory.set("one more".into(), "1".into()).unwrap_err().contains("1000 values"));
        memory.set("k0".into(), "2".into()).unwrap();
        assert_eq!(memory.get("k0").as_deref(), Some("2"));
        assert!(memory.set("k0".into(), "x".repeat(MAX_CACHE_BYTES)).unwrap_err().contains("more than the 4194304"));
        assert_eq!(memory.get("k0").as_deref(), Some("2"));
        assert!(memory.set("k".repeat(MAX_KEY_LEN + 1), "1".into()).unwrap_err().contains("the key has 1025 bytes"));
    }

    #[test]
    fn a_conversation_knows_so_many_answers_as_its_own() {
        let memory = Memory::new("s".to_owned());
        (0..=MAX_STORED).for_each(|number| memory.note_stored(number.to_string(), Label::default()));
        let is_known = |number: usize| memory.label_of_stored(&number.to_string()).is_some();
        assert!(is_known(0) && !is_known(MAX_STORED));
    }

    #[test]
    fn so_many_are_added_and_stay_in_order() {
        let added = Additions::default();
        (0..MAX_ADDED).for_each(|n| added.add(n).unwrap());
        assert_eq!(added.add(99), Err(99));
        assert!(added.iter().copied().eq(0..MAX_ADDED));
    }
}
