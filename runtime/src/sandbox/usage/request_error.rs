//! Why a request was not sent or got no whole answer. The words are for the model: they name no address.

use std::fmt;
use std::sync::Arc;

use crate::error::Outcome;
use crate::sandbox::causes::ByteSize;

/// Maximum number of headers of one message.
pub(in crate::sandbox) const MAX_HEADERS: usize = 128;

/// The end of a request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestError {
    /// The grant is against it.
    Denied(String),
    /// The grant is against what its host leads to.
    Prohibited(String),
    /// The request itself is malformed.
    Rejected(String),
    /// The call has sent as many requests as it may.
    TooMany(usize),
    /// As many requests are under way as may be at once.
    TooManyAtOnce(usize),
    /// The request's body is larger than its cap.
    RequestTooLarge(usize),
    /// The response bodies of the call together are larger than their cap.
    ResponseTooLarge(usize),
    /// The head of a response is larger than its cap.
    HeadTooLarge(usize),
    /// The name leads nowhere, or its name server does not say.
    Name(&'static str),
    /// The far side refused the connection.
    Connect(&'static str),
    /// No way leads to the far side.
    Unreachable(&'static str),
    /// The far side speaks no TLS.
    Tls(&'static str),
    /// The far side could not prove who it is.
    Untrusted(&'static str),
    /// What was waited for took too long.
    Slow(RequestPhase, &'static str),
    /// The far side broke off, or speaks no HTTP.
    Protocol(&'static str),
    /// The response held a secret of this name.
    Secret(Arc<str>),
    /// All guests together hold as many files and connections open as they may.
    NoDescriptors,
    /// What requests are sent with is not to be had on this host.
    Host(String),
}

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestPhase {
    /// The addresses of its host.
    Name,
    /// A connection, and TLS on it.
    Connection,
    /// The head of the response.
    Head,
    /// More of its body.
    Body,
}

impl RequestError {
    /// The word for it in a receipt.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            RequestError::Denied(_) | RequestError::Prohibited(_) => "denied",
            RequestError::Rejected(_) => "rejected",
            RequestError::TooMany(_) | RequestError::TooManyAtOnce(_) => "request-limit",
            RequestError::RequestTooLarge(_) | RequestError::ResponseTooLarge(_) | RequestError::HeadTooLarge(_) => {
                "output-limit"
            }
            RequestError::Name(_) => "dns",
            RequestError::Connect(_) | RequestError::Unreachable(_) => "connect",
            RequestError::Tls(_) => "tls",
            RequestError::Untrusted(_) => "certificate",
            RequestError::Slow(..) => "timeout",
            RequestError::Protocol(_) => "protocol",
            RequestError::Secret(_) => "secret",
            RequestError::NoDescriptors | RequestError::Host(_) => "host",
        }
    }

    /// How a call ends that fails for this reason; `None` where the tool itself made the mistake.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self {
            RequestError::Denied(_) | RequestError::Prohibited(_) | RequestError::Secret(_) => Some(Outcome::Denied),
            RequestError::Rejected(_) => None,
            RequestError::TooMany(_) | RequestError::TooManyAtOnce(_) => Some(Outcome::RequestLimit),
            RequestError::RequestTooLarge(_) | RequestError::ResponseTooLarge(_) | RequestError::HeadTooLarge(_) => {
                Some(Outcome::OutputLimit)
            }
            RequestError::NoDescriptors => Some(Outcome::Busy),
            _ => Some(Outcome::Upstream),
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Denied(reason) | RequestError::Prohibited(reason) => {
                write!(f, "a request was denied: {reason}")
            }
            RequestError::Rejected(reason) => write!(f, "a request was rejected: {reason}"),
            RequestError::TooMany(max) => write!(f, "tool wanted more than {max} requests"),
            RequestError::TooManyAtOnce(max) => write!(f, "tool wanted more than {max} requests at once"),
            RequestError::RequestTooLarge(max) => {
                write!(f, "tool sent more than {} in one request", ByteSize(*max as u64))
            }
            RequestError::ResponseTooLarge(max) => {
                write!(f, "tool was sent more than {} in responses", ByteSize(*max as u64))
            }
            RequestError::HeadTooLarge(max) => {
                let max = ByteSize(*max as u64);
                write!(f, "tool was sent a head of more than {max} or {MAX_HEADERS} headers")
            }
            RequestError::Name(reason)
            | RequestError::Connect(reason)
            | RequestError::Tls(reason)
            | RequestError::Untrusted(reason)
            | RequestError::Unreachable(reason)
            | RequestError::Slow(_, reason)
            | RequestError::Protocol(reason) => write!(f, "a request failed: {reason}"),
            RequestError::Secret(name) => write!(f, "a response held the secret `{name}`"),
            RequestError::NoDescriptors => f.write_str("too many files and connections are open; call again later"),
            RequestError::Host(reason) => write!(f, "a request failed: {reason}"),
        }
    }
}

impl std::error::Error for RequestError {}
