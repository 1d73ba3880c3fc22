//! Reasons why a request was not sent or not answered completely. The texts are for the model; they contain no address.

use std::fmt;
use std::sync::Arc;

use crate::error::Outcome;
use crate::sandbox::causes::ByteSize;

/// Maximum number of headers per message.
pub(in crate::sandbox) const MAX_HEADERS: usize = 128;

/// Error of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestError {
    /// The grant denies the request.
    Denied(String),
    /// The grant denies the addresses of the host.
    Prohibited(String),
    /// The request is malformed.
    Rejected(String),
    /// The call has sent its maximum number of requests.
    TooMany(usize),
    /// The call has its maximum number of active requests.
    TooManyAtOnce(usize),
    /// Too many requests wait for the answer about their call, or with too many bytes.
    TooManyHeld,
    /// The request's body exceeds its limit.
    RequestTooLarge(usize),
    /// The response bodies of the call together exceed their limit.
    ResponseTooLarge(usize),
    /// The head of the response exceeds its limit.
    HeadTooLarge(usize),
    /// The name has no address, or the name server did not answer.
    Name(&'static str),
    /// The server refused the connection.
    Connect(&'static str),
    /// The server is unreachable.
    Unreachable(&'static str),
    /// The server does not agree on TLS.
    Tls(&'static str),
    /// The certificate of the server is not trusted.
    Untrusted(&'static str),
    /// A phase of the request exceeded its timeout.
    Slow(RequestPhase, &'static str),
    /// The server closed the connection early, or does not speak HTTP/1.1.
    Protocol(&'static str),
    /// The response contained the secret of this name.
    Secret(Arc<str>),
    /// All guests together hold their maximum number of files and connections open.
    NoDescriptors,
    /// The host's TLS or resolver configuration is unusable.
    Host(String),
}

/// Phase of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestPhase {
    /// Lookup of the host's addresses.
    Name,
    /// Connection and TLS handshake.
    Connection,
    /// Head of the response.
    Head,
    /// Body of the response.
    Body,
}

impl RequestError {
    /// Returns the name of the error in a receipt.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            RequestError::Denied(_) | RequestError::Prohibited(_) => "denied",
            RequestError::Rejected(_) => "rejected",
            RequestError::TooMany(_) | RequestError::TooManyAtOnce(_) | RequestError::TooManyHeld => "request-limit",
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

    /// Returns the outcome for a call that fails because of this error; `None` if the tool made the mistake itself.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self {
            RequestError::Denied(_) | RequestError::Prohibited(_) | RequestError::Secret(_) => Some(Outcome::Denied),
            RequestError::Rejected(_) => None,
            RequestError::TooMany(_) | RequestError::TooManyAtOnce(_) | RequestError::TooManyHeld => {
                Some(Outcome::RequestLimit)
            }
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
            RequestError::TooMany(max) => write!(f, "tool attempted more than {max} requests"),
            RequestError::TooManyAtOnce(max) => write!(f, "tool attempted more than {max} requests at once"),
            RequestError::TooManyHeld => f.write_str("more requests are held back than one answer can be about"),
            RequestError::RequestTooLarge(max) => {
                write!(f, "tool sent more than {} in one request", ByteSize(*max as u64))
            }
            RequestError::ResponseTooLarge(max) => {
                write!(f, "tool received more than {} in responses", ByteSize(*max as u64))
            }
            RequestError::HeadTooLarge(max) => {
                let max = ByteSize(*max as u64);
                write!(f, "tool received response headers of more than {max}, or more than {MAX_HEADERS} of them")
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
