//! The audit log: one line of JSON per call, whatever its outcome, in one file per UTC day. A call that cannot be
//! logged does not run.
//!
//! # The chain
//!
//! Each line ends with two fields that the log adds, `,"seq":N,"chain":"C"}`, so that a line that was changed, removed,
//! added or moved is detected.
//!
//! - `seq` counts the records of the folder from 1, across its files.
//! - `chain` is the SHA-256, as 64 lower-case hexadecimal digits, of the 64 digits of the record before, or of 64 times `0`
//!   for the first, and then of the bytes of this line up to and without `,"chain":`.
//!
//! The files `YYYYMMDD.log` are read in the order of their names: the first record of a day continues the last one of
//! the previous day. Records are only appended to the newest file, even if the clock is set back. This shell script
//! prints every line with a wrong chain:
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
//! The file `head` in the same folder is one line of fixed width, overwritten after each record: the last `seq` (20
//! digits), its `chain`, the newest day (`YYYYMMDD`) and the length of that day's file (20 digits). It shows whether
//! the last lines are missing, and saves the next writer a search; its lock is the lock of the folder. A head that is
//! behind the files was left by a writer that was killed, and the next writer corrects it. A head that is ahead of the
//! files stays, so that later records do not hide the gap.
//!
//! The chain uses no secret: anyone who can write the folder can write a new log with a valid chain. To detect that,
//! note a chain value elsewhere; it does not occur in any other log. [`verify`] detects all of this.
//!
//! # Arguments
//!
//! The member `arguments` of a record is one object with the arguments of the call, after the changes by hooks, with the
//! sensitive ones, the operator's redactions and the secrets masked:
//!
//! - `{"json":VALUE}`: arguments of at most 4 KiB of JSON and 64 levels.
//! - `{"text":"…"}`: other text of at most 4 KiB.
//! - `{"cut":"…","bytes":N,"digest":"sha256:HEX"}`: the first KiB of longer arguments.
//! - `{"bytes":N,"digest":"sha256:HEX"}`: arguments without content: no usable tool has the name, so that nobody knows which
//!   are sensitive, or the log is [without arguments](Audit::without_arguments).
//! - `{"bytes":N}`: arguments without a certain mask: wrong arguments of a tool with sensitive ones, more than 4 MiB,
//!   more than 1 s of masking, more than 16 KiB in a call that was dropped, or a secret that extends over several values.
//!
//! `bytes` and `digest` describe the masked text; the text as received if nothing is masked. The digest of a short
//! text that is not masked can be guessed. A record without the member is of an earlier version, of a hook of an event, or of
//! a call with unreadable arguments.
//!
//! The modules from the bottom up: `day` and `chain` (values), `file` (system calls), `head` (the sidecar), `queue` (records
//! that wait), `log` (writing), `redact` and `arguments` (content of a record), `snapshot` and `from_end` (reading), `records` and `tail`
//! over them, and `problem`, `chain_check`, `verify` for verification.

mod arguments;
mod chain;
mod chain_check;
mod day;
mod file;
mod from_end;
mod head;
mod log;
mod problem;
mod queue;
mod records;
mod redact;
mod snapshot;
mod tail;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;

use crate::call::Receipt;
use crate::error::Error;
use crate::policy::Secrets;

pub use crate::error::Severity;
pub use chain::{Chain, InvalidChain};
pub use day::{Day, InvalidDay};
pub use problem::{LogProblem, LogProblemKind};
pub use records::{LogEntry, LogRecords, records};
pub use redact::Redactions;
pub use tail::{LogPlace, LogTail, SealedRecord, TailEvent, TailProblem, continues, sealed, tail};
pub use verify::{Summary, Verification, verify};

pub(crate) use arguments::{CallArguments, LoggedArguments};
use log::Log;
pub(crate) use queue::Writing;
use queue::{Entry, WriteQueue};

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The audit log of a runtime, with its records' redactions.
pub struct Audit {
    log: Option<WriteQueue<Log>>,
    redactions: Redactions,
    /// `true` if records hold the content of arguments.
    has_arguments: bool,
    clock: Clock,
}

