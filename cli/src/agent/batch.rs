//! The calls of one step: all at once, on every processor, answered in the order in which the model made them. Dropping a
//! batch stops what still runs. It knows nothing of the conversation.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use toolcrib::{Runtime, ToolCall, ToolResult};

use super::turn::Call;

/// The most calls of one step that are executed; the rest are answered with an error.
pub(crate) const MOST_CALLS: usize = 128;
/// The longest wait for calls that were told to stop. A guest is asked to yield every few milliseconds.
const DRAIN: Duration = Duration::from_secs(1);

/// The calls of one step, while they run.
#[derive(Debug)]
pub(crate) struct Batch {
    calls: Vec<Call>,
    replies: Vec<Option<Reply>>,
    tasks: JoinSet<(usize, ToolResult)>,
    told: usize,
    /// Hangs up once every task is gone, and with it its call.
    gone: Receiver<()>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum Reply {
    /// As its runtime says.
    Result(Box<ToolResult>),
    /// Without having run to an end; for the model in words.
    Stopped(String),
}

impl Reply {
    /// What the model gets.
    pub(crate) fn content(&self) -> String {
        match self {
            Reply::Result(result) => result.content().into_owned(),
            Reply::Stopped(why) => json!({ "error": why }).to_string(),
        }
    }

    /// Whether the call failed.
    pub(crate) fn is_error(&self) -> bool {
        match self {
            Reply::Result(result) => result.is_error(),
            Reply::Stopped(_) => true,
        }
    }

    /// What the runtime knows of the call, where it ran.
    pub(crate) fn result(&self) -> Option<&ToolResult> {
        match self {
            Reply::Result(result) => Some(result),
            Reply::Stopped(_) => None,
        }
    }
}

impl Batch {
    /// Starts the calls.
    pub(crate) fn start(runtime: &Runtime, calls: Vec<Call>) -> Self {
        let (here, gone) = mpsc::channel();
        let mut tasks = JoinSet::new();
        for (index, call) in calls.iter().enumerate().take(MOST_CALLS) {
            let call = ToolCall::new(&call.id, &call.name, &call.arguments);
            tasks.spawn(run(runtime.clone(), index, call, here.clone()));
        }
        let too_many = || Reply::Stopped(format!("too many calls in one step: at most {MOST_CALLS} are executed"));
        let replies = (0..calls.len()).map(|index| (index >= MOST_CALLS).then(too_many)).collect();
        Self { calls, replies, tasks, told: 0, gone }
    }

    /// How many calls it holds.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The next call in order with its reply, as soon as it has ended.
    pub(crate) async fn next(&mut self) -> Option<(&Call, &Reply)> {
        let at = self.told;
        while self.replies.get(at)?.is_none() {
            match self.tasks.join_next().await {
                Some(Ok((index, result))) => self.replies[index] = Some(Reply::Result(Box::new(result))),
                // A task that broke is known by its missing reply once no task is left.
                Some(Err(_)) => {}
                None => self.replies[at] = Some(Reply::Stopped("the call broke off".to_owned())),
            }
        }
        self.told += 1;
        Some((&self.calls[at], self.replies[at].as_ref()?))
    }

    /// Stops what still runs, and waits until it has stopped: a call that is stopped leaves its record then.
    fn stop(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        self.tasks.abort_all();
        // Nothing is ever sent: this returns when the last task is gone. Meanwhile another thread takes this one's tasks,
        // those that are to be gone among them.
        let _ = tokio::task::block_in_place(|| self.gone.recv_timeout(DRAIN));
        while let Some(joined) = self.tasks.try_join_next() {
            if let Ok((index, result)) = joined {
                self.replies[index] = Some(Reply::Result(Box::new(result)));
            }
        }
    }

    /// Every call with what the model gets for it. What still runs is stopped.
    pub(crate) fn replies(&mut self) -> impl Iterator<Item = (&Call, String)> {
        self.stop();
        let interrupted = || json!({ "error": "interrupted before the call ended" }).to_string();
        let content = move |reply: &Option<Reply>| reply.as_ref().map_or_else(interrupted, Reply::content);
        self.calls.iter().zip(self.replies.iter().map(content))
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn run(runtime: Runtime, index: usize, call: ToolCall, _here: Sender<()>) -> (usize, ToolResult) {
    (index, runtime.call(call).await)
}
