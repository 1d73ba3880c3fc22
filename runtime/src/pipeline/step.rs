//! The calls of one step of a model, answered in the order in which the model made them, whatever order they run in.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::call::{Receipt, ToolCall, ToolResult};
use crate::error::{Outcome, ToolError};
use crate::tool::Interrupt;

use super::gate::{Gate, Place, State, Turn};
use super::session::Session;

/// The calls of one step, while they run. Dropping it stops what still runs; each call leaves its record.
pub struct Step {
    /// Identifiers and names of the calls.
    names: Vec<(String, String)>,
    results: Vec<Option<ToolResult>>,
    tasks: JoinSet<(usize, ToolResult)>,
    told: usize,
    gate: Arc<Gate>,
}

/// A call that was handed over and has not begun: should it never, it is signed for as cancelled.
struct Handed {
    session: Session,
    call: Option<ToolCall>,
}

impl Drop for Handed {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.session.pipeline.sign_cancelled(&call);
        }
    }
}

impl Step {
    pub(super) fn start(session: &Session, calls: Vec<ToolCall>) -> Self {
        let scheduler = &session.pipeline.scheduler;
        let names = calls.iter().map(|call| (super::clip(&call.id), super::clip(&call.name))).collect();
        let gate = Gate::new(calls.iter().take(scheduler.calls).map(|call| place(session, call)).collect(), scheduler);
        let mut results = Vec::with_capacity(calls.len());
        let mut tasks = JoinSet::new();
        for (at, call) in calls.into_iter().enumerate() {
            if at >= scheduler.calls {
                results.push(Some(session.pipeline.refuse_crowded(call)));
                continue;
            }
            results.push(None);
            let turn = Turn::new(gate.clone(), at);
            let number = session.number(&call);
            let mut handed = Handed { session: session.clone(), call: Some(call) };
            tasks.spawn(async move {
                // It is taken when the task first runs; a task that never does drops it.
                let call = handed.call.take().unwrap_or_else(|| ToolCall::new("", "", ""));
                (at, handed.session.take(call, number, Some(&turn)).await)
            });
        }
        Self { names, results, tasks, told: 0, gate }
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
                // A task that broke off is known by its missing result once no task is left.
                Some(Err(_)) => {}
                None => self.results[self.told] = Some(self.broken()),
            }
        }
        self.told += 1;
        self.results[self.told - 1].take()
    }

    /// EventKind stands in the place of a result that there is none of, for a defect of the host.
    fn broken(&self) -> ToolResult {
        let (id, name) = self.names[self.told].clone();
        let mut receipt = Receipt::begun(id.clone(), String::new(), name.clone());
        receipt.outcome = Outcome::Trap;
        let outcome = Err(ToolError::new(Outcome::Trap, "the call failed inside the host"));
        ToolResult::bare(id, name, outcome, receipt)
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
    match session.pipeline.entry(&call.name, &session.memory) {
        Ok(entry) => {
            let interface = &entry.tool.interface;
            let failure = interface.execution.sibling_failure_policy.value.unwrap_or(scheduler.sibling_failure);
            let may_be_cut = interface.execution.interrupt_behavior.value == Interrupt::Cancel;
            waiting(!interface.safety.is_concurrency_safe.value, may_be_cut, failure)
        }
        // It will be answered at once, unless a tool claims it.
        Err(_) => waiting(session.pipeline.ready_to_claim(), true, scheduler.sibling_failure),
    }
}
