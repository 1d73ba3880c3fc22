//! `trusted.json` in the state directory: the paths that a person trusts, each with the digest and the requests that they
//! reviewed.

use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolcrib::ListFile;
use toolcrib_base::folders::state_folder;

use super::{Item, Subject};

/// File of the records in the state directory.
const FILE: &str = "trusted.json";
/// Maximum size of the file.
const MAX_BYTES: u64 = 16 << 20;

/// Trust in the content of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    /// Real path of the source or settings file.
    pub path: PathBuf,
    /// Digest of the reviewed content, as `sha256:HEX`.
    pub digest: String,
    /// Time of the review.
    pub given: Timestamp,
    /// Reviewed parts with their requests.
    pub items: Vec<Item>,
    /// `true` if the parts are tools, and everything that was reviewed.
    #[serde(default)]
    pub(crate) has_tools_alone: bool,
}

/// The file of the records. It may be missing, and is then empty.
#[derive(Debug, Clone)]
pub struct TrustRecords(ListFile<TrustRecord>);

impl TrustRecords {
    /// Returns the records of `toolcrib trust`; `None` if the user has no home directory.
    pub fn of_user() -> Option<Self> {
        state_folder(FILE).map(Self::file)
    }

    pub(crate) fn file(path: PathBuf) -> Self {
        Self(ListFile::new(path, "trusted", MAX_BYTES))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Reads the records, oldest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read or parsed, or can be written by other users.
    pub fn read(&self) -> anyhow::Result<Vec<TrustRecord>> {
        self.0.read().with_context(|| self.unreadable())
    }

    /// Records trust in a subject, in place of an earlier record for its path.
    ///
    /// # Errors
    ///
    /// As for [`TrustRecords::read`], and if the file cannot be written.
    pub fn add(&self, subject: &Subject) -> anyhow::Result<()> {
        let Subject { path, digest, items, has_tools_alone } = subject.clone();
        let record = TrustRecord { path, digest, given: Timestamp::now(), items, has_tools_alone };
        let change = |records: &mut Vec<TrustRecord>| {
            records.retain(|other| other.path != record.path);
            records.push(record);
        };
        self.0.change(change).with_context(|| self.unreadable())
    }

    /// Removes the record of a path; returns `false` if there is none.
    ///
    /// # Errors
    ///
    /// As for [`TrustRecords::add`].
    pub fn remove(&self, path: &Path) -> anyhow::Result<bool> {
        let change = |records: &mut Vec<TrustRecord>| {
            let before = records.len();
            records.retain(|record| record.path != path);
            records.len() < before
        };
        self.0.change(change).with_context(|| self.unreadable())
    }

    fn unreadable(&self) -> String {
        format!("cannot use the trusted paths in `{}`", self.0.path().display())
    }
}
