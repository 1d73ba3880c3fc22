//! One call at a worker: its start, its run through the whole pipeline, its signs of life and its report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, Message, StatusCode, Subscriber};
use futures::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout_at};
use toolcrib::call::{Part, TraceContext};
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::{Outcome, Runtime, ToolCall, ToolError};

use crate::assembly::{Assembly, parts};
use crate::message::{CallerMessage, Offer, VERSION, WorkerMessage, decode, encode};
use crate::report;
use crate::statistics::{CallEnd, Statistics};
use crate::subject::{WorkerName, control};

/// Owner of the approvals, results and stored values of all calls at a worker.
const OWNER: &str = "worker";
/// Maximum time between the acceptance of a call and its start.
const MAX_START: Duration = Duration::from_secs(5);
/// Maximum bytes of the arguments.
const MAX_ARGUMENTS: usize = 16 << 20;
/// Bounds for the time between two signs of life.
const ALIVE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// Signs of life in the time after which a caller counts the worker as lost.
const SIGNS: u32 = 4;
/// Minimum time between two reports of progress.
const MIN_PROGRESS: Duration = Duration::from_millis(100);
/// Maximum number of unreceived signs of life in a row: after them, the caller is gone.
const MAX_UNHEARD: u32 = 2;
/// Maximum time limit that an offer may state.
const MAX_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// Accepted call.
pub(crate) struct Job {
    pub(crate) client: Client,
    pub(crate) runtime: Runtime,
    pub(crate) worker: WorkerName,
    pub(crate) offer: Offer,
    /// Subject of the caller.
    pub(crate) inbox: String,
    pub(crate) statistics: Arc<Statistics>,
}

/// Reason why a call ends without a report.
enum Abandoned {
    /// The caller ended it, or is gone.
    ByCaller,
    /// The messages of the caller are wrong.
    Wrong(String),
    /// The connection is closed.
    Closed,
}

/// Passes the progress of a call on.
struct ProgressForwarder(mpsc::Sender<(u64, Option<u64>)>);

impl Observer for ProgressForwarder {
    fn observe(&self, event: &Event<'_>) {
        if let EventKind::Part { part: Part::Progress { done, total }, .. } = &event.kind {
            // A report is dropped while another waits.
            let _ = self.0.try_send((*done, *total));
        }
    }
}

impl Job {
    /// Runs the call.
    pub(crate) async fn run(self) {
        let accepted = Instant::now();
        let end = match self.conversation(accepted).await {
            Ok(end) => end,
            Err(Abandoned::Wrong(why)) => {
                let error = ToolError::new(Outcome::BadArguments, format!("the worker cannot read the call: {why}"));
                self.answer(&report::write_error(error)).await;
                CallEnd::Refused
            }
            Err(Abandoned::ByCaller | Abandoned::Closed) => CallEnd::Ended,
        };
        self.statistics.spend(accepted.elapsed());
        self.statistics.count(end);
    }

