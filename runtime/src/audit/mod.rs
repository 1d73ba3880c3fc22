//! The audit log: one line of JSON a call, whatever happened, in one file a UTC day. What cannot be logged does not run.

mod log;
mod redact;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;

use crate::call::Receipt;
use crate::error::Error;

use log::Log;
pub(crate) use redact::Redactions;

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Where calls are signed for.
pub struct Audit {
    log: Option<Log>,
    redactions: Redactions,
    clock: Clock,
}

/// The terminal record of a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record<'a> {
    /// The end of the call, RFC 3339 in UTC.
    pub(crate) ts: String,
    #[serde(flatten)]
    pub(crate) receipt: &'a Receipt,
    /// The guest's arguments.
    pub(crate) argv: &'a [String],
    /// The folder on the host that was the guest's working directory, if it had one.
    pub(crate) cwd: Option<String>,
}

impl Audit {
    /// A log in a folder, made with owner-only rights where it is missing.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self { log: Some(Log::new(path.into())), ..Self::off() }
    }

    /// No log at all: for an embedder that keeps its own from the receipts.
    pub fn off() -> Self {
        Self { log: None, redactions: Redactions::default(), clock: Arc::new(SystemTime::now) }
    }

    /// The folder of the log, where there is one.
    pub(crate) fn place(&self) -> Option<&Path> {
        self.log.as_ref().map(Log::folder)
    }

    /// Masks what these patterns match in every string of a record. Each is a regular expression, or, where it is not a
    /// valid one, the text itself.
    #[must_use]
    pub fn redact(mut self, patterns: impl IntoIterator<Item = String>) -> Self {
        self.redactions.add(patterns);
        self
    }

    /// Masks these texts, letter for letter, in every string of a record.
    #[must_use]
    pub fn redact_literal(mut self, texts: impl IntoIterator<Item = String>) -> Self {
        self.redactions.add_literal(texts);
        self
    }

    /// Takes the time from `clock`: which day's file a record goes to, and its `ts`.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens today's file and keeps room in it for the records to come.
    ///
    /// # Errors
    ///
    /// [`Error::Audit`]: then no call may run.
    pub(crate) fn ready(&self) -> Result<(), Error> {
        self.log.as_ref().map_or(Ok(()), |log| log.ready(day(self.now())))
    }

    /// Appends the record of a call that has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Audit`]: the record is lost, nothing of it is in the file.
    pub(crate) fn write(&self, receipt: &Receipt, argv: &[String], cwd: Option<String>) -> Result<(), Error> {
        let Some(log) = &self.log else { return Ok(()) };
        let now = self.now();
        // Milliseconds always, so that records sort as text.
        let ts = format!("{now:.3}");
        let line = self.redactions.line(&Record { ts, receipt, argv, cwd });
        log.append(day(now), &line)
    }

    /// The time in whole milliseconds. A clock before 1970 stands at 1970.
    fn now(&self) -> Timestamp {
        let since = (self.clock)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let milliseconds = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX)
    }
}

/// The UTC day of a time, counted from 1970.
fn day(ts: Timestamp) -> i64 {
    ts.as_second().div_euclid(log::DAY)
}
