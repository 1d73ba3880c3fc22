//! Exports spans without blocking: spans are queued, a background task posts them, and the program waits for it only for a
//! bounded time at exit. Lost spans are counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use toolcrib_base::http::{self, shown};
use toolcrib_base::interrupt;
use toolcrib_base::otlp::post;

use super::otlp;
use super::span::Span;

/// Maximum queued spans; further ones are lost.
const MAX_WAITING: usize = 2048;
/// Maximum spans per request.
const MAX_CONCURRENT: usize = 512;
/// Time limit of one request.
const REQUEST: Duration = Duration::from_secs(10);
/// Maximum wait for the collector at exit.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum wait after a hard shutdown request.
const HARD_STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// Queue of finished spans.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    waiting: mpsc::Sender<Span>,
    tally: Arc<Tally>,
}

/// Counts of created and delivered spans.
#[derive(Debug, Default)]
struct Tally {
    made: AtomicU64,
    delivered: AtomicU64,
    /// Last error.
    failure: Mutex<Option<String>>,
}

/// Background task that sends spans.
pub(super) struct Exporter {
    url: Url,
    tally: Arc<Tally>,
    closing: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Queue {
    /// Queues a span without blocking, or counts it as lost.
    pub(super) fn push(&self, span: Span) {
        self.tally.made.fetch_add(1, Relaxed);
        if self.waiting.try_send(span).is_err() {
            self.tally.note(format!("more than {MAX_WAITING} were queued"));
        }
    }
}

impl Tally {
    fn note(&self, failure: String) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    fn deliver(&self, spans: u64) {
        self.delivered.fetch_add(spans, Relaxed);
    }
}

impl Exporter {
    /// Starts exporting to `url`.
    pub(super) fn start(url: Url) -> anyhow::Result<(Self, Queue)> {
        let (waiting, spans) = mpsc::channel(MAX_WAITING);
        let (closing, closed) = oneshot::channel();
        let tally = Arc::new(Tally::default());
        let sender = Sender { client: http::client()?, url: url.clone(), tally: tally.clone() };
        let task = tokio::spawn(sender.send(spans, closed));
        Ok((Self { url, tally: tally.clone(), closing, task }, Queue { waiting, tally }))
    }

    /// Sends the queued spans for at most [`FLUSH_TIMEOUT`] and returns a message about lost ones.
    pub(super) async fn finish(mut self) -> Option<String> {
        // Fails only if the task has ended.
        let _ = self.closing.send(());
        let hurried = async {
            interrupt::hard_stop().await;
            tokio::time::sleep(HARD_STOP_TIMEOUT).await;
        };
        tokio::select! {
            _ = &mut self.task => {}
            () = tokio::time::sleep(FLUSH_TIMEOUT) => self.task.abort(),
            () = hurried => self.task.abort(),
        }
        let (made, delivered) = (self.tally.made.load(Relaxed), self.tally.delivered.load(Relaxed));
        let lost = made.checked_sub(delivered).filter(|lost| *lost > 0)?;
        let failure = self.tally.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let why = failure.unwrap_or_else(|| "no answer in time".to_owned());
        Some(format!("{lost} of {made} spans were not delivered to `{}`: {why}", shown(&self.url)))
    }
}

/// Connection to the collector.
struct Sender {
    client: Client,
    url: Url,
    tally: Arc<Tally>,
}

impl Sender {
    /// Sends queued spans in batches until the queue is closed and empty.
    async fn send(self, mut spans: mpsc::Receiver<Span>, mut closed: oneshot::Receiver<()>) {
        let mut batch = Vec::new();
        loop {
            let taken = tokio::select! {
                taken = spans.recv_many(&mut batch, MAX_CONCURRENT) => taken,
                _ = &mut closed, if !spans.is_closed() => {
                    spans.close();
                    continue;
                }
            };
            if taken == 0 {
                return;
            }
            match tokio::time::timeout(REQUEST, self.post(&batch)).await {
                Ok(Ok(taken)) => self.tally.deliver(taken),
                Ok(Err(failure)) => self.tally.note(failure),
                Err(_) => self.tally.note(format!("no answer within {REQUEST:?}")),
            }
            batch.clear();
        }
    }

    /// Posts spans and returns the number that the collector accepted.
    async fn post(&self, spans: &[Span]) -> Result<u64, String> {
        let body = serde_json::to_vec(&otlp::request(spans)).map_err(|error| error.to_string())?;
        let answer = post(&self.client, &self.url, HeaderMap::new(), body).await?;
        if !answer.status.is_success() {
            return Err(answer.failure());
        }
        let Some((rejected, why)) = answer.rejected("rejectedSpans") else { return Ok(spans.len() as u64) };
        self.tally.note(format!("rejected: {why}"));
        Ok((spans.len() as u64).saturating_sub(rejected))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::SystemTime;

    use super::*;
    use crate::telemetry::span::{Kind, Place, new_id};

    #[tokio::test]
    async fn spans_beyond_the_queue_are_lost_and_reported() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1/traces", silent.local_addr().expect("an address"));
        let (exporter, queue) = Exporter::start(Url::parse(&url).expect("an address")).expect("a task");
        let place = Place::root();
        let many = MAX_WAITING + 7;
        for _ in 0..many {
            queue.push(Span::ended(new_id(), place, Kind::Internal, String::new(), SystemTime::now()));
        }
        let loss = exporter.finish().await.expect("a loss");
        assert_eq!(loss, format!("{many} of {many} spans were not delivered to `{url}`: more than 2048 were queued"));
    }
}
