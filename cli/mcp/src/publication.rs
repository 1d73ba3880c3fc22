//! The published state: a runtime with its tool list, for all clients and for those with options of their own. A reload
//! replaces it as a whole, and a running call ends on the state that it began with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rmcp::model::Tool;
use tokio::sync::{Mutex as AsyncMutex, watch};
use toolcrib::{Results, Runtime, Session};
use toolcrib_base::render;
use toolcrib_settings::permission::DenyFlags;

use super::access::{Identity, owner};
use super::catalog::{Catalog, is_callable};
use super::progress::ProgressListeners;
use super::skills::SkillCatalog;

/// Maximum different client options in use at once. Each has a runtime of its own, which shares the compiled programs.
pub(super) const MAX_OWN: usize = 1000;
/// Maximum number of clients with a conversation. People who sign in can be many more than tokens.
const MAX_CONVERSATIONS: usize = 10_000;
/// Time without a request after which a client's conversation makes room for another's.
const IDLE: Duration = Duration::from_hours(24);
/// Time after which options that could not be used are tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A runtime and the list of its tools.
pub struct Published {
    pub(super) runtime: Runtime,
    pub(super) catalog: Catalog,
    pub(super) skills: SkillCatalog,
    pub(super) parts: Arc<ProgressListeners>,
    pub(super) results: Results,
    pub(super) deny_flags: DenyFlags,
    /// Conversations by the holder of the client's token: clients share neither values nor background tasks.
    sessions: Mutex<HashMap<Arc<str>, OwnSession>>,
}

/// Conversation of one client.
struct OwnSession {
    session: Session,
    /// Time of the last request.
    used: Instant,
}

/// Reads the sources and publishes their tools, with the options of a client in addition. The new runtime shares the compiled
/// programs and the limits of calls with the given one.
type Publish = dyn Fn(&[String], &Runtime) -> anyhow::Result<Published> + Send + Sync;

/// State from one reading of the sources.
struct Edition {
    /// State for clients without options of their own.
    general: Arc<Published>,
    own: Mutex<HashMap<Arc<[String]>, Own>>,
}

/// State for clients with the same options.
#[derive(Default)]
struct Own {
    /// The state, once it was built. The lock is held while it is built.
    state: SharedBuilt,
    /// Time of the last request.
    used: Option<Instant>,
}

/// State that is built once, and replaced by a reload.
type SharedBuilt = Arc<AsyncMutex<Built>>;

/// Result of building a state.
#[derive(Default)]
enum Built {
    #[default]
    Not,
    Done(Arc<Published>),
    /// The options cannot be used; as of a time.
    Failed(Instant),
}

/// Reason for which a client has no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnFault {
    /// Its options cannot be used.
    Unusable,
    /// Too many different options are in use.
    TooMany,
}

/// Present published state, with notices of its replacements.
#[derive(Clone)]
pub struct Publication {
    present: Arc<RwLock<Arc<Edition>>>,
    publish: Arc<Publish>,
    /// Number of replacements that changed the tool list.
    changes: watch::Sender<u64>,
}

impl Published {
    /// Publishes the tools of a runtime. More than `max_listed` tools are found by a search.
    pub fn new(
        runtime: Runtime,
        parts: Arc<ProgressListeners>,
        results: Results,
        deny_flags: DenyFlags,
        max_listed: usize,
    ) -> Self {
        let catalog = Catalog::new(&runtime, max_listed);
        let skills = SkillCatalog::new(&runtime, |tool| is_callable(&runtime, tool));
        Self { runtime, catalog, skills, parts, results, deny_flags, sessions: Mutex::default() }
    }

    /// Returns the runtime.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the conversation of a client.
    pub(super) fn session(&self, holder: &Arc<str>) -> Session {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || OwnSession { session: self.new_session(holder), used: Instant::now() };
        let own = sessions.entry(holder.clone()).or_insert_with(new);
        own.used = Instant::now();
        own.session.clone()
    }

    /// Starts the conversation of a client. All that it stores belongs to the holder of its token.
    fn new_session(&self, holder: &str) -> Session {
        match owner(holder) {
            Some(owner) => self.runtime.owned_session(owner),
            None => self.runtime.full_session(),
        }
    }

    /// Returns `true` if there is room for the conversation of a client.
    pub(super) fn has_room_for(&self, client: &Identity) -> bool {
        self.has_room(&client.holder, MAX_CONVERSATIONS, IDLE)
    }

    /// Looks for room among `most` conversations. Idle ones end if there is none.
    fn has_room(&self, holder: &Arc<str>, most: usize, idle: Duration) -> bool {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= most && !sessions.contains_key(holder) {
            sessions.retain(|_, own| own.used.elapsed() < idle);
        }
        sessions.len() < most || sessions.contains_key(holder)
    }

