//! Why an attempt to ask a model gave no answer, and whether another one could.

use std::time::Duration;

/// What is wrong with an answer that arrived and is none.
const UNUSABLE: &str = "unusable-answer";

/// Why an attempt gave no answer. Its kind is one word of few: the status, `timeout`, `transport` or
/// `unusable-answer`.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Another attempt may succeed; the server may say when.
    Passing { kind: String, reason: String, asked: Option<Duration> },
    /// No attempt will succeed.
    Lasting { kind: String, reason: String, hint: Option<&'static str> },
    /// The model takes no temperature.
    Temperature,
    /// Our own output cannot be written.
    Output(anyhow::Error),
}

impl Fault {
    /// Something that may pass by itself.
    pub(crate) fn passing(reason: impl Into<String>) -> Self {
        Self::Passing { kind: UNUSABLE.into(), reason: reason.into(), asked: None }
    }

    /// Nothing came in time.
    pub(crate) fn late(timeout: Duration) -> Self {
        Self::Passing { kind: "timeout".into(), reason: format!("no answer within {timeout:?}"), asked: None }
    }

    /// Something that will not.
    pub(crate) fn lasting(reason: impl Into<String>) -> Self {
        Self::Lasting { kind: UNUSABLE.into(), reason: reason.into(), hint: None }
    }

    /// What failed in the transport, without the address: it may hold a password.
    pub(crate) fn transport(error: reqwest::Error) -> Self {
        let error = anyhow::Error::from(error.without_url());
        Self::Passing { kind: "transport".into(), reason: format!("{error:#}"), asked: None }
    }

    /// Its kind.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Passing { kind, .. } | Self::Lasting { kind, .. } => kind,
            Self::Temperature => "400",
            Self::Output(_) => "output",
        }
    }
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        Self::Output(error)
    }
}
