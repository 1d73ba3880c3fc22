//! Scope of one call: its conversation, its turn in a step, and the call that makes it.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::error::{Outcome, ToolError};
use crate::policy::Grant;
use crate::sandbox::Usage;
use crate::store::results::Results;
use crate::tool::{Body, Service, Tool};

use super::Pipeline;
use super::memory::Memory;
use super::programs::ProgramSessions;
use super::schedule::Turn;
use super::tasks::Tasks;

/// Sender that is notified as soon as nothing refuses the call any more.
pub(crate) type Authorized = Mutex<Option<oneshot::Sender<()>>>;

/// Scope of one call.
pub(crate) struct CallScope<'a> {
    pub(crate) memory: &'a Arc<Memory>,
    /// Background tasks of the conversation.
    pub(crate) tasks: Option<&'a Tasks>,
    /// Sessions of programs in the conversation.
    pub(crate) programs: Option<&'a ProgramSessions>,
    pub(crate) turn: Option<&'a Turn>,
    /// Turn of a call above this one, whose interruption ends the question about what this one has held back.
    pub(crate) turn_above: Option<&'a Turn>,
    /// Sender that waits for the authorization of the call.
    pub(crate) authorized: Option<&'a Authorized>,
    /// Number of agents and tools that have called one another before.
    pub(crate) depth: u32,
    /// Call that makes this one.
    pub(crate) parent: Option<Parent<'a>>,
}

/// A call that makes another one, with the counters of its call tree.
#[derive(Clone, Copy)]
pub(crate) struct Parent<'a> {
    pub(crate) invocation: &'a str,
    /// Grant of the calling tool. `None` for a program of a caller, which may call the tools that the caller may call.
    pub(crate) grant: Option<&'a Grant>,
    pub(crate) usage: &'a Usage,
    pub(crate) tree: &'a Arc<CallTree>,
}

/// Counters of a call and all calls below it.
#[derive(Debug, Default)]
pub(crate) struct CallTree {
    pub(crate) calls: AtomicU64,
    pub(crate) completions: AtomicU64,
}

impl<'a> CallScope<'a> {
    /// Creates the scope of a call outside a step.
    pub(crate) fn alone(memory: &'a Arc<Memory>) -> Self {
        Self::within(memory, None)
    }

    /// Creates the scope of a call with its turn in a step.
    pub(crate) fn within(memory: &'a Arc<Memory>, turn: Option<&'a Turn>) -> Self {
        let (tasks, programs, turn_above, authorized, parent) = (None, None, None, None, None);
        Self { memory, tasks, programs, turn, turn_above, authorized, depth: memory.depth, parent }
    }

    /// Returns the store of the results that the call may read, and that its own belongs to; `None` if there is none.
    pub(crate) fn results(&self, pipeline: &Pipeline) -> Option<Results> {
        pipeline.results.clone().map(|results| results.of_owner(self.memory.owner().cloned()))
    }

    /// Returns `true` for a call of a program, whose results the model does not see.
    pub(crate) fn is_of_program(&self) -> bool {
        self.parent.is_some_and(|parent| parent.grant.is_none())
    }

    /// Notifies the waiting sender that the call is authorized.
    pub(crate) fn notify_authorized(&self) {
        let sender = self.authorized.and_then(|sender| sender.lock().unwrap_or_else(PoisonError::into_inner).take());
        // The receiver may be gone.
        let _ = sender.map(|sender| sender.send(()));
    }
}

impl Parent<'_> {
    /// Checks that the calling tool may call `tool`, under whatever name it called it.
    ///
    /// # Errors
    ///
    /// [`Outcome::Denied`].
    pub(crate) fn may_call(&self, tool: &Tool) -> Result<(), ToolError> {
        if let Body::Builtin(_) = tool.body {
            return Err(ToolError::new(Outcome::Denied, format!("`{}` can be called only by a model", tool.name)));
        }
        let Some(grant) = self.grant else { return Ok(()) };
        grant.rights().check(Service::Call, Some(&tool.name)).map_err(|denial| {
            let hint = denial.flag.as_ref().map(|flag| format!("; allow it with `{flag}`")).unwrap_or_default();
            self.usage.refused(denial);
            ToolError::new(Outcome::Denied, format!("permission denied by the grant{hint}"))
        })
    }
}
