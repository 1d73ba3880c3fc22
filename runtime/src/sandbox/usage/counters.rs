//! Counters and bounded lists of one call. They outlive the call's future, so that a cancelled call still has figures for
//! its record.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use toolcrib_staging::{CallHistory, StagedCall};

use crate::call::{Denial, HookNote, ProgramRun, clipped};
use crate::error::{Outcome, ToolError};
use crate::sandbox::causes::{ByteSize, WriteRefused};
use crate::tool::Access;

use super::call_effects::CallEffects;
use super::call_flow::CallFlow;
use super::request_log::RequestLog;

/// Maximum number of denials, of executed programs, of hooks that refused a program, of secrets in requests, and of warnings that
/// one call records.
pub(crate) const MAX_RECORDED: usize = 16;

/// Usage of one call, or by one program or hook that runs for a call.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) peak_memory: AtomicU64,
    pub(crate) processor_nanos: AtomicU64,
    pub(crate) fuel: AtomicU64,
    pub(crate) stdout: AtomicU64,
    pub(crate) stderr: AtomicU64,
    /// `true` if output was cut at its cap.
    pub(crate) truncated: AtomicBool,
    /// `true` if a memory or table was refused its growth, which explains a later trap.
    pub(crate) memory_refused: AtomicBool,
    /// `true` if the system had no more to map for a memory or table, which explains a later trap.
    pub(in crate::sandbox) system_exhausted: AtomicBool,
    /// Bytes written to files, with the holes before them; see [`Limits::disk_bytes`](crate::tool::Limits::disk_bytes).
    pub(crate) disk_bytes: AtomicU64,
    /// Files, folders and links created.
    pub(crate) disk_entries: AtomicU64,
    /// First reason for which a write was refused, which explains a later failure.
    pub(in crate::sandbox) refused_write: OnceLock<WriteRefused>,
    /// `true` if the guest asked for a folder and has none.
    without_folders: AtomicBool,
    denials: Mutex<Vec<(Access, String)>>,
    refusals: Mutex<Vec<Denial>>,
    hooks: Mutex<Vec<HookNote>>,
    executed: Mutex<Vec<ProgramRun>>,
    pub(crate) executions: AtomicU64,
    added: Mutex<Vec<String>>,
    pub(crate) delegated: AtomicU64,
    /// Parts shown while the call ran.
    pub(crate) parts: AtomicU64,
    /// Parts that were not shown.
    pub(crate) dropped_parts: AtomicU64,
    /// Calls of other tools.
    pub(crate) calls: AtomicU64,
    /// Requests to the model.
    pub(crate) completions: AtomicU64,
    /// Tokens that the requests to the model cost.
    pub(crate) tokens: AtomicU64,
    /// Call for the stage that holds its writes back, if there is one.
    pub(crate) staged_call: OnceLock<Arc<StagedCall>>,
    /// Effects that are held back until this call, or one above it, ends.
    pub(crate) effects: OnceLock<Arc<CallEffects>>,
    /// `true` if its requests are a part of them.
    holds_requests: AtomicBool,
    /// `true` for the usage of a hook, which acts for the operator: its requests are sent.
    is_of_hook: bool,
    /// Notes about the files that the call changes.
    pub(crate) history: OnceLock<Arc<CallHistory>>,
    /// Label of the call, and the ways out that it leaves open.
    pub(crate) flow: CallFlow,
    requests: RequestLog,
    /// Usage of the call, if this one belongs to a program or hook that runs for it.
    call: Option<Arc<Usage>>,
}

impl Usage {
    /// Returns the usage of a program or hook that runs for this call. Memory, output, fuel and outcome are counted apart;
    /// files, requests and denials are counted for the whole call.
    pub(crate) fn within(call: &Arc<Self>) -> Arc<Self> {
        let is_of_hook = call.is_of_hook;
        let call = call.call.as_ref().unwrap_or(call);
        Arc::new(Self { call: Some(call.clone()), is_of_hook, ..Self::default() })
    }

    /// Returns the usage of a hook that runs for this call.
    pub(crate) fn of_hook(call: &Arc<Self>) -> Arc<Self> {
        let call = call.call.as_ref().unwrap_or(call);
        Arc::new(Self { call: Some(call.clone()), is_of_hook: true, ..Self::default() })
    }

    /// Holds back the requests of the call.
    pub(crate) fn hold_requests(&self) {
        self.holds_requests.store(true, Relaxed);
    }

