//! The calls of one step of a model, answered in the order in which the model made them, whatever order they run in.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::call::{ToolCall, ToolResult};
use crate::tool::Interrupt;

use super::Context;
use super::gate::{Gate, Place, State, Turn};
use super::session::Session;

/// The calls of one step, while they run. Dropping it stops what still runs; each call leaves its record.
pub struct Step {
    results: Vec<Option<ToolResult>>,
    tasks: JoinSet<(usize, ToolResult)>,
    told: usize,
    gate: Arc<Gate>,
}

impl Step {
    pub(super) fn start(session: &Session, calls: Vec<ToolCall>) -> Self {
        let scheduler = &session.pipeline.scheduler;
        let places = calls.iter().map(|call| place(session, call)).collect();
        let gate = Gate::new(places, scheduler);
        let results = calls.iter().map(|_| None).collect();
        let mut tasks = JoinSet::new();
        for (at, call) in calls.into_iter().enumerate() {
            let (session, turn) = (session.clone(), Turn::new(gate.clone(), at));
            let crowded = at >= scheduler.calls;
            tasks.spawn(async move {
                let context = Context { memory: &session.memory, turn: Some(&turn) };
                let result = match crowded {
                    false => session.pipeline.call(call, context).await,
                    true => session.pipeline.refuse_crowded(call),
                };
                (at, result)
            });
        }
        Self { results, tasks, told: 0, gate }
    }

    /// How many calls it holds.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// The next result in the order of the calls, as soon as it is there. Dropping this future loses nothing.
    pub async fn next(&mut self) -> Option<ToolResult> {
        while self.results.get(self.told)?.is_none() {
            match self.tasks.join_next().await {
                Some(Ok((at, result))) => self.results[at] = Some(result),
                // A task that was aborted has no result; the calls after it may have one.
                Some(Err(_)) => {}
                None => return None,
            }
        }
        self.told += 1;
        self.results[self.told - 1].take()
    }

    /// Somebody interrupts: what waits and what may be cut is cancelled, and answered so; the rest may end.
    pub fn interrupt(&self) {
        self.gate.interrupt(false);
    }

    /// Cancels everything, also what would rather end.
    pub fn cancel(&self) {
        self.gate.interrupt(true);
    }

    /// The calls that run on after an interruption, by tool and identifier.
    pub fn held(&self) -> Vec<String> {
        self.gate.held()
    }
}

fn place(session: &Session, call: &ToolCall) -> Place {
    let scheduler = &session.pipeline.scheduler;
    let label = format!("`{}` ({})", super::clip(&call.name), super::clip(&call.id));
    let waiting = |exclusive, may_be_cut, failure| Place { label, exclusive, may_be_cut, failure, state: State::Waits };
    match session.pipeline.registry.find(&call.name) {
        Ok(index) => {
            let interface = &session.pipeline.registry.tools()[index].interface;
            let failure = interface.execution.sibling_failure_policy.value.unwrap_or(scheduler.sibling_failure);
            let may_be_cut = interface.execution.interrupt_behavior.value == Interrupt::Cancel;
            waiting(!interface.safety.is_concurrency_safe.value, may_be_cut, failure)
        }
        // It will be answered at once.
        Err(_) => waiting(false, true, scheduler.sibling_failure),
    }
}
