//! Where the records of calls are written, if they are.

use std::path::PathBuf;
use std::sync::Arc;

use toolcrib::record::Records;

use super::{RECORDS, Sources};

/// Where the records of calls are written.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RecordsFolder {
    /// Write what happens in every call as records of the Agent Tool standard, one NDJSON file a kind
    #[arg(long, value_name = "DIR", help_heading = RECORDS)]
    records: Option<PathBuf>,
}

impl RecordsFolder {
    /// The records in the folder that was named, under the masks of the audit log.
    pub(crate) fn open(
        &self,
        sources: &Sources,
        secrets: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Option<Arc<Records>>> {
        let Some(folder) = &self.records else { return Ok(None) };
        let (patterns, texts) = sources.masks(secrets);
        Ok(Some(Arc::new(Records::folder(folder)?.redact(patterns).redact_literal(texts))))
    }
}
