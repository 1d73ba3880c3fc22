//! State of a tool that is settled before its first call: its checks, its grant, its limits, its availability and, once it
//! is compiled, its program.

pub(crate) mod callable_names;
mod code;
mod compile_once;
pub(crate) mod compute;
mod host_component;
mod image;
mod interpreter;
mod program;
mod script_hook;
mod skill_programs;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde_json::Value;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout_at;

use crate::audit::Redactions;
use crate::call::Decision;
use crate::error::{Outcome, ToolError};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::ToolPlaces;
use crate::policy::{self, Credentials, Grant};
use crate::sandbox::{CallEffects, Program};
use crate::schema::{CheckedArguments, ToolValidator};
use crate::tool::{Limits, Tool};

use compile_once::CompileOnce;
use compute::{aside, at_once};
use image::ImageOnce;

pub(crate) use callable_names::CallableNames;
pub(crate) use code::{CodeInterpreters, CodeLanguage};
pub(crate) use host_component::InterpreterSource;
pub(crate) use interpreter::Interpreters;
pub(crate) use program::ProgramCompiler;
pub(crate) use script_hook::ScriptHook;
pub(crate) use skill_programs::{SkillProgram, SkillPrograms, file_of, script_of};

/// Maximum number of computations on blocking threads over one tool's arguments and answers.
const MAX_ASIDE: usize = 2;

/// Programs shared by the tools of a runtime, by file and by `true` if their fuel is counted.
#[derive(Default)]
pub(crate) struct SharedPrograms(HashMap<(PathBuf, bool), Arc<CompileOnce<Program>>>);

/// A tool with its prepared state.
#[derive(Clone, Copy)]
pub(crate) struct ToolEntry<'p> {
    pub(crate) tool: &'p Tool,
    pub(crate) prepared: &'p PreparedTool,
    /// Index in the registry; `None` for a tool that a script added.
    pub(crate) index: Option<usize>,
}

impl<'p> ToolEntry<'p> {
    /// Records the tool of a call.
    pub(crate) fn record(&self, recorder: &mut CallRecorder<'p>) {
        let Self { tool, prepared, .. } = *self;
        let definition = recorder.is_logged().then(|| prepared.definition(tool));
        recorder.resolved(tool, &prepared.grant, &prepared.input, definition);
        if prepared.is_elsewhere {
            recorder.forget_grant();
        }
    }
}

/// State of a tool that does not change from call to call.
pub(crate) struct PreparedTool {
    /// Checks of arguments and answers.
    pub(crate) input: Arc<ToolValidator>,
    pub(crate) grant: Arc<Grant>,
    pub(crate) limits: Limits,
    /// Reason why no call of the tool is possible.
    pub(crate) disabled: Option<(Decision, String)>,
    /// `true` if a model has to search for the tool first.
    pub(crate) deferred: bool,
    /// `true` if the tool only reads, whatever is granted to it: by its definition, or by the imports of its program.
    pub(crate) only_reads: bool,
    /// `true` if its calls run at workers, with their grants.
    pub(crate) is_elsewhere: bool,
    /// Masks of its answers.
    pub(crate) masks: Redactions,
    /// Places for concurrent calls of the tool.
    pub(crate) places: Arc<ToolPlaces>,
    /// Permits for computations on blocking threads.
    asides: Semaphore,
    program: Arc<CompileOnce<Program>>,
    /// Image of its script.
    image: Arc<ImageOnce>,
    /// Values of its secrets, read by the first call that needs them.
    pub(crate) credentials: Mutex<Option<Arc<Credentials>>>,
    /// Digest of its definition, computed for the first record or request for approval.
    definition: OnceLock<String>,
}

impl PreparedTool {
    /// Prepares a tool with places for its concurrent calls.
    pub(crate) fn new(
        input: impl Into<Arc<ToolValidator>>,
        grant: Grant,
        limits: Limits,
        places: Arc<ToolPlaces>,
    ) -> Self {
        Self::with(input.into(), Arc::new(grant), limits, places)
    }

    /// Returns the tool with read access only.
    pub(crate) fn reading(self) -> Self {
        Self { grant: Arc::new(self.grant.as_ref().clone().reading()), ..self }
    }

