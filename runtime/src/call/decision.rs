//! What was decided about a call, by whom and why, in words that do not change.

use serde::Serialize;

/// What a rule wants, and what was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Behavior {
    /// The call may run.
    Allow,
    /// A person has to agree.
    Ask,
    /// The call is refused.
    Deny,
}

impl Behavior {
    /// The word used in rules and records.
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
pub struct Decision {
    /// Whether the call may run; [`Behavior::Ask`] only while a person is asked.
    pub behavior: Behavior,
    /// Who decided, in a word that does not change.
    pub reason: Reason,
    /// The rule, the hook or the resource that it rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rests_on: Option<String>,
}

/// Who decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// No rule is about the call, so it may run inside its grant.
    Default,
    /// A rule of the operator's.
    Rule,
    /// The tool's own record wants a person to agree.
    Record,
    /// The grant: an argument names a file or host outside it.
    Grant,
    /// A hook.
    Hook,
    /// A hook that failed.
    HookFailed,
    /// A person, for this call.
    Once,
    /// A person, for the session.
    Session,
    /// A person, for as long as the program stays as it is.
    Always,
    /// A person, who said no.
    Refused,
    /// There is nobody to ask.
    Nobody,
}

impl Reason {
    /// The word used in receipts and records.
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
        }
    }
}

impl Decision {
    /// A decision that rests on something with a name.
    pub(crate) fn new(behavior: Behavior, reason: Reason, rests_on: impl Into<String>) -> Self {
        Self { behavior, reason, rests_on: Some(rests_on.into()) }
    }

    /// What holds where no rule is about a call.
    pub(crate) fn default() -> Self {
        Self { behavior: Behavior::Allow, reason: Reason::Default, rests_on: None }
    }
}
