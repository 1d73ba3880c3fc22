//! Delegation of tasks to other agents. Their calls pass the same stages as every call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::error::HandlerError;
use crate::flow::ConversationLabels;

/// Maximum depth of delegation.
pub const MAX_DEPTH: u32 = 3;
/// Maximum number of agents per run, at any depth.
pub const MAX_AGENTS: u32 = 32;

/// A task for another agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Task {
    /// Text of the task.
    pub text: String,
    /// All other fields of the script's request, such as `agent`, `context` and `max_steps`.
    pub fields: Map<String, Value>,
    /// Number of delegations up to this task: 1 for a task from the run's own agent.
    pub depth: u32,
    /// Number of agents that the run has started.
    pub(crate) agents: Arc<AtomicU32>,
    /// Labels that the delegating call and the agent share.
    pub(crate) labels: ConversationLabels,
    /// Owner of the delegating conversation.
    pub(crate) owner: Option<Arc<str>>,
}

impl Task {
    /// Reads a task from the JSON of a script or a hook.
    ///
    /// # Errors
    ///
    /// The error in the task, or the exceeded limit.
    pub(crate) fn read(
        value: Value,
        depth: u32,
        agents: &Arc<AtomicU32>,
        labels: ConversationLabels,
        owner: Option<&Arc<str>>,
    ) -> Result<Self, String> {
        let Value::Object(mut fields) = value else { return Err("a task is an object with `task`".to_owned()) };
        let text = match fields.remove("task") {
            Some(Value::String(text)) if !text.trim().is_empty() => text,
            Some(_) => return Err("`task` must be a text that is not empty".to_owned()),
            None => return Err("`task` is missing".to_owned()),
        };
        if depth > MAX_DEPTH {
            return Err(format!("delegation is already {MAX_DEPTH} agents deep, the maximum"));
        }
        let started = agents.fetch_update(Relaxed, Relaxed, |count| (count < MAX_AGENTS).then_some(count + 1));
        match started {
            Ok(_) => Ok(Self { text, fields, depth, agents: agents.clone(), labels, owner: owner.cloned() }),
            Err(_) => Err(format!("this run has already started {MAX_AGENTS} agents, the maximum")),
        }
    }
}

/// Handler of delegated tasks.
pub trait Delegate: Send + Sync {
    /// Works on a task and returns the answer. Dropping the future ends the work. A session by
    /// [`Runtime::session_for`](crate::Runtime::session_for) gives the answer its label; nothing is observed elsewhere.
    ///
    /// # Errors
    ///
    /// A message for the script.
    fn delegate(&self, task: Task) -> BoxFuture<'_, Result<Value, HandlerError>>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn agents_are_begun_so_deep_and_so_often_in_one_run() {
        let agents = Arc::default();
        let begin = |depth| {
            let labels = ConversationLabels::default();
            Task::read(json!({"task": "t"}), depth, &agents, labels, None).map(|task| task.depth)
        };
        assert!(begin(MAX_DEPTH + 1).unwrap_err().contains("delegation is already 3 agents deep"));
        let depths = (0..MAX_AGENTS).map(|n| begin(1 + n % MAX_DEPTH));
        assert!(depths.into_iter().all(|begun| begun.is_ok()), "what was refused took no place");
        assert!(begin(1).unwrap_err().contains("this run has already started 32 agents"));
    }
}
