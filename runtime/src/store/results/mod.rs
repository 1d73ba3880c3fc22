//! Store of results that are too large for a model. Each result is stored in a folder under an unguessable reference
//! and expires after a while; the folder has a maximum size, and the oldest results are removed for new ones. The model
//! gets a [`preview()`] instead.
//!
//! ```no_run
//! # fn demo() -> Result<(), toolcrib::Error> {
//! use toolcrib::results::{Results, preview};
//!
//! let results = Results::folder("./results");
//! let stored = results.put("fs_read_file", "call-1", b"a long text")?;
//! let first = results.open(&stored.reference, ..4096)?;
//! println!("{} of {} bytes: {}", first.content.len(), stored.bytes, preview(&first.text(), 200).head);
//! # Ok(()) }
//! ```

mod file;
mod folder;
mod preview;
mod reference;
mod shared;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_foundation::text::clipped;

use crate::error::Error;
use crate::store::owner_only;

use file::ResultFile;
use folder::Folder;
use reference::Reference;

pub use preview::{Preview, preview};
pub use shared::SharedResults;

/// Reasons why a reference names no result. A removed result cannot be distinguished from one that never existed.
const MISSING: &str = "it was removed, was replaced by newer results, or never existed";
const EXPIRED: &str = "it has expired";

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// A folder of results, which several processes may share. All methods block on disk access; async code calls them from
/// a blocking thread.
#[derive(Clone)]
pub struct Results {
    folder: Folder,
    limits: Limits,
    clock: Clock,
    scope: Scope,
    /// Store of results that other servers can read too.
    shared: Option<Arc<dyn SharedResults>>,
}

/// Results that are read and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scope {
    /// All of the folder; those that are stored have no owner.
    All,
    /// The results of one owner, or those without an owner.
    Owned(Option<Arc<str>>),
}

/// Limits on all results of a folder together.
#[derive(Debug, Clone)]
struct Limits {
    bytes: u64,
    results: usize,
    age: Duration,
}

/// Description of a stored result, which is also the first line in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredResult {
    /// `res_` and 128 random bits in hexadecimal digits.
    pub reference: String,
    /// Name of the tool that returned it; at most 256 characters.
    pub tool: String,
    /// ID of the call that returned it, as given by the caller; at most 256 characters.
    pub invocation: String,
    /// Length of the content in bytes.
    pub bytes: u64,
    /// Time at which it was stored; serialized as RFC 3339 in UTC.
    pub created: Timestamp,
    /// SHA-256 of the content, in 64 hexadecimal digits.
    pub sha256: String,
    /// Label of the content, as JSON; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Value>,
    /// Owner of the session that stored it, as given to [`Runtime::owned_session`](crate::Runtime::owned_session).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `true` for a result that is in the folder of this server alone, although servers share results: it is too long, or the
    /// shared store has not taken it.
    #[serde(skip)]
    pub is_local: bool,
}

/// A part of a result's content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excerpt {
    /// Description of the whole result.
    pub stored: StoredResult,
    /// Offset of the part in the content, in bytes.
    pub offset: u64,
    /// Bytes of the part; valid UTF-8 if the whole content is.
    pub content: Vec<u8>,
    /// Offset of the next part; `None` if this is the last.
    pub next: Option<u64>,
}

impl Excerpt {
    /// Converts the part to text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.content)
    }
}

impl Limits {
    /// Returns `true` if the maximum age has passed. A creation time in the future counts as now.
    fn is_expired(&self, created: SystemTime, now: SystemTime) -> bool {
        now.duration_since(created).is_ok_and(|age| age > self.age)
    }
}

impl Scope {
    fn owner(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Owned(owner) => owner.as_deref(),
        }
    }

    fn includes(&self, stored: &StoredResult) -> bool {
        match self {
            Self::All => true,
            Self::Owned(owner) => stored.owner.as_deref() == owner.as_deref(),
        }
    }
}

