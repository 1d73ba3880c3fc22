//! Calls that run on other machines. An embedder passes decided calls to its workers in place of the sandbox of this process; all
//! other stages of a call stay here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::future::BoxFuture;
use tokio::sync::mpsc;
use toolcrib_foundation::text::clipped;

use crate::call::{Form, Media, Part, TraceContext};
use crate::error::ToolError;

/// Maximum number of progress reports that wait to be shown. More are dropped.
const MAX_WAITING: usize = 16;

/// Name of the worker that has accepted a call, shared with the call's record.
pub(crate) type AcceptedBy = Arc<Mutex<Option<String>>>;

/// Call that passed all stages before its execution: it was resolved, checked, judged by the rules and hooks, and scheduled.
#[non_exhaustive]
pub struct WorkerCall<'a> {
    /// The host's identifier of the call, as in its record.
    pub invocation: &'a str,
    /// Name of the tool.
    pub tool: &'a str,
    /// Digest of the tool's program or script, as `sha256:HEX`.
    pub digest: &'a str,
    /// Arguments that passed the checks: one JSON object.
    pub arguments: &'a str,
    /// Deadline. After it, the future of the call is dropped.
    pub until: Instant,
    /// Maximum bytes of the answer, with its media. A larger answer is an error.
    pub max_answer: usize,
    /// Position of the call in the calling program's trace.
    pub trace: Option<TraceContext>,
    progress: mpsc::Sender<Part>,
    accepted: AcceptedBy,
}

/// Receiving ends for the reports about a call.
pub(crate) struct WorkerReports {
    pub(crate) progress: mpsc::Receiver<Part>,
    pub(crate) accepted: AcceptedBy,
}

impl<'a> WorkerCall<'a> {
    /// Creates a call with the receivers of its reports.
    pub(crate) fn new(
        invocation: &'a str,
        (tool, digest): (&'a str, &'a str),
        arguments: &'a str,
        (until, max_answer): (Instant, usize),
        trace: Option<TraceContext>,
    ) -> (Self, WorkerReports) {
        let (sender, progress) = mpsc::channel(MAX_WAITING);
        let accepted = AcceptedBy::default();
        let reports = WorkerReports { progress, accepted: accepted.clone() };
        (Self { invocation, tool, digest, arguments, until, max_answer, trace, progress: sender, accepted }, reports)
    }

    /// Reports the progress of the call. A report is dropped if too many wait.
    pub fn progress(&self, done: u64, total: Option<u64>) {
        // Nobody waits for a report.
        let _ = self.progress.try_send(Part::Progress { done, total });
    }

    /// Names the worker that runs the call, for its record. The last name counts.
    pub fn accepted_by(&self, worker: &str) {
        *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(clipped(worker));
    }
}

/// Answer of a worker. It is checked, masked, bounded and stored like the answer of a tool in this process.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerAnswer {
    /// Answer as one JSON text, `None` if the tool wrote none; or the error of the call.
    pub outcome: Result<Option<String>, ToolError>,
    /// Meaning of the answer. A form of one provider is read as JSON.
    pub form: Form,
    /// Media of the answer.
    pub media: Vec<Media>,
    /// Standard error of the tool, for people.
    pub log: String,
}

impl WorkerAnswer {
    /// Creates an answer with nothing but its outcome.
    pub fn new(outcome: Result<Option<String>, ToolError>) -> Self {
        Self { outcome, form: Form::Json, media: Vec::new(), log: String::new() }
    }
}

/// Workers that run the programs of tools.
///
/// With workers, no call of a tool with a program or a script runs in this process, and only tools that by definition or by their
/// program's imports only read are called. The tool's grant of folders, hosts and secrets is the worker's own.
pub trait Workers: Send + Sync {
    /// Runs one call. Dropping the future ends the call at its worker.
    ///
    /// A call may run again at another worker if the first does not answer, since its tool only reads.
    ///
    /// # Errors
    ///
    /// The reason why no worker answered, worded for a model.
    fn call<'a>(&'a self, call: WorkerCall<'a>) -> BoxFuture<'a, Result<WorkerAnswer, ToolError>>;
}
