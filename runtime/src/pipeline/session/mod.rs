//! A conversation with a set of tools. Calls outside a conversation share one in which every tool is loaded.

mod background;
mod step;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;

use crate::call::{HookNote, ToolCall, ToolResult};
use crate::error::{Outcome, ToolError};
use crate::flow::Label;
use crate::hook::EventBlocked;
use crate::observe::Observer;
use crate::pipeline::hooks;
use crate::pipeline::state::{CallScope, Memory, Pipeline, ProgramSessions, Tasks, Turn, UnstartedCall};
use crate::store::programs::ProgramStore;
use crate::store::results::StoredResult;
use crate::tool::{Body, Builtin, HookPoint, Limits, Tool, Visibility};

pub use step::{CallInterrupt, Step};

/// A conversation. Clones share everything.
#[derive(Clone)]
pub struct Session {
    pipeline: Arc<Pipeline>,
    memory: Arc<Memory>,
    tasks: Arc<Tasks>,
    programs: Arc<ProgramSessions>,
}

impl Session {
    pub(crate) fn new(pipeline: Arc<Pipeline>, memory: Arc<Memory>) -> Self {
        Self { pipeline, memory, tasks: Arc::default(), programs: Arc::default() }
    }

    /// Takes over the background tasks of another conversation, which go on with the tools that they began with, and are polled
    /// and ended here too, its sessions of programs and its label.
    #[must_use]
    pub fn with_tasks_of(self, other: &Self) -> Self {
        // The memory of a new conversation has one owner.
        let memory = Arc::try_unwrap(self.memory).map(|memory| Arc::new(memory.with_label_of(&other.memory)));
        let memory = memory.unwrap_or_else(|memory| {
            memory.join_labels_of(&other.memory);
            memory
        });
        Self { memory, tasks: other.tasks.clone(), programs: other.programs.clone(), ..self }
    }

    /// Keeps the sessions of programs in a folder, which belongs to this conversation alone, so that they outlive the process.
    /// Only the first folder of a conversation is used.
    #[must_use]
    pub fn keeping_programs(self, store: ProgramStore) -> Self {
        self.programs.keep_in(store);
        self
    }

    /// Returns the tools that the model is shown now, in the order of their sources: those that can be called, are loaded
    /// and are not [useless](crate::policy::Grant::is_useless_for) under their grant, a search if others are deferred, and a
    /// reader if a long answer was stored.
    pub fn tools(&self) -> Vec<&Tool> {
        let mut has_hidden = false;
        let mut shown = Vec::new();
        let mut has_tasks = false;
        for (index, tool) in self.pipeline.registry.tools().iter().enumerate() {
            let prepared = &self.pipeline.prepared[index];
            let callable =
                prepared.is_callable() && tool.interface.discovery.schema_visibility.value != Visibility::Internal;
            match &tool.body {
                Body::Builtin(Builtin::ToolSearch) if !has_hidden => {}
                Body::Builtin(Builtin::ReadResult) if !self.memory.has_stored_results.load(Relaxed) => {}
                Body::Builtin(Builtin::TaskPoll | Builtin::TaskAwait) if !has_tasks => {}
                _ if !callable || !self.pipeline.shows(tool) => {}
                _ if prepared.deferred && !self.memory.has_loaded(index) => has_hidden = true,
                _ if !self.memory.has_loaded(index) && prepared.is_useless(tool) => {}
                body => {
                    has_tasks |= matches!(body, Body::Script(script) if script.background);
                    shown.push(tool);
                }
            }
        }
        let added = self.memory.tools.iter().filter(|added| added.prepared.disabled.is_none());
        shown.extend(added.map(|added| &added.tool));
        shown
    }

    /// Returns the limits of a tool, which may belong to this conversation alone.
    pub fn limits(&self, name: &str) -> Option<&Limits> {
        self.pipeline.entry(name, &self.memory).ok().map(|entry| &entry.prepared.limits)
    }

    /// Notifies `watcher` of call events in this conversation from now on, including calls that its tools make. Only
    /// the first watcher of a conversation is kept.
    pub fn watched_by(&self, watcher: Arc<dyn Observer>) {
        self.memory.watch(watcher);
    }

    /// Calls a tool; see [`crate::Runtime::call`]. The future can be spawned as a task.
    pub fn call(&self, call: ToolCall) -> impl Future<Output = ToolResult> + Send + use<> {
        let (session, number, unstarted) = (self.clone(), self.task_number(&call), self.unstarted(call));
        async move { session.run(unstarted.start(), number, None).await }
    }

