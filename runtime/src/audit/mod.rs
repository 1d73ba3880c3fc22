//! The audit log: one line of JSON a call, whatever happened, in one file a UTC day. What cannot be logged does not run.
//!
//! # The chain
//!
//! Each line ends with two fields that the log itself adds, so that whoever changes, removes, adds or moves a line leaves a
//! trace: `,"seq":N,"chain":"C"}`.
//!
//! - `seq` counts the records of the folder from 1, across its files.
//! - `chain` is the SHA-256, as 64 lower-case hexadecimal digits, of the 64 digits of the record before, or of 64 times `0`
//!   for the first, and then of the bytes of this line up to and without `,"chain":`.
//!
//! The files `YYYYMMDD.log` are read in the order of their names: the first record of a day continues the last one of the
//! day before. The log never goes back a day, so a record whose clock is behind lies in the newest file. With nothing but a
//! shell, this prints every line whose chain is wrong:
//!
//! ```sh
//! before=$(printf '%064d' 0)
//! cat ????????.log | while IFS= read -r line; do
//!   sum=$(printf '%s%s' "$before" "${line%,\"chain\":*}" | sha256sum)
//!   before=${line##*,\"chain\":\"} before=${before%\"\}}
//!   [ "${sum%% *}" = "$before" ] || printf '%s\n' "$line"
//! done
//! ```
//!
//! Beside the files lies `head`, one line of fixed width, overwritten after each record: the last `seq` (20 digits), its
//! `chain`, the newest day (`YYYYMMDD`) and the length of that day's file (20 digits). It tells that last lines are missing,
//! and spares the next writer from searching; its lock is the lock of the whole folder. A head that is behind the files
//! belongs to a writer that was killed, and is mended by the next. One that is ahead is kept, so that the records to come
//! do not close the gap.
//!
//! Nothing here is secret: whoever may write the folder may write a new log with a chain of its own. What stands against
//! that is a chain value that was noted elsewhere, for it never occurs in another log. [`verify`] finds all this.

mod chain;
mod chain_check;
mod day;
mod file;
mod head;
mod log;
mod problem;
mod records;
mod redact;
mod snapshot;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;

use crate::call::Receipt;
use crate::error::Error;
use crate::policy::Secrets;

pub use chain::{Chain, NoChain};
pub use day::{Day, NoDay};
pub use problem::{LogProblem, LogProblemKind, Severity};
pub use records::{LogEntry, LogRecords, records};
pub use verify::{Summary, Verification, verify};

use log::Log;
pub use redact::Redactions;

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

    /// Masks the secrets that calls were given, in each of their encodings. A runtime does so for its own.
    #[must_use]
    pub fn redact_secrets(mut self, secrets: &Secrets) -> Self {
        self.redactions.add_secrets(secrets.clone());
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
        self.log.as_ref().map_or(Ok(()), |log| log.ready(Day::of_timestamp(self.now())))
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
        log.append(Day::of_timestamp(now), &line)
    }

    fn now(&self) -> Timestamp {
        day::timestamp((self.clock)())
    }
}
