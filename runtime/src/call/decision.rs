//! Decisions about calls, with stable names for who decided and why.

use serde::Serialize;

/// Behavior that a rule requires, and outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Behavior {
    /// The call may run.
    Allow,
    /// A person must approve the call.
    Ask,
    /// The call is refused.
    Deny,
}

impl Behavior {
    /// Returns the name used in rules and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Behavior::Allow => "allow",
            Behavior::Ask => "ask",
            Behavior::Deny => "deny",
        }
    }
}

/// A decision about one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Decision {
    /// Outcome of the decision; [`Behavior::Ask`] only while a person is asked.
    pub behavior: Behavior,
    /// Origin of the decision, with a stable name.
    pub reason: Reason,
    /// Rule, hook or resource on which the decision rests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rests_on: Option<String>,
}

/// Origin of a decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// No rule matches the call: it may run inside its grant.
    Default,
    /// A rule of the operator.
    Rule,
    /// The tool's definition requires an approval.
    Record,
    /// An argument names a file or host outside the grant.
    Grant,
    /// A hook.
    Hook,
    /// A hook that failed.
    HookFailed,
    /// A person approved this call.
    Once,
    /// A person approved such calls for the session.
    Session,
    /// A person approved such calls until the program changes.
    Always,
    /// A person refused the call.
    Refused,
    /// Nobody is available to approve the call.
    Nobody,
    /// A budget is used up, or another observer of the calls refuses more.
    Budget,
}

impl Reason {
    /// Returns the name used in receipts and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Default => "default",
            Reason::Rule => "rule",
            Reason::Record => "record",
            Reason::Grant => "grant",
            Reason::Hook => "hook",
            Reason::HookFailed => "hook-failed",
            Reason::Once => "once",
            Reason::Session => "session",
            Reason::Always => "always",
            Reason::Refused => "refused",
            Reason::Nobody => "nobody",
            Reason::Budget => "budget",
        }
    }
}

impl Decision {
    /// Creates a decision that rests on something with a name.
    pub(crate) fn new(behavior: Behavior, reason: Reason, rests_on: impl Into<String>) -> Self {
        Self { behavior, reason, rests_on: Some(rests_on.into()) }
    }

    /// Returns the decision about a call that no rule matches.
    pub(crate) fn default() -> Self {
        Self { behavior: Behavior::Allow, reason: Reason::Default, rests_on: None }
    }
}
