//! The serving side: it offers the tools of a runtime under their digests and runs the calls that it has places for.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures::StreamExt as _;
use futures::stream::{SelectAll, select_all};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use toolcrib::Runtime;

use crate::connection::Connection;
use crate::job::Job;
use crate::message::{MAX_REASON, Offer, WorkerMessage, decode_offer, encode};
use crate::service::Service;
use crate::statistics::{CallEnd, Statistics};
use crate::subject::{QUEUE, WorkerName, is_call, is_inbox, offers};

/// Maximum number of tools that a worker serves.
pub(crate) const MAX_TOOLS: usize = 4096;

/// Maximum time to tell the server that this worker ends.
const MAX_LAST: Duration = Duration::from_secs(1);

/// Tool that a worker serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedTool {
    /// Name of the tool.
    pub name: String,
    /// Digest of its program or script, as `sha256:HEX`.
    pub digest: String,
}

/// Settings of a worker.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Name of the worker.
    pub name: WorkerName,
    /// Number of calls at a time.
    pub places: usize,
    /// Maximum time for the running calls after the worker is told to stop.
    pub drain: Duration,
}

/// Failure of a worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A tool cannot be offered.
    #[error("the tool `{0}` cannot be offered: its name is too long, or its program has no digest")]
    Tool(String),
    /// There are too many tools.
    #[error("{0} tools are more than the {MAX_TOOLS} that a worker serves")]
    TooMany(usize),
    /// The connection is closed.
    #[error("the connection to NATS is closed: {0}")]
    Closed(String),
}

/// Worker that serves.
struct Worker {
    connection: Connection,
    runtime: Runtime,
    name: WorkerName,
    places: Arc<Semaphore>,
    statistics: Arc<Statistics>,
    subjects: HashSet<String>,
    jobs: JoinSet<()>,
    is_draining: bool,
}

/// Serves tools until `stop` is ready, then ends the running calls within the time of the settings. `ready` is called once all
/// tools are offered. Returns the number of calls that had to be stopped.
///
/// # Errors
///
/// A tool cannot be offered, or the connection is closed for good.
pub async fn serve(
    connection: Connection,
    runtime: Runtime,
    tools: Vec<ServedTool>,
    settings: WorkerSettings,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<usize, ServeError> {
    let closed = |error: &dyn std::error::Error| ServeError::Closed(error.to_string());
    let client = connection.client.clone();
    let subjects = subjects(&tools)?;
    let mut subscriptions = Vec::with_capacity(subjects.len());
    for subject in &subjects {
        let offered = client.queue_subscribe(subject.clone(), QUEUE.to_owned()).await;
        subscriptions.push(offered.map_err(|error| closed(&error))?);
    }
    let statistics = Arc::new(Statistics::default());
    let service = Service::new(settings.name.clone(), &tools, settings.places, statistics.clone());
    let mut questions = service.subscribe(&client).await.map_err(|error| closed(&error))?;
    client.flush().await.map_err(|error| closed(&error))?;
    ready();
    let mut worker = Worker {
        connection,
        runtime,
        name: settings.name,
        places: Arc::new(Semaphore::new(settings.places)),
        statistics,
        subjects,
        jobs: JoinSet::new(),
        is_draining: false,
    };
    let mut offered: SelectAll<Subscriber> = select_all(subscriptions);
    let mut stop = std::pin::pin!(stop);
    let mut until: Option<Instant> = None;
    loop {
        let ended = until.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            () = &mut stop, if !worker.is_draining => {
                worker.is_draining = true;
                worker.statistics.drain();
                until = Some(Instant::now() + settings.drain);
                let drain = async {
                    for subscription in offered.iter_mut() {
                        // What the server has sent before it knows of this still arrives, and is answered.
                        let _ = subscription.drain().await;
                    }
                };
                let is_sent = timeout(MAX_LAST, drain).await.is_ok();
                if offered.is_empty() || !is_sent || !worker.connection.is_connected() {
                    break;
                }
            }
            () = sleep_until(ended), if until.is_some() => break,
            Some(_) = worker.jobs.join_next(), if !worker.jobs.is_empty() => {}
            message = offered.next() => match message {
                Some(message) => worker.take(message).await,
                None if worker.is_draining => break,
                None => return Err(ServeError::Closed("the subscriptions have ended".to_owned())),
            },
            Some(question) = questions.next() => service.answer(&client, &question).await,
        }
    }
    let rest = async {
        loop {
            tokio::select! {
                ended = worker.jobs.join_next() => if ended.is_none() { break },
                Some(question) = questions.next() => service.answer(&client, &question).await,
            }
        }
    };
    let _ = timeout_at(until.unwrap_or_else(Instant::now), rest).await;
    let stopped = worker.jobs.len();
    worker.jobs.shutdown().await;
    // The last reports are sent, if the server is there.
    let _ = timeout(MAX_LAST, client.flush()).await;
    Ok(stopped)
}

