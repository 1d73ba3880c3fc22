//! The loop of a forwarder: it reads a batch, sends it until the target has acknowledged it, notes that in the cursor, and reads the
//! next one. Problems of the log are reported and do not stop it; a target that refuses a batch does.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use serde::Serialize;
use toolcrib::audit::{self, Chain, LogPlace};
use toolcrib_base::interrupt;
use toolcrib_base::render::{self, Advice, counted};
use toolcrib_base::retry::Retries;

use super::batch::{BatchLimits, BatchReader};
use super::bucket;
use super::collector::Collector;
use super::cursor::{self, Cursor};
use super::folder;
use super::record::ForwardedRecord;
use super::storage::Bucket;
use super::syslog::SyslogReceiver;
use super::target::ForwardTarget;

/// Waits after failures.
const RETRIES: Retries = Retries { times: u32::MAX, backoff: Duration::from_millis(200) };
/// Interval of the looks for new records, and for the end of another forwarder.
const POLL: Duration = Duration::from_secs(1);
/// End of the identity of a target that gets no arguments.
const WITHOUT_ARGUMENTS: &str = " --without-arguments";

/// A log, its target, and the manner of forwarding.
#[derive(Debug)]
pub struct Forwarding {
    /// Folder of the log.
    pub log: PathBuf,
    /// Place that records are sent to.
    pub target: ForwardTarget,
    /// File of the cursor, unless it is beside the log.
    pub cursor: Option<PathBuf>,
    /// `true` to wait for further records, until an interruption is requested.
    pub is_following: bool,
    /// `true` to send arguments as the log has them.
    pub has_arguments: bool,
    /// Name of this machine for the target.
    pub host: String,
    /// Time in which a batch is sent again after failures; `None` tries without end.
    pub patience: Option<Duration>,
}

/// Result of forwarding.
#[derive(Debug, Default, Serialize)]
pub struct ForwardSummary {
    /// Target without passwords and keys.
    pub target: String,
    /// Number of records that the target accepted now.
    pub sent: u64,
    /// Number of the last record that the target has.
    pub seq: Option<u64>,
    /// Chain value of this record.
    pub head: Option<Chain>,
    /// Problems of the log, and records that the target rejected.
    pub problems: u64,
}

/// Failure to send a batch.
#[derive(Debug)]
pub(crate) enum SendFailure {
    /// A later attempt may succeed.
    Retry {
        why: String,
        /// Wait that the target asked for.
        asked: Option<Duration>,
    },
    /// The target accepts only smaller batches.
    TooLarge(String),
    /// No attempt will succeed before a person has changed something.
    Refused(String),
}

impl SendFailure {
    pub(crate) fn retry(why: String) -> Self {
        Self::Retry { why, asked: None }
    }
}

/// Way to send to each kind of target.
enum Sender {
    Folder(PathBuf),
    Collector(Box<Collector>),
    Bucket(Box<Bucket>),
    Syslog(Box<SyslogReceiver>),
}

/// A running forwarder.
struct Forwarder {
    sender: Sender,
    cursor: Cursor,
    is_following: bool,
    retries: Retries,
    patience: Option<Duration>,
    summary: ForwardSummary,
}

impl Forwarding {
    /// Forwards the records that the target does not have, until the log's end or an interruption.
    ///
    /// # Errors
    ///
    /// The log or the cursor cannot be used, another process forwards to this target, or the target refuses a batch or does not
    /// accept it in time.
    pub async fn run(self) -> anyhow::Result<ForwardSummary> {
        self.run_with(RETRIES).await
    }

    async fn run_with(self, retries: Retries) -> anyhow::Result<ForwardSummary> {
        let Self { log, target, cursor, is_following, has_arguments, host, patience } = self;
        let target = match target {
            ForwardTarget::Folder(folder) => {
                let found = folder.canonicalize().with_context(|| format!("cannot use `{}`", folder.display()))?;
                ForwardTarget::Folder(found)
            }
            other => other.at_environment()?,
        };
        let name = target.to_string();
        let identity = target.identity() + if has_arguments { "" } else { WITHOUT_ARGUMENTS };
        let path = cursor.unwrap_or_else(|| cursor::beside(&log, &identity));
        let sender = match target {
            ForwardTarget::Folder(folder) => Sender::Folder(folder),
            ForwardTarget::Collector(url) => Sender::Collector(Box::new(Collector::new(url, &host)?)),
            ForwardTarget::Bucket(address) => Sender::Bucket(Box::new(Bucket::open(&address)?)),
            ForwardTarget::Syslog { host: to, port, is_encrypted } => {
                Sender::Syslog(Box::new(SyslogReceiver::new(to, port, is_encrypted, &host)?))
            }
        };
        let cursor = locked(&path, &name, is_following).await?;
        let place = cursor.read()?;
        let summary = ForwardSummary { target: name, ..ForwardSummary::default() };
        let mut forwarder = Forwarder { sender, cursor, is_following, retries, patience, summary };
        forwarder.note(place);
        let mut reader = BatchReader::new(audit::tail(&log, place)?, BatchLimits::default(), has_arguments);
        let mut is_new = place.is_none();
        loop {
            let mut problems = 0;
            let batch = reader.read(|problem| {
                render::explain(&anyhow!("{}: {problem}", render::from_here(&log).display()));
                problems += 1;
            })?;
            forwarder.summary.problems += problems;
            if let Some(first) = batch.first().filter(|_| std::mem::take(&mut is_new))
                && first.place.seq > 1
            {
                let earlier = "earlier records are not in the directory and are not forwarded";
                render::aside(&format!("the log starts with record {}: {earlier}", first.place.seq));
            }
            if !batch.is_empty() {
                forwarder.deliver(&batch).await?;
            } else if is_following && !interrupt::is_requested() {
                tokio::select! {
                    () = tokio::time::sleep(POLL) => {}
                    () = interrupt::soft_stop() => {}
                }
            } else {
                return Ok(forwarder.summary);
            }
        }
    }
}

