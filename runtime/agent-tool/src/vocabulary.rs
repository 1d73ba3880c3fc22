//! Vocabularies of the records, as far as they apply here. The standard lists 20 states of an invocation, 11 statuses of a
//! result, 22 classes of errors and 27 types of events; the others do not occur in this runtime, since no call asks its
//! caller for more input, returns partial results, or runs in the background.

use serde::Serialize;
use toolcrib::Outcome;
use toolcrib::call::{Decision, Reason};

/// State of an invocation. The states from [`State::Denied`] on can be its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Received from a front end.
    Planned,
    /// Tool found.
    Selected,
    /// Arguments valid by the schema and by the rules over values.
    ArgumentsReady,
    /// Hooks run before the tool.
    PreHooksRunning,
    /// Waiting for a person's decision.
    AwaitingApproval,
    /// Allowed by default, by a rule or by a person.
    Approved,
    /// Waiting for its turn.
    Queued,
    /// Tool running.
    Running,
    /// Hooks run after the tool.
    PostHooksRunning,
    /// Refused by a rule, the grant, the tool's own definition or a person.
    Denied,
    /// Arguments invalid; the tool was not started.
    ValidationFailed,
    /// Not run, or its answer withheld, for another reason: a hook, too many calls, a schema that is not loaded, no audit log.
    Blocked,
    /// Tool answered.
    Succeeded,
    /// Unknown tool, or no answer.
    Failed,
    /// Caller gone, or another call of the step failed.
    Canceled,
    /// Deadline exceeded.
    TimedOut,
}

/// Status of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Tool answered.
    Succeeded,
    /// No answer.
    Failed,
    /// Call refused by a rule, the grant, the tool's own definition or a hook.
    Denied,
    /// Call refused by a person, or no person available to ask.
    Rejected,
    /// Answer withheld by a hook.
    Redacted,
    /// Answer larger than its limit.
    TooLarge,
    /// Caller gone.
    Canceled,
    /// Deadline exceeded.
    TimedOut,
    /// Tool not started because another call of the step failed; the host made the result.
    SyntheticError,
}

/// Class of the error in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// Unknown tool name.
    UnknownTool,
    /// Arguments invalid by the schema or by the rules over values.
    InvalidArguments,
    /// Deferred tool that the model has not searched for.
    SchemaNotLoaded,
    /// Refused by the grant or by the tool's own definition.
    PermissionDenied,
    /// Tool not set up.
    SetupRequired,
    /// Required environment variable not granted.
    CredentialMissing,
    /// Refused by a rule of the operator.
    PolicyBlocked,
    /// Refused by a person, or no person available to ask.
    ApprovalRejected,
    /// Call blocked by a hook, or a hook failed.
    HookBlocked,
    /// Answer withheld by a hook.
    ResultRedacted,
    /// Limit of the sandbox exceeded: memory, stack, fuel, handles or requests.
    SandboxViolation,
    /// Deadline exceeded.
    Timeout,
    /// Too many waiting calls.
    RateLimited,
    /// Program or audit log unavailable, or a remote host failed.
    DependencyUnavailable,
    /// Tool failed, or violated its contract.
    ExecutionFailed,
    /// Answer larger than its limit.
    ResultTooLarge,
    /// Another call of the step failed.
    SiblingCanceled,
    /// Caller gone.
    Canceled,
}

/// Remedy for a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recoverability {
    /// Another tool.
    ChangeTool,
    /// Other arguments.
    ChangeArguments,
    /// Other arguments, or other permissions.
    ChangeArgumentsOrPolicy,
    /// A search for the tool.
    DiscoverFirst,
    /// The same call again, later.
    Retry,
    /// No remedy by the model.
    None,
}

/// Type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum EventType {
    /// Call received.
    #[serde(rename = "tool.invocation.planned")]
    Planned,
    /// Tool found.
    #[serde(rename = "tool.invocation.selected")]
    Selected,
    /// Arguments valid.
    #[serde(rename = "tool.invocation.arguments_ready")]
    ArgumentsReady,
    /// Arguments invalid.
    #[serde(rename = "tool.invocation.validation_failed")]
    ValidationFailed,
    /// Hook before the call completed.
    #[serde(rename = "tool.hook.pre.completed")]
    PreHookCompleted,
    /// Hook after the call completed.
    #[serde(rename = "tool.hook.post.completed")]
    PostHookCompleted,
    /// Person asked for permission.
    #[serde(rename = "tool.permission.requested")]
    PermissionRequested,
    /// Permission decided.
    #[serde(rename = "tool.permission.decided")]
    PermissionDecided,
    /// Call queued.
    #[serde(rename = "tool.invocation.queued")]
    Queued,
    /// Tool started.
    #[serde(rename = "tool.invocation.started")]
    Started,
    /// Part of the answer written.
    #[serde(rename = "tool.invocation.progress")]
    Progress,
    /// Answer stored because it is too long for the model.
    #[serde(rename = "tool.result.persisted")]
    Persisted,
    /// Answer withheld by a hook.
    #[serde(rename = "tool.result.redacted")]
    Redacted,
    /// Result created.
    #[serde(rename = "tool.result.created")]
    ResultCreated,
    /// Call succeeded.
    #[serde(rename = "tool.invocation.succeeded")]
    Succeeded,
    /// Call failed or refused.
    #[serde(rename = "tool.invocation.failed")]
    Failed,
    /// Caller gone, or another call of the step failed.
    #[serde(rename = "tool.invocation.canceled")]
    Canceled,
    /// Deadline exceeded.
    #[serde(rename = "tool.invocation.timed_out")]
    TimedOut,
}