/// Returns the subjects for offers of tools.
///
/// # Errors
///
/// There are too many tools, or one cannot be offered.
fn subjects(tools: &[ServedTool]) -> Result<HashSet<String>, ServeError> {
    if tools.len() > MAX_TOOLS {
        return Err(ServeError::TooMany(tools.len()));
    }
    let subject =
        |tool: &ServedTool| offers(&tool.digest, &tool.name).ok_or_else(|| ServeError::Tool(tool.name.clone()));
    tools.iter().map(subject).collect()
}

impl Worker {
    /// Takes an offer: the call runs, or the caller learns why it does not.
    async fn take(&mut self, message: Message) {
        let Some(inbox) = message.reply.as_ref().map(ToString::to_string).filter(|subject| is_inbox(subject)) else {
            self.statistics.count(CallEnd::Refused);
            return;
        };
        let worker = self.name.to_string();
        let offer = match self.read(&message) {
            Ok(offer) => offer,
            Err((call, reason)) => {
                self.statistics.count(CallEnd::Refused);
                let reason = reason.chars().take(MAX_REASON).collect();
                self.reply(inbox, &WorkerMessage::Refused { call, worker, reason }).await;
                return;
            }
        };
        let place = match self.is_draining {
            true => None,
            false => self.places.clone().try_acquire_owned().ok(),
        };
        let Some(place) = place else {
            self.statistics.count(CallEnd::Busy);
            self.reply(inbox, &WorkerMessage::Busy { call: offer.call, worker }).await;
            return;
        };
        let job = Job {
            client: self.connection.client.clone(),
            runtime: self.runtime.clone(),
            worker: self.name.clone(),
            offer,
            inbox,
            statistics: self.statistics.clone(),
        };
        let statistics = self.statistics.clone();
        self.jobs.spawn(async move {
            let _running = statistics.run();
            job.run().await;
            drop(place);
        });
    }

    /// Reads an offer, which must be one for the subject that it arrived on. An error has the identifier of the call, if it is known.
    fn read(&self, message: &Message) -> Result<Offer, (String, String)> {
        let offer = decode_offer(&message.payload).map_err(|why| (call_of(&message.payload), why))?;
        if !is_call(&offer.call) {
            return Err((String::new(), "the identifier of the call is wrong".to_owned()));
        }
        let subject = offers(&offer.digest, &offer.tool);
        let is_served = subject.is_some_and(|subject| *subject == *message.subject && self.subjects.contains(&subject));
        match is_served {
            true => Ok(offer),
            false => Err((offer.call, "it offers another tool than its subject names".to_owned())),
        }
    }

    async fn reply(&self, inbox: String, message: &WorkerMessage) {
        let _ = self.connection.client.publish(inbox, encode(message, b"").into()).await;
    }
}

/// Returns the identifier in a message that is no offer of this version.
fn call_of(payload: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Called {
        call: String,
    }
    let line = payload.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let called = serde_json::from_slice::<Called>(line.get(..crate::message::MAX_HEAD).unwrap_or(line));
    called.ok().map(|called| called.call).filter(|call| is_call(call)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_serves_a_bounded_number_of_tools_that_can_be_offered() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let tools = |count: usize| -> Vec<ServedTool> {
            (0..count).map(|at| ServedTool { name: format!("t{at}"), digest: digest.clone() }).collect()
        };
        assert_eq!(subjects(&tools(MAX_TOOLS)).map(|subjects| subjects.len()), Ok(MAX_TOOLS));
        assert_eq!(subjects(&tools(MAX_TOOLS + 1)), Err(ServeError::TooMany(MAX_TOOLS + 1)));
        let nameless = ServedTool { name: String::new(), digest };
        assert_eq!(subjects(&[nameless]), Err(ServeError::Tool(String::new())));
    }
}
