//! Services of the host for one running guest. Every request is checked against the grant of the call first, and every
//! refusal is recorded with it. A call of another tool passes all stages again, one level deeper.

mod component;
mod exec;
mod register;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use futures::FutureExt;
use futures::future::{self, BoxFuture};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::call::{Denial, Part};
use crate::delegate::Task;
use crate::flow::Way;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::stage::part;
use crate::pipeline::state::{Cache, CallScope, Memory, Pipeline};
use crate::policy::{Grant, ScriptKind, may_overwrite};
use crate::sandbox::{
    ExecOptions, ExecOutcome, GuestPart, HostServices, ModelAnswer, ModelQuestion, Program, Registration, Usage,
};
use crate::schema;
use crate::tool::{Limits, SecretRequest, Service, Tool};

use component::{Component, WAITING_PARTS};

/// Message for a request that the guest's kind cannot make.
const NOT_AVAILABLE: &str = "not available here";
/// Message for a request outside the grant.
const NOT_GRANTED: &str = "permission denied by the grant";

/// Services of the host for one running guest.
pub(crate) struct CallServices {
    pipeline: Arc<Pipeline>,
    memory: Arc<Memory>,
    grant: Arc<Grant>,
    usage: Arc<Usage>,
    /// Number of agents and tools that have called one another before.
    depth: u32,
    /// Values of a call outside a conversation.
    cache: Cache,
    guest: Guest,
}

/// Kind of the guest, with the state of its own services.
enum Guest {
    Script(Script),
    Component(Component),
}

/// State for the interpreter of a script.
struct Script {
    /// Name of the tool; `None` for a hook.
    tool: Option<String>,
    kind: ScriptKind,
    limits: Limits,
    deadline: Instant,
}

impl CallServices {
    /// Creates the services for the script of a tool.
    pub(crate) fn for_tool_script(
        pipeline: &Arc<Pipeline>,
        (tool, grant): (&Tool, &Arc<Grant>),
        scope: &CallScope<'_>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Arc<dyn HostServices> {
        let kind = if may_overwrite(tool, grant) { ScriptKind::OverwritingTool } else { ScriptKind::Tool };
        let script = Script { kind, ..Script::new(Some(tool.name.clone()), limits) };
        Arc::new(Self::new(pipeline, grant, scope.memory, scope.depth, usage, Guest::Script(script)))
    }

    /// Creates the services for the script of a hook.
    pub(crate) fn for_hook_script(
        pipeline: &Arc<Pipeline>,
        grant: &Arc<Grant>,
        (memory, depth): (&Arc<Memory>, u32),
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Arc<dyn HostServices> {
        let script = Script::new(None, limits);
        Arc::new(Self::new(pipeline, grant, memory, depth, usage, Guest::Script(script)))
    }

    /// Creates the services for a component, and the receiver of the parts that it shows.
    pub(crate) fn for_component(
        pipeline: &Arc<Pipeline>,
        grant: &Arc<Grant>,
        program: &Program,
        scope: &CallScope<'_>,
        recorder: &CallRecorder<'_>,
    ) -> (Arc<dyn HostServices>, mpsc::Receiver<Part>) {
        let (parts, receiver) = mpsc::channel(WAITING_PARTS);
        let guest = Guest::Component(Component::new(program, scope, recorder, parts));
        let services = Self::new(pipeline, grant, scope.memory, scope.depth, &recorder.usage, guest);
        (Arc::new(services), receiver)
    }

    fn new(
        pipeline: &Arc<Pipeline>,
        grant: &Arc<Grant>,
        memory: &Arc<Memory>,
        depth: u32,
        usage: &Arc<Usage>,
        guest: Guest,
    ) -> Self {
        let (pipeline, memory, usage) = (pipeline.clone(), memory.clone(), usage.clone());
        Self { pipeline, memory, grant: grant.clone(), usage, depth, cache: Cache::default(), guest }
    }

    /// Returns the conversation's cache or, outside a conversation, the call's.
    fn cache(&self) -> &Cache {
        if self.memory.is_open() { &self.cache } else { &self.memory.cache }
    }

    /// Records a denial, and returns its message with the flag that would allow the request.
    fn refused(&self, denial: Denial, why: &str) -> String {
        let hint = denial.flag.as_ref().map(|flag| format!("; allow it with `{flag}`")).unwrap_or_default();
        self.usage.refused(denial);
        format!("{why}{hint}")
    }

    async fn delegate_task(&self, task: String) -> Result<String, String> {
        self.grant.rights().check(Service::Delegate, None).map_err(|denial| self.refused(denial, NOT_GRANTED))?;
        let task: Value = schema::parse(&task).map_err(|error| error.to_string())?;
        // The agent sees what the call was given, and the call gets what the agent has seen.
        let flow = &self.usage.whole().flow;
        self.check_model()?;
        let labels = self.memory.labels_for_agent(&flow.label());
        let seen_by_agent = || labels.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let task = Task::read(task, self.depth + 1, &self.memory.agents, labels.clone(), self.memory.owner())?;
        let delegate = self.pipeline.delegate.as_ref().ok_or("no agent is configured for delegation")?;
        self.usage.whole().delegated.fetch_add(1, Relaxed);
        let answer = delegate.delegate(task).await;
        flow.join(&seen_by_agent());
        Ok(answer.map_err(|error| error.to_string())?.to_string())
    }

    /// Refuses to give a model what a rule withholds from it.
    pub(super) fn check_model(&self) -> Result<(), String> {
        let Some(rule) = self.usage.whole().flow.withholding() else { return Ok(()) };
        let pattern = rule.pattern().as_str().to_owned();
        let why = format!("denied by an operator rule: `{pattern}`");
        Err(self.refused(Denial { capability: pattern, flag: None }, &why))
    }

    fn add_to_run(&self, script: &Script, what: Registration, definition: &str) -> Result<(), String> {
        self.grant.rights().check(Service::Meta, None).map_err(|denial| self.refused(denial, NOT_GRANTED))?;
        if let Some((denial, why)) = self.usage.whole().flow.refusal(Way::Code) {
            return Err(self.refused(denial, &why));
        }
        // The model reads names, descriptions and schemas.
        self.check_model()?;
        let name = script.tool.as_ref().ok_or("only a tool's script can register tools and hooks")?;
        if self.memory.is_open() {
            return Err("there is no active run".to_owned());
        }
        let maker = self.pipeline.entry(name, &self.memory).map_err(|_| "its own tool is no longer loaded")?;
        let definition = schema::parse(definition).map_err(|error| error.to_string())?;
        self.usage.added(register::register(&self.pipeline, what, &definition, maker, &self.memory)?);
        Ok(())
    }
}

impl Script {
    fn new(tool: Option<String>, limits: &Limits) -> Self {
        let now = Instant::now();
        let deadline = now.checked_add(limits.deadline).unwrap_or(now);
        Self { tool, kind: ScriptKind::Hook, limits: *limits, deadline }
    }
}

impl HostServices for CallServices {
    fn exec(
        &self,
        program: String,
        arguments: Vec<String>,
        how: ExecOptions,
        fuel: Option<u64>,
    ) -> BoxFuture<'_, Result<ExecOutcome, String>> {
        match &self.guest {
            Guest::Script(script) => Box::pin(self.execute(script, program, arguments, how, fuel)),
            Guest::Component(_) => not_available(),
        }
    }

