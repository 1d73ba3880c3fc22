//! The published state: a runtime with the list of its tools. A reload replaces it as a whole, and a running call ends on the
//! state that it began with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::watch;
use toolcrib::{Results, Runtime, Session};

use crate::permission::DenyFlags;

use super::catalog::Catalog;
use super::parts::PartListeners;

/// A runtime and the list of its tools.
pub(crate) struct Published {
    pub(super) runtime: Runtime,
    pub(super) catalog: Catalog,
    pub(super) parts: Arc<PartListeners>,
    pub(super) results: Results,
    pub(super) deny_flags: DenyFlags,
    /// Conversations by the identity of the client: clients share neither values nor background tasks.
    sessions: Mutex<HashMap<String, Session>>,
}

/// Present published state, with notices of its replacements.
#[derive(Clone)]
pub(crate) struct Publication {
    present: Arc<RwLock<Arc<Published>>>,
    /// Number of replacements that changed the list of tools.
    changes: watch::Sender<u64>,
}

impl Published {
    /// Publishes the tools of a runtime. More than `max_listed` tools are found by a search.
    pub(crate) fn new(
        runtime: Runtime,
        parts: Arc<PartListeners>,
        results: Results,
        deny_flags: DenyFlags,
        max_listed: usize,
    ) -> Self {
        let catalog = Catalog::new(&runtime, max_listed);
        Self { runtime, catalog, parts, results, deny_flags, sessions: Mutex::default() }
    }

    /// Returns the runtime.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the conversation of a client. The number of identities is that of the tokens.
    pub(super) fn session(&self, identity: &str) -> Session {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(identity.to_owned()).or_insert_with(|| self.runtime.full_session()).clone()
    }

    /// Lists the tools that have another name here than in their sources.
    pub(crate) fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.catalog.renamed()
    }
}

impl Publication {
    /// Publishes a first state.
    pub(crate) fn new(first: Published) -> Self {
        Self { present: Arc::new(RwLock::new(Arc::new(first))), changes: watch::Sender::new(0) }
    }

    /// Returns the present state.
    pub(super) fn present(&self) -> Arc<Published> {
        self.present.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the state; returns `true` if the list of tools changed.
    pub(super) fn replace(&self, next: Published) -> bool {
        let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
        let is_changed = present.catalog.tools() != next.catalog.tools();
        *present = Arc::new(next);
        drop(present);
        if is_changed {
            self.changes.send_modify(|changes| *changes += 1);
        }
        is_changed
    }

    /// Subscribes to changes of the list of tools.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