/// Locks the cursor. A forwarder that follows the log waits until another one ends.
async fn locked(path: &Path, target: &str, is_following: bool) -> anyhow::Result<Cursor> {
    let mut is_waiting = false;
    loop {
        if let Some(cursor) = Cursor::lock(path, target)? {
            return Ok(cursor);
        }
        if !is_following {
            let message = format!("another process forwards the log to {target}");
            return Err(Advice::new(message, "one forwarder is enough: it sends the records of all processes").into());
        }
        if !std::mem::replace(&mut is_waiting, true) {
            render::aside(&format!("another process forwards the log to {target}: waiting for its end"));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Returns the wait after a failure: the target may ask for a longer one than the backoff, and for no shorter one.
fn wait(retries: Retries, attempt: u32, asked: Option<Duration>) -> Duration {
    retries.wait(attempt, None).max(asked.unwrap_or_default())
}

impl Forwarder {
    /// Sends a batch, in parts if the target accepts only smaller ones, and notes each in the cursor.
    async fn deliver(&mut self, batch: &[ForwardedRecord]) -> anyhow::Result<()> {
        let mut parts = vec![batch];
        while let Some(part) = parts.pop() {
            match self.send(part).await? {
                None if part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
                sent => {
                    let count = part.len() as u64;
                    let mut accepted = count;
                    if let Some((rejected, why)) = sent.flatten() {
                        let rejected = rejected.min(count);
                        accepted -= rejected;
                        self.summary.problems += rejected;
                        let records = counted(rejected, "record");
                        render::explain(&anyhow!("{} rejected {records} for good: {why}", self.summary.target));
                    }
                    if let Some(last) = part.last() {
                        self.cursor.write(last.place)?;
                        self.note(Some(last.place));
                    }
                    self.summary.sent += accepted;
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, place: Option<LogPlace>) {
        (self.summary.seq, self.summary.head) = place.map(|place| (place.seq, place.chain)).unzip();
    }

    /// Sends records until they are acknowledged. Returns records that were rejected, or `None` if the part is too large and can be
    /// divided.
    async fn send(&self, part: &[ForwardedRecord]) -> anyhow::Result<Option<Option<(u64, String)>>> {
        let target = &self.summary.target;
        let (since, mut attempt, mut known) = (Instant::now(), 0, None);
        loop {
            let failure = match self.attempt(part).await {
                Ok(rejected) => {
                    if attempt > 0 {
                        render::aside(&format!("{target} accepts records again"));
                    }
                    return Ok(Some(rejected));
                }
                Err(failure) => failure,
            };
            let (why, asked) = match failure {
                SendFailure::TooLarge(_) if part.len() > 1 => return Ok(None),
                SendFailure::TooLarge(why) | SendFailure::Refused(why) => return Err(self.refused(part, &why)),
                SendFailure::Retry { why, asked } => (why, asked),
            };
            attempt += 1;
            let wait = wait(self.retries, attempt, asked);
            if self.patience.is_some_and(|patience| since.elapsed() + wait > patience) {
                return Err(self.refused(part, &why));
            }
            if known.as_ref() != Some(&why) {
                render::warning(&format!("cannot deliver to {target}: {why}; trying again"));
                known = Some(why);
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, part: &[ForwardedRecord]) -> Result<Option<(u64, String)>, SendFailure> {
        match &self.sender {
            Sender::Folder(folder) => folder::send(folder, part, self.is_following).map(|()| None),
            Sender::Collector(collector) => collector.send(part).await,
            Sender::Bucket(bucket) => bucket::send(bucket, part, self.is_following).await.map(|()| None),
            Sender::Syslog(receiver) => receiver.send(part).await.map(|()| None),
        }
    }

    /// The error of a batch that was not delivered.
    fn refused(&self, part: &[ForwardedRecord], why: &str) -> anyhow::Error {
        let first = part.first().map_or(0, |record| record.place.seq);
        let message = format!("{} did not accept record {first} and the following: {why}", self.summary.target);
        Advice::new(message, "nothing is lost: run the command again, and it continues with this record").into()
    }
}

#[cfg(test)]
mod tests;
