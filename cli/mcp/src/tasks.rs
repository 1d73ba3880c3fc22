//! Tasks: calls that go on after their requests were answered, for clients that declare the extension. A client asks for the state
//! of a task, answers its questions and cancels it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rmcp::model::{
    CallToolResult, DetailedTask, ElicitRequest, InputRequest, InputRequests, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::caller::Answer;
use super::consent;
use super::dialogue::Question;

/// Maximum number of tasks: those that run, and those with a result that is kept.
pub(super) const MAX_TASKS: usize = 64;
/// Maximum number of tasks of one client.
pub(super) const MAX_TASKS_PER_CLIENT: usize = 8;
/// Time that the result of a task is kept.
const KEPT: SignedDuration = SignedDuration::from_mins(10);
/// Time after which a client should ask again.
const POLL: Duration = Duration::from_secs(1);

/// Tasks of all clients, by a random identifier.
#[derive(Default)]
pub(super) struct Tasks(Mutex<HashMap<String, Arc<CallTask>>>);

/// Call that goes on as a task.
pub(super) struct CallTask {
    pub(super) id: String,
    client: Arc<str>,
    created: Timestamp,
    cancelled: CancellationToken,
    state: Mutex<State>,
}

struct State {
    changed: Timestamp,
    phase: Phase,
    /// Number of questions so far.
    asked: u32,
    /// `true` once the client was given the end, or has stopped the task and so waits for none.
    was_read: bool,
}

enum Phase {
    Working,
    Asking(Question),
    Completed(JsonObject),
    Cancelled,
}

impl Tasks {
    /// Makes a call of a client a task. `cancelled` stops the call. Returns `None` if there are too many tasks: those with a result
    /// that was read make room.
    pub(super) fn create(&self, client: &Arc<str>, cancelled: CancellationToken) -> Option<Arc<CallTask>> {
        let mut tasks = self.tasks();
        let now = Timestamp::now();
        tasks.retain(|_, task| !task.is_over(now));
        let has_room = |tasks: &HashMap<String, Arc<CallTask>>| {
            let own = tasks.values().filter(|task| task.client == *client).count();
            tasks.len() < MAX_TASKS && own < MAX_TASKS_PER_CLIENT
        };
        if !has_room(&tasks) {
            tasks.retain(|_, task| !task.state().is_done());
        }
        has_room(&tasks).then(|| {
            let state = State { changed: now, phase: Phase::Working, asked: 0, was_read: false };
            let id = format!("{:032x}", rand::random::<u128>());
            let (client, state) = (client.clone(), Mutex::new(state));
            let task = Arc::new(CallTask { id: id.clone(), client, created: now, cancelled, state });
            tasks.insert(id, task.clone());
            task
        })
    }

