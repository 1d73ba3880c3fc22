//! One conversation with a set of tools: what the model was shown so far, and what a person agreed to. A call without a
//! conversation has one in which everything is shown.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::call::{ToolCall, ToolResult};
use crate::policy::Approval;
use crate::tool::{Body, Builtin, Tool, Visibility};

use super::step::Step;
use super::{Context, Pipeline};

/// A conversation. Clones share everything.
#[derive(Clone)]
pub struct Session {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) memory: Arc<Memory>,
}

/// What a conversation remembers.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Whether every tool counts as loaded.
    open: bool,
    loaded: Mutex<HashSet<usize>>,
    approved: Mutex<HashSet<Approval>>,
    /// Whether an answer was kept, so that there is something to open.
    pub(super) has_kept: AtomicBool,
}

impl Memory {
    /// The memory of calls that belong to no conversation.
    pub(crate) fn open() -> Self {
        Self { open: true, ..Self::default() }
    }

    /// Whether its caller knows every tool.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn has_loaded(&self, index: usize) -> bool {
        self.open || locked(&self.loaded).contains(&index)
    }

    pub(super) fn load(&self, index: usize) {
        locked(&self.loaded).insert(index);
    }

    pub(super) fn approves(&self, approval: &Approval) -> bool {
        locked(&self.approved).contains(approval)
    }

    pub(super) fn approve(&self, approval: Approval) {
        locked(&self.approved).insert(approval);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    pub(crate) fn new(pipeline: Arc<Pipeline>, memory: Arc<Memory>) -> Self {
        Self { pipeline, memory }
    }

    /// The tools that the model is to be shown now, in the order of their sources: those that can be called and are
    /// loaded, a search where there are more, and a reader where an answer was too long to be told whole.
    pub fn tools(&self) -> Vec<&Tool> {
        let mut hidden = false;
        let mut shown = Vec::new();
        for (index, tool) in self.pipeline.registry.tools().iter().enumerate() {
            let ready = &self.pipeline.ready[index];
            let callable =
                ready.closed.is_none() && tool.interface.discovery.schema_visibility.value != Visibility::Internal;
            match tool.body {
                Body::Builtin(Builtin::ToolSearch) if !hidden => {}
                Body::Builtin(Builtin::ReadResult) if !self.memory.has_kept.load(Relaxed) => {}
                _ if !callable => {}
                _ if ready.deferred && !self.memory.has_loaded(index) => hidden = true,
                _ => shown.push(tool),
            }
        }
        shown
    }

    /// Calls a tool; see [`crate::Runtime::call`].
    pub async fn call(&self, call: ToolCall) -> ToolResult {
        self.pipeline.call(call, Context { memory: &self.memory, turn: None }).await
    }

    /// Starts the calls of one step of the model together.
    pub fn step(&self, calls: Vec<ToolCall>) -> Step {
        Step::start(self, calls)
    }
}