    /// Returns `true` if requests of this usage are held back.
    pub(crate) fn holds_requests(&self) -> bool {
        !self.is_of_hook && self.whole().holds_requests.load(Relaxed)
    }

    /// Returns the usage of the whole call.
    pub(crate) fn whole(&self) -> &Self {
        self.call.as_deref().unwrap_or(self)
    }

    /// Returns the HTTP request log of the whole call.
    pub(crate) fn requests(&self) -> &RequestLog {
        &self.whole().requests
    }

    /// Records a path that the grant denied. Each path is recorded once, and at most [`MAX_RECORDED`] are.
    pub(in crate::sandbox) fn record_denied_path(&self, access: Access, path: &str) {
        let mut denials = locked(&self.whole().denials);
        let path = clipped(path);
        if denials.len() < MAX_RECORDED && !denials.iter().any(|(_, known)| *known == path) {
            denials.push((access, path));
        }
    }

    /// Records that the guest asked for a folder and has none.
    pub(in crate::sandbox) fn record_missing_folders(&self) {
        self.whole().without_folders.store(true, Relaxed);
    }

    /// Returns `true` if the guest asked for a folder and has none.
    pub(crate) fn missed_folders(&self) -> bool {
        self.without_folders.load(Relaxed)
    }

    /// Records any other denial. Each is recorded once, and at most [`MAX_RECORDED`] are.
    pub(crate) fn refused(&self, denial: Denial) {
        let mut refusals = locked(&self.whole().refusals);
        if refusals.len() < MAX_RECORDED && !refusals.contains(&denial) {
            refusals.push(denial);
        }
    }

    /// Returns the denials that concern neither a path nor a request.
    pub(crate) fn refusals(&self) -> Vec<Denial> {
        locked(&self.refusals).clone()
    }

    /// Records a hook that refused a command of a script. At most [`MAX_RECORDED`] are recorded.
    pub(crate) fn record_hook(&self, hook: HookNote) {
        let mut hooks = locked(&self.whole().hooks);
        if hooks.len() < MAX_RECORDED {
            hooks.push(hook);
        }
    }

    /// Returns the hooks that refused commands of scripts.
    pub(crate) fn hooks(&self) -> Vec<HookNote> {
        locked(&self.hooks).clone()
    }

    /// Records the start of a program that a script runs, and returns its index in the record, if it has one.
    pub(crate) fn began(&self, execution: ProgramRun) -> Option<usize> {
        self.whole().executions.fetch_add(1, Relaxed);
        let mut executed = locked(&self.whole().executed);
        if executed.len() == MAX_RECORDED {
            return None;
        }
        executed.push(execution);
        Some(executed.len() - 1)
    }

    /// Records the end of a program by the index that [`Self::began`] returned.
    pub(crate) fn ended(&self, index: Option<usize>, end: impl FnOnce(&mut ProgramRun)) {
        if let Some(index) = index {
            locked(&self.whole().executed).get_mut(index).map(end);
        }
    }

    /// Returns the programs that scripts ran.
    pub(crate) fn executed(&self) -> Vec<ProgramRun> {
        locked(&self.executed).clone()
    }

    /// Records a tool or hook that a script added to its run. The run bounds their number.
    pub(crate) fn added(&self, name: String) {
        locked(&self.whole().added).push(name);
    }

    /// Returns the tools and hooks that scripts added.
    pub(crate) fn additions(&self) -> Vec<String> {
        locked(&self.added).clone()
    }

    /// Counts a part that is not shown.
    pub(crate) fn dropped(&self) {
        self.whole().dropped_parts.fetch_add(1, Relaxed);
    }

    /// Counts an answer that is returned and not written to a stream.
    ///
    /// # Errors
    ///
    /// [`Outcome::OutputLimit`] if the answer is larger than the cap.
    pub(crate) fn count_answer(&self, bytes: usize, cap: usize) -> Result<(), ToolError> {
        self.stdout.fetch_add(bytes.min(cap) as u64, Relaxed);
        if bytes <= cap {
            return Ok(());
        }
        self.truncated.store(true, Relaxed);
        let message = format!("tool answered with more than {}", ByteSize(cap as u64));
        Err(ToolError::new(Outcome::OutputLimit, message))
    }

    /// Returns the paths that the grant denied, as the guest named them.
    pub(crate) fn denials(&self) -> Vec<(Access, String)> {
        locked(&self.denials).clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
