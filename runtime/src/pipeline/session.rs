//! One conversation with a set of tools. A call without a conversation has one in which everything is shown.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;

use crate::call::{ToolCall, ToolResult};
use crate::observe::Observer;
use crate::tool::{Body, Builtin, HookPoint, Tool, Visibility};

use super::gate::Turn;
use super::step::Step;
use super::task::Tasks;
use super::{Context, Memory, Pipeline};

/// A conversation. Clones share everything.
#[derive(Clone)]
pub struct Session {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) memory: Arc<Memory>,
    tasks: Arc<Tasks>,
}

impl Session {
    pub(crate) fn new(pipeline: Arc<Pipeline>, memory: Arc<Memory>) -> Self {
        Self { pipeline, memory, tasks: Arc::default() }
    }

    /// The tools that the model is to be shown now, in the order of their sources: those that can be called and are
    /// loaded, a search where there are more, and a reader where an answer was too long to be told whole.
    pub fn tools(&self) -> Vec<&Tool> {
        let mut hidden = false;
        let mut shown = Vec::new();
        let mut has_tasks = false;
        for (index, tool) in self.pipeline.registry.tools().iter().enumerate() {
            let ready = &self.pipeline.ready[index];
            let callable = ready.is_open() && tool.interface.discovery.schema_visibility.value != Visibility::Internal;
            match &tool.body {
                Body::Builtin(Builtin::ToolSearch) if !hidden => {}
                Body::Builtin(Builtin::ReadResult) if !self.memory.has_kept.load(Relaxed) => {}
                Body::Builtin(Builtin::TaskPoll | Builtin::TaskAwait) if !has_tasks => {}
                _ if !callable => {}
                _ if ready.deferred && !self.memory.has_loaded(index) => hidden = true,
                body => {
                    has_tasks |= matches!(body, Body::Script(script) if script.background);
                    shown.push(tool);
                }
            }
        }
        shown.extend(self.memory.tools.iter().filter(|added| added.ready.disabled.is_none()).map(|added| &added.tool));
        shown
    }

    /// Tells `watcher` what happens in the calls of this conversation, also in those that its tools make, from now on. The
    /// first who is named is the one who is told.
    pub fn watched_by(&self, watcher: Arc<dyn Observer>) {
        self.memory.watch(watcher);
    }

    /// Calls a tool; see [`crate::Runtime::call`].
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        let number = self.number(&call);
        self.take(call, number, None).await
    }

    /// The number of the task that a call becomes, if it becomes one.
    pub(super) fn number(&self, call: &ToolCall) -> Option<u64> {
        self.pipeline.is_background(&call.name, &self.memory).then(|| self.tasks.number())
    }

    pub(super) async fn take(&self, call: ToolCall, number: Option<u64>, turn: Option<&Turn>) -> ToolResult {
        if let Some(number) = number {
            return self.pipeline.begin(call, &self.memory, (&self.tasks, number), turn).await;
        }
        let context = Context { tasks: Some(&self.tasks), ..Context::within(&self.memory, turn) };
        self.pipeline.call(call, context).await
    }

    /// Whether there is a hook for an event of the run: where there is none, nobody has to be told of it.
    pub fn hears(&self, event: &HookPoint) -> bool {
        self.pipeline.hooks.scripted(&self.memory).iter().any(|script| script.hook.event == *event)
    }

    /// How many agents have handed on before this conversation: 0 in the run's own.
    pub fn depth(&self) -> u32 {
        self.memory.depth
    }

    /// Ends the calls that go on, and waits until each is signed for. Whoever drops the last clone of a conversation ends
    /// them too, and waits for nothing.
    pub async fn end(&self) {
        self.tasks.end().await;
    }

    /// Tells the hooks that hear it of an event of the run. EventKind they make of its payload comes back.
    ///
    /// # Errors
    ///
    /// Why a hook blocks it; a hook that fails does.
    pub async fn event(&self, event: &HookPoint, payload: Value) -> Result<Value, String> {
        self.pipeline.heard(event, payload, &self.memory).await
    }

    /// Starts the calls of one step of the model together.
    pub fn step(&self, calls: Vec<ToolCall>) -> Step {
        Step::start(self, calls)
    }
}
