//! Errors of model requests, and whether a retry may help.

use std::time::Duration;

use super::request::Request;
use super::responses::REASONING;

/// Kind of an error in the answer itself.
const UNUSABLE: &str = "unusable-answer";
/// Kind of connection error.
pub(super) const TRANSPORT: &str = "transport";
/// Kind of an error about a time limit.
pub(super) const TIMEOUT: &str = "timeout";
/// Option with the time limit of a server.
const LIMIT: &str = "`model.http_timeout`";

/// Error of a request. Its kind is the status, `timeout`, `transport` or
/// `unusable-answer`.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// A retry may succeed; `asked` is the delay that the server requested.
    Transient { kind: String, reason: String, asked: Option<Duration> },
    /// A retry will not succeed.
    Permanent { kind: String, reason: String, hint: Option<&'static str> },
    /// The model does not support a setting.
    Refused { kind: String, setting: Setting },
    /// The program's own output cannot be written.
    Output(anyhow::Error),
}

impl RequestError {
    /// Creates an error after which a retry may succeed.
    pub(crate) fn transient(reason: impl Into<String>) -> Self {
        Self::Transient { kind: UNUSABLE.into(), reason: reason.into(), asked: None }
    }

    /// Creates an error about an answer that does not begin, or does not end if it is not streamed.
    pub(crate) fn timed_out(timeout: Duration) -> Self {
        let reason = format!("no answer within {timeout:?}, the limit of {LIMIT}");
        Self::Transient { kind: TIMEOUT.into(), reason, asked: None }
    }

    /// Creates an error about an answer that has begun and stopped.
    pub(crate) fn stalled(timeout: Duration) -> Self {
        let reason = format!("the answer stopped: nothing more within {timeout:?}, the limit of {LIMIT}");
        Self::Transient { kind: TIMEOUT.into(), reason, asked: None }
    }

    /// Creates an error about a stream that does not end. It is not requested again.
    pub(crate) fn endless(limit: Duration) -> Self {
        let reason = format!("the answer did not end within {limit:?}, the limit of a stream or a longer {LIMIT}");
        Self::Permanent { kind: TIMEOUT.into(), reason, hint: None }
    }

    /// Returns the error for an answer that has shown text. One that stalled is not requested again: each attempt could
    /// take the whole limit and the tokens of the answer once more, and the text would be void. The conversation goes on from it.
    pub(crate) fn after_text(self) -> Self {
        match self {
            Self::Transient { kind, reason, .. } if kind == TIMEOUT => Self::Permanent { kind, reason, hint: None },
            error => error,
        }
    }

    /// Creates an error after which a retry will not succeed.
    pub(crate) fn permanent(reason: impl Into<String>) -> Self {
        Self::Permanent { kind: UNUSABLE.into(), reason: reason.into(), hint: None }
    }

    /// Creates an error for an answer that no model API gives.
    pub(crate) fn foreign(reason: impl Into<String>) -> Self {
        let hint = "the address is probably not the base of a model API: check `--base-url`, `OAI_BASE_URL` or \
                    `OPENAI_BASE_URL`";
        Self::Permanent { kind: UNUSABLE.into(), reason: reason.into(), hint: Some(hint) }
    }

    /// Creates an error about the transport, without the address, which may contain a password.
    pub(crate) fn transport(error: reqwest::Error) -> Self {
        let error = anyhow::Error::from(error.without_url());
        Self::Transient { kind: TRANSPORT.into(), reason: format!("{error:#}"), asked: None }
    }

    /// Returns the error's kind.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Transient { kind, .. } | Self::Permanent { kind, .. } | Self::Refused { kind, .. } => kind,
            Self::Output(_) => "output",
        }
    }
}

impl From<anyhow::Error> for RequestError {
    fn from(error: anyhow::Error) -> Self {
        Self::Output(error)
    }
}

/// An optional setting that some models reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Temperature,
    /// Encrypted reasoning that can be returned to the model.
    Reasoning,
    /// The usage at the end of a stream.
    StreamUsage,
}

impl Setting {
    /// All settings.
    pub(crate) const ALL: [Self; 3] = [Self::Temperature, Self::Reasoning, Self::StreamUsage];

    /// `true` if a request has the setting.
    pub(crate) fn is_in(self, request: &Request<'_>) -> bool {
        match self {
            Self::Temperature => request.sampling.temperature.is_some(),
            Self::Reasoning => request.reasoning,
            Self::StreamUsage => request.stream_usage,
        }
    }

    /// `true` if a lowercase refusal names the setting.
    pub(crate) fn is_named_in(self, refusal: &str) -> bool {
        match self {
            Self::Temperature => refusal.contains("temperature"),
            Self::Reasoning => [REASONING, "encrypted", "include"].iter().any(|word| refusal.contains(word)),
            Self::StreamUsage => refusal.contains("stream_options"),
        }
    }

    /// Removes the setting from a request.
    pub(crate) fn remove_from(self, request: &mut Request<'_>) {
        match self {
            Self::Temperature => request.sampling.temperature = None,
            Self::Reasoning => request.reasoning = false,
            Self::StreamUsage => request.stream_usage = false,
        }
    }
}
