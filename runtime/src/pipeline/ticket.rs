//! EventKind a call is signed for with: it gathers the receipt while the call runs, tells whoever watches, and writes exactly
//! one record when the call ends, also when its future is dropped.

mod said;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::audit::Audit;
use crate::call::{
    Decision, Denial, Flag, HookNote, Mutation, Persisted, Receipt, ToolCall, ToolResult, Written, pasted,
};
use crate::error::{Error, Outcome, ToolError};
use crate::observe::{Event, EventKind, Observer};
use crate::policy::{Grant, Secrets, real_path};
use crate::sandbox::Usage;
use crate::tool::{Access, Body, FileRequest, Limits, Tool};

use super::{clip, secret};

pub(super) use said::Said;

pub(super) struct Ticket<'p> {
    pub(super) usage: Arc<Usage>,
    audit: &'p Audit,
    observers: &'p [Arc<dyn Observer>],
    /// Who is told of the calls of its conversation.
    watcher: Option<&'p Arc<dyn Observer>>,
    secrets: Option<&'p Secrets>,
    started: Instant,
    waited: Duration,
    /// The part of the call's deadline that the compiling of its program and its check have used.
    spent: Duration,
    /// The end of the call, once it runs.
    until: Option<Instant>,
    receipt: Option<Receipt>,
    tool: Option<&'p Tool>,
    /// The host's folder behind the guest's `/`.
    cwd: Option<String>,
    /// That folder where it is the only one, so that a path of the guest's has one meaning.
    folder: Option<(PathBuf, Access)>,
    /// Whether the operator denied something that was asked for.
    stated_denial: bool,
    /// The arguments as they may be shown, where somebody wants to see them.
    observable: Option<Value>,
    log: String,
    fault: Option<Error>,
    said: Said,
    parts: u64,
}

impl<'p> Ticket<'p> {
    pub(super) fn new(
        audit: &'p Audit,
        observers: &'p [Arc<dyn Observer>],
        secrets: Option<&'p Secrets>,
        invocation: String,
        call: &ToolCall,
    ) -> Self {
        let ticket = Self {
            usage: Arc::default(),
            audit,
            observers,
            watcher: None,
            secrets,
            started: Instant::now(),
            waited: Duration::ZERO,
            spent: Duration::ZERO,
            until: None,
            receipt: Some(Receipt::begun(clip(&call.id), invocation, clip(&call.name))),
            tool: None,
            cwd: None,
            folder: None,
            stated_denial: false,
            observable: None,
            log: String::new(),
            fault: None,
            said: Said::default(),
            parts: 0,
        };
        ticket.tell(EventKind::Received(&call.arguments));
        ticket
    }

    /// The same ticket, told to one more.
    pub(super) fn watched_by(mut self, watcher: Option<&'p Arc<dyn Observer>>, call: &ToolCall) -> Self {
        if let (Some(watcher), Some(receipt)) = (watcher, &self.receipt) {
            tell(std::slice::from_ref(watcher), &self.event(receipt, EventKind::Received(&call.arguments)));
        }
        self.watcher = watcher;
        self
    }

    /// The call's identifier in every record.
    pub(super) fn invocation(&self) -> &str {
        self.receipt.as_ref().map_or("", |receipt| &receipt.invocation)
    }

    /// The caller's own identifier of the call, as far as a record has room for it.
    pub(super) fn call_id(&self) -> &str {
        self.receipt.as_ref().map_or("", |receipt| &receipt.call_id)
    }

    /// Tells whoever watches.
    pub(super) fn tell(&self, kind: EventKind<'_>) {
        let (true, Some(receipt)) = (self.is_watched(), &self.receipt) else { return };
        self.tell_of(receipt, kind);
    }

    fn tell_of(&self, receipt: &Receipt, kind: EventKind<'_>) {
        let event = self.event(receipt, kind);
        tell(self.observers, &event);
        tell(self.watcher.map_or(&[], std::slice::from_ref), &event);
    }

    fn event<'a>(&self, receipt: &'a Receipt, kind: EventKind<'a>) -> Event<'a>
    where
        'p: 'a,
    {
        let Receipt { invocation, call_id, tool: name, .. } = receipt;
        Event { invocation, call_id, name, tool: self.tool, at: SystemTime::now(), kind }
    }

