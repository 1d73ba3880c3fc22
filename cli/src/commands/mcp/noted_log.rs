//! Notes of the audit log's head in the database, again and again while a server runs and once at its end.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use toolcrib_base::render;

use crate::commands::audit::AuditHeads;

/// Time between two notes.
const INTERVAL: Duration = Duration::from_secs(10);

/// Notes of one log.
pub(super) struct NotedLog {
    heads: Arc<AuditHeads>,
    task: JoinHandle<()>,
}

impl NotedLog {
    /// Notes the head from now on.
    pub(super) fn start(heads: AuditHeads) -> Self {
        let heads = Arc::new(heads);
        let task = tokio::spawn(note_often(heads.clone()));
        Self { heads, task }
    }

    /// Notes the last head.
    pub(super) async fn finish(self) {
        self.task.abort();
        if let Some(reason) = note(&self.heads).await {
            render::warning(&reason);
        }
    }
}

/// Notes the head as long as the server runs. Each reason of a failure is reported once.
async fn note_often(heads: Arc<AuditHeads>) {
    let mut reported = String::new();
    loop {
        if let Some(reason) = note(&heads).await.filter(|reason| *reason != reported) {
            render::warning(&reason);
            reported = reason;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Notes the head; returns the reason of a failure. A store that does not answer was reported already.
async fn note(heads: &Arc<AuditHeads>) -> Option<String> {
    let heads = heads.clone();
    let noted = spawn_blocking(move || heads.note()).await.unwrap_or_else(|error| Err(error.into()));
    let error = noted.err()?;
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    (!matches!(kind, Some(ErrorKind::NotConnected | ErrorKind::ResourceBusy))).then(|| render::message(&error))
}