    /// Returns the grant for a call, whose writes are held back if it or a call above it has effects.
    pub(crate) fn grant_within(&self, effects: Option<&Arc<CallEffects>>) -> Cow<'_, Arc<Grant>> {
        match effects.filter(|_| self.grant.stage().is_none()) {
            None => Cow::Borrowed(&self.grant),
            Some(effects) => {
                let grant = self.grant.as_ref().clone().within_call(effects.stage.clone());
                Cow::Owned(Arc::new(grant))
            }
        }
    }

    /// Prepares a tool that a script adds. It shares the grant, the places and the masks of its maker.
    pub(crate) fn derived(&self, input: ToolValidator, limits: Limits) -> Self {
        let masks = self.masks.clone();
        Self { masks, ..Self::with(Arc::new(input), self.grant.clone(), limits, self.places.clone()) }
    }

    /// Shares one compiled program among all tools of the same file.
    pub(crate) fn with_shared_program(mut self, tool: &Tool, programs: &mut SharedPrograms) -> Self {
        if let Some(path) = tool.body.program() {
            let key = (path.to_path_buf(), self.limits.fuel.is_some());
            self.program = programs.0.entry(key).or_default().clone();
        }
        self
    }

    fn with(input: Arc<ToolValidator>, grant: Arc<Grant>, limits: Limits, places: Arc<ToolPlaces>) -> Self {
        Self {
            input,
            grant,
            limits,
            disabled: None,
            deferred: false,
            only_reads: false,
            is_elsewhere: false,
            masks: Redactions::default(),
            places,
            asides: Semaphore::new(MAX_ASIDE),
            program: Arc::default(),
            image: Arc::default(),
            credentials: Mutex::default(),
            definition: OnceLock::new(),
        }
    }

    /// Returns `true` if a model may be offered the tool: nothing refuses all of its calls.
    pub(crate) fn is_callable(&self) -> bool {
        self.disabled.is_none() && self.compile_error().is_none()
    }

    /// Returns `true` if calls of `tool`, which is this state's tool, can succeed.
    pub(crate) fn is_useful(&self, tool: &Tool) -> bool {
        self.is_callable() && !self.is_useless(tool)
    }

    /// Returns `true` if no call of `tool`, which is this state's tool, can serve its purpose.
    pub(crate) fn is_useless(&self, tool: &Tool) -> bool {
        if self.is_elsewhere { !self.only_reads } else { self.grant.is_useless_for(tool) }
    }

    /// Returns the reason why the program cannot run, if its compilation found one.
    pub(crate) fn compile_error(&self) -> Option<&str> {
        self.program.error()
    }

    /// Returns the definition digest of `tool`, which is this state's tool.
    pub(crate) fn definition(&self, tool: &Tool) -> &str {
        self.definition.get_or_init(|| policy::definition(tool))
    }

    /// Checks the arguments that a model sent.
    pub(crate) async fn check(
        &self,
        text: &str,
        recorder: &mut CallRecorder<'_>,
    ) -> Result<CheckedArguments, ToolError> {
        if let Some(checked) = at_once(text.len(), || self.input.check(text)) {
            return checked;
        }
        let sent = text.to_owned();
        Box::pin(self.check_aside(recorder, move |input| input.check(&sent))).await
    }

    /// Checks the arguments that the tool will get, if they can differ from those that the model sent.
    pub(crate) async fn recheck(
        &self,
        checked: &CheckedArguments,
        changed: bool,
        recorder: &mut CallRecorder<'_>,
    ) -> Result<(), ToolError> {
        if !self.input.requires_recheck(changed) {
            return Ok(());
        }
        if let Some(checked) = at_once(checked.text.len(), || self.input.recheck(&checked.value)) {
            return checked;
        }
        let value = checked.value.clone();
        Box::pin(self.check_aside(recorder, move |input| input.recheck(&value))).await
    }

    /// Checks arguments that a hook changed. Returns `true` if a model could have sent them itself.
    pub(crate) async fn check_changed(
        &self,
        changed: &CheckedArguments,
        recorder: &mut CallRecorder<'_>,
    ) -> Result<bool, ToolError> {
        let check = |input: &ToolValidator, value: &Value| {
            input.recheck(value)?;
            Ok(input.accepts_from_model(value))
        };
        if let Some(checked) = at_once(changed.text.len(), || check(&self.input, &changed.value)) {
            return checked;
        }
        let value = changed.value.clone();
        Box::pin(self.check_aside(recorder, move |input| check(input, &value))).await
    }

    /// Checks arguments on a blocking thread, within the remaining time of the call.
    async fn check_aside<T: Send + 'static>(
        &self,
        recorder: &mut CallRecorder<'_>,
        check: impl FnOnce(&ToolValidator) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let input = self.input.clone();
        self.compute_in_time(recorder, move || check(&input)).await?
    }

    /// Runs a computation over a call's arguments on a blocking thread, within the remaining time of the call.
    ///
    /// # Errors
    ///
    /// [`Outcome::Deadline`].
    pub(crate) async fn compute_in_time<T: Send + 'static>(
        &self,
        recorder: &mut CallRecorder<'_>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ToolError> {
        let since = Instant::now();
        let done = self.compute(since + recorder.remaining(&self.limits)?.deadline, job).await;
        recorder.budget.spend(since.elapsed());
        done.ok_or_else(|| ToolError::new(Outcome::Deadline, "tool timed out while its arguments were checked"))
    }

    /// Runs a computation over untrusted data on a blocking thread. A tool has at most [`MAX_ASIDE`] of them at once.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        until: Instant,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = timeout_at(until.into(), self.asides.acquire()).await.ok();
        let done = aside(until, job).await;
        drop(permit);
        done
    }
}
