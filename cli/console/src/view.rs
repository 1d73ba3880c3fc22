//! Everything that pages show.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use toolcrib_agent::runs::RunStore;
use toolcrib_sources::options::{Kept, Sources};

use super::launcher::Launcher;
use super::loaded_tools::LoadedTools;
use super::trial::Trials;

/// Maximum number of exports at once.
const MAX_EXPORTS: usize = 2;

/// Everything that pages show.
pub struct Views {
    pub(super) runs: RunStore,
    /// Folder of the audit log.
    pub(super) audit: PathBuf,
    /// Files for permanent approvals and waiting calls.
    pub(super) kept: Kept,
    pub(super) tools: LoadedTools,
    /// Room for exports.
    pub(super) exports: Arc<Semaphore>,
    pub(super) trials: Trials,
    /// Starter of runs, if this console may start any.
    pub(super) launcher: Option<Launcher>,
}

impl Views {
    /// Creates the views of these runs, and the tools that these sources load. A `launcher` starts runs.
    ///
    /// # Errors
    ///
    /// No folder is named, and the user has no home directory.
    pub fn new(runs: RunStore, sources: Sources, launcher: Option<Launcher>) -> anyhow::Result<Self> {
        let (audit, kept) = (sources.log.folder()?, sources.rules.kept.clone());
        let trials = Trials::default();
        let tools = LoadedTools::new(sources, trials.clone());
        Ok(Self { runs, audit, kept, tools, exports: Arc::new(Semaphore::new(MAX_EXPORTS)), trials, launcher })
    }
}
