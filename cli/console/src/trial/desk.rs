//! Calls that are tried, each with its state.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib::policy::ApprovalAnswer;
use toolcrib::{Runtime, ToolCall};
use toolcrib_agent::runs::ShownParts;
use toolcrib_base::render::Advice;
use toolcrib_settings::permission::PendingCall;

use crate::form::Fields;
use crate::loaded::{Loaded, Permissions};
use crate::session::random;

use super::drive::drive;
use super::outcome::Shown;

/// Maximum calls that wait or run at once. A further one ends the one that has waited longest.
pub(super) const MAX_ACTIVE: usize = 4;
/// Maximum calls that are kept with their results.
pub(super) const MAX_KEPT: usize = 12;
/// Maximum time for which a call waits for a click.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(10 * 60);
/// Maximum time for which a page waits for the next state of a call.
pub(super) const MAX_PAGE_WAIT: Duration = Duration::from_secs(8);
/// Time for the records of the calls that end with the program.
pub(super) const LAST_RECORDS: Duration = Duration::from_millis(1_200);
/// Bytes of an identifier.
pub(super) const ID_LEN: usize = 12;
/// Page of a call, below the session.
pub(super) const PAGE: &str = "tool/trial";
/// Page of the form.
pub(super) const FORM_PAGE: &str = "tool/call";
/// Parameter with the identifier of a call.
pub(super) const ID: &str = "id";

/// Calls that are tried, and the approver of their questions.
#[derive(Clone, Default)]
pub(crate) struct Trials(Arc<Desk>);

#[derive(Default)]
pub(super) struct Desk {
    /// Oldest first.
    pub(super) all: Mutex<VecDeque<Arc<Trial>>>,
    /// Trials by the invocations of their calls, nested calls included.
    pub(super) invocations: Mutex<HashMap<String, Arc<Trial>>>,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// Way in which a person writes the arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Form,
    Json,
    /// Text of a tool that takes text.
    Text,
}

impl Mode {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

/// Arguments of a call as the form had them, to fill it again.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    /// Digest of the schema that the fields belong to.
    pub(super) schema: String,
    pub(super) mode: Mode,
    /// JSON or text in the modes that have it.
    pub(super) text: String,
    pub(super) fields: Fields,
}

/// Call that is tried.
pub(super) struct Trial {
    pub(super) id: String,
    pub(super) call: ToolCall,
    pub(super) draft: Draft,
    /// Permissions that the call was prepared with.
    pub(super) permissions: Permissions,
    pub(super) state: Mutex<State>,
    /// Changes with the state.
    pub(super) changed: watch::Sender<()>,
    /// Asks for the end of the call.
    pub(super) stop: CancellationToken,
    /// The step of the call is cancelled: what did not start will not.
    pub(super) cancelled: CancellationToken,
}

/// Course of a call so far.
#[derive(Default)]
pub(super) struct State {
    /// Tools among which the call runs, until it has ended.
    pub(super) runtime: Option<Arc<Runtime>>,
    /// Arguments after the hooks, as JSON text.
    pub(super) arguments: Option<String>,
    pub(super) preview: Option<String>,
    pub(super) decision: Option<toolcrib::call::Decision>,
    pub(super) questions: Vec<Question>,
    /// Number of the last question.
    pub(super) asked: u64,
    pub(super) started: Option<Instant>,
    /// Number of parts so far.
    pub(super) parts: u64,
    /// The first of them.
    pub(super) shown: ShownParts,
    pub(super) outcome: Option<Arc<Shown>>,
}

/// Click for which a call waits.
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) kind: QuestionKind,
}