impl Results {
    /// Uses a folder, which the first stored result creates with owner-only rights. The default limits are 256 MiB and
    /// 1,000 results in total, and an age of 7 days.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        let limits = Limits { bytes: 256 << 20, results: 1000, age: Duration::from_hours(7 * 24) };
        Self {
            folder: Folder::new(path.into()),
            limits,
            clock: Arc::new(SystemTime::now),
            scope: Scope::All,
            shared: None,
        }
    }

    /// Sets the maximum total bytes of results, counted with the first line of each file.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Sets the maximum number of results; at least one.
    #[must_use]
    pub fn max_results(mut self, results: usize) -> Self {
        self.limits.results = results.max(1);
        self
    }

    /// Sets the age at which a result expires. The file of an expired result is removed when another result is stored.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.limits.age = age;
        self
    }

    /// Sets the clock for creation times and ages.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Restricts the results to those of one owner, or to those without an owner. All others do not exist then.
    #[must_use]
    pub fn of_owner(mut self, owner: Option<Arc<str>>) -> Self {
        self.scope = Scope::Owned(owner);
        self
    }

    /// Stores results where several servers read them. The folder has those that are too long, or that the shared store has not
    /// taken.
    #[must_use]
    pub fn shared_in(mut self, shared: Arc<dyn SharedResults>) -> Self {
        self.shared = Some(shared);
        self
    }

    /// Path of the folder, which is granted to no tool.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Stores a result completely or not at all, and removes the oldest results that exceed the limits.
    ///
    /// # Errors
    ///
    /// [`Error::Results`] if the result alone exceeds the limit on all results, or if the folder is unusable: it cannot
    /// be written, is a link, can be written by other users, or its lock is held by another process for more than ten
    /// seconds.
    pub fn put(&self, tool: &str, invocation: &str, content: &[u8]) -> Result<StoredResult, Error> {
        self.put_labelled(tool, invocation, None, content)
    }

    /// Stores a result as [`Results::put`] does, with the label of its content as JSON.
    ///
    /// # Errors
    ///
    /// As for [`Results::put`].
    pub fn put_labelled(
        &self,
        tool: &str,
        invocation: &str,
        label: Option<Value>,
        content: &[u8],
    ) -> Result<StoredResult, Error> {
        let now = (self.clock)();
        let reference = Reference::random().map_err(|error| self.fault(io::Error::other(error)))?;
        let mut stored = StoredResult {
            reference: reference.to_string(),
            tool: clipped(tool),
            invocation: clipped(invocation),
            bytes: content.len() as u64,
            created: Timestamp::try_from(now).unwrap_or(Timestamp::MAX),
            sha256: file::sha256(content),
            label,
            owner: self.scope.owner().map(str::to_owned),
            is_local: false,
        };
        let line = file::first_line(&stored).map_err(|error| self.fault(error))?;
        if let Some(shared) = &self.shared {
            let is_short = line.len() as u64 + stored.bytes <= shared.max_len();
            let put = || shared.put(self.scope.owner(), reference.as_str(), [&line, content].concat());
            if is_short && put().is_ok() {
                return Ok(stored);
            }
            stored.is_local = true;
        }
        if line.len() as u64 + stored.bytes > self.limits.bytes {
            let (bytes, limit) = (stored.bytes, self.limits.bytes);
            return Err(
                self.fault(io::Error::other(format!("{bytes} bytes exceed the limit of {limit} for all results")))
            );
        }
        let locked = self.folder.lock();
        locked
            .and_then(|folder| folder.put(&reference, [&line, content], now, &self.limits))
            .map_err(|error| self.fault(error))?;
        Ok(stored)
    }

    /// Reads a part of a result by its bytes: `..` is the whole content, `4096..8192` the second 4 KiB. A boundary
    /// within a UTF-8 character moves to the start of the character, so that consecutive ranges add up to the whole
    /// content; a part has at least one character unless the content has ended. Only the whole content is compared with
    /// its digest.
    ///
    /// # Errors
    ///
    /// [`Error::NoResult`] if the reference is malformed, names no result, or names an expired one. [`Error::Results`]
    /// if the file was changed or cannot be read, or the shared store does not answer.
    pub fn open(&self, reference: &str, range: impl RangeBounds<u64>) -> Result<Excerpt, Error> {
        let reference = Reference::parse(reference)?;
        let own = self.open_file(&reference);
        let (Err(Error::NoResult { .. }), Some(shared)) = (&own, &self.shared) else {
            return own?.excerpt(range).map_err(|error| self.fault_at(&reference, error));
        };
        let read = || -> io::Result<Option<Excerpt>> {
            let Some(bytes) = shared.get(self.scope.owner(), reference.as_str())? else { return Ok(None) };
            let file = ResultFile::of_bytes(bytes, &reference)?;
            if self.scope.includes(file.stored()) { file.excerpt(range).map(Some) } else { Ok(None) }
        };
        read().map_err(|error| self.fault(error))?.ok_or_else(|| absent(&reference, MISSING))
    }

    /// Lists the results that have not expired, newest first. Results that cannot be opened are omitted, and a missing
    /// folder is empty.
    ///
    /// # Errors
    ///
    /// [`Error::Results`] if the folder cannot be read or other users may write it.
    pub fn list(&self) -> Result<Vec<StoredResult>, Error> {
        let references = self.folder.references().map_err(|error| self.fault(error))?;
        let files = references.iter().filter_map(|reference| self.open_file(reference).ok());
        let mut stored: Vec<StoredResult> = files.map(|file| file.stored().clone()).collect();
        stored.sort_by(|one, other| (other.created, &other.reference).cmp(&(one.created, &one.reference)));
        Ok(stored)
    }

    /// Removes a result.
    ///
    /// # Errors
    ///
    /// [`Error::NoResult`] if there is no such result, [`Error::Results`] if it cannot be removed.
    pub fn remove(&self, reference: &str) -> Result<(), Error> {
        let reference = Reference::parse(reference)?;
        match self.scope {
            Scope::All => self.require_folder(&reference)?,
            Scope::Owned(_) => drop(self.open_file(&reference)?),
        }
        match owner_only::remove(&self.folder.file(&reference)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(absent(&reference, MISSING)),
            Err(error) => Err(self.fault_at(&reference, error)),
        }
    }

    /// Removes every result, including those that cannot be opened if the results are not restricted to an owner, and returns
    /// their number.
    ///
    /// # Errors
    ///
    /// [`Error::Results`] if a result cannot be removed or the folder is unusable.
    pub fn clear(&self) -> Result<usize, Error> {
        let clear = || {
            if !self.folder.exists()? {
                return Ok(0);
            }
            let _locked = self.folder.lock()?;
            let mut removed = 0;
            let references = self.folder.references()?.into_iter();
            for reference in references.filter(|one| self.scope == Scope::All || self.open_file(one).is_ok()) {
                removed += usize::from(owner_only::remove(&self.folder.file(&reference))?);
            }
            Ok(removed)
        };
        clear().map_err(|error| self.fault(error))
    }

    fn open_file(&self, reference: &Reference) -> Result<ResultFile<File>, Error> {
        self.require_folder(reference)?;
        let file = ResultFile::open(&self.folder.file(reference), reference).map_err(|error| match error.kind() {
            ErrorKind::NotFound => absent(reference, MISSING),
            _ => self.fault_at(reference, error),
        })?;
        if !self.scope.includes(file.stored()) {
            return Err(absent(reference, MISSING));
        }
        if self.limits.is_expired(file.stored().created.into(), (self.clock)()) {
            return Err(absent(reference, EXPIRED));
        }
        Ok(file)
    }

    fn require_folder(&self, reference: &Reference) -> Result<(), Error> {
        if self.folder.exists().map_err(|error| self.fault(error))? { Ok(()) } else { Err(absent(reference, MISSING)) }
    }

    fn fault(&self, error: io::Error) -> Error {
        Error::Results {
            path: self.folder.path().to_path_buf(),
            reason: error.to_string(),
            source: Some(Arc::new(error)),
        }
    }

    fn fault_at(&self, reference: &Reference, error: io::Error) -> Error {
        Error::Results { path: self.folder.file(reference), reason: error.to_string(), source: Some(Arc::new(error)) }
    }
}

fn absent(reference: &Reference, reason: &str) -> Error {
    Error::NoResult { reference: reference.to_string(), reason: reason.to_owned() }
}
