//! Background tasks of a conversation: calls that are acknowledged at once and go on, each with a name that a model polls
//! or awaits. All of them end with their conversation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::call::ToolResult;
use crate::error::{Outcome, ToolError};
use crate::schema;

/// Maximum number of tasks per conversation: those that run, and those that have ended until their result was read.
pub(crate) const MAX_TASKS: usize = 64;
/// Maximum time that one call waits for a task.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Default time that one call waits for a task.
const DEFAULT_WAIT: Duration = Duration::from_secs(20);

/// Background tasks of a conversation.
#[derive(Default)]
pub(crate) struct Tasks {
    /// Number of reserved tasks, including calls that may yet be refused.
    reserved: Arc<AtomicUsize>,
    numbered: AtomicU64,
    tasks: Mutex<BTreeMap<String, Task>>,
}

/// Reservation of a task. Dropping it releases the reservation.
pub(crate) struct Reservation(Arc<AtomicUsize>);

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A background task. Dropping it ends the task.
pub(crate) struct Task {
    tool: String,
    state: Arc<TaskState>,
    work: JoinHandle<()>,
    _reservation: Reservation,
}

impl Task {
    /// Creates the task for a running call of `tool`.
    pub(crate) fn new(tool: String, state: Arc<TaskState>, work: JoinHandle<()>, reservation: Reservation) -> Self {
        Self { tool, state, work, _reservation: reservation }
    }

    /// Waits until the call has ended, and returns its result.
    pub(crate) async fn finished(mut self) -> Option<ToolResult> {
        let _ = (&mut self.work).await;
        self.state.result().take()
    }
}

/// State of a background task.
#[derive(Default)]
pub(crate) struct TaskState {
    result: Mutex<Option<ToolResult>>,
    ended: Notify,
    /// `true` once the result was described to the model.
    was_read: AtomicBool,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// Arguments of `task_poll` and `task_await`.
#[derive(Deserialize)]
pub(crate) struct TaskRequest {
    task_id: String,
    timeout_ms: Option<u64>,
}

impl Tasks {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the next task. The calls of one step get theirs in order.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbered.fetch_add(1, Relaxed) + 1
    }

    /// Reserves a task; `None` if the conversation has [`MAX_TASKS`] already. Tasks with a result that was read are forgotten
    /// if that makes room.
    pub(crate) fn reserve(&self) -> Option<Reservation> {
        if self.reserved.load(Relaxed) >= MAX_TASKS {
            self.locked().retain(|_, task| !task.state.was_read.load(Relaxed));
        }
        let reserved = self.reserved.fetch_update(Relaxed, Relaxed, |count| (count < MAX_TASKS).then_some(count + 1));
        reserved.is_ok().then(|| Reservation(self.reserved.clone()))
    }

    /// Adds a task under its name.
    pub(crate) fn insert(&self, id: String, task: Task) {
        self.locked().insert(id, task);
    }

    /// Ends all tasks and waits until each has its record.
    pub(crate) async fn end(&self) {
        let tasks = std::mem::take(&mut *self.locked());
        for mut task in tasks.into_values() {
            task.work.abort();
            let _ = (&mut task.work).await;
        }
    }

    /// Describes the current state of a task.
    pub(crate) fn poll(&self, request: &TaskRequest) -> Result<String, ToolError> {
        self.state(&request.task_id).map(|(tool, state)| describe(&request.task_id, &tool, &state))
    }

    /// Waits until a task has ended or the wait is over, and describes its state.
    pub(crate) async fn wait(&self, request: &TaskRequest) -> Result<String, ToolError> {
        let (tool, state) = self.state(&request.task_id)?;
        let max = request.timeout_ms.map_or(DEFAULT_WAIT, Duration::from_millis).min(MAX_WAIT);
        let ended = async {
            loop {
                let ended = state.ended.notified();
                if state.result().is_some() {
                    return;
                }
                ended.await;
            }
        };
        // A wait that is over is a normal answer: the task goes on.
        let _ = tokio::time::timeout(max, ended).await;
        Ok(describe(&request.task_id, &tool, &state))
    }

    fn state(&self, id: &str) -> Result<(String, Arc<TaskState>), ToolError> {
        let tasks = self.locked();
        let task = tasks.get(id).ok_or_else(|| {
            let known: Vec<&str> = tasks.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none was started".to_owned() } else { known.join(", ") };
            let id = toolcrib_foundation::text::shown(id);
            ToolError::new(Outcome::BadArguments, format!("no task `{id}` in this run ({known})"))
        })?;
        Ok((task.tool.clone(), task.state.clone()))
    }
}

impl TaskState {
    /// Returns the result of the task, if it has ended.
    pub(crate) fn result(&self) -> MutexGuard<'_, Option<ToolResult>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the result of the task and wakes the calls that wait for it.
    pub(crate) fn finish(&self, result: ToolResult) {
        *self.result() = Some(result);
        self.ended.notify_waiters();
    }
}

/// Describes a task for a model.
fn describe(id: &str, tool: &str, state: &TaskState) -> String {
    let mut described = json!({ "task_id": id, "tool": tool });
    match &*state.result() {
        None => described["status"] = json!("running"),
        Some(result) => {
            state.was_read.store(true, Relaxed);
            let (status, member) = if result.outcome.is_ok() { ("done", "result") } else { ("failed", "error") };
            described["status"] = json!(status);
            let content = result.content();
            let value = schema::parse(&content).unwrap_or_else(|_| Value::String(content.into_owned()));
            described[member] = match (result.outcome.is_ok(), value) {
                // An error object is unwrapped, so that `error` is the text.
                (false, Value::Object(mut fields)) if fields.len() == 1 => fields.remove("error").unwrap_or_default(),
                (_, value) => value,
            };
        }
    }
    described.to_string()
}
