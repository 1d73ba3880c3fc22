//! EventKind is settled for a tool before its first call: its checks, its grant, its limits, whether it can be called at all,
//! and, once it was compiled, its program.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::timeout_at;

use crate::audit::Redactions;
use crate::call::Decision;
use crate::error::{Outcome, ToolError};
use crate::policy::{self, Credentials, Grant};
use crate::sandbox::Program;
use crate::schema::{self, CheckedArguments, Clock, ToolValidator};
use crate::tool::{Limits, Tool};

use super::answer::{Mapped, framed_error, looked_through};
use super::program::Making;
use super::ticket::Ticket;

/// The most computations over the arguments and answers of one tool beside the calls.
const MAX_ASIDE: usize = 2;
/// The most bytes of an answer that is neither checked nor masked and is looked through among the calls.
const MAX_PLAIN: usize = 256 << 10;

/// The programs of a runtime by file, and by whether their fuel is counted.
#[derive(Default)]
pub(crate) struct Programs(HashMap<(PathBuf, bool), Arc<Making<Program>>>);

/// Everything about a tool that does not change from call to call.
pub(crate) struct Ready {
    pub(crate) input: Arc<ToolValidator>,
    pub(crate) grant: Arc<Grant>,
    pub(crate) limits: Limits,
    /// Why the tool cannot be called, whatever the arguments.
    pub(crate) disabled: Option<(Decision, String)>,
    /// Whether a model has to search for it first.
    pub(crate) deferred: bool,
    /// EventKind its answers are masked by.
    pub(crate) masks: Redactions,
    pub(super) slots: Arc<Semaphore>,
    asides: Semaphore,
    pub(super) program: Arc<Making<Program>>,
    /// The values of its secrets, once a call was given them.
    pub(super) credentials: OnceCell<Arc<Credentials>>,
    /// The digest of its definition, once a person was to be asked about it.
    definition: OnceLock<String>,
}

impl Ready {
    /// `slots` is how many calls of this tool may run at once.
    pub(crate) fn new(input: ToolValidator, grant: Grant, limits: Limits, slots: usize) -> Self {
        Self::with(input, Arc::new(grant), limits, Arc::new(Semaphore::new(slots)))
    }

    /// The same for something that has no more than this: its grant, its slots, its masks.
    pub(super) fn sharing(&self, input: ToolValidator, limits: Limits) -> Self {
        let masks = self.masks.clone();
        Self { masks, ..Self::with(input, self.grant.clone(), limits, self.slots.clone()) }
    }

    /// The same with the one program that all tools of its file share.
    pub(crate) fn sharing_program(mut self, tool: &Tool, programs: &mut Programs) -> Self {
        if let Some(path) = tool.body.program() {
            let key = (path.to_path_buf(), self.limits.fuel.is_some());
            self.program = programs.0.entry(key).or_default().clone();
        }
        self
    }

    /// Returns true where a model may be offered the tool: nothing refuses every call of it.
    pub(super) fn is_open(&self) -> bool {
        self.disabled.is_none() && self.broken().is_none()
    }