    /// Notes the tool that was found, and what it is granted.
    pub(super) fn found(&mut self, tool: &'p Tool, grant: &Grant) {
        self.tool = Some(tool);
        if let [only] = grant.folders() {
            self.folder = Some((only.host.clone(), only.access));
        }
        self.stated_denial = grant.denied().iter().any(|denial| denial.flag.is_none());
        self.cwd = grant.folders().first().map(|folder| folder.host.display().to_string());
        self.note(|receipt| {
            if receipt.tool != tool.name {
                receipt.tool = tool.name.clone();
            }
            receipt.env_keys = grant.env_keys().map(str::to_owned).collect();
            receipt.granted = grant.granted();
            receipt.denied = grant.denied().to_vec();
        });
        self.tell(EventKind::Resolved);
    }

    fn note(&mut self, write: impl FnOnce(&mut Receipt)) {
        if let Some(receipt) = &mut self.receipt {
            write(receipt);
        }
    }

    /// Whether the arguments are wanted as they may be shown.
    pub(super) fn shows(&self) -> bool {
        let rendering = self.tool.map(|tool| &tool.interface.rendering);
        self.is_watched() || rendering.is_some_and(super::show::has_any)
    }

    pub(super) fn observable(&mut self, arguments: Value) {
        self.tell(EventKind::Observable(&arguments));
        self.observable = Some(arguments);
    }

    pub(super) fn decide(&mut self, decision: Decision) {
        self.tell(EventKind::Decided(&decision));
        self.note(|receipt| receipt.decision = Some(decision));
    }

    pub(super) fn denied(&mut self, denial: Denial) {
        self.note(|receipt| receipt.denied.push(denial));
    }

    pub(super) fn heard(&mut self, hook: HookNote) {
        self.note(|receipt| receipt.hooks.push(hook));
    }

    pub(super) fn mutated(&mut self, mutation: Mutation) {
        self.tell(EventKind::Mutated(&mutation));
        self.note(|receipt| receipt.mutations.push(mutation));
    }

    /// Whether a hook has changed the arguments.
    pub(super) fn is_mutated(&self) -> bool {
        self.receipt.as_ref().is_some_and(|receipt| !receipt.mutations.is_empty())
    }

    pub(super) fn waited(&mut self, since: Instant) {
        self.waited += since.elapsed();
    }

    pub(super) fn spend(&mut self, time: Duration) {
        self.spent += time;
    }

    /// Notes when the call ends that begins to run.
    pub(super) fn ends(&mut self, until: Instant) {
        self.until = Some(until);
    }

    /// Returns the end of the call, by its limits where it did not run.
    pub(super) fn end(&self, limits: &Limits) -> Instant {
        self.until.unwrap_or_else(|| Instant::now() + limits.deadline.saturating_sub(self.spent))
    }

    /// EventKind is left of a call's limits.
    ///
    /// # Errors
    ///
    /// [`Outcome::Deadline`] or [`Outcome::Fuel`] where nothing is.
    pub(super) fn left_of(&self, limits: &Limits) -> Result<Limits, ToolError> {
        let deadline = limits.deadline.saturating_sub(self.spent);
        if deadline.is_zero() {
            return Err(ToolError::new(Outcome::Deadline, "tool timed out before it started"));
        }
        let used = self.usage.fuel.load(Relaxed);
        let fuel = limits.fuel.map(|fuel| fuel.saturating_sub(used));
        if fuel == Some(0) {
            return Err(ToolError::new(Outcome::Fuel, "tool used up its fuel while its arguments were checked"));
        }
        Ok(Limits { deadline, fuel, ..*limits })
    }

    /// Whether anybody watches.
    pub(super) fn is_watched(&self) -> bool {
        !self.observers.is_empty() || self.watcher.is_some()
    }

    /// Notes the program that is about to run.
    pub(super) fn program(&mut self, digest: &str, arguments: usize) {
        self.note(|receipt| {
            receipt.digest = Some(digest.to_owned());
            receipt.stdin_bytes = arguments as u64;
        });
    }

