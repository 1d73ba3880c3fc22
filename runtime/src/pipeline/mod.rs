//! The one way of a call, from its door to its record. Nothing bypasses it:
//!
//! resolve → accept → results → validate → hooks → authorize → schedule → run → map → hooks → store → record
//!
//! Four forms of the input are kept apart: the text that the model sent, which never changes; the masked copy that may be
//! shown; and the arguments after the hooks, which are both judged and given to the tool.
//!
//! A future is moved twice for each function that awaits it, and many calls wait at once. So stages box the futures that few calls
//! await: for an approval, a hook, a compilation, a large text.
//!
//! The compiler instantiates the body of an `async fn` in each crate that polls it. So calls, events and checks are functions that
//! return a [`BoxFuture`]: a crate that uses the library does not compile all stages, and much of the engine, again.

mod hooks;
mod prepared;
mod recorder;
mod run;
mod services;
mod session;
mod stage;
mod state;

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::call::{ToolCall, ToolResult};
use crate::error::{Error, Outcome, ToolError};
use crate::flow::Label;
use crate::observe::EventKind;
use crate::policy::{Command, Grant};
use crate::sandbox::Usage;
use crate::schema::CheckedArguments;
use crate::source::Diagnostic;
use crate::tool::Tool;

pub(crate) use prepared::{
    CallableNames, CodeInterpreters, CodeLanguage, InterpreterSource, Interpreters, PreparedTool, ProgramCompiler,
    ScriptHook, SharedPrograms, SkillProgram, SkillPrograms, ToolEntry,
};
pub(crate) use run::stub_language;
pub use session::{CallInterrupt, Session, Step};
pub use state::Scheduler;
pub(crate) use state::{
    CallContexts, CallScope, ChainedHook, Concurrency, HookChain, Memory, Pipeline, ToolPlaces, UnstartedCall, builtin,
    session_id,
};

use recorder::{CallRecorder, redact};
use run::Finished;
use stage::AuthorizationRequest;
use state::{Execution, unless_cancelled};

impl Pipeline {
    /// Takes a call from its door to its record. It always returns a result; dropping the future stops the guest and leaves
    /// a record.
    pub(crate) fn call<'p>(self: &'p Arc<Self>, call: ToolCall, scope: CallScope<'p>) -> BoxFuture<'p, ToolResult> {
        Box::pin(async move {
            let call = Arc::new(call);
            let mut recorder = self.recorder(call.clone(), scope.memory).watched_by(scope.memory.watcher());
            let ended = match self.audit.ready() {
                Ok(()) => {
                    let stages = pin!(self.stages(&call, &scope, &mut recorder));
                    let ended = AssertUnwindSafe(stages).catch_unwind().await;
                    ended.unwrap_or_else(|_| Err(ToolError::new(Outcome::Trap, "the call failed inside the host")))
                }
                Err(fault) => Err(recorder.fault(fault)),
            };
            let ended = ended.or_else(|error| redact::redacted(self.secrets.as_ref(), Err(error)));
            let ended = stage::disclose(ended, &scope, &mut recorder);
            stage::log_arguments(self, &mut recorder).await;
            let result = recorder.close(ended).await;
            stage::end_flow(&recorder, &scope);
            // The calls that wait for this one start after its record is written.
            if let Some(turn) = scope.turn {
                turn.end(result.outcome.as_ref().is_err_and(|error| error.outcome != Outcome::Cancelled));
            }
            result
        })
    }

