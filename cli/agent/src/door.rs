//! The opening that commands with calls share: Agent Tool records, traces and media, attached to the runtime as observers
//! and reserved folders.

use std::path::Path;
use std::sync::Arc;

use toolcrib::Builder;
use toolcrib_sources::media::MediaFolder;
use toolcrib_sources::options::{Recording, RecordsFolder, Sources};

use crate::telemetry::{AgentSpan, Root, Telemetry, TelemetryOptions};

/// Outputs of a command besides its result.
pub struct Door {
    telemetry: Telemetry,
    records: Recording,
    media: Option<Arc<MediaFolder>>,
}

impl Door {
    /// Starts a trace, if a collector is named.
    pub fn open(telemetry: &TelemetryOptions, root: Root) -> anyhow::Result<Self> {
        Ok(Self { telemetry: telemetry.start(root)?, records: Recording::default(), media: None })
    }

    /// Opens the folders of records and media, if they are named. Records mask `secrets`.
    pub fn with_folders(
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
    pub fn attach(&self, builder: Builder) -> Builder {
        let builder = self.records.keep_apart(builder);
        let builder = self.media.iter().fold(builder, |builder, media| media.keep_apart(builder));
        self.records.observer().into_iter().chain(self.telemetry.observer()).fold(builder, Builder::observer)
    }

    /// Returns the folder of media, if one is open.
    pub fn media(&self) -> Option<&Arc<MediaFolder>> {
        self.media.as_ref()
    }

    /// Returns the span of a run, if tracing is enabled.
    pub fn span(&self) -> Option<AgentSpan> {
        self.telemetry.agent()
    }

    /// Finishes the records and sends the remaining spans.
    pub async fn close(self) -> anyhow::Result<()> {
        let written = self.records.finish();
        self.telemetry.finish().await;
        written
    }
}
