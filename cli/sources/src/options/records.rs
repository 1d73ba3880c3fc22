//! Option for the folder of Agent Tool records of calls.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib::Builder;
use toolcrib::observe::Observer;
use toolcrib::tool::Access;
use toolcrib_agent_tool::{AgentToolRecorder, Error};
use toolcrib_base::headings::RECORDS;
use toolcrib_base::render::Advice;

use super::Sources;

/// Folder of Agent Tool records.
#[derive(Debug, Clone, clap::Args)]
pub struct RecordsFolder {
    /// Write Agent Tool records of all calls to this directory, one NDJSON file per kind
    #[arg(long, value_name = "DIR", help_heading = RECORDS)]
    records: Option<PathBuf>,
}

/// Recorder of Agent Tool records, if enabled.
#[derive(Default)]
pub struct Recording(Option<Arc<AgentToolRecorder>>);

impl RecordsFolder {
    /// Opens the folder, if one is named. The records use the masks of the audit log.
    pub fn open(&self, sources: &Sources, secrets: impl IntoIterator<Item = String>) -> anyhow::Result<Recording> {
        let Some(folder) = &self.records else { return Ok(Recording(None)) };
        let (patterns, texts) = sources.masks(secrets);
        let records = AgentToolRecorder::folder(folder).map_err(advise)?.redact(patterns).redact_literal(texts);
        let records = match sources.secrets.secrets() {
            Some(secrets) => records.redact_secrets(&secrets),
            None => records,
        };
        Ok(Recording(Some(Arc::new(records))))
    }
}

impl Recording {
    /// Returns the observer that records calls.
    pub fn observer(&self) -> Option<Arc<dyn Observer>> {
        Some(self.0.clone()?)
    }

    /// Reserves the folder so that no grant covers it: tools could forge records.
    pub fn keep_apart(&self, builder: Builder) -> Builder {
        self.0.iter().fold(builder, |builder, records| builder.reserve("records", records.path(), Access::Read))
    }

    /// Waits until every record is written.
    pub fn finish(&self) -> anyhow::Result<()> {
        self.0.iter().try_for_each(|records| Ok(records.finish().map_err(advise)?))
    }
}

/// Adds the advice of an error.
fn advise(error: Error) -> Advice {
    Advice::new(error.to_string(), error.hint())
}
