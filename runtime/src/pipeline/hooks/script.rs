//! Runs a hook's script in a sandbox of its own. Its answer is parsed strictly: an answer that is not understood blocks
//! the call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::call::Denial;
use crate::error::{HandlerError, Outcome, ToolError};
use crate::flow::Source;
use crate::hook::{FinishedCall, Hook, Modification, ProposedCall, Review, Verdict};
use crate::pipeline::prepared::ScriptHook;
use crate::pipeline::services::CallServices;
use crate::pipeline::state::{CallScope, Memory, Pipeline};
use crate::sandbox::{CallEffects, EntryPoint, GuestInput, GuestOutput, ScriptCall, Usage, WasiExtras};
use crate::tool::{Body, HookPoint, Limits, Service};

use super::payload::{Answer, clipped_reason, finished, modified_arguments, parse_answer, proposed, replaced};

/// Context in which a hook runs.
#[derive(Clone, Copy)]
pub(super) struct HookContext<'a> {
    pipeline: &'a Arc<Pipeline>,
    memory: &'a Arc<Memory>,
    /// Usage of the call that the hook judges.
    usage: &'a Arc<Usage>,
    /// Depth of the call that the hook judges.
    depth: u32,
    /// Deadline of the hook.
    until: Instant,
    /// `true` if the caller of the hook holds a place already.
    has_place: bool,
    /// Effects that a call above the judged one holds back: the hook sees them, and its own writes join them.
    effects: Option<&'a Arc<CallEffects>>,
}

impl<'a> HookContext<'a> {
    /// Creates the context of a hook outside a call.
    pub(super) fn new(pipeline: &'a Arc<Pipeline>, memory: &'a Arc<Memory>, usage: &'a Arc<Usage>) -> Self {
        let until = Instant::now() + Limits::default().deadline;
        Self { pipeline, memory, usage, depth: memory.depth, until, has_place: false, effects: None }
    }

    /// Returns the context for a command of a running call, which holds a place already.
    pub(super) fn of_command(self) -> Self {
        Self { has_place: true, effects: self.usage.whole().effects.get(), ..self }
    }

    /// Creates the context of a hook that judges a call.
    pub(super) fn of_call(
        pipeline: &'a Arc<Pipeline>,
        scope: &CallScope<'a>,
        until: Instant,
        usage: &'a Arc<Usage>,
    ) -> Self {
        // What the call itself holds back has its end before the hooks after it.
        let effects = scope.parent.and_then(|parent| parent.usage.whole().effects.get());
        Self { pipeline, memory: scope.memory, usage, depth: scope.depth, until, has_place: false, effects }
    }
}

/// A script hook with the context in which it runs.
pub(super) struct ScriptHandler<'a> {
    hook: &'a ScriptHook,
    context: HookContext<'a>,
    log: Mutex<String>,
}

impl<'a> ScriptHandler<'a> {
    pub(super) fn new(hook: &'a ScriptHook, context: HookContext<'a>) -> Self {
        Self { hook, context, log: Mutex::default() }
    }

    /// Returns the text that the script wrote for people.
    pub(super) fn into_log(self) -> String {
        self.log.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the script for an event.
    ///
    /// # Errors
    ///
    /// The reason why there is no answer.
    pub(super) async fn handle(&self, event: &HookPoint, payload: &Value) -> Result<Answer, String> {
        let (event, payload) = (event.to_string(), payload.to_string());
        let when = self.hook.definition.when.expression.as_deref();
        let answer = self.interpret(ScriptCall::Handle { when, event: &event, payload: &payload }).await;
        match answer.map_err(|error| clipped_reason(&error.message))? {
            Some(text) => parse_answer(&text),
            None => Ok(Answer::Pass),
        }
    }

    /// Runs the script as soon as there is a place; `None` if its condition does not hold.
    async fn interpret(&self, act: ScriptCall<'_>) -> Result<Option<String>, ToolError> {
        let ScriptHook { definition, prepared, .. } = self.hook;
        let HookContext { pipeline, memory, usage, depth, until, has_place, effects } = self.context;
        let Body::Script(script) = &definition.tool.body else {
            return Err(ToolError::new(Outcome::BadComponent, "it has no script"));
        };
        let interpreter = pipeline.interpreters.interpreter(prepared).await?;
        let remaining = until.saturating_duration_since(Instant::now());
        let limits = &Limits { deadline: prepared.limits.deadline.min(remaining), ..prepared.limits };
        let place = match has_place {
            true => None,
            false => Some(pipeline.concurrency.acquire(prepared, memory, limits, depth).await?),
        };
        prepared.grant.env_keys().for_each(|name| usage.whole().flow.read(Source::Variable(name)));
        let usage = Usage::of_hook(usage);
        let (grant, provided) = (&prepared.grant_within(effects), WasiExtras::default());
        let services = CallServices::for_hook_script(pipeline, grant, (memory, depth), limits, &usage);
        let call = GuestInput { argv: &[], stdin: Bytes::new(), grant, credentials: None, limits, extras: provided };
        let when = definition.when.expression.as_deref();
        let script = (self.hook.name(), script.as_ref());
        let source = pipeline.interpreters.source(&interpreter, prepared, script, EntryPoint::Handle, when);
        let GuestOutput { result: answer, stderr, .. } =
            pipeline.sandbox.interpret(&interpreter, source, act, call, Some(services), &usage).await;
        drop(place);
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&stderr));
        answer?.map_err(|wrong| ToolError::new(Outcome::Failed, wrong.message))
    }

    /// Returns a delegated task if the hook is granted the delegation of tasks.
    fn delegated(&self, task: Value) -> Result<Value, String> {
        let denied = |denial: Denial| {
            let hint = denial.flag.map(|flag| format!("; allow it with `{flag}`")).unwrap_or_default();
            format!("delegation is not granted{hint}")
        };
        self.hook.prepared.grant.rights().check(Service::Delegate, None).map(|()| task).map_err(denied)
    }
}

impl Hook for ScriptHandler<'_> {
    fn name(&self) -> &str {
        self.hook.name()
    }

    fn before<'a>(&'a self, call: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        let judge = async move {
            Ok(match self.handle(&HookPoint::ToolPre, &proposed(&call)).await? {
                Answer::Pass => Verdict::Pass,
                Answer::Allow => Verdict::Allow,
                Answer::Block(reason) => Verdict::Block(reason),
                // A script names no source, and so sets no field that a model may not set.
                Answer::Modify(payload) => Verdict::Modify(Modification::new(modified_arguments(&call, payload)?)),
                Answer::Delegate(task) => Verdict::Delegate(self.delegated(task)?),
            })
        };
        judge.boxed()
    }

    fn after<'a>(&'a self, call: FinishedCall<'a>) -> BoxFuture<'a, Result<Review, HandlerError>> {
        let judge = async move {
            let payload = finished(&call);
            Ok(match self.handle(&HookPoint::ToolPost, &payload).await? {
                Answer::Pass | Answer::Allow => Review::Pass,
                Answer::Block(reason) => Review::Block(reason),
                Answer::Modify(modified) => Review::Replace(replaced(modified, &payload)),
                Answer::Delegate(_) => return Err("it delegates after the call has run".into()),
            })
        };
        judge.boxed()
    }
}
