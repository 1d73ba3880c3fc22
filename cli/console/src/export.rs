//! Files to store: the logged calls of a filter, as they are in the log, and a run's messages. The log is never held:
//! it is read as fast as the browser takes it, and a connection breaks where the log cannot be read to its end.

use std::io;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use bytes::Bytes;
use futures::{Stream, stream};
use tokio::sync::mpsc;
use toolcrib::audit::LogRecords;
use toolcrib_agent::runs::RunStore;
use toolcrib_base::render::Advice;

use super::history::Filter;
use super::response::{self, Answer};
use super::view::Views;
use super::visit::{ViewError, Visit};

/// Maximum time of an export.
const MAX_TIME: Duration = Duration::from_mins(10);
/// Bytes of a part, apart from its last record, and parts that wait for the browser.
const PART: usize = 64 << 10;
const MAX_PARTS: usize = 4;

/// Part of a file; `None` is its end. A file without this end is broken off.
type Part = io::Result<Option<Bytes>>;

/// Exports the calls that a filter selects, one record a line, oldest first.
pub(super) fn calls(views: &Views, visit: &Visit) -> Result<Answer, ViewError> {
    let filter = Filter::read(&visit.query).map_err(|problem| anyhow!(problem))?;
    let busy =
        |_| Advice::new("other exports are not done yet", "wait for their end, or use `toolcrib audit show --json`");
    let room = views.exports.clone().try_acquire_owned().map_err(busy)?;
    let records = filter.open(&views.audit)?;
    let (sender, parts) = mpsc::channel(MAX_PARTS);
    tokio::task::spawn_blocking(move || {
        let end = write(&filter, records, &sender).map(|()| None);
        drop(room);
        // The browser may have left.
        let _ = sender.blocking_send(end);
    });
    Ok(response::file("calls.ndjson", "application/x-ndjson", content(parts)))
}

/// Sends the selected records in parts.
fn write(filter: &Filter, records: Option<LogRecords>, parts: &mpsc::Sender<Part>) -> io::Result<()> {
    let (until, mut part) = (Instant::now() + MAX_TIME, Vec::new());
    let left = |_| io::Error::from(io::ErrorKind::BrokenPipe);
    for (at, entry) in records.into_iter().flatten().enumerate() {
        let entry = entry.map_err(io::Error::other)?;
        if filter.includes(&entry) {
            part.extend_from_slice(entry.text.as_bytes());
            part.push(b'\n');
        }
        if part.len() >= PART {
            parts.blocking_send(Ok(Some(std::mem::take(&mut part).into()))).map_err(left)?;
        }
        if at % super::history::INTERVAL == 0 && (parts.is_closed() || Instant::now() > until) {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    parts.blocking_send(Ok(Some(part.into()))).map_err(left)
}

/// Content of a file from its parts.
fn content(parts: mpsc::Receiver<Part>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::try_unfold(parts, |mut parts| async move {
        let part = parts.recv().await.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
        Ok(part.map(|part| (part, parts)))
    })
}

/// Exports the messages of a run, as `toolcrib runs export` does.
pub(super) fn run(views: &Views, id: &str) -> Result<Answer, ViewError> {
    let known = RunStore::parse(id).ok().filter(|id| views.runs.path(id).is_file());
    let Some(known) = known else { return Err(ViewError::Unknown("No saved run has this ID.".to_owned())) };
    let mut text = serde_json::to_vec_pretty(&views.runs.read(&known)?.exported())?;
    text.push(b'\n');
    let whole = stream::iter([Ok(Bytes::from(text))]);
    Ok(response::file(&format!("run-{known}.json"), "application/json", whole))
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn a_file_without_its_end_is_an_error() {
        for (end, is_whole) in
            [(Some(Ok(None)), true), (Some(Err(io::ErrorKind::TimedOut.into())), false), (None, false)]
        {
            let (sender, parts) = mpsc::channel(MAX_PARTS);
            sender.send(Ok(Some(Bytes::from_static(b"a")))).await.unwrap();
            if let Some(end) = end {
                sender.send(end).await.unwrap();
            }
            // As after a panic of the thread that reads.
            drop(sender);
            let read: io::Result<Vec<Bytes>> = content(parts).try_collect().await;
            assert_eq!(read.is_ok(), is_whole, "{read:?}");
        }
    }
}