/// Facts about a call at its end, besides its outcome.
pub(super) struct Circumstances<'a> {
    /// `true` if the tool was found.
    pub(super) found: bool,
    /// `true` if the tool was started.
    pub(super) started: bool,
    /// `true` if the tool itself failed, so that a denial is one of its network requests.
    pub(super) failed: bool,
    /// `true` if the failure of another call ended this one.
    pub(super) by_sibling: bool,
    pub(super) decision: Option<&'a Decision>,
}

/// End of a call in the standard's vocabularies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) state: State,
    pub(super) status: Status,
    pub(super) error: Option<(ErrorClass, Recoverability)>,
}

impl End {
    /// Maps an outcome to its end.
    pub(super) fn of(outcome: Outcome, at: &Circumstances<'_>) -> Self {
        use ErrorClass as Class;
        let failed = |class, help| (State::Failed, Status::Failed, Some((class, help)));
        let blocked = |class, help| (State::Blocked, Status::Failed, Some((class, help)));
        let (state, status, error) = match outcome {
            Outcome::Ok => (State::Succeeded, Status::Succeeded, None),
            Outcome::Failed => failed(Class::ExecutionFailed, Recoverability::ChangeArguments),
            Outcome::BadArguments if !at.found => failed(Class::UnknownTool, Recoverability::ChangeTool),
            Outcome::BadArguments => (
                State::ValidationFailed,
                Status::Failed,
                Some((Class::InvalidArguments, Recoverability::ChangeArguments)),
            ),
            Outcome::Denied => Self::denied(at),
            Outcome::SchemaNotLoaded => blocked(Class::SchemaNotLoaded, Recoverability::DiscoverFirst),
            Outcome::Busy => blocked(Class::RateLimited, Recoverability::Retry),
            Outcome::Deadline => (State::TimedOut, Status::TimedOut, Some((Class::Timeout, Recoverability::Retry))),
            Outcome::Fuel
            | Outcome::Memory
            | Outcome::Stack
            | Outcome::Handles
            | Outcome::Quota
            | Outcome::RequestLimit => failed(Class::SandboxViolation, Recoverability::ChangeArguments),
            Outcome::OutputLimit => {
                (State::Failed, Status::TooLarge, Some((Class::ResultTooLarge, Recoverability::ChangeArguments)))
            }
            Outcome::Upstream => failed(Class::DependencyUnavailable, Recoverability::Retry),
            Outcome::BadComponent => failed(Class::DependencyUnavailable, Recoverability::None),
            Outcome::Cancelled if at.by_sibling => (
                State::Canceled,
                if at.started { Status::Canceled } else { Status::SyntheticError },
                Some((Class::SiblingCanceled, Recoverability::Retry)),
            ),
            Outcome::Cancelled => (State::Canceled, Status::Canceled, Some((Class::Canceled, Recoverability::Retry))),
            Outcome::Unlogged => blocked(Class::DependencyUnavailable, Recoverability::None),
            // A bad result or a trap.
            _ => failed(Class::ExecutionFailed, Recoverability::None),
        };
        Self { state, status, error }
    }

    fn denied(at: &Circumstances<'_>) -> (State, Status, Option<(ErrorClass, Recoverability)>) {
        use ErrorClass as Class;
        use Recoverability::{ChangeArgumentsOrPolicy, None};
        if at.failed {
            return (State::Failed, Status::Denied, Some((Class::PermissionDenied, ChangeArgumentsOrPolicy)));
        }
        if at.started {
            return (State::Blocked, Status::Redacted, Some((Class::ResultRedacted, None)));
        }
        match at.decision.map(|decision| decision.reason) {
            Some(Reason::Refused | Reason::Nobody) => {
                (State::Denied, Status::Rejected, Some((Class::ApprovalRejected, None)))
            }
            Some(Reason::Rule) => {
                (State::Denied, Status::Denied, Some((Class::PolicyBlocked, ChangeArgumentsOrPolicy)))
            }
            Some(Reason::Hook | Reason::HookFailed) => {
                (State::Blocked, Status::Denied, Some((Class::HookBlocked, ChangeArgumentsOrPolicy)))
            }
            Some(Reason::Record) => {
                let class = match at.decision.and_then(|decision| decision.rests_on.as_deref()) {
                    Some("requires_setup") => Class::SetupRequired,
                    Some("required_credentials") => Class::CredentialMissing,
                    _ => Class::PermissionDenied,
                };
                (State::Denied, Status::Denied, Some((class, None)))
            }
            _ => (State::Denied, Status::Denied, Some((Class::PermissionDenied, ChangeArgumentsOrPolicy))),
        }
    }

    /// Returns the type of the call's last event.
    pub(super) fn event(&self) -> EventType {
        match self.state {
            State::Succeeded => EventType::Succeeded,
            State::ValidationFailed => EventType::ValidationFailed,
            State::Canceled => EventType::Canceled,
            State::TimedOut => EventType::TimedOut,
            _ => EventType::Failed,
        }
    }
}

/// Returns the authority behind a decision, and the standard's type of its reason.
pub(super) fn authority(reason: Reason) -> (&'static str, &'static str) {
    match reason {
        Reason::Rule => ("operator", "rule"),
        Reason::Record => ("tool", "policy"),
        Reason::Grant => ("operator", "working_dir"),
        Reason::Hook | Reason::HookFailed => ("hook", "hook"),
        Reason::Once | Reason::Session | Reason::Always | Reason::Refused => ("person", "permission_prompt_tool"),
        Reason::Nobody => ("runtime", "mode"),
        _ => ("runtime", "other"),
    }
}