    /// Why the program cannot be run, where that showed when it was compiled.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.program.broken()
    }

    fn with(input: ToolValidator, grant: Arc<Grant>, limits: Limits, slots: Arc<Semaphore>) -> Self {
        Self {
            input: Arc::new(input),
            grant,
            limits,
            disabled: None,
            deferred: false,
            masks: Redactions::default(),
            slots,
            asides: Semaphore::new(MAX_ASIDE),
            program: Arc::default(),
            credentials: OnceCell::new(),
            definition: OnceLock::new(),
        }
    }

    /// The digest of the definition of `tool`, whose state this is.
    pub(super) fn definition(&self, tool: &Tool) -> &str {
        self.definition.get_or_init(|| policy::definition(tool))
    }

    /// Checks what a model sent.
    pub(super) async fn check(&self, text: &str, ticket: &mut Ticket<'_>) -> Result<CheckedArguments, ToolError> {
        if let Some(checked) = at_once(text.len(), || self.input.check(text)) {
            return checked;
        }
        let sent = text.to_owned();
        self.of_arguments(ticket, move |input| input.check(&sent)).await
    }

    /// Checks what the tool is about to get, where that may be something else.
    pub(super) async fn recheck(
        &self,
        checked: &CheckedArguments,
        changed: bool,
        ticket: &mut Ticket<'_>,
    ) -> Result<(), ToolError> {
        if !self.input.requires_recheck(changed) {
            return Ok(());
        }
        if let Some(checked) = at_once(checked.text.len(), || self.input.recheck(&checked.value)) {
            return checked;
        }
        let value = checked.value.clone();
        self.of_arguments(ticket, move |input| input.recheck(&value)).await
    }

    /// Checks what a hook made of the arguments; gives whether a model could have sent it itself.
    pub(super) async fn check_changed(
        &self,
        changed: &CheckedArguments,
        ticket: &mut Ticket<'_>,
    ) -> Result<bool, ToolError> {
        let judge = |input: &ToolValidator, value: &Value| {
            input.recheck(value)?;
            Ok(input.accepts_from_model(value))
        };
        if let Some(checked) = at_once(changed.text.len(), || judge(&self.input, &changed.value)) {
            return checked;
        }
        let value = changed.value.clone();
        self.of_arguments(ticket, move |input| judge(input, &value)).await
    }

    /// Looks an answer through; `until` is the end of its call.
    pub(super) async fn answer(&self, line: String, until: Instant) -> Result<Mapped, ToolError> {
        // Without a check or a mask there is one pass over it.
        if self.masks.is_empty() && !self.input.has_output_schema() && line.len() <= MAX_PLAIN {
            return looked_through(&self.input, &self.masks, &line);
        }
        if let Some(mapped) = at_once(line.len(), || looked_through(&self.input, &self.masks, &line)) {
            return mapped;
        }
        let (input, masks) = (self.input.clone(), self.masks.clone());
        let mapped = self.aside(until, move || looked_through(&input, &masks, &line)).await;
        let why = || ToolError::new(Outcome::Deadline, "tool timed out while its answer was checked");
        mapped.unwrap_or_else(|| Err(why()))
    }

    /// Masks and frames an error that a tool worded itself; `most` is as much of one as is told.
    pub(super) async fn framed(&self, error: ToolError, most: usize, until: Instant) -> ToolError {
        let bytes = error.message.len() + error.json.as_ref().map_or(0, String::len);
        if self.masks.is_empty() {
            return framed_error(error, &self.masks, most);
        }
        if let Some(framed) = at_once(bytes, || framed_error(error.clone(), &self.masks, most)) {
            return framed;
        }
        let masks = self.masks.clone();
        let framed = self.aside(until, move || framed_error(error, &masks, most)).await;
        framed.unwrap_or_else(|| ToolError::new(Outcome::Deadline, "tool timed out while its answer was masked"))
    }

    /// Judges arguments beside the calls, within what is left of the call's deadline.
    async fn of_arguments<T: Send + 'static>(
        &self,
        ticket: &mut Ticket<'_>,
        judge: impl FnOnce(&ToolValidator) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let input = self.input.clone();
        self.in_time(ticket, move || judge(&input)).await?
    }

    /// Computes over a call's arguments beside the calls, within what is left of the call's deadline.
    ///
    /// # Errors
    ///
    /// [`Outcome::Deadline`].
    pub(super) async fn in_time<T: Send + 'static>(
        &self,
        ticket: &mut Ticket<'_>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let since = Instant::now();
        let done = self.aside(since + ticket.left_of(&self.limits)?.deadline, job).await;
        ticket.spend(since.elapsed());
        done.ok_or_else(|| ToolError::new(Outcome::Deadline, "tool timed out while its arguments were checked"))
    }

    /// Computes over what a stranger sent beside the calls. A tool has no more than [`MAX_ASIDE`] such computations at once.
    async fn aside<T: Send + 'static>(&self, until: Instant, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let place = timeout_at(until.into(), self.asides.acquire()).await.ok();
        let job = aside(until, job).await;
        drop(place);
        job
    }
}

/// Computes among the calls, where that takes next to no time; `None` where it has to be done beside them.
pub(super) fn at_once<T>(bytes: usize, job: impl FnOnce() -> T) -> Option<T> {
    if bytes > schema::MAX_INLINE_BYTES {
        return None;
    }
    schema::with_clock(&Clock::inline(), job).ok()
}

/// Computes beside the calls until `until`; dropping the future stops it, too. `None` where it was stopped.
pub(super) async fn aside<T: Send + 'static>(until: Instant, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (clock, _waiting) = Clock::until(until);
    let job = tokio::task::spawn_blocking(move || schema::with_clock(&clock, job));
    // It stops itself; where no thread is free before, it has not begun.
    timeout_at(until.into(), job).await.ok()?.ok()?.ok()
}
