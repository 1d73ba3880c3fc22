//! Results that are too large to be told to a model whole. Each is kept in a folder under a reference that nobody can
//! guess, for a while: there is a bound on all of them together, and the oldest make room for the newest. What is told
//! of one instead is a [`preview()`]. Nothing here knows a model, or what a result means.
//!
//! ```no_run
//! # fn demo() -> Result<(), toolcrib::Error> {
//! use toolcrib::results::{Results, preview};
//!
//! let results = Results::folder("./results");
//! let kept = results.put("fs_read_file", "call-1", b"a long text")?;
//! let first = results.open(&kept.reference, ..4096)?;
//! println!("{} of {} bytes: {}", first.content.len(), kept.bytes, preview(&first.text(), 200).head);
//! # Ok(()) }
//! ```

mod file;
mod folder;
mod preview;
mod reference;

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Error;

use file::Opened;
use folder::Folder;
use reference::Reference;

pub use preview::{Preview, preview};

/// The most characters of a tool's name and of an invocation that are kept.
const MAX_WORD_LEN: usize = 256;

/// Why a reference names nothing. Nothing tells what was removed from what never was.
const GONE: &str = "it was removed, evicted for newer results, or never stored here";
const EXPIRED: &str = "it has expired";

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// A folder of results. Several processes may use one at once. Every method works on the disk and returns when that is
/// done: where tasks share a thread, call it from a blocking one.
#[derive(Clone)]
pub struct Results {
    folder: Folder,
    bounds: Bounds,
    clock: Clock,
}

/// What the results may use together.
#[derive(Debug, Clone)]
struct Bounds {
    bytes: u64,
    results: usize,
    age: Duration,
}

/// What is known of a result that is kept. Its file begins with the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    /// `res_` and 128 random bits in hexadecimal digits.
    pub reference: String,
    /// The tool that gave it; at most 256 characters.
    pub tool: String,
    /// The call that gave it, as its caller named it; at most 256 characters.
    pub invocation: String,
    /// Bytes of the content.
    pub bytes: u64,
    /// When it was kept; RFC 3339 in UTC where it is written.
    pub created: Timestamp,
    /// SHA-256 of the content, in 64 hexadecimal digits.
    pub sha256: String,
}

/// A part of a result's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// What is known of the whole.
    pub kept: StoredResult,
    /// Where the part begins, in bytes of the whole.
    pub offset: u64,
    /// The part itself. It is UTF-8 where the whole is.
    pub content: Vec<u8>,
    /// Where the next part begins; none where this is the last.
    pub next: Option<u64>,
}

impl Excerpt {
    /// The part as text, with what is not UTF-8 replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.content)
    }
}

impl Bounds {
    /// Whether something is older than it may be. What comes from the future is new.
    fn is_past(&self, created: SystemTime, now: SystemTime) -> bool {
        now.duration_since(created).is_ok_and(|age| age > self.age)
    }
}

