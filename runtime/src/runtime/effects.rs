//! Settings for what tools write: held back in stages, or noted in a record.

use std::sync::Arc;

use toolcrib_staging::{Record, Stage, Stages};

use crate::tool::Access;

use super::builder::Builder;

/// # Effects
impl Builder {
    /// Holds back what tools write: it goes into the stage, which all of them see, and the granted folders stay as they are until
    /// the stage is committed. No tool can be granted the folder in which the stage is kept.
    #[must_use]
    pub fn stage(mut self, stage: Arc<Stage>) -> Self {
        self.reserved.push(("stage".to_owned(), stage.path().to_owned(), Access::Read));
        self.stage = Some(stage);
        self
    }

    /// Sets the place for the stages of single calls, which [`Rule::at_end`](crate::policy::Rule::at_end) needs. A stage is named after
    /// its call, and gone with its end unless its commit was interrupted. No tool can be granted the folder.
    #[must_use]
    pub fn call_stages(mut self, stages: Stages) -> Self {
        let path = stages.path().to_owned();
        self.call_stages = Some(stages);
        self.reserve("stages", path, Access::Read)
    }

    /// Notes what tools write in their granted folders, with what was there before, so that it can be taken back. What a stage
    /// holds back is noted with its commit. No tool can be granted the folder of the history.
    #[must_use]
    pub fn record(mut self, record: Arc<Record>) -> Self {
        let path = record.history().path().to_path_buf();
        self.record = Some(record);
        self.reserve("history", path, Access::Read)
    }
}