    pub(super) fn exited(&mut self, code: i32) {
        self.note(|receipt| receipt.exit = Some(code));
    }

    /// EventKind the tool wrote, as text.
    pub(super) fn text(&mut self, bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap_or_else(|error| {
            self.flag([Flag::InvalidUtf8]);
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        })
    }

    /// Notes what an answer holds that nobody would see.
    pub(super) fn flag(&mut self, flags: impl IntoIterator<Item = Flag>) {
        for flag in flags {
            self.note(|receipt| {
                if !receipt.flags.contains(&flag) {
                    receipt.flags.push(flag);
                }
            });
        }
    }

    /// Adds to what people may read of the call.
    pub(super) fn log(&mut self, text: String) {
        self.log.push_str(&secret::masked(self.secrets, text));
    }

    pub(super) fn written(&mut self, written: Written) {
        self.note(|receipt| receipt.written = Some(written));
    }

    pub(super) fn persisted(&mut self, persisted: Persisted) {
        self.tell(EventKind::Persisted(&persisted));
        self.note(|receipt| receipt.persisted = Some(persisted));
    }

    /// Writes the record and makes the result. An answer that cannot be signed for is not given.
    pub(super) fn close(mut self, call: ToolCall, ended: Result<String, ToolError>) -> ToolResult {
        let mut receipt = self.settle(ended.as_ref().map_or_else(|error| error.outcome, |_| Outcome::Ok));
        let outcome = match ended {
            Err(error) if error.outcome == Outcome::Unlogged => Err(error),
            ended => match self.write(&receipt) {
                Ok(()) => ended,
                Err(error) => {
                    receipt.outcome = Outcome::Unlogged;
                    Err(self.fault(error))
                }
            },
        };
        let result = self.result(call.id, call.name, outcome, receipt);
        if self.is_watched() {
            self.tell_of(&result.receipt, EventKind::Ended(&result));
        }
        result
    }

    fn write(&mut self, receipt: &Receipt) -> Result<(), Error> {
        let argv = match self.tool.map(|tool| &tool.body) {
            Some(Body::Command { argv, .. }) => argv.as_slice(),
            _ => &[],
        };
        self.audit.write(receipt, argv, self.cwd.take())
    }

    fn result(
        &mut self,
        call_id: String,
        name: String,
        outcome: Result<String, ToolError>,
        receipt: Receipt,
    ) -> ToolResult {
        let shown = self.tool.zip(self.observable.as_ref());
        let (display, transcript) = shown.map_or((None, None), |(tool, arguments)| {
            let rendering = &tool.interface.rendering;
            (super::show::display(rendering, receipt.outcome, arguments), super::show::transcript(rendering, arguments))
        });
        let Said { form, media, shown, summary, transcript: words } = std::mem::take(&mut self.said);
        let masked = |text: Option<String>| text.map(|text| secret::masked(self.secrets, text));
        let (display, transcript) = (masked(summary.or(display)), masked(words.or(transcript)));
        let (log, fault) = (std::mem::take(&mut self.log), self.fault.take());
        let (form, media) = if outcome.is_ok() { (form, media) } else { Default::default() };
        let bare = ToolResult::bare(call_id, name, outcome, receipt);
        ToolResult { form, media, shown, display, transcript, log, fault, ..bare }
    }

    /// Keeps a fault of the host for the operator and gives what the model is told of it.
    pub(super) fn fault(&mut self, fault: Error) -> ToolError {
        let told = ToolError::of_fault(&fault);
        self.fault = Some(fault);
        told
    }

