//! Trust in files of a folder: tool sources and a `toolcrib.toml`. A file only requests; its requests count once a
//! person has reviewed them, and as long as the digest over the file and its programs stays the same.

mod ceiling;
mod phrase;
mod record;
pub mod review;
mod subject;

use std::path::Path;

pub use ceiling::ceilings;
use phrase::foremost;
pub use phrase::{is_missed, phrases, ranked, summary};
pub use record::{TrustRecord, TrustRecords};
pub use subject::{Item, Subject};
use toolcrib_base::render;

/// Makes the user's own change of a settings file: from `before`, `None` for a file that the change creates, to `after`,
/// which the change returns. The file stays trusted if `before` is trusted, and a new file is trusted.
///
/// # Errors
///
/// The errors of the change, and records that cannot be read or written.
pub fn keeping_settings(
    records: Option<&TrustRecords>,
    before: Option<&Subject>,
    change: impl FnOnce() -> anyhow::Result<Subject>,
) -> anyhow::Result<()> {
    let trusted = Trusted::read(&[], records)?;
    let is_kept = before.is_none_or(|before| trusted.state(before) == State::Trusted);
    // The subject is of the text that was written, whatever another process writes then.
    let after = change()?;
    match records {
        Some(records) if is_kept => records.add(&after),
        _ => Ok(()),
    }
}

/// State of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// This content is trusted.
    Trusted,
    /// Other content was trusted at the path.
    Changed(Box<TrustRecord>),
    /// Nothing was trusted at the path.
    Unknown,
}

/// Trusted digests of this run: those on the command line and those on record.
#[derive(Debug, Clone, Default)]
pub struct Trusted {
    /// Digests that the command line trusts at any path.
    pub(crate) digests: Vec<String>,
    pub(crate) records: Vec<TrustRecord>,
}

impl Trusted {
    /// Reads the records, and adds the digests of the command line.
    ///
    /// # Errors
    ///
    /// The records cannot be read.
    pub fn read(digests: &[String], records: Option<&TrustRecords>) -> anyhow::Result<Self> {
        let records = records.map_or(Ok(Vec::new()), TrustRecords::read)?;
        Ok(Self { digests: digests.to_vec(), records })
    }

    /// Returns `true` if a subject is trusted or requests nothing; otherwise prints a hint with the command that reviews it.
    pub(crate) fn admits(&self, subject: &Subject, path: &Path) -> bool {
        if self.trusts(subject) {
            return true;
        }
        let state = self.state(subject);
        let word = render::shell_path(path);
        let path = render::one_line(&render::from_here(path).to_string_lossy());
        let requests = subject.items.iter().flat_map(|item| &item.requests).map(String::as_str);
        let requests = summary(requests);
        let reason = match state {
            State::Changed(_) => "has changed since it was trusted",
            _ => "is not trusted",
        };
        render::hint(&format!("`{path}` {reason}: {requests} ignored; review it with `toolcrib trust {word}`"));
        false
    }

    /// Returns `true` if a subject is trusted or requests nothing.
    pub(crate) fn trusts(&self, subject: &Subject) -> bool {
        self.state(subject) == State::Trusted || !subject.has_requests()
    }

    /// Returns `true` if some content of a path was trusted.
    pub fn is_on_record(&self, path: &Path) -> bool {
        self.records.iter().any(|record| record.path == path)
    }

    /// Returns the state of a subject.
    pub fn state(&self, subject: &Subject) -> State {
        if self.digests.contains(&subject.digest) {
            return State::Trusted;
        }
        match self.records.iter().find(|record| record.path == subject.path) {
            Some(record) if record.digest == subject.digest => State::Trusted,
            Some(record) => State::Changed(Box::new(record.clone())),
            None => State::Unknown,
        }
    }
}