    /// Continues the conversations of an earlier state, with their background tasks.
    fn adopt(&self, earlier: &Self) {
        let earlier = earlier.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let continued = earlier.iter().map(|(holder, OwnSession { session, used })| {
            let session = self.new_session(holder).with_tasks_of(session);
            (holder.clone(), OwnSession { session, used: *used })
        });
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).extend(continued);
    }

    /// Ends the background tasks of all clients, and waits until each has its record.
    async fn end(&self) {
        let sessions: Vec<Session> = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.drain().map(|(_, own)| own.session).collect()
        };
        for session in sessions {
            session.end().await;
        }
    }

    /// Checks that each tool that had a usable program has one still.
    ///
    /// # Errors
    ///
    /// The first that has none, with the reason.
    fn check_programs(&self, before: &Self) -> anyhow::Result<()> {
        let was_usable = |name: &str| before.runtime.tool(name).is_some_and(|tool| tool.unusable.is_none());
        for tool in self.runtime.tools().filter(|tool| was_usable(&tool.name)) {
            if let Some(unusable) = &tool.unusable {
                anyhow::bail!("`{}`: {}", render::one_line(&tool.name), unusable.reason);
            }
        }
        Ok(())
    }

    /// Lists the tools that have another name here than in their sources.
    pub fn renamed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.catalog.renamed()
    }
}

impl Edition {
    fn new(general: Published) -> Self {
        Self { general: Arc::new(general), own: Mutex::default() }
    }

    /// Returns the place of the state for clients with these options; `None` if too many are in use.
    fn own(&self, options: &Arc<[String]>) -> Option<SharedBuilt> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= MAX_OWN && !own.contains_key(options) {
            // One that no request uses is built again for the next.
            let idle = own.iter().filter(|(_, own)| own.is_idle()).min_by_key(|(_, own)| own.used);
            let idle = idle.map(|(options, _)| options.clone())?;
            own.remove(&idle);
        }
        let own = own.entry(options.clone()).or_default();
        own.used = Some(Instant::now());
        Some(own.state.clone())
    }

    /// Creates the edition after this one. Clients with options of their own have their earlier state at first.
    fn followed_by(&self, general: Published) -> Self {
        general.adopt(&self.general);
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let own = own
            .iter()
            .map(|(options, Own { state, used })| (options.clone(), Own { state: state.clone(), used: *used }));
        Self { general: Arc::new(general), own: Mutex::new(own.collect()) }
    }

    /// Lists the places for the states of client options.
    fn all(&self) -> Vec<(Arc<[String]>, SharedBuilt)> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.iter().map(|(options, own)| (options.clone(), own.state.clone())).collect()
    }

    /// Lists the states that were built for options of clients.
    fn built(&self) -> Vec<(Arc<[String]>, Arc<Published>)> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.iter().filter_map(|(options, own)| Some((options.clone(), own.built()?))).collect()
    }
}

impl Own {
    /// Returns the state if it was built and no other is being built.
    fn built(&self) -> Option<Arc<Published>> {
        match &*self.state.try_lock().ok()? {
            Built::Done(state) => Some(state.clone()),
            Built::Not | Built::Failed(_) => None,
        }
    }

    /// Returns `true` if no request uses the state.
    fn is_idle(&self) -> bool {
        let is_unused = |built: &Built| !matches!(built, Built::Done(state) if Arc::strong_count(state) > 1);
        Arc::strong_count(&self.state) == 1 && self.state.try_lock().is_ok_and(|built| is_unused(&built))
    }
}

impl Publication {
    /// Publishes a first state. `publish` reads the sources again, and blocks.
    pub fn new(
        first: Published,
        publish: impl Fn(&[String], &Runtime) -> anyhow::Result<Published> + Send + Sync + 'static,
    ) -> Self {
        let present = Arc::new(RwLock::new(Arc::new(Edition::new(first))));
        Self { present, publish: Arc::new(publish), changes: watch::Sender::new(0) }
    }

    /// Returns the present state for clients without options of their own.
    pub(super) fn general(&self) -> Arc<Published> {
        self.edition().general.clone()
    }

    /// Returns the present state for a client.
    ///
    /// # Errors
    ///
    /// Its options cannot be used, or too many different ones are in use.
    pub(super) async fn of(&self, client: &Identity) -> Result<Arc<Published>, OwnFault> {
        let edition = self.edition();
        if client.options.is_empty() {
            return Ok(edition.general.clone());
        }
        let own = edition.own(&client.options).ok_or(OwnFault::TooMany)?;
        let mut built = own.lock().await;
        match &*built {
            Built::Done(state) => return Ok(state.clone()),
            Built::Failed(at) if at.elapsed() < RETRY => return Err(OwnFault::Unusable),
            Built::Not | Built::Failed(_) => {}
        }
        let (publish, options) = (self.publish.clone(), client.options.clone());
        let general = edition.general.clone();
        let build = move || publish(&options, &general.runtime);
        let state = tokio::task::spawn_blocking(build).await.map_err(anyhow::Error::from).flatten();
        let state = state.map(Arc::new).inspect_err(|error| cannot_use(&client.name, error)).ok();
        *built = state.clone().map_or_else(|| Built::Failed(Instant::now()), Built::Done);
        state.ok_or(OwnFault::Unusable)
    }

    /// Returns the definition of a tool by its name for clients, whoever they are: all have the same sources.
    pub(super) fn listed(&self, name: &str) -> Option<Tool> {
        let edition = self.edition();
        let general = edition.general.catalog.tool(name).cloned();
        general.or_else(|| edition.built().iter().find_map(|(_, own)| own.catalog.tool(name).cloned()))
    }

