//! What is settled for a tool before its first call: its checks, its grant, its limits, whether it can be called at all,
//! and, once it was compiled, its program.

use std::sync::Arc;

use tokio::sync::{OnceCell, Semaphore};

use crate::audit::Redactions;
use crate::call::Decision;
use crate::error::{Outcome, ToolError};
use crate::policy::{Credentials, Grant};
use crate::sandbox::Program;
use crate::schema::{Checked, Input};
use crate::tool::Limits;

use super::program::Making;

/// Everything about a tool that does not change from call to call.
pub(crate) struct Ready {
    pub(crate) input: Arc<Input>,
    pub(crate) grant: Arc<Grant>,
    pub(crate) limits: Limits,
    /// Why the tool cannot be called, whatever the arguments.
    pub(crate) closed: Option<(Decision, String)>,
    /// Whether a model has to search for it first.
    pub(crate) deferred: bool,
    /// What its answers are masked by.
    pub(crate) masks: Redactions,
    pub(super) slots: Arc<Semaphore>,
    pub(super) program: Making<Program>,
    /// The values of its secrets, once a call was given them.
    pub(super) credentials: OnceCell<Arc<Credentials>>,
}

impl Ready {
    /// `slots` is how many calls of this tool may run at once.
    pub(crate) fn new(input: Input, grant: Grant, limits: Limits, slots: usize) -> Self {
        Self::with(input, Arc::new(grant), limits, Arc::new(Semaphore::new(slots)))
    }

    /// The same for something that has no more than this: its grant, its slots, its masks.
    pub(super) fn sharing(&self, input: Input, limits: Limits) -> Self {
        let masks = self.masks.clone();
        Self { masks, ..Self::with(input, self.grant.clone(), limits, self.slots.clone()) }
    }

    fn with(input: Input, grant: Arc<Grant>, limits: Limits, slots: Arc<Semaphore>) -> Self {
        Self {
            input: Arc::new(input),
            grant,
            limits,
            closed: None,
            deferred: false,
            masks: Redactions::default(),
            slots,
            program: Making::default(),
            credentials: OnceCell::new(),
        }
    }

    /// Judges a text or what was read from it; where that may take long, elsewhere and until the deadline.
    pub(super) async fn judged<T: Send + 'static>(
        &self,
        text: &str,
        judge: impl FnOnce(&Input) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        if !self.input.may_take_long(text) {
            return judge(&self.input);
        }
        let input = self.input.clone();
        let judged = tokio::task::spawn_blocking(move || judge(&input));
        match tokio::time::timeout(self.limits.deadline, judged).await {
            Ok(Ok(judged)) => judged,
            Ok(Err(_)) => Err(ToolError::new(Outcome::BadArguments, "arguments could not be checked")),
            Err(_) => Err(ToolError::new(Outcome::Deadline, "tool timed out while its arguments were checked")),
        }
    }

    /// Checks what a model sent.
    pub(super) async fn check(&self, text: &str) -> Result<Checked, ToolError> {
        if !self.input.may_take_long(text) {
            return self.input.check(text);
        }
        let sent = text.to_owned();
        self.judged(text, move |input| input.check(&sent)).await
    }

    /// Checks what the tool is about to get, where that may be something else.
    pub(super) async fn recheck(&self, checked: &Checked, changed: bool) -> Result<(), ToolError> {
        if !self.input.may_take_long(&checked.text) {
            return self.input.recheck(&checked.value, changed);
        }
        let value = checked.value.clone();
        self.judged(&checked.text, move |input| input.recheck(&value, changed)).await
    }

    /// Checks an answer.
    pub(super) async fn check_answer(&self, line: &str) -> Result<(), ToolError> {
        if !self.input.has_output() {
            return Ok(());
        }
        let answer = line.to_owned();
        self.judged(line, move |input| input.check_answer(&answer)).await
    }
}