    /// The receipt with the figures of the usage. After this the ticket is closed.
    fn settle(&mut self, outcome: Outcome) -> Receipt {
        let mut receipt = self.receipt.take().expect("a ticket is closed once");
        let usage = &self.usage;
        receipt.outcome = outcome;
        receipt.ms = round(self.started.elapsed());
        receipt.waited_ms = round(self.waited);
        receipt.cpu_ms = round(Duration::from_nanos(usage.processor_nanos.load(Relaxed)));
        receipt.fuel = Some(usage.fuel.load(Relaxed)).filter(|fuel| *fuel > 0);
        receipt.peak_memory_bytes = usage.peak_memory.load(Relaxed);
        receipt.stdout_bytes = usage.stdout.load(Relaxed);
        receipt.stderr_bytes = usage.stderr.load(Relaxed);
        receipt.disk_bytes = usage.disk_bytes.load(Relaxed);
        receipt.disk_entries = usage.disk_entries.load(Relaxed);
        receipt.truncated = usage.truncated.load(Relaxed);
        receipt.network = usage.requests().summary();
        receipt.denied.extend(usage.requests().denials());
        receipt.denied.extend(usage.denials().into_iter().map(|(access, path)| self.denial(access, &path)));
        receipt.denied.extend(usage.refusals());
        receipt.denied.extend(self.missed_folders(outcome));
        receipt.executed = usage.executed();
        receipt.executions = usage.executions.load(Relaxed);
        receipt.added = usage.additions();
        receipt.delegated = usage.delegated.load(Relaxed);
        receipt.calls = usage.calls.load(Relaxed);
        receipt.completions = usage.completions.load(Relaxed);
        receipt.tokens = usage.tokens.load(Relaxed);
        receipt.parts = self.parts;
        receipt.dropped_parts = usage.dropped_parts.load(Relaxed);
        receipt.secrets = usage.requests().secrets();
        if let Some(scanner) = self.secrets.and_then(Secrets::scanner) {
            secret::mask_receipt(&mut receipt, &scanner);
        }
        receipt
    }

    /// EventKind a tool that failed may have failed for, where it looked for folders, asked for none and was given none.
    fn missed_folders(&self, outcome: Outcome) -> Option<Denial> {
        let tool = self.tool.filter(|_| matches!(outcome, Outcome::Failed | Outcome::Trap))?;
        let asked = &tool.requested;
        let is_open = matches!(asked.files, FileRequest::None) && !asked.stated && !self.stated_denial;
        let missed = is_open && self.folder.is_none() && self.usage.missed_folders();
        let access = Access::Read.as_str();
        missed.then(|| Denial { capability: access.to_owned(), flag: Some(format!("--allow-{access}=DIR")) })
    }

    /// A refused path with the flag that would have allowed it: writing inside a folder that is granted for reading
    /// needs that folder, a path outside needs the folder it leads to. Where the path alone does not tell, there is none.
    pub(super) fn denial(&self, access: Access, path: &str) -> Denial {
        let word = access.as_str();
        let flag = self.folder.as_ref().and_then(|(folder, granted)| {
            let wanted = real_path(&folder.join(path.trim_start_matches('/')));
            let inside = wanted.starts_with(folder);
            // EventKind a link leads to out of the folder, it leads to under every grant.
            if !inside && !path.split('/').any(|part| part == "..") {
                return None;
            }
            match (inside, wanted.parent()) {
                (true, _) if access > *granted && !self.stated_denial => {
                    pasted(&format!("--allow-{word}"), &folder.to_string_lossy())
                }
                (false, Some(parent)) => pasted(&format!("--allow-{word}"), &parent.to_string_lossy()),
                _ => None,
            }
        });
        Denial { capability: format!("{word}:{path}"), flag }
    }
}

impl Drop for Ticket<'_> {
    /// A call whose future was dropped has no caller left, but it has a record.
    fn drop(&mut self) {
        if self.receipt.is_none() {
            return;
        }
        let receipt = self.settle(Outcome::Cancelled);
        let _ = self.write(&receipt);
        if self.is_watched() {
            let (id, name) = (receipt.call_id.clone(), receipt.tool.clone());
            let gone = ToolError::new(Outcome::Cancelled, "the caller went away");
            let result = self.result(id, name, Err(gone), receipt);
            self.tell_of(&result.receipt, EventKind::Ended(&result));
        }
    }
}

/// Whoever watches harms no call.
fn tell(observers: &[Arc<dyn Observer>], event: &Event<'_>) {
    for observer in observers {
        let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(event)));
    }
}

/// Milliseconds, as fine as these clocks are worth: to the microsecond.
fn round(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
