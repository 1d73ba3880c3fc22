//! Subagents for tasks that scripts and hooks delegate: each has its own conversation and steps, and the run's tools,
//! permissions, model and log. The script gets the answer or a short error; server errors are reported only to the user.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use toolcrib::delegate::Task;
use toolcrib::{Delegate, HandlerError, Runtime, Session, WeakRuntime};
use toolcrib_base::render::counted;

use super::briefing::briefing;
use super::budget::BudgetKind;
use super::conversation::Conversation;
use super::event::{Ending, Subagent};
use super::hooks::Blocked;
use super::message::{Message, Role};
use super::model::Model;
use super::report::Report;
use super::{Agent, RequestOptions};

/// Default steps of a subagent.
const DEFAULT_STEPS: u32 = 8;
/// Field of a task with its maximum steps.
const MAX_STEPS: &str = "max_steps";

const SYSTEM: &str = "Another agent has handed you one task. Work on it with the tools that you have. Your last message is \
                      the whole answer that is passed on, so put the result there. You cannot ask questions.";

/// Subagents of a run; unavailable until [`Agents::begin`].
#[derive(Default)]
pub struct Agents(OnceLock<Origin>);

/// Shared parts of all subagents.
struct Origin {
    runtime: WeakRuntime,
    model: Model,
    options: RequestOptions,
    report: Report,
    begun: AtomicU64,
}

impl Agents {
    /// Enables delegation for a run; subagents report to the run's `report`.
    pub fn begin(&self, runtime: &Runtime, model: &Model, options: &RequestOptions, report: &Report) {
        let (runtime, model, options) = (runtime.downgrade(), model.clone(), options.clone());
        let report = report.below(Subagent { depth: 0, agent: 0 });
        let origin = Origin { runtime, model, options, report, begun: AtomicU64::new(0) };
        // A run begins once.
        let _ = self.0.set(origin);
    }

    /// Returns the model, the options and a report for a tool's model request.
    pub(super) fn request_context(&self) -> Option<(&Model, &RequestOptions, Report)> {
        let Origin { model, options, report, .. } = self.0.get()?;
        Some((model, options, report.below(Subagent { depth: 1, agent: 0 })))
    }

    /// Returns a session of the run, if it has not ended.
    pub(super) fn session(&self) -> Option<Session> {
        Some(self.0.get()?.runtime.upgrade()?.session())
    }

    async fn work(&self, task: Task) -> Result<Value, HandlerError> {
        let Origin { runtime, model, options, report, begun } = self.0.get().ok_or("the run has not started")?;
        let runtime = runtime.upgrade().ok_or("the run has ended")?;
        let max_steps = steps(&task.fields, options.max_steps)?;
        let model = model.for_another_agent()?;
        let below = Subagent { depth: task.depth, agent: begun.fetch_add(1, Relaxed) + 1 };
        let options = RequestOptions { max_steps, stream: false, ..options.clone() };
        let session = runtime.session_for(&task);
        let conversation = opening(task).with_briefing(briefing(&runtime, &session, None));
        let agent = Agent::new(session, model, options, conversation, report.below(below));
        match agent.run().await {
            Ok((Ending::Answer, answer)) => Ok(Value::String(answer.unwrap_or_default())),
            Ok((Ending::MaxSteps, _)) => {
                Err(format!("the agent did not answer within {}", counted(max_steps, "step")).into())
            }
            Ok((Ending::Budget(BudgetKind::Repeats), _)) => {
                Err("the agent made the same call with the same result again and again".into())
            }
            Ok((Ending::Budget(_), _)) => Err("the budget of the run is used up".into()),
            Ok((Ending::Interrupted, _)) => Err("the agent was interrupted".into()),
            Err(error) => Err(match error.downcast_ref::<Blocked>() {
                Some(blocked) => blocked.to_string().into(),
                None => "the agent failed".into(),
            }),
        }
    }
}

impl Delegate for Agents {
    fn delegate(&self, task: Task) -> BoxFuture<'_, Result<Value, HandlerError>> {
        Box::pin(self.work(task))
    }
}

/// Returns the maximum steps of a task, capped at `most`, the run's maximum.
fn steps(fields: &Map<String, Value>, most: u32) -> Result<u32, String> {
    let asked = match fields.get(MAX_STEPS) {
        None | Some(Value::Null) => Some(DEFAULT_STEPS),
        Some(asked) => asked.as_u64().filter(|steps| *steps > 0).map(|steps| u32::try_from(steps).unwrap_or(most)),
    };
    asked.map(|steps| steps.min(most)).ok_or_else(|| format!("`{MAX_STEPS}` must be a whole number from 1"))
}

/// Creates the initial conversation of a subagent.
fn opening(task: Task) -> Conversation {
    let Task { text, mut fields, .. } = task;
    fields.remove(MAX_STEPS);
    fields.retain(|_, value| !value.is_null());
    let asked = match fields.is_empty() {
        true => text,
        false => format!("{text}\n\nContext of the task, as JSON:\n{}", Value::Object(fields)),
    };
    Conversation::new(vec![Message::text(Role::System, SYSTEM), Message::text(Role::User, asked)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_gets_the_steps_of_its_task_and_never_more_than_the_run() {
        let of = |fields: Value| steps(fields.as_object().expect("an object"), 10);
        assert_eq!(of(json!({})), Ok(DEFAULT_STEPS));
        assert_eq!(of(json!({ "max_steps": null })), Ok(DEFAULT_STEPS));
        assert_eq!(of(json!({ "max_steps": 3 })), Ok(3));
        assert_eq!(of(json!({ "max_steps": u64::MAX })), Ok(10));
        for wrong in [json!(0), json!(-1), json!(1.5), json!("3")] {
            assert_eq!(of(json!({ "max_steps": wrong })), Err("`max_steps` must be a whole number from 1".to_owned()));
        }
    }
}