    /// Passes a call through all stages, in order.
    async fn stages<'p>(
        self: &'p Arc<Self>,
        call: &ToolCall,
        scope: &CallScope<'p>,
        recorder: &mut CallRecorder<'p>,
    ) -> Result<String, ToolError> {
        recorder.set_parent(scope.parent.map(|parent| parent.invocation));
        let entry = unless_cancelled(scope.turn, pin!(stage::resolve(self, call, scope, recorder))).await??;
        let call = stage::accept(self, entry, call, scope, recorder)?;
        let (call, label) = match stage::may_refer(&call) {
            false => (call, Label::default()),
            true => Box::pin(stage::put_results(self, call, scope, recorder)).await?,
        };
        let call = &*call;
        stage::join_effects(entry, scope, recorder);
        let grant = entry.prepared.grant_within(recorder.usage.effects.get());
        stage::begin_flow(self, (entry.tool, &grant), (call, label), scope, recorder);
        let approved = self.approve((entry, grant), call, scope, recorder);
        let (mut execution, checked, delegated) = unless_cancelled(scope.turn, pin!(approved)).await??;
        if let Some(turn) = scope.turn {
            turn.decide();
        }
        scope.notify_authorized();
        let answer = match delegated {
            None => self.execute(&execution, &checked, scope, recorder).await,
            Some(task) => Box::pin(run::delegate(self, task, entry.prepared, scope, recorder)).await,
        };
        let answer = match execution.held.take() {
            None => answer,
            Some(held) => Box::pin(stage::settle(self, (&execution, &checked), (*held, answer), scope, recorder)).await,
        };
        let answer = stage::redact(self, answer, entry.prepared, recorder).await;
        recorder.emit(EventKind::Mapped);
        let answer = hooks::after(self, (entry.tool, call), &checked.value, answer, scope, recorder);
        let answer = unless_cancelled(scope.turn, pin!(answer)).await??;
        stage::store(self, (entry.tool, entry.prepared), answer, scope, recorder).await
    }

    /// Passes a call through the stages that decide whether it runs, and returns the task of an agent that takes it over.
    async fn approve<'p>(
        self: &'p Arc<Self>,
        (entry, grant): (ToolEntry<'p>, Cow<'p, Arc<Grant>>),
        call: &ToolCall,
        scope: &CallScope<'p>,
        recorder: &mut CallRecorder<'p>,
    ) -> Result<(Execution<'p>, CheckedArguments, Option<Value>), ToolError> {
        let (mut execution, mut checked, judged) = stage::validate(self, (entry, grant), call, scope, recorder).await?;
        let outcome = hooks::before(self, entry, call, &mut checked, scope, recorder).await?;
        let judged = stage::revalidate(self, &mut execution, &checked, judged, scope, recorder).await?;
        let preview = stage::preview(self, &execution, &checked, scope, recorder).await;
        let (preview, allowed_by) = (preview.as_deref(), outcome.allowed_by);
        let request = AuthorizationRequest { execution: &execution, checked: &checked, judged, preview, allowed_by };
        stage::authorize(self, request, scope, recorder).await?;
        Ok((execution, checked, outcome.delegated))
    }

    /// Runs an approved call when its turn has come.
    async fn execute<'p>(
        self: &'p Arc<Self>,
        execution: &Execution<'p>,
        checked: &CheckedArguments,
        scope: &CallScope<'p>,
        recorder: &mut CallRecorder<'p>,
    ) -> Result<String, ToolError> {
        recorder.usage.flow.start();
        // Secrets do not leave this machine: a worker has its own.
        let credentials = if execution.prepared.is_elsewhere {
            None
        } else {
            stage::credentials(self, execution.prepared, scope, recorder).await?
        };
        let scheduled = stage::schedule(self, execution, checked, scope, recorder).await?;
        let (until, is_shortened) = (scheduled.until, scheduled.is_shortened);
        let ended = if let Some(workers) = self.workers_of(execution.tool) {
            let run = run::run_at_worker((self, workers), execution, checked, scheduled, scope, recorder);
            Box::pin(run).await
        } else {
            run::run(self, execution, (checked, credentials.as_ref()), scheduled, scope, recorder).await
        };
        let answer = match ended {
            Ok(Finished::Tool(answer)) => stage::map(self, execution, answer, until, recorder).await,
            Ok(Finished::Host(answer)) => answer,
            Err(error) => Err(error),
        };
        if answer.as_ref().is_err_and(|error| error.outcome == Outcome::Deadline) {
            recorder.warn(match is_shortened {
                true => "the call was stopped at the end of the time of its step".to_owned(),
                false => format!("the call was stopped at its deadline of {:?}", execution.prepared.limits.deadline),
            });
        }
        answer
    }

    /// Runs the hooks before a script's command, which services of the script need.
    ///
    /// # Errors
    ///
    /// The name of the hook that refuses the command, and its reason.
    async fn judge_command(
        self: &Arc<Self>,
        tool: &Tool,
        command: &Command,
        memory: &Arc<Memory>,
        usage: &Arc<Usage>,
    ) -> Result<(), String> {
        hooks::judge_command(self, tool, command, memory, usage).await
    }

    /// Returns all errors that the interpreter finds in scripts without running them.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] if the interpreter cannot run.
    pub(crate) fn check_scripts(&self) -> BoxFuture<'_, Result<Vec<Diagnostic>, Error>> {
        Box::pin(run::check_scripts(self))
    }
}
