//! Both sides of calls at workers: a runtime that passes its calls on, and one that serves them.

use std::sync::Arc;

use crate::error::Error;
use crate::tool::Body;
use crate::worker::Workers;

use super::{Builder, NeededCode, Runtime};

/// # Workers
impl Builder {
    /// Sets the workers that run the programs and scripts of tools, in place of the sandbox of this process. Only tools that only
    /// read can be called then, because a call may be repeated at another worker.
    #[must_use]
    pub fn workers(mut self, workers: Arc<dyn Workers>) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Removes the store of results, so that results are returned whole: their receiver is no model, and stores them itself.
    #[must_use]
    pub fn without_results(mut self) -> Self {
        self.results = None;
        self
    }
}

impl Runtime {
    /// Returns `true` for a tool that only reads by its definition or by the imports of its program, whatever it is granted: only such
    /// tools can be called at workers.
    pub fn only_reads(&self, name: &str) -> bool {
        self.pipeline.registry.index(name).is_some_and(|at| self.pipeline.at(at).prepared.only_reads)
    }

    /// Returns `true` if a model is not shown a tool because its calls cannot serve their purpose: under its
    /// [grant](crate::policy::Grant::is_useless_for), or at workers, where it must only read.
    pub fn is_useless(&self, name: &str) -> bool {
        let at = self.pipeline.registry.index(name);
        at.is_some_and(|at| self.pipeline.at(at).prepared.is_useless(self.pipeline.at(at).tool))
    }

    /// Returns `true` if calls run at [workers](Builder::workers).
    pub fn has_workers(&self) -> bool {
        self.pipeline.workers.is_some()
    }

    /// Prepares a tool as [`Runtime::prepare`] does, and returns the digest of the program or script that its calls run, as
    /// `sha256:HEX`; `None` for a tool that has neither.
    ///
    /// # Errors
    ///
    /// As for [`Runtime::prepare`].
    pub async fn prepared_digest(&self, name: &str) -> Result<Option<String>, Error> {
        self.prepare(name).await?;
        let entry = self.pipeline.at(self.pipeline.registry.find(name)?);
        Ok(match (&entry.tool.body, NeededCode::of(entry.tool)) {
            (Body::Script(script), _) => Some(script.digest.clone()),
            (_, NeededCode::Program) => Some(self.pipeline.programs.program(entry).await?.digest.clone()),
            _ => None,
        })
    }
}
