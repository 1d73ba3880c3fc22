//! The calling side: it offers a call to the workers of its tool, and tries another if one is busy or lost.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use toolcrib::worker::{WorkerAnswer, WorkerCall, Workers};
use toolcrib::{Outcome, ToolError};

use crate::attempt::{AttemptEnd, attempt};
use crate::connection::Connection;
use crate::subject::{WorkerName, offers};

/// Time without a message after which a worker counts as lost.
pub(crate) const DEFAULT_SILENCE: Duration = Duration::from_secs(5);
/// Maximum time to look for a worker with a free place.
const MAX_BUSY: Duration = Duration::from_secs(10);
/// Maximum time to look for a worker of the tool while the server answers: one may be connecting again.
const MAX_ABSENT: Duration = Duration::from_secs(5);
/// Maximum number of lost workers.
const MAX_LOST: u32 = 8;
/// Pauses between two attempts: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));
/// Time before the deadline without a new attempt, so that the last end is reported.
const MARGIN: Duration = Duration::from_millis(50);
/// Maximum number of names in a message.
const MAX_NAMED: usize = 4;

/// Workers that are reached over NATS.
pub struct NatsWorkers {
    connection: Connection,
    silence: Duration,
}

/// Attempts of one call so far.
#[derive(Default)]
struct Attempts {
    busy: BTreeSet<String>,
    asked: u32,
    lost: u32,
    last_lost: Option<WorkerName>,
    pauses: u32,
}

impl NatsWorkers {
    /// Creates the calling side on a connection.
    pub fn new(connection: Connection) -> Self {
        Self { connection, silence: DEFAULT_SILENCE }
    }

    /// Sets the time without a message after which a worker counts as lost.
    #[must_use]
    pub fn silence(self, silence: Duration) -> Self {
        Self { silence, ..self }
    }

    async fn run(&self, call: WorkerCall<'_>) -> Result<WorkerAnswer, ToolError> {
        let Some(subject) = offers(call.digest, call.tool) else {
            let why = format!("`{}` has no name and digest that can be offered to workers", call.tool);
            return Err(ToolError::new(Outcome::BadComponent, why));
        };
        let (begun, mut attempts, mut reason) = (Instant::now(), Attempts::default(), None);
        // Workers connect again a moment after the server is back.
        let mut reached = begun;
        loop {
            let end = attempt(&self.connection.client, &subject, self.silence, &call).await;
            if !self.connection.is_connected() || matches!(end, AttemptEnd::Lost(_) | AttemptEnd::Unsent(_)) {
                reached = Instant::now();
            }
            let (why, patience) = match end {
                AttemptEnd::Answer(answer) => return Ok(answer),
                AttemptEnd::Broken(worker, why) => return Err(broken(worker.as_ref(), &why)),
                AttemptEnd::TooLarge(worker, bytes) => {
                    let why = format!(
                        "the answer of the worker `{worker}` has {bytes} bytes, more than the output limit allows"
                    );
                    return Err(ToolError::new(Outcome::OutputLimit, why));
                }
                // The deadline in the middle of a search ends it with the reason so far.
                AttemptEnd::Late(worker) => {
                    let reason = reason.filter(|_| worker.is_none());
                    return Err(reason.unwrap_or_else(|| late(worker.as_ref())));
                }
                AttemptEnd::Busy(worker) => {
                    attempts.asked += 1;
                    attempts.busy.insert(worker.to_string());
                    (attempts.all_busy(call.tool), begun + MAX_BUSY)
                }
                // Another worker may have another version.
                AttemptEnd::Refused(worker, reason) => {
                    let why = format!("the worker `{worker}` refuses the call: {reason}");
                    (ToolError::new(Outcome::Denied, why), begun + MAX_ABSENT)
                }
                AttemptEnd::NoWorker => (self.absent(&call), reached + MAX_ABSENT),
                AttemptEnd::Lost(worker) => {
                    attempts.lost += 1;
                    attempts.last_lost = worker.or(attempts.last_lost.take());
                    // The time of the attempt was the pause.
                    let until = if attempts.lost < MAX_LOST { call.until } else { begun };
                    (self.lost(&attempts), until)
                }
                AttemptEnd::Unsent(why) => {
                    let why = format!("no connection to {}: {why}", self.connection.address());
                    (ToolError::new(Outcome::Upstream, why), begun + MAX_ABSENT)
                }
            };
            let pause = attempts.pause();
            if Instant::now() + pause >= patience.min(call.until.checked_sub(MARGIN).unwrap_or(begun)) {
                return Err(why);
            }
            reason = Some(why);
            tokio::time::sleep(pause).await;
        }
    }

    fn absent(&self, call: &WorkerCall<'_>) -> ToolError {
        let digest: String = call.digest.chars().take("sha256:".len() + 12).collect();
        let why =
            format!("no worker at {} serves `{}` with the program {digest}…", self.connection.address(), call.tool);
        ToolError::new(Outcome::Upstream, why)
    }

    fn lost(&self, attempts: &Attempts) -> ToolError {
        let why = match (&attempts.last_lost, self.connection.is_connected()) {
            (_, false) => format!("the connection to {} is lost", self.connection.address()),
            (Some(worker), true) => format!("the worker `{worker}` was lost during the call, and no other answered"),
            (None, true) => "no worker answered the offer of the call".to_owned(),
        };
        ToolError::new(Outcome::Upstream, why)
    }
}

impl fmt::Debug for NatsWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsWorkers").field("address", self.connection.address()).finish_non_exhaustive()
    }
}

impl Workers for NatsWorkers {
    fn call<'a>(&'a self, call: WorkerCall<'a>) -> BoxFuture<'a, Result<WorkerAnswer, ToolError>> {
        Box::pin(self.run(call))
    }
}

impl Attempts {
    /// Returns the next pause, which grows and is never the same for two callers.
    fn pause(&mut self) -> Duration {
        let longest = (PAUSE.0 * 2u32.pow(self.pauses.min(8))).min(PAUSE.1);
        self.pauses += 1;
        longest.mul_f64(rand::random_range(0.5..1.0))
    }

    fn all_busy(&self, tool: &str) -> ToolError {
        let named: Vec<String> = self.busy.iter().take(MAX_NAMED).map(|worker| format!("`{worker}`")).collect();
        let more = match self.busy.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let why = format!(
            "every worker that answered for `{tool}` is busy: {}{more}, asked {} times",
            named.join(", "),
            self.asked
        );
        ToolError::new(Outcome::Busy, why)
    }
}

fn broken(worker: Option<&WorkerName>, why: &str) -> ToolError {
    let worker = worker.map_or("a worker".to_owned(), |worker| format!("the worker `{worker}`"));
    ToolError::new(Outcome::Upstream, format!("{worker} breaks the protocol: {why}"))
}

fn late(worker: Option<&WorkerName>) -> ToolError {
    let why = match worker {
        Some(worker) => format!("the worker `{worker}` did not answer before the deadline"),
        None => "no worker answered the offer of the call before its deadline".to_owned(),
    };
    ToolError::new(Outcome::Deadline, why)
}
