//! Reasons why a server cannot be used, in words for people and models. The text of a server is shortened and quoted.

use std::fmt;

use toolcrib::remote::RemoteError;
use toolcrib::{Outcome, ToolError};
use toolcrib_base::render::{one_line, shortened};

/// Maximum characters shown of a server's text.
const MAX_SHOWN: usize = 300;

/// Reason why an exchange with a server failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The gate did not send the request, or got no whole response.
    Gate(ToolError),
    /// The server requires a token, or refused the one that it got.
    Unauthorized {
        /// Header `WWW-Authenticate`, if it has one.
        challenge: Option<String>,
    },
    /// The server refused the request with this header.
    Forbidden {
        /// Header `WWW-Authenticate`, if it has one.
        challenge: Option<String>,
    },
    /// The server redirects to another address, which is not followed.
    Redirected(String),
    /// The server answered with a status of HTTP that is no success, and with a reason if it gave one.
    Status(u16, Option<String>),
    /// The server does not know the conversation any more.
    Forgotten,
    /// The server speaks other revisions of the protocol.
    Revision(Vec<String>),
    /// The server answered a request with an error.
    Refused {
        /// Method of the request.
        method: &'static str,
        /// Code of the error.
        code: i64,
        /// Message of the server.
        message: String,
    },
    /// The server wants answers from the user or a model, which it does not get.
    WantsInput(String),
    /// The server sent something that breaks the protocol.
    Foreign(String),
    /// The server sent more than is read.
    TooMuch(String),
}

impl Fault {
    /// Creates the fault of an answer that breaks the protocol.
    pub(super) fn foreign(what: impl Into<String>) -> Self {
        Self::Foreign(what.into())
    }

    /// Returns the outcome of a call that ends with the fault.
    fn outcome(&self) -> Outcome {
        match self {
            Self::Gate(error) => error.outcome,
            Self::Refused { .. } | Self::WantsInput(_) => Outcome::Failed,
            Self::TooMuch(_) => Outcome::OutputLimit,
            _ => Outcome::Upstream,
        }
    }
}

impl From<ToolError> for Fault {
    fn from(error: ToolError) -> Self {
        Self::Gate(error)
    }
}

impl From<Fault> for RemoteError {
    fn from(fault: Fault) -> Self {
        let error = match &fault {
            Fault::Gate(error) => error.clone(),
            other => ToolError::new(other.outcome(), other.to_string()),
        };
        match fault {
            Fault::Unauthorized { .. } => Self::Unauthorized(error),
            _ => Self::Failed(error),
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate(error) => f.write_str(&error.message),
            Self::Unauthorized { .. } => f.write_str("the server requires a valid token"),
            Self::Forbidden { challenge } => {
                f.write_str("the server refused the request with the status 403")?;
                match challenge {
                    Some(challenge) => write!(f, ": `{}`", shown(challenge)),
                    None => Ok(()),
                }
            }
            Self::Redirected(to) => {
                write!(f, "the server redirects to `{}`, which is not followed", shown(to))
            }
            Self::Status(status, None) => write!(f, "the server answered with the status {status}"),
            Self::Status(status, Some(reason)) => {
                write!(f, "the server answered with the status {status}: {}", shown(reason))
            }
            Self::Forgotten => f.write_str("the server has forgotten the conversation"),
            Self::Revision(versions) if versions.is_empty() => {
                f.write_str("the server speaks no revision of the protocol that this program knows")
            }
            Self::Revision(versions) => {
                write!(f, "the server speaks other revisions of the protocol: {}", shown(&versions.join(", ")))
            }
            Self::Refused { method, code, message } => {
                write!(f, "the server refused `{method}` ({code}): {}", shown(message))
            }
            Self::WantsInput(what) => {
                write!(f, "the server asks the client for {}, which it does not get", shown(what))
            }
            Self::Foreign(what) => write!(f, "the server broke the protocol: {}", shown(what)),
            Self::TooMuch(what) => write!(f, "the server sent too much: {}", shown(what)),
        }
    }
}

/// Shortens a text of the server for a message.
pub(super) fn shown(text: &str) -> String {
    one_line(&shortened(text.trim(), MAX_SHOWN))
}
