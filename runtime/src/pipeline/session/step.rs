//! Runs the calls of one model step, and returns their results in call order.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::call::{Receipt, ToolCall, ToolResult, clipped};
use crate::error::{Outcome, ToolError};
use crate::pipeline::state::{Scheduler, Slot, SlotState, StepSchedule, Turn};
use crate::tool::Interrupt;

use super::Session;

/// Running calls of one step. Dropping it stops them; each call leaves its record.
pub struct Step {
    /// Identifiers and names of the calls.
    names: Vec<(String, String)>,
    results: Vec<Option<ToolResult>>,
    tasks: JoinSet<(usize, ToolResult)>,
    /// Number of results that were returned.
    returned: usize,
    schedule: Arc<StepSchedule>,
}

impl Step {
    pub(super) fn start(session: &Session, calls: Vec<ToolCall>) -> Self {
        let scheduler = &session.pipeline.scheduler;
        let names = calls.iter().map(|call| (clipped(&call.id), clipped(&call.name))).collect();
        let slots = calls.iter().take(scheduler.calls).map(|call| slot(session, call)).collect();
        let schedule = StepSchedule::new(slots, scheduler);
        let mut results = Vec::with_capacity(calls.len());
        let mut tasks = JoinSet::new();
        for (at, call) in calls.into_iter().enumerate() {
            if at >= scheduler.calls {
                let message = format!("too many calls in one step: at most {} are executed", scheduler.calls);
                results.push(Some(session.pipeline.refuse(
                    call,
                    &session.memory,
                    ToolError::new(Outcome::Busy, message),
                )));
                continue;
            }
            results.push(None);
            let turn = Turn::new(schedule.clone(), at);
            let number = session.task_number(&call);
            let (session, unstarted) = (session.clone(), session.unstarted(call));
            tasks.spawn(async move { (at, session.run(unstarted.start(), number, Some(&turn)).await) });
        }
        Self { names, results, tasks, returned: 0, schedule }
    }

    /// Returns the number of calls.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Returns `true` if the step has no calls.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Waits for the next result in the order of the calls. Dropping this future loses nothing.
    pub async fn next(&mut self) -> Option<ToolResult> {
        while self.results.get(self.returned)?.is_none() {
            match self.tasks.join_next().await {
                Some(Ok((at, result))) => self.results[at] = Some(result),
                // A task that panicked has no result when no task is left.
                Some(Err(_)) => {}
                None => self.results[self.returned] = Some(self.missing_result()),
            }
        }
        self.returned += 1;
        self.results[self.returned - 1].take()
    }

    /// Returns the result for a task that panicked.
    fn missing_result(&self) -> ToolResult {
        let (id, name) = self.names[self.returned].clone();
        let mut receipt = Receipt::begun(id.clone(), String::new(), name.clone());
        receipt.outcome = Outcome::Trap;
        let outcome = Err(ToolError::new(Outcome::Trap, "the call failed inside the host"));
        ToolResult::bare(id, name, outcome, receipt)
    }

    /// Cancels the calls that have not started and the interruptible ones that run; the rest may end.
    pub fn interrupt(&self) {
        self.schedule.interrupt(false);
    }

    /// Cancels all calls, interruptible or not.
    pub fn cancel(&self) {
        self.schedule.interrupt(true);
    }

    /// Returns the calls that continue after an interruption, by tool and identifier.
    pub fn held(&self) -> Vec<String> {
        self.schedule.uninterruptible()
    }
}

/// Handle that interrupts one call.
#[derive(Debug, Clone)]
pub struct CallInterrupt(Arc<StepSchedule>);

impl CallInterrupt {
    /// Creates the turn of a call outside a step, and the handle that interrupts it.
    pub(super) fn new(session: &Session, call: &ToolCall) -> (Self, Turn) {
        // The default limits neither time nor output.
        let schedule = StepSchedule::new(vec![slot(session, call)], &Scheduler::default());
        (Self(schedule.clone()), Turn::new(schedule, 0))
    }

    /// Cancels the call if it has not started or is interruptible. A program makes no further call, and its running ones may end.
    pub fn interrupt(&self) {
        self.0.interrupt(false);
    }
}

/// Returns the slot of a call in its step.
fn slot(session: &Session, call: &ToolCall) -> Slot {
    let scheduler = &session.pipeline.scheduler;
    let label = format!("`{}` ({})", clipped(&call.name), clipped(&call.id));
    let slot = |exclusive, interruptible, failure| Slot {
        label,
        exclusive,
        interruptible,
        failure,
        decided: false,
        state: SlotState::Waits,
    };
    match session.pipeline.entry(&call.name, &session.memory) {
        Ok(entry) => {
            let interface = &entry.tool.interface;
            let failure = interface.execution.sibling_failure_policy.value.unwrap_or(scheduler.sibling_failure);
            let interruptible = interface.execution.interrupt_behavior.value == Interrupt::Cancel;
            slot(!interface.safety.is_concurrency_safe.value, interruptible, failure)
        }
        // A call of an unknown tool ends at once, unless a tool claims it.
        Err(_) => slot(session.pipeline.has_claimants(), true, scheduler.sibling_failure),
    }
}
