//! Where the records of calls are written, if they are.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib::Builder;
use toolcrib::observe::Observer;
use toolcrib::tool::Access;
use toolcrib_agent_tool::{AgentToolRecorder, Error};

use crate::render::Advice;

use super::{RECORDS, Sources};

/// Where the records of calls are written.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RecordsFolder {
    /// Write what happens in every call as records of the Agent Tool standard, one NDJSON file a kind
    #[arg(long, value_name = "DIR", help_heading = RECORDS)]
    records: Option<PathBuf>,
}

/// The records of calls, where they are wanted.
#[derive(Default)]
pub(crate) struct Recording(Option<Arc<AgentToolRecorder>>);

impl RecordsFolder {
    /// Opens the folder that was named. The records are under the masks of the audit log.
    pub(crate) fn open(
        &self,
        sources: &Sources,
        secrets: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Recording> {
        let Some(folder) = &self.records else { return Ok(Recording(None)) };
        let (patterns, texts) = sources.masks(secrets);
        let records = AgentToolRecorder::folder(folder).map_err(advise)?.redact(patterns).redact_literal(texts);
        let records = match sources.secrets.kept.secrets() {
            Some(secrets) => records.redact_secrets(&secrets),
            None => records,
        };
        Ok(Recording(Some(Arc::new(records))))
    }
}

impl Recording {
    /// Who watches the calls.
    pub(crate) fn observer(&self) -> Option<Arc<dyn Observer>> {
        Some(self.0.clone()?)
    }

    /// Keeps the records apart from what tools are granted: they could write some of their own.
    pub(crate) fn keep_apart(&self, builder: Builder) -> Builder {
        self.0.iter().fold(builder, |builder, records| builder.reserve("records", records.path(), Access::Read))
    }

    /// Waits until every record is written.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        self.0.iter().try_for_each(|records| Ok(records.finish().map_err(advise)?))
    }
}

/// Adds the advice of an error.
fn advise(error: Error) -> Advice {
    Advice::new(error.to_string(), error.hint())
}
