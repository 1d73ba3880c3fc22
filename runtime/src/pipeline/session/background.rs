//! Starts calls that become background tasks. Such a call is acknowledged as soon as it is authorized; a refused call is
//! answered and becomes no task.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::oneshot;

use crate::call::{ToolCall, ToolResult};
use crate::error::{Outcome, ToolError};
use crate::pipeline::state::{
    CallScope, MAX_TASKS, Memory, Pipeline, Task, TaskState, Tasks, Turn, UnstartedCall, unless_cancelled,
};
use crate::tool::Body;

/// Returns `true` if the calls of a tool become background tasks. Outside a conversation none do: no model
/// could poll them.
pub(super) fn is_background(pipeline: &Pipeline, name: &str, memory: &Memory) -> bool {
    let entry = pipeline.entry(name, memory);
    !memory.is_open() && entry.is_ok_and(|entry| matches!(&entry.tool.body, Body::Script(script) if script.background))
}

/// Starts a background task, and returns its acknowledgement, or the result of a call that ended before its authorization.
pub(super) async fn start(
    pipeline: &Arc<Pipeline>,
    call: ToolCall,
    memory: &Arc<Memory>,
    (tasks, number): (&Tasks, u64),
    turn: Option<&Turn>,
) -> ToolResult {
    let Some(reservation) = tasks.reserve() else {
        let full = format!("this run has already started {MAX_TASKS} tasks, the maximum");
        return pipeline.refuse(call, memory, ToolError::new(Outcome::Busy, full));
    };
    let (id, name) = (call.id.clone(), call.name.clone());
    let (sender, authorized) = oneshot::channel();
    let state = Arc::<TaskState>::default();
    let work = {
        let unstarted = UnstartedCall::new(pipeline.clone(), memory.clone(), call);
        let (pipeline, memory, state) = (pipeline.clone(), memory.clone(), state.clone());
        tokio::spawn(async move {
            let sender = Mutex::new(Some(sender));
            let scope = CallScope { authorized: Some(&sender), ..CallScope::alone(&memory) };
            state.finish(pipeline.call(unstarted.start(), scope).await);
        })
    };
    let task = Task::new(name.clone(), state, work, reservation);
    let authorized = match unless_cancelled(turn, authorized).await {
        Ok(authorized) => authorized,
        Err(why) => {
            // The aborted call leaves its own record.
            drop(task);
            return ToolResult::cancelled(id, name, why);
        }
    };
    if authorized.is_err() {
        // A task that ended without a result has left its record.
        let broken = ToolError::new(Outcome::Trap, "the call failed inside the host");
        return task.finished().await.unwrap_or_else(|| ToolResult::cancelled(id, name, broken));
    }
    let task_id = format!("task_{number}");
    let acknowledgement = json!({ "task_id": task_id, "status": "running" }).to_string();
    tasks.insert(task_id, task);
    ToolResult::acknowledged(id, name, acknowledgement)
}