    /// Calls a tool as [`Session::call`] does, and waits for its end also if the tool runs in the background.
    pub fn call_to_end(&self, call: ToolCall) -> impl Future<Output = ToolResult> + Send + use<> {
        let (session, unstarted) = (self.clone(), self.unstarted(call));
        async move { session.run(unstarted.start(), None, None).await }
    }

    /// Calls a tool as [`Session::call`] does, with a handle that interrupts the call.
    pub fn call_with_interrupt(
        &self,
        call: ToolCall,
    ) -> (CallInterrupt, impl Future<Output = ToolResult> + Send + use<>) {
        let (interrupt, turn) = CallInterrupt::new(self, &call);
        let (session, number, unstarted) = (self.clone(), self.task_number(&call), self.unstarted(call));
        (interrupt, async move { session.run(unstarted.start(), number, Some(&turn)).await })
    }

    fn unstarted(&self, call: ToolCall) -> UnstartedCall<Arc<Pipeline>, Arc<Memory>> {
        UnstartedCall::new(self.pipeline.clone(), self.memory.clone(), call)
    }

    /// Returns the number of the background task that a call becomes, if it becomes one.
    fn task_number(&self, call: &ToolCall) -> Option<u64> {
        background::is_background(&self.pipeline, &call.name, &self.memory).then(|| self.tasks.next_number())
    }

    async fn run(&self, call: ToolCall, number: Option<u64>, turn: Option<&Turn>) -> ToolResult {
        if let Some(number) = number {
            return background::start(&self.pipeline, call, &self.memory, (&self.tasks, number), turn).await;
        }
        let programs = (!self.memory.is_open()).then_some(&*self.programs);
        let scope = CallScope { tasks: Some(&self.tasks), programs, ..CallScope::within(&self.memory, turn) };
        self.pipeline.call(call, scope).await
    }

    /// Returns `true` if there is a script hook that handles an event of the run; without one, the event need not be
    /// reported.
    pub fn hears(&self, event: &HookPoint) -> bool {
        self.pipeline.hooks.scripts(self.memory.hooks.iter()).iter().any(|script| script.handles(event))
    }

    /// Returns the conversation's identifier, the `session` of its records in the audit log.
    pub fn id(&self) -> &str {
        self.memory.session()
    }

    /// Returns the label of the conversation: all that its calls have read and were given.
    pub fn label(&self) -> Label {
        self.memory.label()
    }

    /// Adds a label to that of the conversation, such as one of a file that the caller shows to the model.
    pub fn add_label(&self, label: &Label) {
        self.memory.join_label(label);
    }

    /// Adds the label that the conversation had before. Its earlier calls may have left something for those to come.
    pub fn continue_label(&self, label: &Label) {
        self.memory.join_earlier(label);
    }

    /// Notes that the caller reads a stored answer, unless a rule withholds it from the model.
    ///
    /// # Errors
    ///
    /// [`Outcome::Denied`](crate::Outcome::Denied), with the rule.
    pub fn note_result(&self, stored: &StoredResult) -> Result<(), ToolError> {
        let known = self.memory.label_of_stored(&stored.reference);
        let label = known.map_or_else(|| Label::of_stored(stored), Arc::unwrap_or_clone);
        if let Some(rule) = self.pipeline.flows.withholding(&label) {
            let pattern = rule.pattern().as_str();
            return Err(ToolError::new(Outcome::Denied, format!("`{pattern}` withholds this answer from the model")));
        }
        self.add_label(&label);
        Ok(())
    }

    /// Returns the number of agents that delegated before this conversation: 0 in the run's own.
    pub fn depth(&self) -> u32 {
        self.memory.depth
    }

    /// Ends the background tasks, and waits until each has its record. Dropping the last clone of a conversation ends them
    /// too, without waiting.
    pub async fn end(&self) {
        self.tasks.end().await;
    }

    /// Runs the script hooks for an event of the run, and returns the payload with their changes.
    ///
    /// # Errors
    ///
    /// The reason of the hook that blocks the event; a hook that fails blocks it.
    pub async fn event(&self, event: &HookPoint, payload: Value) -> Result<Value, EventBlocked> {
        self.event_with_hooks(event, payload).await.map(|(payload, _)| payload)
    }

    /// Runs the script hooks for an event like [`Session::event`], and also returns the hooks that changed the payload, in
    /// order.
    ///
    /// # Errors
    ///
    /// As for [`Session::event`].
    pub async fn event_with_hooks(
        &self,
        event: &HookPoint,
        payload: Value,
    ) -> Result<(Value, Vec<HookNote>), EventBlocked> {
        hooks::run_event(&self.pipeline, event, payload, &self.memory).await.map_err(|reason| EventBlocked { reason })
    }

    /// Starts the calls of one model step together.
    pub fn step(&self, calls: Vec<ToolCall>) -> Step {
        Step::start(self, calls)
    }
}
