//! Why an attempt to ask a model gave no answer, and whether another one could.

use std::time::Duration;

use super::request::Request;
use super::responses::REASONING;

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
    /// The model has no such setting.
    Refused { kind: String, setting: Setting },
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
            Self::Passing { kind, .. } | Self::Lasting { kind, .. } | Self::Refused { kind, .. } => kind,
            Self::Output(_) => "output",
        }
    }
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        Self::Output(error)
    }
}

/// A part of a request that not every model takes, and without which the rest is worth asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Temperature,
    /// The wish for reasoning that can be given back.
    Reasoning,
}

impl Setting {
    pub(crate) const ALL: [Self; 2] = [Self::Temperature, Self::Reasoning];

    pub(crate) fn is_in(self, request: &Request<'_>) -> bool {
        match self {
            Self::Temperature => request.sampling.temperature.is_some(),
            Self::Reasoning => request.reasoning,
        }
    }

    /// Whether a refusal, in small letters, is about it.
    pub(crate) fn is_meant_by(self, refusal: &str) -> bool {
        match self {
            Self::Temperature => refusal.contains("temperature"),
            Self::Reasoning => [REASONING, "encrypted", "include"].iter().any(|word| refusal.contains(word)),
        }
    }

    pub(crate) fn take_from(self, request: &mut Request<'_>) {
        match self {
            Self::Temperature => request.sampling.temperature = None,
            Self::Reasoning => request.reasoning = false,
        }
    }
}
