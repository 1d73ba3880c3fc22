//! Tools that the options of the command load. They are read again when they are older than some seconds.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Map;
use toolcrib::tool::Limits;
use toolcrib::{Builder, Runtime};
use toolcrib_settings::trust::TrustRecords;
use toolcrib_sources::options::Sources;

use super::file_stamp::stamp;
use super::loaded::{Loaded, Permissions};
use super::trial::Trials;

/// Age at which the tools are read again.
const MAX_AGE: Duration = Duration::from_secs(10);
/// Name of the console in its calls' records.
const DOOR: &str = "console";

/// Tools of the sources, as they were read last.
pub(super) struct LoadedTools {
    sources: Sources,
    /// Approver of the calls that a person tries.
    trials: Trials,
    loaded: Mutex<Option<Loaded>>,
    /// Number of the console's decisions about permissions.
    decided: AtomicU64,
}

impl LoadedTools {
    pub(super) fn new(sources: Sources, trials: Trials) -> Self {
        Self { sources, trials, loaded: Mutex::default(), decided: AtomicU64::new(0) }
    }

    pub(super) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Lets the tools be read again, after a decision about them. Calls that wait for a click were prepared before it, so they end.
    pub(super) fn reload(&self) {
        self.decided.fetch_add(1, Relaxed);
        self.trials.stop_waiting();
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the tools, which only a person's trials call.
    ///
    /// # Errors
    ///
    /// There is no source, or it cannot be read.
    pub(super) fn runtime(&self) -> anyhow::Result<Arc<Runtime>> {
        self.load().map(|loaded| loaded.runtime)
    }

    /// Returns the tools with the permissions that they have.
    ///
    /// # Errors
    ///
    /// See [`LoadedTools::runtime`].
    pub(super) fn load(&self) -> anyhow::Result<Loaded> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = loaded.as_ref().filter(|loaded| loaded.at.elapsed() < MAX_AGE) {
            return Ok(loaded.clone());
        }
        let permissions = self.permissions();
        let approver = Arc::new(self.trials.clone());
        let with = |builder: Builder| builder.application(DOOR, Map::new()).approver(approver);
        let runtime = Arc::new(self.sources.runtime_with(Limits::default().deadline, [], with)?);
        Ok(loaded.insert(Loaded { at: Instant::now(), permissions, runtime }).clone())
    }

    /// Returns the present permissions.
    pub(super) fn permissions(&self) -> Permissions {
        let mut hash = DefaultHasher::new();
        self.decided.load(Relaxed).hash(&mut hash);
        self.sources.rules.kept.file().inspect(|approvals| stamp(approvals.path(), &mut hash));
        TrustRecords::of_user().inspect(|trusted| stamp(trusted.path(), &mut hash));
        Permissions(hash.finish())
    }
}