    /// Reads the sources again and replaces the state; returns `true` if a list of tools changed. This blocks.
    ///
    /// # Errors
    ///
    /// The sources cannot be used; the state stays.
    pub(super) fn reload(&self) -> anyhow::Result<bool> {
        let before = self.edition();
        let next = (self.publish)(&[], &before.general.runtime)?;
        next.check_programs(&before.general)?;
        let mut is_changed = before.general.catalog.tools() != next.catalog.tools();
        let next = {
            // No client begins a conversation between the two.
            let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
            *present = Arc::new(before.followed_by(next));
            present.clone()
        };
        for (options, state) in next.all() {
            // One that is being built is built from the sources of before.
            let mut built = state.blocking_lock();
            let Built::Done(old) = &*built else { continue };
            match (self.publish)(&options, &next.general.runtime) {
                Ok(state) => {
                    state.adopt(old);
                    is_changed |= state.catalog.tools() != old.catalog.tools();
                    *built = Built::Done(Arc::new(state));
                }
                Err(error) => cannot_use("a client", &error),
            }
        }
        if is_changed {
            self.changes.send_modify(|changes| *changes += 1);
        }
        Ok(is_changed)
    }

    /// Ends the background tasks of all clients, and waits until each has its record.
    pub(super) async fn end(&self) {
        let edition = self.edition();
        edition.general.end().await;
        for (_, own) in edition.built() {
            own.end().await;
        }
    }

    /// Subscribes to changes of the tool list.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn edition(&self) -> Arc<Edition> {
        self.present.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Warns that the options of a client cannot be used.
fn cannot_use(client: &str, error: &anyhow::Error) {
    render::warning(&format!("the options of {client} cannot be used: {}", render::message(error)));
}

#[cfg(test)]
mod tests {
    use toolcrib::Audit;

    use super::*;

    fn published() -> Published {
        let runtime = Runtime::builder(Audit::off()).build().unwrap();
        let deny_flags = DenyFlags::new(std::iter::empty());
        Published::new(runtime, Arc::default(), Results::folder("results"), deny_flags, 128)
    }

    fn options(number: usize) -> Arc<[String]> {
        Arc::new([format!("--allow-env=V{number}")])
    }

    fn client(number: usize) -> Identity {
        Identity::named("ada", options(number))
    }

    #[test]
    fn the_number_of_conversations_is_bounded_and_idle_ones_make_room() {
        let published = published();
        let (ada, bob) = ("ada".into(), "bob".into());
        assert!(published.has_room(&ada, 1, IDLE));
        published.session(&ada);
        assert!(published.has_room(&ada, 1, IDLE) && !published.has_room(&bob, 1, IDLE));
        assert!(published.has_room(&bob, 1, Duration::ZERO), "that of ada has ended");
    }

    #[tokio::test]
    async fn the_number_of_options_in_use_is_bounded_and_idle_ones_make_room() {
        let edition = Edition::new(published());
        let mut used: Vec<_> = (0..MAX_OWN).map(|number| edition.own(&options(number)).unwrap()).collect();
        assert!(edition.own(&options(MAX_OWN)).is_none(), "all are in use");
        assert!(edition.own(&options(0)).is_some(), "known ones have their place");
        drop(used.remove(3));
        assert!(edition.own(&options(MAX_OWN)).is_some());
        assert!(!edition.own.lock().unwrap().contains_key(&options(3)));
    }

    #[tokio::test]
    async fn options_that_cannot_be_used_are_tried_again_and_a_reload_keeps_the_last_good() {
        let broken = Arc::new(Mutex::new(true));
        let publish = {
            let broken = broken.clone();
            move |options: &[String], _: &Runtime| {
                anyhow::ensure!(options.is_empty() || !*broken.lock().unwrap(), "broken");
                Ok(published())
            }
        };
        let publication = Publication::new(published(), publish);
        assert!(publication.of(&client(1)).await.is_err());
        *broken.lock().unwrap() = false;
        assert!(publication.of(&client(1)).await.is_err(), "not at once");
        tokio::time::sleep(RETRY).await;
        let good = publication.of(&client(1)).await.expect("the options");
        *broken.lock().unwrap() = true;
        let again = publication.clone();
        tokio::task::spawn_blocking(move || again.reload()).await.unwrap().unwrap();
        assert!(Arc::ptr_eq(&publication.of(&client(1)).await.expect("the options"), &good));
    }

    #[tokio::test]
    async fn options_beyond_the_number_in_use_are_not_taken_for_unusable_ones() {
        let publication = Publication::new(published(), |_: &[String], _: &Runtime| Ok(published()));
        let edition = publication.edition();
        let used: Vec<_> = (0..MAX_OWN).map(|number| edition.own(&options(number)).unwrap()).collect();
        assert_eq!(publication.of(&client(MAX_OWN)).await.err(), Some(OwnFault::TooMany));
        drop(used);
        assert!(publication.of(&client(MAX_OWN)).await.is_ok());
    }
}