    fn cached(&self, key: &str) -> Option<String> {
        self.usage.whole().flow.join_shared();
        let Guest::Component(component) = &self.guest else { return self.cache().get(key) };
        match self.grant.rights().cache() {
            Ok(()) => self.cache().get(&component.cache_key(key)),
            Err(denial) => {
                self.usage.refused(denial);
                None
            }
        }
    }

    fn cache(&self, key: String, value: String) -> Result<(), String> {
        self.usage.whole().flow.leave();
        let Guest::Component(component) = &self.guest else { return self.cache().set(key, value) };
        self.grant.rights().cache().map_err(|denial| self.refused(denial, NOT_GRANTED))?;
        self.cache().set(component.cache_key(&key), value)
    }

    fn delegate(&self, task: String) -> BoxFuture<'_, Result<String, String>> {
        match &self.guest {
            Guest::Script(_) => Box::pin(self.delegate_task(task)),
            Guest::Component(_) => not_available(),
        }
    }

    fn register(&self, what: Registration, definition: String) -> Result<(), String> {
        match &self.guest {
            Guest::Script(script) => self.add_to_run(script, what, &definition),
            Guest::Component(_) => Err(NOT_AVAILABLE.to_owned()),
        }
    }

    fn show(&self, piece: GuestPart) -> BoxFuture<'_, ()> {
        let bytes = piece.len();
        match &self.guest {
            Guest::Component(component) => Box::pin(component.show(&self.usage, part(piece), bytes)),
            Guest::Script(_) => future::ready(()).boxed(),
        }
    }

    fn measure(&self, done: u64, total: Option<u64>) -> BoxFuture<'_, ()> {
        let part = Part::Progress { done, total };
        match &self.guest {
            Guest::Component(component) => Box::pin(component.show(&self.usage, part, size_of::<[u64; 2]>())),
            Guest::Script(_) => future::ready(()).boxed(),
        }
    }

    fn complete(&self, question: ModelQuestion) -> BoxFuture<'_, Result<ModelAnswer, String>> {
        match &self.guest {
            Guest::Component(component) => Box::pin(self.ask_model(component, question)),
            Guest::Script(_) => not_available(),
        }
    }

    fn call(&self, name: String, arguments: String) -> BoxFuture<'_, Result<String, String>> {
        match &self.guest {
            Guest::Component(component) => Box::pin(self.call_tool(component, name, arguments)),
            Guest::Script(_) => not_available(),
        }
    }

    fn secrets(&self) -> Vec<String> {
        let Guest::Component(_) = &self.guest else { return Vec::new() };
        let mut names: Vec<_> = self.grant.secrets().iter().map(|SecretRequest { name, .. }| name.clone()).collect();
        names.dedup();
        names
    }
}

fn not_available<T: Send + 'static>() -> BoxFuture<'static, Result<T, String>> {
    future::ready(Err(NOT_AVAILABLE.to_owned())).boxed()
}