/// Facts about a call that its record states beside the receipt.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallFacts<'a> {
    /// Run of the program.
    pub(crate) run: &'a str,
    /// Session of the call.
    pub(crate) session: &'a str,
    /// Entry point of the program.
    pub(crate) door: &'a str,
    /// Name of the calling program, as it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<String>,
    /// Identifier of the calling program's trace, 32 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
    /// Identifier of its span that made the call, 16 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parent_span: Option<String>,
    /// Digest of the tool's definition, as in stored approvals, if there is a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<&'a str>,
    /// Arguments of the guest.
    pub(crate) argv: &'a [String],
    /// Folder on the host that was the working directory of the guest, if it had one.
    pub(crate) cwd: Option<String>,
}

/// Final record of a call, without its arguments.
#[derive(Debug, Serialize)]
struct Record<'a> {
    /// End of the call, RFC 3339 in UTC.
    ts: String,
    #[serde(flatten)]
    receipt: &'a Receipt,
    #[serde(flatten)]
    facts: &'a CallFacts<'a>,
}

impl Audit {
    /// Logs to a folder, which is created with owner-only rights if it is missing.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self { log: Some(WriteQueue::new(Log::new(path.into()))), ..Self::off() }
    }

    /// Disables the log, for an embedder that writes its own from the receipts.
    pub fn off() -> Self {
        let clock = Arc::new(SystemTime::now);
        Self { log: None, redactions: Redactions::default(), has_arguments: true, clock }
    }

    /// Folder of the log; `None` if the log is disabled.
    pub(crate) fn place(&self) -> Option<&Path> {
        self.log.as_ref().map(|log| log.sink().folder())
    }

    /// Masks all matches of these patterns in a record's strings. Each pattern is a regular expression; an invalid
    /// expression is matched literally.
    #[must_use]
    pub fn redact(mut self, patterns: impl IntoIterator<Item = String>) -> Self {
        self.redactions.add(patterns);
        self
    }

    /// Masks these texts literally in the strings of a record.
    #[must_use]
    pub fn redact_literal(mut self, texts: impl IntoIterator<Item = String>) -> Self {
        self.redactions.add_literal(texts);
        self
    }

    /// Masks the secrets that calls have used, in each of their encodings. A runtime does this for its own secrets.
    #[must_use]
    pub fn redact_secrets(mut self, secrets: &Secrets) -> Self {
        self.redactions.add_secrets(secrets.clone());
        self
    }

    /// Leaves out the content of arguments: a record holds only their size and their masked text's digest.
    #[must_use]
    pub fn without_arguments(mut self) -> Self {
        self.has_arguments = false;
        self
    }

    /// Sets the clock, which determines the file of a record and its `ts`.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Returns `true` if calls are logged.
    pub(crate) fn is_on(&self) -> bool {
        self.log.is_some()
    }

    /// Represents the arguments of a call, masked. The result is meaningless if the computation was interrupted.
    pub(crate) fn represent(&self, arguments: &CallArguments) -> LoggedArguments {
        arguments.represent(&self.redactions, self.has_arguments)
    }

    /// Represents the arguments of a call at once; `None` if they are large or take long.
    pub(crate) fn represent_at_once(&self, arguments: &CallArguments) -> Option<LoggedArguments> {
        arguments.at_once(|| self.represent(arguments))
    }

    /// Opens today's file and reserves space in it for coming records.
    ///
    /// # Errors
    ///
    /// [`Error::Audit`]; no call may run then.
    pub(crate) fn ready(&self) -> Result<(), Error> {
        self.log.as_ref().map_or(Ok(()), |log| log.sink().ready(Day::of_timestamp(self.now())))
    }

    /// Appends the record of a call that has ended. The result is [`Error::Audit`] if the record is lost; no part of it is in
    /// the file then.
    pub(crate) fn write(
        &self,
        receipt: &Receipt,
        facts: &CallFacts<'_>,
        arguments: Option<&LoggedArguments>,
    ) -> Writing {
        let Some(log) = &self.log else { return Writing::Ended(Ok(())) };
        let now = self.now();
        // Always with milliseconds, so that records sort as text.
        let ts = format!("{now:.3}");
        let record = self.redactions.line(&Record { ts, receipt, facts }, arguments.map(LoggedArguments::as_str));
        log.write(Entry { day: Day::of_timestamp(now), record })
    }

    fn now(&self) -> Timestamp {
        day::timestamp((self.clock)())
    }
}
