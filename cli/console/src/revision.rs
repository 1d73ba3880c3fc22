//! Revisions of what pages show: a text for each subject that differs once its files do. Only names, versions of files
//! are read, and the head of the audit log.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::Path;

use toolcrib_agent::runs::RunStore;
use toolcrib_settings::permission::PendingCalls;
use toolcrib_settings::trust::TrustRecords;

use super::file_stamp::stamp;
use super::view::Views;

/// Runs, last changed first, that are asked whether a process still writes them: a kill changes no file.
const MAX_RUNNING: usize = 8;
/// Maximum bytes read from the head of the log.
const MAX_HEAD: u64 = 256;

/// Subject of a page, which changes while the page is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// All kept runs.
    Runs,
    /// One kept run with its logged calls.
    Run(String),
    /// The audit log.
    Calls,
    /// Calls that wait, approvals, and trusted paths.
    Decisions,
    /// Nothing that changes.
    Still,
}

/// Calls that wait for an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    calls: Vec<String>,
    /// Those of runs.
    of_runs: Vec<String>,
}

impl Subject {
    /// Returns the subject of the page at an address below the session address.
    pub(super) fn of(page: &str) -> Self {
        match page.split('/').collect::<Vec<_>>()[..] {
            [""] | ["runs"] => Self::Runs,
            ["runs", id] => RunStore::parse(id).map_or(Self::Still, Self::Run),
            ["calls" | "figures"] => Self::Calls,
            ["decisions"] => Self::Decisions,
            _ => Self::Still,
        }
    }
}

impl Waiting {
    /// Returns the number of calls.
    pub(super) fn count(&self) -> usize {
        self.calls.len()
    }
}

impl Views {
    /// Returns the revision of a subject.
    pub(super) fn revision(&self, subject: &Subject, waiting: &Waiting) -> String {
        let mut hash = DefaultHasher::new();
        match subject {
            Subject::Runs => {
                let files = self.runs.files().unwrap_or_default();
                for (at, run) in files.iter().enumerate() {
                    (&run.id, run.bytes, run.modified).hash(&mut hash);
                    (at < MAX_RUNNING && self.runs.is_running(&run.id)).hash(&mut hash);
                }
                waiting.of_runs.hash(&mut hash);
            }
            Subject::Run(id) => {
                stamp(&self.runs.path(id), &mut hash);
                self.runs.is_running(id).hash(&mut hash);
                waiting.of_runs.hash(&mut hash);
                head(&self.audit, &mut hash);
            }
            Subject::Calls => head(&self.audit, &mut hash),
            Subject::Decisions => {
                self.stamp_pending(&mut hash);
                self.kept.file().inspect(|approvals| stamp(approvals.path(), &mut hash));
                TrustRecords::of_user().inspect(|trusted| stamp(trusted.path(), &mut hash));
                waiting.hash(&mut hash);
            }
            Subject::Still => {}
        }
        format!("{:016x}", hash.finish())
    }

    /// Reads which calls wait for an answer; none if they cannot be read, which the page of decisions reports.
    pub(super) fn waiting(&self) -> Waiting {
        let calls = self.kept.pending().and_then(|calls: PendingCalls| calls.list().ok()).unwrap_or_default();
        let mut waiting = Waiting::default();
        for call in calls.into_iter().filter(|call| call.answer.is_none()) {
            waiting.of_runs.extend(call.run_id().map(|_| call.id.clone()));
            waiting.calls.push(call.id);
        }
        waiting
    }

    /// Returns a value that differs once the file of the calls that wait does.
    pub(super) fn pending_stamp(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.stamp_pending(&mut hash);
        hash.finish()
    }

    fn stamp_pending(&self, hash: &mut DefaultHasher) {
        self.kept.pending().inspect(|calls| stamp(calls.path(), hash));
    }
}

/// Adds the head of the log, which names its last record. Where another process locks it against reading, its time has to do.
fn head(folder: &Path, hash: &mut DefaultHasher) {
    let path = folder.join("head");
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(MAX_HEAD).read_to_end(&mut text));
    match read {
        Ok(_) => text.hash(hash),
        Err(_) => stamp(&path, hash),
    }
}
