//! Where the records of calls are written, if they are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use toolcrib::Runtime;
use toolcrib::observe::Observer;
use toolcrib::record::Records;

use super::{RECORDS, Sources};
use crate::render::Advice;

/// Where the records of calls are written.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RecordsFolder {
    /// Write what happens in every call as records of the Agent Tool standard, one NDJSON file a kind
    #[arg(long, value_name = "DIR", help_heading = RECORDS)]
    records: Option<PathBuf>,
}

/// The records of calls, where they are wanted.
#[derive(Default)]
pub(crate) struct Recording(Option<Arc<Records>>);

impl RecordsFolder {
    /// Opens the folder that was named. The records are under the masks of the audit log.
    pub(crate) fn open(
        &self,
        sources: &Sources,
        secrets: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Recording> {
        let Some(folder) = &self.records else { return Ok(Recording(None)) };
        let (patterns, texts) = sources.masks(secrets);
        let records = Records::folder(folder)?.redact(patterns).redact_literal(texts);
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

    /// Refuses a runtime whose tools could reach the records, and so write some of their own.
    pub(crate) fn keep_apart(&self, runtime: &Runtime) -> anyhow::Result<()> {
        let Some(records) = &self.0 else { return Ok(()) };
        let place = records.path();
        let place = place.canonicalize().with_context(|| format!("cannot find `{}`", place.display()))?;
        let reached = |host: &Path| host.starts_with(&place) || place.starts_with(host);
        for (tool, grant) in runtime.grants() {
            if let Some(folder) = grant.folders().iter().find(|folder| reached(&folder.host)) {
                let message = format!("`{}` could reach the records through `{}`", tool.name, folder.host.display());
                return Err(Advice::new(message, "keep the two apart: name another folder with `--records DIR`").into());
            }
        }
        Ok(())
    }

    /// Waits until every record is written.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        self.0.iter().try_for_each(|records| Ok(records.finish()?))
    }
}
