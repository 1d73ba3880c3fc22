//! The words of the records: of what the standard lists, that which can happen here. It lists 20 states of an
//! invocation, 11 statuses of a result, 22 classes of errors and 27 types of events; the rest has no place in this
//! runtime: no call asks its caller for more input, gives a part of its answer, or runs in the background.

use serde::Serialize;

use crate::call::{Decision, Reason};
use crate::error::Outcome;

/// Where an invocation stands. Those from [`State::Denied`] on may be its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A door has handed it in.
    Planned,
    /// Its tool was found.
    Selected,
    /// Its arguments fit the schema, and its values the rules.
    ArgumentsReady,
    /// Hooks are heard before it runs.
    PreHooksRunning,
    /// A person is being asked.
    AwaitingApproval,
    /// It may run: nothing speaks against it, or a rule or a person agreed.
    Approved,
    /// It waits for its turn.
    Queued,
    /// The tool runs.
    Running,
    /// Hooks are heard about the answer.
    PostHooksRunning,
    /// A rule, the grant, the tool's own record or a person refused it.
    Denied,
    /// Its arguments were wrong; the tool was not started.
    ValidationFailed,
    /// It was not run, or not told, for another reason: a hook, too many calls, a schema that was not loaded, no log.
    Blocked,
    /// The tool answered.
    Succeeded,
    /// There is no such tool, or it ran and gave no answer.
    Failed,
    /// The caller went away, or a call of its step failed.
    Canceled,
    /// Its deadline passed.
    TimedOut,
}

/// How an invocation ended, as its result says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tool answered.
    Succeeded,
    /// There is no answer.
    Failed,
    /// A rule, the grant, the tool's own record or a hook refused the call.
    Denied,
    /// A person refused the call, or there was nobody to ask.
    Rejected,
    /// The tool answered, and a hook withheld it.
    Redacted,
    /// The answer was larger than its cap.
    TooLarge,
    /// The caller went away.
    Canceled,
    /// The deadline passed.
    TimedOut,
    /// The tool was not started, because another call of its step failed: the result was made without it.
    SyntheticError,
}

/// EventKind kind of error a result holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// No tool has this name.
    UnknownTool,
    /// The arguments break the schema or the rules over values.
    InvalidArguments,
    /// The model has to search for the tool first.
    SchemaNotLoaded,
    /// The grant or the tool's own record is against it.
    PermissionDenied,
    /// The tool has to be set up first.
    SetupRequired,
    /// The tool is not granted a variable without which it cannot work.
    CredentialMissing,
    /// A rule of the operator's is against it.
    PolicyBlocked,
    /// A person said no, or there was nobody to ask.
    ApprovalRejected,
    /// A hook blocked the call, or failed.
    HookBlocked,
    /// A hook withheld the answer.
    ResultRedacted,
    /// The guest wanted more than its limits: memory, stack, fuel, handles or requests.
    SandboxViolation,
    /// The deadline passed.
    Timeout,
    /// Too many calls wait already.
    RateLimited,
    /// The program or the audit log cannot be used, or the far side of a request failed.
    DependencyUnavailable,
    /// The tool failed, or broke its contract.
    ExecutionFailed,
    /// The answer was larger than its cap.
    ResultTooLarge,
    /// Another call of its step failed.
    SiblingCanceled,
    /// The caller went away.
    Canceled,
}

/// EventKind could help a call that failed.
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
    /// Nothing that the model can do.
    None,
}

/// EventKind an event tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum EventType {
    /// A door has handed the call in.
    #[serde(rename = "tool.invocation.planned")]
    Planned,
    /// Its tool was found.
    #[serde(rename = "tool.invocation.selected")]
    Selected,
    /// Its arguments are right.
    #[serde(rename = "tool.invocation.arguments_ready")]
    ArgumentsReady,
    /// Its arguments were wrong.
    #[serde(rename = "tool.invocation.validation_failed")]
    ValidationFailed,
    /// A hook was heard before it ran.
    #[serde(rename = "tool.hook.pre.completed")]
    HookedBefore,
    /// A hook was heard about its answer.
    #[serde(rename = "tool.hook.post.completed")]
    HookedAfter,
    /// A person is being asked.
    #[serde(rename = "tool.permission.requested")]
    Asked,
    /// It was decided.
    #[serde(rename = "tool.permission.decided")]
    Decided,
    /// It waits for its turn.
    #[serde(rename = "tool.invocation.queued")]
    Queued,
    /// The tool starts.
    #[serde(rename = "tool.invocation.started")]
    Started,
    /// The tool has written a part of its answer.
    #[serde(rename = "tool.invocation.progress")]
    Progress,
    /// The answer was too long to be told whole.
    #[serde(rename = "tool.result.persisted")]
    Persisted,
    /// A hook withheld the answer.
    #[serde(rename = "tool.result.redacted")]
    Redacted,
    /// There is a result.
    #[serde(rename = "tool.result.created")]
    ResultCreated,
    /// The call succeeded.
    #[serde(rename = "tool.invocation.succeeded")]
    Succeeded,
    /// The call failed or was refused.
    #[serde(rename = "tool.invocation.failed")]
    Failed,
    /// The caller went away, or a call of its step failed.
    #[serde(rename = "tool.invocation.canceled")]
    Canceled,
    /// The deadline passed.
    #[serde(rename = "tool.invocation.timed_out")]
    TimedOut,
}

/// EventKind is known of a call when it ends, beside its outcome.
pub(super) struct Circumstances<'a> {
    pub(super) found: bool,
    pub(super) started: bool,
    /// Whether the tool itself ended as a failure: what was denied then is one of its requests.
    pub(super) failed: bool,
    /// Whether the failure of another call ended this one.
    pub(super) by_sibling: bool,
    pub(super) decision: Option<&'a Decision>,
}

/// The end of a call in the words of the records.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) state: State,
    pub(super) status: Status,
    pub(super) error: Option<(ErrorClass, Recoverability)>,
}

impl End {
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
            Outcome::BadResult | Outcome::Trap => failed(Class::ExecutionFailed, Recoverability::None),
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

    /// The last event of the call.
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

/// Who has a say in decisions, and the standard's word for how.
pub(super) fn authority(reason: Reason) -> (&'static str, &'static str) {
    match reason {
        Reason::Rule => ("operator", "rule"),
        Reason::Record => ("tool", "policy"),
        Reason::Grant => ("operator", "working_dir"),
        Reason::Hook | Reason::HookFailed => ("hook", "hook"),
        Reason::Once | Reason::Session | Reason::Always | Reason::Refused => ("person", "permission_prompt_tool"),
        Reason::Nobody => ("runtime", "mode"),
        Reason::Default => ("runtime", "other"),
    }
}