    async fn conversation(&self, accepted: Instant) -> Result<CallEnd, Abandoned> {
        let subject = control(&self.worker, &self.offer.call);
        let mut caller = self.client.subscribe(subject.clone()).await.map_err(|_| Abandoned::Closed)?;
        let worker = self.worker.to_string();
        self.send(&WorkerMessage::Accepted { call: self.offer.call.clone(), worker, version: VERSION }, b"").await;
        let arguments = self.arguments(&mut caller).await?;
        let until = accepted + Duration::from_millis(self.offer.deadline_ms).min(MAX_DEADLINE);
        let (sender, mut progress) = mpsc::channel(1);
        // Approvals and stored values of this machine belong to others.
        let session = self.runtime.owned_session(OWNER);
        session.watched_by(Arc::new(ProgressForwarder(sender)));
        let mut call = ToolCall::new(&self.offer.call, &self.offer.tool, arguments);
        call.trace = self.offer.trace.as_deref().and_then(TraceContext::parse);
        let calling = session.call(call);
        let mut calling = std::pin::pin!(calling);
        let pause = Duration::from_millis(self.offer.silence_ms) / SIGNS;
        let mut alive = interval(pause.clamp(ALIVE.0, ALIVE.1));
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is at once.
        alive.tick().await;
        let (mut unheard, mut came_back, mut shown) = (0, false, None::<Instant>);
        let result = loop {
            tokio::select! {
                biased;
                result = &mut calling => break result,
                message = caller.next() => match message {
                    None => return Err(Abandoned::Closed),
                    Some(message) if message.status == Some(StatusCode::NO_RESPONDERS) => {
                        (unheard, came_back) = (unheard + 1, true);
                        if unheard >= MAX_UNHEARD {
                            return Err(Abandoned::ByCaller);
                        }
                    }
                    Some(message) => match self.read(&message)? {
                        (CallerMessage::Cancel { .. }, _) => return Err(Abandoned::ByCaller),
                        _ => return Err(Abandoned::Wrong("a message after the arguments".to_owned())),
                    },
                },
                () = sleep_until(until.into()) => {
                    let why = "the call did not end before the deadline of its caller";
                    self.answer(&report::write_error(ToolError::new(Outcome::Deadline, why))).await;
                    return Ok(CallEnd::Answered);
                }
                _ = alive.tick() => {
                    // The last sign was received.
                    if !std::mem::take(&mut came_back) {
                        unheard = 0;
                    }
                    self.show_life(&subject).await;
                }
                Some((done, total)) = progress.recv() => {
                    if shown.is_none_or(|shown| shown.elapsed() >= MIN_PROGRESS) {
                        shown = Some(Instant::now());
                        self.send(&WorkerMessage::Progress { call: self.offer.call.clone(), done, total }, b"").await;
                    }
                }
            }
        };
        self.answer(&report::write(&result)).await;
        Ok(match result.receipt.outcome {
            Outcome::Denied => CallEnd::Refused,
            _ => CallEnd::Answered,
        })
    }

    /// Waits for the start of the call and returns its arguments.
    async fn arguments(&self, caller: &mut Subscriber) -> Result<String, Abandoned> {
        let until = Instant::now() + MAX_START;
        let mut assembly: Option<Assembly> = None;
        loop {
            let message = timeout_at(until.into(), caller.next()).await.map_err(|_| Abandoned::ByCaller)?;
            let message = message.ok_or(Abandoned::Closed)?;
            let begun = match (assembly.as_mut(), self.read(&message)?) {
                (_, (CallerMessage::Cancel { .. }, _)) => return Err(Abandoned::ByCaller),
                (None, (CallerMessage::Start { bytes, .. }, part)) => {
                    let begun = Assembly::begin(bytes, MAX_ARGUMENTS, part).map_err(Abandoned::Wrong)?;
                    assembly.insert(begun)
                }
                (Some(begun), (CallerMessage::Part { index, .. }, part)) => {
                    begun.add(index, part).map_err(Abandoned::Wrong)?;
                    begun
                }
                _ => return Err(Abandoned::Wrong("a message out of order".to_owned())),
            };
            if let Some(whole) = begun.whole() {
                return String::from_utf8(whole)
                    .map_err(|_| Abandoned::Wrong("the arguments are not UTF-8".to_owned()));
            }
        }
    }

    /// Reads a message of the caller.
    fn read<'m>(&self, message: &'m Message) -> Result<(CallerMessage, &'m [u8]), Abandoned> {
        let (head, part) = decode::<CallerMessage>(&message.payload).map_err(Abandoned::Wrong)?;
        match head.call() == self.offer.call {
            true => Ok((head, part)),
            false => Err(Abandoned::Wrong("it is of another call".to_owned())),
        }
    }

    /// Shows that the call runs. The server reports to the subject of the call if it has no receiver.
    async fn show_life(&self, subject: &str) {
        let message = encode(&WorkerMessage::Alive { call: self.offer.call.clone() }, b"");
        let _ = self.client.publish_with_reply(self.inbox.clone(), subject.to_owned(), message.into()).await;
    }

    async fn answer(&self, report: &[u8]) {
        let call = &self.offer.call;
        for (index, part) in (0u32..).zip(parts(report)) {
            let head = match index {
                0 => WorkerMessage::Answer { call: call.clone(), bytes: report.len() as u64 },
                _ => WorkerMessage::Part { call: call.clone(), index },
            };
            self.send(&head, part).await;
        }
    }

    /// Sends a message to the caller. One that cannot be sent is missed by the caller, who tries another worker.
    async fn send(&self, head: &WorkerMessage, part: &[u8]) {
        let _ = self.client.publish(self.inbox.clone(), encode(head, part).into()).await;
    }
}
