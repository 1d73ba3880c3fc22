//! Why an attempt to ask a model gave no answer, and whether another one could.

use std::time::Duration;

/// Why an attempt gave no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Another attempt may succeed; the server may say when.
    Passing { reason: String, asked: Option<Duration> },
    /// No attempt will succeed.
    Lasting { reason: String, hint: Option<&'static str> },
    /// The model takes no temperature.
    Temperature,
    /// Our own output cannot be written.
    Output(anyhow::Error),
}

impl Fault {
    /// Something that may pass by itself.
    pub(crate) fn passing(reason: impl Into<String>) -> Self {
        Self::Passing { reason: reason.into(), asked: None }
    }

    /// Something that will not.
    pub(crate) fn lasting(reason: impl Into<String>) -> Self {
        Self::Lasting { reason: reason.into(), hint: None }
    }

    /// What failed in the transport, without the address: it may hold a password.
    pub(crate) fn transport(error: reqwest::Error) -> Self {
        let error = anyhow::Error::from(error.without_url());
        Self::passing(format!("{error:#}"))
    }
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        Self::Output(error)
    }
}
