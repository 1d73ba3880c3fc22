//! Writes exactly one audit record per call, also if the future of the call is dropped. It collects the receipt while the
//! call runs and notifies the observers; it decides nothing about the call.

mod arguments;
mod budget;
mod figures;
mod output;
pub(crate) mod redact;
mod rendering;
mod staged;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};

use serde_json::Value;

use crate::audit::{Audit, CallArguments, CallFacts, LoggedArguments, Writing};
use crate::call::{
    Decision, Denial, Flag, HookNote, Mutation, Persisted, Receipt, ToolCall, ToolResult, TraceContext, Written,
    clipped,
};
use crate::error::{Error, Outcome, ToolError};
use crate::observe::{Event, EventKind, Observer};
use crate::policy::{Grant, Secrets};
use crate::sandbox::Usage;
use crate::schema::ToolValidator;
use crate::tool::{Access, Body, Limits, Tool};

pub(crate) use budget::Budget;
pub(crate) use output::ToolOutput;

/// Origin of a call for its record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallOrigin<'p> {
    /// Run of the program.
    pub(crate) run: &'p str,
    /// Session of the call.
    pub(crate) session: &'p str,
    /// Entry point of the program.
    pub(crate) door: &'p str,
}

/// Collects the receipt of one call and writes its record when the call ends or is dropped. It is large, so it has a place of its
/// own that does not move with the futures of the call.
pub(crate) struct CallRecorder<'p> {
    /// Figures of the call, shared with its sandbox.
    pub(crate) usage: Arc<Usage>,
    /// Time of the call.
    pub(crate) budget: Budget,
    audit: &'p Audit,
    observers: &'p [Arc<dyn Observer>],
    /// Observer of one conversation's calls.
    watcher: Option<&'p Arc<dyn Observer>>,
    secrets: Option<&'p Secrets>,
    started: Instant,
    call: Arc<ToolCall>,
    origin: CallOrigin<'p>,
    receipt: Option<Receipt>,
    tool: Option<&'p Tool>,
    /// Digest of the tool's definition, if calls are logged.
    definition: Option<&'p str>,
    /// Arguments for the record, if it holds any.
    arguments: Option<CallArguments>,
    /// Masked arguments, once they are computed.
    logged: Option<LoggedArguments>,
    /// Host folder that the guest sees as `/`.
    cwd: Option<String>,
    /// The same folder if it is the only one, so that a guest path has one meaning.
    folder: Option<(PathBuf, Access)>,
    /// `true` if the operator denied a requested capability.
    stated_denial: bool,
    /// Arguments with sensitive values masked, if they are shown to observers or approvers.
    observable: Option<Value>,
    log: String,
    fault: Option<Error>,
    output: ToolOutput,
    parts: u64,
    /// Receipt and end of the call while its record is written, and the write result.
    closing: Option<(Receipt, Result<String, ToolError>, Writing)>,
}

impl<'p> CallRecorder<'p> {
    /// Opens a call's record and notifies the observers of it.
    pub(crate) fn new(
        audit: &'p Audit,
        observers: &'p [Arc<dyn Observer>],
        secrets: Option<&'p Secrets>,
        invocation: String,
        call: Arc<ToolCall>,
        origin: CallOrigin<'p>,
    ) -> Box<Self> {
        let receipt = Receipt::begun(clipped(&call.id), invocation, clipped(&call.name));
        let has_arguments = audit.is_on() && call.unreadable.is_none();
        let recorder = Box::new(Self {
            usage: Arc::default(),
            budget: Budget::default(),
            audit,
            observers,
            watcher: None,
            secrets,
            started: Instant::now(),
            origin,
            receipt: Some(receipt),
            tool: None,
            definition: None,
            arguments: has_arguments.then(|| CallArguments::new(call.clone())),
            logged: None,
            call,
            cwd: None,
            folder: None,
            stated_denial: false,
            observable: None,
            log: String::new(),
            fault: None,
            output: ToolOutput::default(),
            parts: 0,
            closing: None,
        });
        recorder.emit(EventKind::Received(&recorder.call.arguments));
        recorder
    }

