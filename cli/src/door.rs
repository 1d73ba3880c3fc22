//! The opening that commands with calls share: Agent Tool records, traces and media, attached to the runtime as observers
//! and reserved folders.

use std::path::Path;
use std::sync::Arc;

use toolcrib::Builder;

use crate::media::MediaFolder;
use crate::options::{Recording, RecordsFolder, Sources};
use crate::telemetry::{AgentSpan, Root, Telemetry, TelemetryOptions};

/// Outputs of a command besides its result.
pub(crate) struct Door {
    telemetry: Telemetry,
    records: Recording,
    media: Option<Arc<MediaFolder>>,
}

impl Door {
    /// Starts a trace, if a collector is named.
    pub(crate) fn open(telemetry: &TelemetryOptions, root: Root) -> anyhow::Result<Self> {
        Ok(Self { telemetry: telemetry.start(root)?, records: Recording::default(), media: None })
    }

    /// Opens the folders of records and media, if they are named. Records mask `secrets`.
    pub(crate) fn with_folders(
        self,
        records: &RecordsFolder,
        media: Option<&Path>,
        sources: &Sources,
        secrets: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<Self> {
        let records = records.open(sources, secrets)?;
        let media = media.map(MediaFolder::open).transpose()?.map(Arc::new);
        Ok(Self { records, media, ..self })
    }

    /// Adds the observers to a runtime, and reserves the folders so that no grant covers them.
    pub(crate) fn attach(&self, builder: Builder) -> Builder {
        let builder = self.records.keep_apart(builder);
        let builder = self.media.iter().fold(builder, |builder, media| media.keep_apart(builder));
        self.records.observer().into_iter().chain(self.telemetry.observer()).fold(builder, Builder::observer)
    }

    /// Returns the folder of media, if one is open.
    pub(crate) fn media(&self) -> Option<&Arc<MediaFolder>> {
        self.media.as_ref()
    }

    /// Returns the span of a run, if tracing is enabled.
    pub(crate) fn span(&self) -> Option<AgentSpan> {
        self.telemetry.agent()
    }

    /// Finishes the records and sends the remaining spans.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        let written = self.records.finish();
        self.telemetry.finish().await;
        written
    }
}
