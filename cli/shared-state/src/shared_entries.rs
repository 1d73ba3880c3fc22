//! Lists of the servers and values of tools in the database. Their methods block.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::task::block_in_place;
use toolcrib::{EntryGroup, ExpectedVersion, SharedEntries, SharedValue};

use crate::entry::{StateKind, StateName};
use crate::error::StoreError;
use crate::postgres::{PostgresStore, hashed};

/// Entries of one kind in a database.
#[derive(Debug)]
pub struct DatabaseEntries {
    store: Arc<PostgresStore>,
    /// Runtime of the connections.
    runtime: Handle,
    kind: StateKind,
    /// Last answers about lists, which are few and read often.
    read: Mutex<HashMap<String, LastRead>>,
}

/// Last answer about an entry.
#[derive(Debug, Clone)]
struct LastRead {
    begun: Instant,
    found: Result<Option<SharedValue>, StoreError>,
}

impl DatabaseEntries {
    /// Uses a database for lists of the servers. This is called within its runtime.
    pub fn lists(store: Arc<PostgresStore>) -> Self {
        Self::of(store, StateKind::List)
    }

    /// Uses a database for the values of tools. This is called within its runtime.
    pub fn tool_values(store: Arc<PostgresStore>) -> Self {
        Self::of(store, StateKind::ToolValue)
    }

    /// Uses a database for the heads of audit logs. This is called within its runtime.
    pub fn audit_heads(store: Arc<PostgresStore>) -> Self {
        Self::of(store, StateKind::AuditHead)
    }

    fn of(store: Arc<PostgresStore>, kind: StateKind) -> Self {
        Self { store, runtime: Handle::current(), kind, read: Mutex::default() }
    }

    fn name(&self, group: &EntryGroup, key: &str) -> StateName {
        StateName::new(self.kind, group.name.as_str(), key)
    }

    /// Returns the name that a group's owner has for its turns; `None` for the servers themselves.
    fn turn(&self, group: &EntryGroup) -> Option<String> {
        let owner = group.owner.as_deref().unwrap_or_default();
        (self.kind == StateKind::ToolValue).then(|| hashed(owner))
    }

    /// Waits for an operation, also on a thread of the runtime.
    fn wait<T>(&self, operation: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        block_in_place(|| self.runtime.block_on(operation))
    }

    /// Reads a list, which is transferred only after a change. One request reads for all that wait meanwhile.
    fn read_list(&self, group: &EntryGroup, key: &str) -> Result<Option<SharedValue>, StoreError> {
        let asked = Instant::now();
        let mut all = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let id = format!("{}\n{key}", group.name);
        let last = all.get(&id);
        if let Some(last) = last.filter(|last| last.begun >= asked) {
            return last.found.clone();
        }
        let known = last.and_then(|last| last.found.clone().ok()?);
        let begun = Instant::now();
        let found = self.wait(self.store.read(&self.name(group, key), known.as_ref().map(|known| known.version), None));
        let found = found.map(|found| {
            found.and_then(|(version, value)| match value {
                Some(value) => Some(SharedValue::new(value, version)),
                None => known,
            })
        });
        // A failure counts from its end: the others that waited for it do not wait as long again.
        let begun = if found.is_ok() { begun } else { Instant::now() };
        all.insert(id, LastRead { begun, found: found.clone() });
        found
    }
}

impl SharedEntries for DatabaseEntries {
    fn read(&self, group: &EntryGroup, key: &str) -> io::Result<Option<SharedValue>> {
        if self.kind == StateKind::List {
            return self.read_list(group, key).map_err(fault);
        }
        let owner = self.turn(group);
        let found = self.wait(self.store.read(&self.name(group, key), None, owner.as_deref())).map_err(fault)?;
        Ok(found.and_then(|(version, value)| Some(SharedValue::new(value?, version))))
    }

    fn replace(
        &self,
        group: &EntryGroup,
        key: &str,
        expected: ExpectedVersion,
        value: Option<&[u8]>,
    ) -> io::Result<bool> {
        let owner = self.turn(group);
        let name = self.name(group, key);
        self.wait(self.store.swap(&name, expected, value, owner.as_deref()))
            .map(|version| version.is_some())
            .map_err(fault)
    }

    fn beginnings(&self, group: &EntryGroup, max_len: usize) -> io::Result<Vec<Vec<u8>>> {
        let owner = self.turn(group);
        self.wait(self.store.beginnings(self.kind, &group.name, max_len, owner.as_deref())).map_err(fault)
    }
}

/// Returns an error with a kind that says how to react.
fn fault(error: StoreError) -> io::Error {
    let kind = match error {
        StoreError::Unavailable(_) => ErrorKind::NotConnected,
        StoreError::Busy(_) => ErrorKind::ResourceBusy,
        StoreError::Full(_) => ErrorKind::QuotaExceeded,
        StoreError::Unusable(_) => ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
