//! The published state: a runtime with the list of its tools, for all clients and for those with options of their own. A
//! reload replaces it as a whole, and a running call ends on the state that it began with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::{OnceCell, watch};
use toolcrib::{Results, Runtime, Session};

use crate::permission::DenyFlags;
use crate::render;

use super::access::Identity;
use super::catalog::Catalog;
use super::parts::PartListeners;

/// Maximum number of different options of clients that are in use at once. Each has a runtime of its own.
const MAX_OWN: usize = 32;

/// A runtime and the list of its tools.
pub(crate) struct Published {
    pub(super) runtime: Runtime,
    pub(super) catalog: Catalog,
    pub(super) parts: Arc<PartListeners>,
    pub(super) results: Results,
    pub(super) deny_flags: DenyFlags,
    /// Conversations by the identity of the client: clients share neither values nor background tasks.
    sessions: Mutex<HashMap<Arc<str>, Session>>,
}

/// Reads the sources and publishes their tools, with the options of a client in addition.
type Publish = dyn Fn(&[String]) -> anyhow::Result<Published> + Send + Sync;

/// State for clients with the same options; `None` if these cannot be used.
type Own = Arc<OnceCell<Option<Arc<Published>>>>;

/// State as of one reading of the sources.
struct Edition {
    /// State for clients without options of their own.
    general: Arc<Published>,
    own: Mutex<HashMap<Arc<[String]>, Own>>,
}

/// Present published state, with notices of its replacements.
#[derive(Clone)]
pub(crate) struct Publication {
    present: Arc<RwLock<Arc<Edition>>>,
    publish: Arc<Publish>,
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
    pub(super) fn session(&self, client: &Arc<str>) -> Session {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(client.clone()).or_insert_with(|| self.runtime.full_session()).clone()
    }

    /// Lists the tools that have another name here than in their sources.
    pub(crate) fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.catalog.renamed()
    }
}

impl Edition {
    fn new(general: Published) -> Self {
        Self { general: Arc::new(general), own: Mutex::default() }
    }

    /// Returns the place of the state for clients with these options; `None` if too many are in use.
    fn own(&self, options: &Arc<[String]>) -> Option<Own> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= MAX_OWN && !own.contains_key(options) {
            // One that no request uses is built again for the next.
            own.retain(|_, state| Arc::strong_count(state) > 1 || is_in_use(state));
            if own.len() >= MAX_OWN {
                return None;
            }
        }
        Some(own.entry(options.clone()).or_default().clone())
    }

    /// Lists the states that were built for options of clients.
    fn built(&self) -> Vec<(Arc<[String]>, Arc<Published>)> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let built = own.iter().filter_map(|(options, state)| Some((options.clone(), state.get()?.clone()?)));
        built.collect()
    }
}

/// Returns `true` if a request uses a state.
fn is_in_use(state: &Own) -> bool {
    state.get().and_then(Option::as_ref).is_some_and(|published| Arc::strong_count(published) > 1)
}

impl Publication {
    /// Publishes a first state. `publish` reads the sources again, and blocks.
    pub(crate) fn new(
        first: Published,
        publish: impl Fn(&[String]) -> anyhow::Result<Published> + Send + Sync + 'static,
    ) -> Self {
        let present = Arc::new(RwLock::new(Arc::new(Edition::new(first))));
        Self { present, publish: Arc::new(publish), changes: watch::Sender::new(0) }
    }

    /// Returns the present state for clients without options of their own.
    pub(super) fn general(&self) -> Arc<Published> {
        self.edition().general.clone()
    }

    /// Returns the present state for a client; `None` if its options cannot be used.
    pub(super) async fn of(&self, client: &Identity) -> Option<Arc<Published>> {
        let edition = self.edition();
        if client.options.is_empty() {
            return Some(edition.general.clone());
        }
        let own = edition.own(&client.options)?;
        let build = async || {
            let (publish, client) = (self.publish.clone(), client.clone());
            tokio::task::spawn_blocking(move || built(&*publish, &client.name, &client.options)).await.ok().flatten()
        };
        own.get_or_init(build).await.clone()
    }

    /// Reads the sources again and replaces the state; returns `true` if a list of tools changed. This blocks.
    ///
    /// # Errors
    ///
    /// The sources cannot be used; the state stays.
    pub(super) fn reload(&self) -> anyhow::Result<bool> {
        let before = self.edition();
        let next = Edition::new((self.publish)(&[])?);
        let mut is_changed = before.general.catalog.tools() != next.general.catalog.tools();
        for (options, old) in before.built() {
            let state = built(&*self.publish, "a client", &options);
            is_changed |= state.as_ref().is_none_or(|state| state.catalog.tools() != old.catalog.tools());
            let mut own = next.own.lock().unwrap_or_else(PoisonError::into_inner);
            own.insert(options, Arc::new(OnceCell::new_with(Some(state))));
        }
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        if is_changed {
            self.changes.send_modify(|changes| *changes += 1);
        }
        Ok(is_changed)
    }

    /// Subscribes to changes of the list of tools.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn edition(&self) -> Arc<Edition> {
        self.present.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Builds the state for options of a client; `None`, with a warning, if they cannot be used.
fn built(publish: &Publish, client: &str, options: &[String]) -> Option<Arc<Published>> {
    match publish(options) {
        Ok(state) => Some(Arc::new(state)),
        Err(error) => {
            let reason = render::message(&error);
            render::warning(&format!("the options of the token of {client} cannot be used: {reason}"));
            None
        }
    }
}
