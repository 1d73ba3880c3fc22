//! Calls that are answered at once and go on: each is a task with a name, which a model polls or awaits. A call that is
//! refused is no task. All of them end with their conversation, and each leaves its record.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::call::{ToolCall, ToolResult};
use crate::error::{Outcome, ToolError};
use crate::schema;
use crate::tool::Body;

use super::gate::Turn;
use super::{Context, Memory, Pipeline, unless_cancelled};

/// The most tasks of one conversation, those that have ended included.
const MAX_TASKS: usize = 64;
/// The longest that one call waits for a task.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// How long it waits where it does not say.
const USUAL_WAIT: Duration = Duration::from_secs(20);

/// The tasks of a conversation.
#[derive(Default)]
pub(super) struct Tasks {
    /// How many have a place, those included that may yet be refused.
    places: Arc<AtomicUsize>,
    begun: AtomicU64,
    tasks: Mutex<BTreeMap<String, Task>>,
}

/// A place among the tasks, given back by a call that becomes none.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A task, which ends with what holds it.
struct Task {
    tool: String,
    state: Arc<State>,
    work: JoinHandle<()>,
    _place: Place,
}

#[derive(Default)]
struct State {
    result: Mutex<Option<ToolResult>>,
    ended: Notify,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// EventKind a model asks about a task.
#[derive(Deserialize)]
pub(super) struct Ask {
    task_id: String,
    timeout_ms: Option<u64>,
}

impl Tasks {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a task that is about to be begun: calls of one step get theirs in their order.
    pub(super) fn number(&self) -> u64 {
        self.begun.fetch_add(1, Relaxed) + 1
    }

    fn place(&self) -> Option<Place> {
        let places = self.places.fetch_update(Relaxed, Relaxed, |taken| (taken < MAX_TASKS).then_some(taken + 1));
        places.is_ok().then(|| Place(self.places.clone()))
    }

    /// Ends all of them, and waits until each is signed for.
    pub(super) async fn end(&self) {
        let tasks = std::mem::take(&mut *self.locked());
        for mut task in tasks.into_values() {
            task.work.abort();
            let _ = (&mut task.work).await;
        }
    }

    /// EventKind has become of a task, now.
    pub(super) fn poll(&self, ask: &Ask) -> Result<String, ToolError> {
        self.state(&ask.task_id).map(|(tool, state)| told(&ask.task_id, &tool, &state))
    }

    /// EventKind has become of it when it has ended, or when the wait is over.
    pub(super) async fn wait(&self, ask: &Ask) -> Result<String, ToolError> {
        let (tool, state) = self.state(&ask.task_id)?;
        let most = ask.timeout_ms.map_or(USUAL_WAIT, Duration::from_millis).min(MAX_WAIT);
        let ended = async {
            loop {
                let ended = state.ended.notified();
                if state.result().is_some() {
                    return;
                }
                ended.await;
            }
        };
        // A wait that is over is an answer like any other: the task goes on.
        let _ = tokio::time::timeout(most, ended).await;
        Ok(told(&ask.task_id, &tool, &state))
    }

    fn state(&self, id: &str) -> Result<(String, Arc<State>), ToolError> {
        let tasks = self.locked();
        let task = tasks.get(id).ok_or_else(|| {
            let known: Vec<&str> = tasks.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none was begun".to_owned() } else { known.join(", ") };
            let id: String = id.chars().take(64).collect();
            ToolError::new(Outcome::BadArguments, format!("no task `{id}` in this run ({known})"))
        })?;
        Ok((task.tool.clone(), task.state.clone()))
    }
}

impl State {
    fn result(&self) -> MutexGuard<'_, Option<ToolResult>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task in words for a model.
fn told(id: &str, tool: &str, state: &State) -> String {
    let mut told = json!({ "task_id": id, "tool": tool });
    match &*state.result() {
        None => told["status"] = json!("running"),
        Some(result) => {
            let (status, member) = if result.outcome.is_ok() { ("done", "result") } else { ("failed", "error") };
            told["status"] = json!(status);
            let content = result.content();
            let value = schema::parse(&content).unwrap_or_else(|_| Value::String(content.into_owned()));
            told[member] = match (result.outcome.is_ok(), value) {
                // An error object is unwrapped, so that `error` is the text.
                (false, Value::Object(mut fields)) if fields.len() == 1 => fields.remove("error").unwrap_or_default(),
                (_, value) => value,
            };
        }
    }
    told.to_string()
}

/// The way to tell that a call was let through: nothing refuses it any more.
pub(super) type Through = Mutex<Option<oneshot::Sender<()>>>;

impl Pipeline {
    /// Whether calls of this tool are tasks.
    pub(super) fn is_background(&self, name: &str, memory: &Memory) -> bool {
        let entry = self.entry(name, memory);
        // Who calls outside a conversation has nobody to ask later.
        !memory.is_open()
            && entry.is_ok_and(|entry| matches!(&entry.tool.body, Body::Script(script) if script.background))
    }

    /// Calls a tool whose calls are tasks: answers with the task as soon as the call was let through, or with how it ended
    /// before that.
    pub(super) async fn begin(
        self: &Arc<Self>,
        call: ToolCall,
        memory: &Arc<Memory>,
        (tasks, number): (&Tasks, u64),
        turn: Option<&Turn>,
    ) -> ToolResult {
        let Some(place) = tasks.place() else {
            let full = format!("this run has already started {MAX_TASKS} tasks, the maximum");
            return self.refuse(call, ToolError::new(Outcome::Busy, full));
        };
        let (id, name) = (call.id.clone(), call.name.clone());
        let (through, let_through) = oneshot::channel();
        let state = Arc::<State>::default();
        let work = {
            let (pipeline, memory, state) = (self.clone(), memory.clone(), state.clone());
            tokio::spawn(async move {
                let through = Mutex::new(Some(through));
                let context = Context { through: Some(&through), ..Context::alone(&memory) };
                let result = pipeline.call(call, context).await;
                *state.result() = Some(result);
                state.ended.notify_waiters();
            })
        };
        let mut task = Task { tool: name.clone(), state, work, _place: place };
        let let_through = match unless_cancelled(turn, let_through).await {
            Ok(let_through) => let_through,
            Err(why) => {
                // Its record is its own; this answers for it.
                drop(task);
                return ToolResult::cancelled(id, name, why);
            }
        };
        if let_through.is_err() {
            // It ended before it was let through: this is all there is of it.
            let _ = (&mut task.work).await;
            let ended = task.state.result().take();
            let broken = || ToolError::new(Outcome::Trap, "the call failed inside the host");
            return ended.unwrap_or_else(|| self.refuse(ToolCall::new(id, name, ""), broken()));
        }
        let task_id = format!("task_{number}");
        let told = json!({ "task_id": task_id, "status": "running" }).to_string();
        tasks.locked().insert(task_id, task);
        ToolResult::acknowledged(id, name, told)
    }
}