    /// Returns a task of a client.
    pub(super) fn get(&self, client: &Arc<str>, id: &str) -> Option<Arc<CallTask>> {
        let task = self.tasks().get(id)?.clone();
        (task.client == *client && !task.is_over(Timestamp::now())).then_some(task)
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<String, Arc<CallTask>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallTask {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` once the result is kept no longer.
    fn is_over(&self, now: Timestamp) -> bool {
        let state = self.state();
        state.phase.has_ended() && state.changed + KEPT <= now
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.state();
        state.changed = Timestamp::now();
        state.phase = phase;
    }

    /// Asks the client a question. It stays open until it is answered or the call no longer waits for the answer.
    pub(super) fn ask(&self, question: Question) {
        self.state().asked += 1;
        self.enter(Phase::Asking(question));
    }

    /// Ends the task with the result of its call; `None` if the call was stopped.
    pub(super) fn end(&self, result: Option<&CallToolResult>) {
        let result = result.map(|result| match serde_json::to_value(result) {
            Ok(Value::Object(fields)) => fields,
            _ => JsonObject::new(),
        });
        self.enter(result.map_or(Phase::Cancelled, Phase::Completed));
    }

    /// Stops the call.
    pub(super) fn cancel(&self) {
        self.state().was_read = true;
        self.cancelled.cancel();
    }

    /// Gives the answers of a client. Those to other questions than the open one are ignored, as the extension requires.
    pub(super) fn answer(&self, answers: &std::collections::BTreeMap<String, Value>) {
        let mut state = self.state();
        let Some(answer) = answers.get(&key(state.asked)) else { return };
        if let Phase::Asking(question) = std::mem::replace(&mut state.phase, Phase::Working) {
            question.answer(consent::read(answer));
            state.changed = Timestamp::now();
        }
    }

    /// Describes the task as it is created.
    pub(super) fn created(&self) -> Task {
        self.described(&self.state())
    }

    /// Describes the task with its question or its result.
    pub(super) fn detailed(&self) -> DetailedTask {
        let mut state = self.state();
        // The call in question may have ended, and a question that cannot be shown is one without an answer.
        if let Phase::Asking(question) = &state.phase
            && (!question.is_open() || consent::form(question.message.clone()).is_none())
            && let Phase::Asking(question) = std::mem::replace(&mut state.phase, Phase::Working)
        {
            question.answer(Answer::None);
        }
        let payload = match &state.phase {
            Phase::Working => TaskPayload::Working,
            Phase::Asking(question) => {
                let form = consent::form(question.message.clone());
                let request = form.map(|form| (key(state.asked), InputRequest::Elicitation(ElicitRequest::new(form))));
                TaskPayload::InputRequired { input_requests: InputRequests::from_iter(request) }
            }
            Phase::Completed(result) => TaskPayload::Completed { result: result.clone() },
            Phase::Cancelled => TaskPayload::Cancelled,
        };
        state.was_read |= state.phase.has_ended();
        DetailedTask::new(self.described(&state), payload)
    }

    fn described(&self, state: &State) -> Task {
        let mut task = Task::new(&self.id, TaskStatus::Working, self.created.to_string(), state.changed.to_string());
        if state.phase.has_ended() {
            let kept = state.changed + KEPT;
            task.ttl_ms = u64::try_from(kept.duration_since(self.created).as_millis()).ok();
        }
        task.poll_interval_ms = u64::try_from(POLL.as_millis()).ok();
        task
    }
}

impl State {
    /// Returns `true` if nobody waits for the task any more.
    fn is_done(&self) -> bool {
        self.was_read && self.phase.has_ended()
    }
}

impl Phase {
    fn has_ended(&self) -> bool {
        matches!(self, Phase::Completed(_) | Phase::Cancelled)
    }
}

/// Key of a question: no two of a task have the same.
fn key(number: u32) -> String {
    format!("approval_{number}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::dialogue::Dialogue;
    use super::*;

    fn create(tasks: &Tasks, client: &str) -> Option<Arc<CallTask>> {
        tasks.create(&client.into(), CancellationToken::new())
    }

    #[test]
    fn the_number_of_tasks_is_bounded_for_each_client_and_in_all() {
        let tasks = Tasks::default();
        let of_ada: Vec<_> = (0..MAX_TASKS_PER_CLIENT).map(|_| create(&tasks, "ada").unwrap()).collect();
        assert!(create(&tasks, "ada").is_none());
        of_ada[0].end(None);
        assert!(create(&tasks, "ada").is_none(), "nobody has read its end");
        of_ada[0].detailed();
        assert!(create(&tasks, "ada").is_some());
        assert!(tasks.get(&"ada".into(), &of_ada[0].id).is_none(), "it made room");
        for client in 1..MAX_TASKS / MAX_TASKS_PER_CLIENT {
            (0..MAX_TASKS_PER_CLIENT).for_each(|_| assert!(create(&tasks, &client.to_string()).is_some()));
        }
        assert!(create(&tasks, "bob").is_none());
    }

    #[test]
    fn a_task_is_found_by_its_client_alone_and_as_long_as_its_result_is_kept() {
        let tasks = Tasks::default();
        let task = create(&tasks, "ada").unwrap();
        assert!(tasks.get(&"ada".into(), &task.id).is_some() && tasks.get(&"bob".into(), &task.id).is_none());
        task.end(Some(&CallToolResult::success(Vec::new())));
        let described = serde_json::to_value(task.detailed()).unwrap();
        assert_eq!((&described["status"], &described["result"]["isError"]), (&json!("completed"), &json!(false)));
        assert!(described["ttlMs"].as_u64().unwrap() >= 600_000, "{described}");
        task.state().changed -= KEPT;
        assert!(tasks.get(&"ada".into(), &task.id).is_none());
        // A call that still runs has no such end.
        let running = create(&tasks, "ada").unwrap();
        running.state().changed -= KEPT;
        assert!(tasks.get(&"ada".into(), &running.id).is_some());
    }

    #[tokio::test]
    async fn a_question_has_a_key_of_its_own_and_one_answer() {
        let tasks = Tasks::default();
        let task = create(&tasks, "ada").unwrap();
        let (dialogue, mut questions) = Dialogue::new(Duration::from_secs(60), CancellationToken::new());
        let yes = json!({"action": "accept", "content": {"allow": true}});
        let client = async {
            for number in 1..=2 {
                task.ask(questions.recv().await.unwrap());
                let described = serde_json::to_value(task.detailed()).unwrap();
                let asked = described["inputRequests"].as_object().unwrap();
                assert_eq!(asked.keys().collect::<Vec<_>>(), [&key(number)]);
                task.answer(&[("approval_9".to_owned(), yes.clone())].into());
                assert_eq!(task.detailed().status(), TaskStatus::InputRequired, "it is no answer to the question");
                task.answer(&[(key(number), yes.clone())].into());
                task.answer(&[(key(number), json!({"action": "decline"}))].into());
                assert_eq!(task.detailed().status(), TaskStatus::Working);
            }
        };
        let asked = async {
            let first = dialogue.ask("first?".to_owned(), Some(1)).await;
            (first, dialogue.ask("second?".to_owned(), Some(2)).await)
        };
        let (answers, ()) = tokio::join!(asked, client);
        assert_eq!(answers, (Some(Answer::Allowed), Some(Answer::Allowed)));
    }
}