    /// Adds the observer of the conversation.
    pub(crate) fn watched_by(mut self: Box<Self>, watcher: Option<&'p Arc<dyn Observer>>) -> Box<Self> {
        if let (Some(watcher), Some(receipt)) = (watcher, &self.receipt) {
            notify(std::slice::from_ref(watcher), &self.event(receipt, EventKind::Received(&self.call.arguments)));
        }
        self.watcher = watcher;
        self
    }

    /// Returns the identifier of the call in every record.
    pub(crate) fn invocation(&self) -> &str {
        self.receipt.as_ref().map_or("", |receipt| &receipt.invocation)
    }

    /// Returns the caller's identifier of the call, shortened to the maximum length in a record.
    pub(crate) fn call(&self) -> &Arc<ToolCall> {
        &self.call
    }

    /// Returns the caller's identifier of the call.
    pub(crate) fn call_id(&self) -> &str {
        self.receipt.as_ref().map_or("", |receipt| &receipt.call_id)
    }

    /// Returns the caller that the call states.
    pub(crate) fn caller(&self) -> Option<&str> {
        self.call.caller.as_deref()
    }

    /// Returns the call's position in a trace of the calling program.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.call.trace
    }

    /// Returns `true` if any observer is registered.
    pub(crate) fn is_watched(&self) -> bool {
        !self.observers.is_empty() || self.watcher.is_some()
    }

    /// Notifies the observers of an event.
    pub(crate) fn emit(&self, kind: EventKind<'_>) {
        let (true, Some(receipt)) = (self.is_watched(), &self.receipt) else { return };
        self.emit_with(receipt, kind);
    }

    fn emit_with(&self, receipt: &Receipt, kind: EventKind<'_>) {
        let event = self.event(receipt, kind);
        notify(self.observers, &event);
        notify(self.watcher.map_or(&[], std::slice::from_ref), &event);
    }

    fn event<'a>(&self, receipt: &'a Receipt, kind: EventKind<'a>) -> Event<'a>
    where
        'p: 'a,
    {
        let Receipt { invocation, call_id, tool: name, .. } = receipt;
        Event { invocation, call_id, name, tool: self.tool, trace: self.call.trace, at: SystemTime::now(), kind }
    }

    fn note(&mut self, write: impl FnOnce(&mut Receipt)) {
        if let Some(receipt) = &mut self.receipt {
            write(receipt);
        }
    }

    /// Returns `true` if the call is logged.
    pub(crate) fn is_logged(&self) -> bool {
        self.audit.is_on()
    }

    /// Records the tool of the call, its grant, its checks and, if the call is logged, its definition's digest.
    pub(crate) fn resolved(
        &mut self,
        tool: &'p Tool,
        grant: &Grant,
        validator: &Arc<ToolValidator>,
        definition: Option<&'p str>,
    ) {
        (self.tool, self.definition) = (Some(tool), definition);
        // An unusable tool has no checks.
        if tool.unusable.is_none() {
            self.set_validator(validator);
        }
        if let [only] = grant.folders()
            && only.files().next().is_none()
        {
            self.folder = Some((only.host.clone(), only.access));
        }
        self.stated_denial = grant.denied().iter().any(|denial| denial.flag.is_none());
        self.name_for_effects(tool, grant);
        self.cwd = grant.folders().first().map(|folder| folder.host.display().to_string());
        self.note(|receipt| {
            if receipt.tool != tool.name {
                receipt.tool = tool.name.clone();
            }
            receipt.env_keys = grant.env_keys().map(str::to_owned).collect();
            receipt.granted = grant.granted();
            receipt.denied = grant.denied().to_vec();
        });
        self.emit(EventKind::Resolved);
    }

    /// Returns `true` if an observer or a template of the tool's definition shows the arguments.
    pub(crate) fn shows_arguments(&self) -> bool {
        let rendering = self.tool.map(|tool| &tool.interface.rendering);
        self.is_watched() || rendering.is_some_and(rendering::has_any)
    }

    /// Keeps the arguments with sensitive values masked.
    pub(crate) fn set_observable(&mut self, arguments: Value) {
        self.emit(EventKind::Observable(&arguments));
        self.observable = Some(arguments);
    }

    /// Records the decision about the call. An observer can hold the call meanwhile, which is a wait for a person.
    pub(crate) fn decide(&mut self, decision: Decision) {
        let since = self.is_watched().then(Instant::now);
        self.emit(EventKind::Decided(&decision));
        since.into_iter().for_each(|since| self.budget.add_wait(since));
        self.note(|receipt| receipt.decision = Some(decision));
    }

    /// Records a denied capability.
    pub(crate) fn deny(&mut self, denial: Denial) {
        self.note(|receipt| receipt.denied.push(denial));
    }

    /// Records a hook and its verdict.
    pub(crate) fn add_hook(&mut self, hook: HookNote) {
        self.note(|receipt| receipt.add_hook(hook));
    }

    /// Records a change of the arguments.
    pub(crate) fn add_mutation(&mut self, mutation: Mutation) {
        self.emit(EventKind::Mutated(&mutation));
        self.note(|receipt| receipt.mutations.push(mutation));
    }

    /// Returns `true` if a hook has changed the arguments.
    pub(crate) fn is_mutated(&self) -> bool {
        self.receipt.as_ref().is_some_and(|receipt| !receipt.mutations.is_empty())
    }

    /// Returns the remaining part of a tool's limits.
    ///
    /// # Errors
    ///
    /// [`Outcome::Deadline`] or [`Outcome::Fuel`] if nothing remains.
    pub(crate) fn remaining(&self, limits: &Limits) -> Result<Limits, ToolError> {
        self.budget.remaining(limits, self.usage.fuel.load(Relaxed))
    }

    /// Records the program that is about to run and the size of its arguments.
    pub(crate) fn set_program(&mut self, digest: &str, arguments: usize) {
        self.note(|receipt| {
            receipt.digest = Some(digest.to_owned());
            receipt.stdin_bytes = arguments as u64;
        });
    }

    /// Records the exit code of a command.
    pub(crate) fn set_exit(&mut self, code: i32) {
        self.note(|receipt| receipt.exit = Some(code));
    }

    /// Decodes the output of a tool. Invalid UTF-8 is replaced and flagged.
    pub(crate) fn decode(&mut self, bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap_or_else(|error| {
            self.flag([Flag::InvalidUtf8]);
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        })
    }

    /// Records flags of an answer, each once.
    pub(crate) fn flag(&mut self, flags: impl IntoIterator<Item = Flag>) {
        for flag in flags {
            self.note(|receipt| {
                if !receipt.flags.contains(&flag) {
                    receipt.flags.push(flag);
                }
            });
        }
    }

    /// Appends text to the log of the call, with secrets masked.
    pub(crate) fn log(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.secrets.and_then(Secrets::scanner) {
            Some(scanner) => self.log.push_str(&scanner.mask(text)),
            None => self.log.push_str(text),
        }
    }

    /// Records the kind of answer that the tool wrote.
    pub(crate) fn set_written(&mut self, written: Written) {
        self.note(|receipt| receipt.written = Some(written));
    }

    /// Records how a long answer was shortened.
    pub(crate) fn set_persisted(&mut self, persisted: Persisted) {
        self.emit(EventKind::Persisted(&persisted));
        self.note(|receipt| receipt.persisted = Some(persisted));
    }

    /// Keeps a fault of the host for the operator and returns the error for the model.
    pub(crate) fn fault(&mut self, fault: Error) -> ToolError {
        let error = ToolError::of_fault(&fault);
        self.fault = Some(fault);
        error
    }

    /// Writes the record and returns the result. An answer without a record is not returned. The record is written even if
    /// the future is dropped.
    pub(crate) async fn close(&mut self, ended: Result<String, ToolError>) -> ToolResult {
        self.end_notes().await;
        let receipt = self.complete(ended.as_ref().err());
        let writing = self.write_ended(&receipt, &ended);
        let (_, _, writing) = self.closing.insert((receipt, ended, writing));
        let written = writing.ended().await;
        self.returned(written)
    }

    /// Writes the record of a call that does not run, and returns the result.
    pub(crate) fn close_now(mut self: Box<Self>, ended: Result<String, ToolError>) -> ToolResult {
        let receipt = self.complete(ended.as_ref().err());
        let mut writing = self.write_ended(&receipt, &ended);
        let written = writing.wait();
        self.closing = Some((receipt, ended, writing));
        self.returned(written)
    }

    /// Starts to write the record of a call that has ended; a call that cannot be logged has no record.
    fn write_ended(&mut self, receipt: &Receipt, ended: &Result<String, ToolError>) -> Writing {
        match ended {
            Err(error) if error.outcome == Outcome::Unlogged => Writing::Ended(Ok(())),
            _ => self.write(receipt),
        }
    }

    /// Returns the result of a call after its record was written.
    fn returned(&mut self, written: Result<(), Error>) -> ToolResult {
        let (mut receipt, ended, _) = self.closing.take().expect("a recorder is closed once");
        let outcome = match written {
            Ok(()) => ended,
            Err(error) => {
                receipt.outcome = Outcome::Unlogged;
                Err(self.fault(error))
            }
        };
        let (id, name) = (self.call.id.clone(), self.call.name.clone());
        let result = self.result(id, name, outcome, receipt);
        if self.is_watched() {
            self.emit_with(&result.receipt, EventKind::Ended(&result));
        }
        result
    }

    fn write(&mut self, receipt: &Receipt) -> Writing {
        let argv = match self.tool.map(|tool| &tool.body) {
            Some(Body::Command { argv, .. }) => argv.as_slice(),
            _ => &[],
        };
        let CallOrigin { run, session, door } = self.origin;
        let caller = self.call.caller.as_deref().map(clipped);
        let trace = self.call.trace.map(|context| format!("{:032x}", context.trace_id()));
        let parent_span = self.call.trace.map(|context| format!("{:016x}", context.parent_id()));
        let (source, cwd) = (self.definition, self.cwd.take());
        let facts = CallFacts { run, session, door, caller, trace, parent_span, source, argv, cwd };
        let arguments = self.logged.take().or_else(|| self.represent_at_once());
        self.audit.write(receipt, &facts, arguments.as_ref())
    }

    fn result(
        &mut self,
        call_id: String,
        name: String,
        outcome: Result<String, ToolError>,
        receipt: Receipt,
    ) -> ToolResult {
        let rendered = self.tool.zip(self.observable.as_ref());
        let (display, words) = rendered.map_or((None, None), |(tool, arguments)| {
            let rendering = &tool.interface.rendering;
            (rendering::display(rendering, receipt.outcome, arguments), rendering::transcript(rendering, arguments))
        });
        let ToolOutput { form, media, shown, summary, transcript } = std::mem::take(&mut self.output);
        let masked = |text: Option<String>| text.map(|text| redact::masked(self.secrets, text));
        let (display, transcript) = (masked(summary.or(display)), masked(transcript.or(words)));
        let (log, fault) = (std::mem::take(&mut self.log), self.fault.take());
        let (form, media) = if outcome.is_ok() { (form, media) } else { Default::default() };
        let bare = ToolResult::bare(call_id, name, outcome, receipt);
        ToolResult { form, media, shown, display, transcript, log, fault, ..bare }
    }
}

impl Drop for CallRecorder<'_> {
    /// Writes the record of a call that was dropped before its end.
    fn drop(&mut self) {
        let is_watched = self.is_watched();
        if let (true, Some((_, _, writing))) = (is_watched, &mut self.closing) {
            // The record of the end is being written; nobody waits for the answer, and the observers learn of both.
            let written = writing.wait();
            let _ = self.returned(written);
        }
        if self.receipt.is_none() {
            return;
        }
        let gone = ToolError::new(Outcome::Cancelled, "the caller went away");
        let receipt = self.complete(Some(&gone));
        let _ = self.write(&receipt).wait();
        if self.is_watched() {
            let (id, name) = (receipt.call_id.clone(), receipt.tool.clone());
            let result = self.result(id, name, Err(gone), receipt);
            self.emit_with(&result.receipt, EventKind::Ended(&result));
        }
    }
}

/// Notifies observers of an event. A panic of an observer does not affect the call.
fn notify(observers: &[Arc<dyn Observer>], event: &Event<'_>) {
    for observer in observers {
        let _ = catch_unwind(AssertUnwindSafe(|| observer.observe(event)));
    }
}
