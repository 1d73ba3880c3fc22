//! Brings spans to a collector without ever standing in the way: whoever makes one hands it over and goes on, a task of
//! its own posts them, and the end of the program waits for it only so long. What was lost is counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, Url};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::otlp;
use super::span::Span;
use crate::http::{self, shown};
use crate::interrupt;
use crate::render::{one_line, shortened};

/// The most spans that wait to be sent; further ones are lost.
const MAX_WAITING: usize = 2048;
/// The most spans of one request.
const MAX_CONCURRENT: usize = 512;
/// How long the collector may take for one request.
const REQUEST: Duration = Duration::from_secs(10);
/// How long the end of the program waits for the collector, all in all.
const PARTING: Duration = Duration::from_secs(2);
/// The same, from when somebody insists on the end.
const HURRIED: Duration = Duration::from_millis(500);
/// The most of a collector's answer that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// The most of it that is shown, in characters.
const SHOWN: usize = 200;

/// Where spans are handed over.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    waiting: mpsc::Sender<Span>,
    tally: Arc<Tally>,
}

/// What became of the spans.
#[derive(Debug, Default)]
struct Tally {
    made: AtomicU64,
    delivered: AtomicU64,
    /// Why some were lost, the last reason.
    trouble: Mutex<Option<String>>,
}

/// The task that sends them.
pub(super) struct Exporter {
    url: Url,
    tally: Arc<Tally>,
    closing: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Queue {
    /// Hands a span over, or loses it: this takes no time.
    pub(super) fn push(&self, span: Span) {
        self.tally.made.fetch_add(1, Relaxed);
        if self.waiting.try_send(span).is_err() {
            self.tally.note(format!("more than {MAX_WAITING} were queued"));
        }
    }
}

impl Tally {
    fn note(&self, trouble: String) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }

    fn deliver(&self, spans: u64) {
        self.delivered.fetch_add(spans, Relaxed);
    }
}

impl Exporter {
    /// Starts to send to `url`.
    pub(super) fn start(url: Url) -> anyhow::Result<(Self, Queue)> {
        let (waiting, spans) = mpsc::channel(MAX_WAITING);
        let (closing, closed) = oneshot::channel();
        let tally = Arc::new(Tally::default());
        let line = Line { client: http::client()?, url: url.clone(), tally: tally.clone() };
        let task = tokio::spawn(line.send(spans, closed));
        Ok((Self { url, tally: tally.clone(), closing, task }, Queue { waiting, tally }))
    }

    /// Sends what waits, for [`PARTING`] at most, and says what was lost.
    pub(super) async fn finish(mut self) -> Option<String> {
        // Where nobody listens the task has ended.
        let _ = self.closing.send(());
        let hurried = async {
            interrupt::hard_stop().await;
            tokio::time::sleep(HURRIED).await;
        };
        tokio::select! {
            _ = &mut self.task => {}
            () = tokio::time::sleep(PARTING) => self.task.abort(),
            () = hurried => self.task.abort(),
        }
        let (made, delivered) = (self.tally.made.load(Relaxed), self.tally.delivered.load(Relaxed));
        let lost = made.checked_sub(delivered).filter(|lost| *lost > 0)?;
        let trouble = self.tally.trouble.lock().unwrap_or_else(PoisonError::into_inner).take();
        let why = trouble.unwrap_or_else(|| "no answer in time".to_owned());
        Some(format!("{lost} of {made} spans were not delivered to `{}`: {why}", shown(&self.url)))
    }
}

/// The way to the collector.
struct Line {
    client: Client,
    url: Url,
    tally: Arc<Tally>,
}

impl Line {
    /// Sends what waits, and while that is under way more gathers. It ends when all is sent that was there at closing.
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
                Ok(Err(trouble)) => self.tally.note(trouble),
                Err(_) => self.tally.note(format!("no answer within {REQUEST:?}")),
            }
            batch.clear();
        }
    }

    /// How many of them the collector has taken.
    async fn post(&self, spans: &[Span]) -> Result<u64, String> {
        let body = serde_json::to_vec(&otlp::request(spans)).map_err(|error| error.to_string())?;
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body);
        let transport = |error: reqwest::Error| format!("{:#}", anyhow::Error::from(error.without_url()));
        let response = request.send().await.map_err(transport)?;
        let status = response.status();
        let answer = read(response).await;
        if !status.is_success() {
            let said = one_line(&shortened(&String::from_utf8_lossy(&answer), SHOWN));
            return Err(if said.is_empty() { status.to_string() } else { format!("{status}: {said}") });
        }
        let Some((rejected, why)) = otlp::rejected(&answer) else { return Ok(spans.len() as u64) };
        self.tally.note(format!("rejected: {}", one_line(&shortened(&why, SHOWN))));
        Ok((spans.len() as u64).saturating_sub(rejected))
    }
}

/// The start of an answer; what breaks off ends there.
async fn read(mut response: Response) -> Vec<u8> {
    let mut answer = Vec::new();
    while let Ok(Some(more)) = response.chunk().await {
        answer.extend_from_slice(&more[..more.len().min(MAX_ANSWER_BYTES - answer.len())]);
        if answer.len() == MAX_ANSWER_BYTES {
            break;
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::SystemTime;

    use super::*;
    use crate::telemetry::span::{Kind, Place, new_id, new_trace};

    #[tokio::test]
    async fn what_finds_no_room_is_lost_at_once_and_told() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1/traces", silent.local_addr().expect("an address"));
        let (exporter, queue) = Exporter::start(Url::parse(&url).expect("an address")).expect("a task");
        let place = Place { trace: new_trace(), parent: None };
        let many = MAX_WAITING + 7;
        for _ in 0..many {
            queue.push(Span::ended(new_id(), place, Kind::Internal, String::new(), SystemTime::now()));
        }
        let loss = exporter.finish().await.expect("a loss");
        assert_eq!(loss, format!("{many} of {many} spans were not delivered to `{url}`: more than 2048 were queued"));
    }
}