impl Results {
    /// Results in a folder, made with owner-only rights when the first is put there. Together they have at most 256 MiB,
    /// they are at most 1,000, and each is kept for at most 7 days.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        let bounds = Bounds { bytes: 256 << 20, results: 1000, age: Duration::from_hours(7 * 24) };
        Self { folder: Folder::new(path.into()), bounds, clock: Arc::new(SystemTime::now) }
    }

    /// The most bytes of all results together, each counted with the line of its file that says what it is.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.bounds.bytes = bytes;
        self
    }

    /// The most results; at least one.
    #[must_use]
    pub fn max_results(mut self, results: usize) -> Self {
        self.bounds.results = results.max(1);
        self
    }

    /// How long a result can be opened. Its file is removed when a later one is put.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.bounds.age = age;
        self
    }

    /// Takes the time from `clock`: when a result was kept, and how old it is.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The folder, which no tool may reach.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps a result, whole or not at all, and removes the oldest where the bounds ask for it.
    ///
    /// # Errors
    ///
    /// [`Error::Results`] where one result is larger than all may be together, or the folder cannot be used: it cannot be
    /// written, it is a link, others may write it too, or somebody holds its lock for more than ten seconds.
    pub fn put(&self, tool: &str, invocation: &str, content: &[u8]) -> Result<StoredResult, Error> {
        let now = (self.clock)();
        let cut = |word: &str| word.chars().take(MAX_WORD_LEN).collect();
        let reference = Reference::fresh().map_err(|error| self.fault(io::Error::other(error)))?;
        let kept = StoredResult {
            reference: reference.to_string(),
            tool: cut(tool),
            invocation: cut(invocation),
            bytes: content.len() as u64,
            created: Timestamp::try_from(now).unwrap_or(Timestamp::MAX),
            sha256: file::sha256(content),
        };
        let line = file::first_line(&kept).map_err(|error| self.fault(error))?;
        if line.len() as u64 + kept.bytes > self.bounds.bytes {
            let (bytes, most) = (kept.bytes, self.bounds.bytes);
            return Err(
                self.fault(io::Error::other(format!("{bytes} bytes do not fit into the {most} that it may hold")))
            );
        }
        let held = self.folder.hold();
        held.and_then(|held| held.put(&reference, [&line, content], now, &self.bounds))
            .map_err(|error| self.fault(error))?;
        Ok(kept)
    }

    /// Opens a part of a result by its bytes: `..` is the whole, `4096..8192` are the second 4 KiB. A range that begins or
    /// ends within a UTF-8 character begins or ends before it, so that the ranges of one row give the whole; but a part has
    /// at least one character as long as there is one. The whole is compared with its digest, a lesser part is not.
    ///
    /// # Errors
    ///
    /// [`Error::NoResult`] where the reference has not the form of one, or there is nothing of that name, or no longer.
    /// [`Error::Results`] where what is there is not what was kept, or cannot be read.
    pub fn open(&self, reference: &str, range: impl RangeBounds<u64>) -> Result<Excerpt, Error> {
        let reference = Reference::parse(reference)?;
        let opened = self.opened(&reference)?;
        opened.part(range).map_err(|error| self.fault_at(&reference, error))
    }

    /// What is kept and not too old, newest first. What cannot be opened is left out.
    ///
    /// # Errors
    ///
    /// [`Error::Results`] where the folder cannot be read or others may write it. One that is missing is empty.
    pub fn list(&self) -> Result<Vec<StoredResult>, Error> {
        let references = self.folder.references().map_err(|error| self.fault(error))?;
        let opened = references.iter().filter_map(|reference| self.opened(reference).ok());
        let mut kept: Vec<StoredResult> = opened.map(|opened| opened.kept().clone()).collect();
        kept.sort_by(|one, other| (other.created, &other.reference).cmp(&(one.created, &one.reference)));
        Ok(kept)
    }

    /// Removes a result.
    ///
    /// # Errors
    ///
    /// [`Error::NoResult`] where there is none of that name, [`Error::Results`] where it cannot be removed.
    pub fn remove(&self, reference: &str) -> Result<(), Error> {
        let reference = Reference::parse(reference)?;
        self.require_folder(&reference)?;
        match folder::remove(&self.folder.file(&reference)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(absent(&reference, GONE)),
            Err(error) => Err(self.fault_at(&reference, error)),
        }
    }

    /// Removes every result, also what cannot be opened, and says how many there were.
    ///
    /// # Errors
    ///
    /// [`Error::Results`] where one cannot be removed or the folder cannot be used.
    pub fn clear(&self) -> Result<usize, Error> {
        let clear = || {
            if !self.folder.is_there()? {
                return Ok(0);
            }
            let _held = self.folder.hold()?;
            let mut removed = 0;
            for reference in self.folder.references()? {
                removed += usize::from(folder::remove(&self.folder.file(&reference))?);
            }
            Ok(removed)
        };
        clear().map_err(|error| self.fault(error))
    }

    fn opened(&self, reference: &Reference) -> Result<Opened, Error> {
        self.require_folder(reference)?;
        let opened = Opened::open(&self.folder.file(reference), reference).map_err(|error| match error.kind() {
            ErrorKind::NotFound => absent(reference, GONE),
            _ => self.fault_at(reference, error),
        })?;
        if self.bounds.is_past(opened.kept().created.into(), (self.clock)()) {
            return Err(absent(reference, EXPIRED));
        }
        Ok(opened)
    }

    fn require_folder(&self, reference: &Reference) -> Result<(), Error> {
        if self.folder.is_there().map_err(|error| self.fault(error))? { Ok(()) } else { Err(absent(reference, GONE)) }
    }

    fn fault(&self, error: io::Error) -> Error {
        Error::Results { path: self.folder.path().to_path_buf(), reason: error.to_string() }
    }

    fn fault_at(&self, reference: &Reference, error: io::Error) -> Error {
        Error::Results { path: self.folder.file(reference), reason: error.to_string() }
    }
}

fn absent(reference: &Reference, reason: &str) -> Error {
    Error::NoResult { reference: reference.to_string(), reason: reason.to_owned() }
}