pub(super) enum QuestionKind {
    /// A rule or the tool asks; the answer is a person's.
    Asked(Box<PendingCall>, oneshot::Sender<ApprovalAnswer>),
    /// The call is allowed, and starts once this is dropped.
    Held(#[expect(dead_code, reason = "its end lets the call go on")] oneshot::Sender<()>),
}

impl Trials {
    /// Begins a call, which stops before it starts. Returns its identifier.
    ///
    /// # Errors
    ///
    /// Too many calls run.
    pub(super) fn begin(&self, loaded: &Loaded, call: ToolCall, draft: Draft) -> anyhow::Result<String> {
        let mut all = self.all();
        let active: Vec<_> = all.iter().filter(|trial| !trial.has_ended()).cloned().collect();
        if active.len() >= MAX_ACTIVE {
            let waiting = active.iter().find(|trial| trial.question(&trial.state()).is_some());
            let Some(waiting) = waiting.filter(|_| active.len() < 2 * MAX_ACTIVE) else {
                let hint = "wait until one of them has ended, or stop it on its page";
                return Err(Advice::new(format!("{} calls of this console run already", active.len()), hint).into());
            };
            waiting.stop.cancel();
        }
        while all.len() >= MAX_KEPT {
            let ended = all.iter().position(|trial| trial.has_ended());
            all.remove(ended.unwrap_or(0));
        }
        let trial = Arc::new(Trial {
            id: random::<ID_LEN>(),
            call,
            draft,
            permissions: loaded.permissions,
            state: Mutex::new(State { runtime: Some(loaded.runtime.clone()), ..State::default() }),
            changed: watch::Sender::new(()),
            stop: self.0.stop.child_token(),
            cancelled: CancellationToken::new(),
        });
        all.push_back(trial.clone());
        drop(all);
        let id = trial.id.clone();
        self.0.tasks.spawn(drive(self.clone(), trial, loaded.runtime.clone()));
        Ok(id)
    }

    /// Waits until a call that a page shows waits for a click or has ended, for some seconds at most.
    pub(crate) async fn settle(&self, page: &str, id: Option<&str>) {
        let Some(trial) = id.filter(|_| page == PAGE).and_then(|id| self.find(id)) else { return };
        let mut changed = trial.changed.subscribe();
        let settled = changed.wait_for(|()| trial.is_settled());
        // Its end by the time limit is a state too.
        let _ = tokio::time::timeout(MAX_PAGE_WAIT, settled).await;
    }

    /// Ends the calls that wait for a click.
    pub(crate) fn stop_waiting(&self) {
        self.all().iter().filter(|trial| !trial.state().questions.is_empty()).for_each(|trial| trial.stop.cancel());
    }

    /// Ends all calls, and waits for their records.
    pub(crate) async fn end(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        // A record that cannot be written for so long is lost with the program.
        let _ = tokio::time::timeout(LAST_RECORDS, self.0.tasks.wait()).await;
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Trial>> {
        self.all().iter().find(|trial| trial.id == id).cloned()
    }

    pub(super) fn all(&self) -> MutexGuard<'_, VecDeque<Arc<Trial>>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn invocations(&self) -> MutexGuard<'_, HashMap<String, Arc<Trial>>> {
        self.0.invocations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trial {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and tells the pages that wait for it.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.send_replace(());
        changed
    }

    /// Adds a question, and returns its number.
    pub(super) fn ask(&self, kind: QuestionKind) -> u64 {
        self.change(|state| {
            state.asked += 1;
            state.questions.push(Question { number: state.asked, kind });
            state.asked
        })
    }

    /// Takes a question, which is answered or no longer asked.
    pub(super) fn take(&self, number: u64) -> Option<QuestionKind> {
        self.change(|state| {
            if state.outcome.is_some() {
                return None;
            }
            let at = state.questions.iter().position(|question| question.number == number)?;
            Some(state.questions.remove(at).kind)
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state().outcome.is_some()
    }

    pub(super) fn is_settled(&self) -> bool {
        let state = self.state();
        state.outcome.is_some() || self.question(&state).is_some()
    }

    /// Returns the click for which the call waits. One that is being stopped waits for none, although its question is still there.
    pub(super) fn question<'s>(&self, state: &'s State) -> Option<&'s Question> {
        state.questions.first().filter(|_| !self.stop.is_cancelled())
    }
}
