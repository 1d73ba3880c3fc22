//! Why a request was not sent or got no whole answer. The words are for the model: they name no address.

use std::fmt;
use std::sync::Arc;

use crate::error::Outcome;
use crate::sandbox::trap::Bytes;

use super::headers::MAX_HEADERS;

/// The end of a request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
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
    Slow(Phase, &'static str),
    /// The far side broke off, or speaks no HTTP.
    Protocol(&'static str),
    /// The response held a secret of this name.
    Secret(Arc<str>),
    /// All guests together hold as many files and connections open as they may.
    NoPlace,
    /// What requests are sent with is not to be had on this host.
    Host(String),
}

/// What a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The addresses of its host.
    Name,
    /// A connection, and TLS on it.
    Connection,
    /// The head of the response.
    Head,
    /// More of its body.
    Body,
}

impl Fault {
    /// The word for it in a receipt.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Fault::Denied(_) | Fault::Prohibited(_) => "denied",
            Fault::Rejected(_) => "rejected",
            Fault::TooMany(_) | Fault::TooManyAtOnce(_) => "request-limit",
            Fault::RequestTooLarge(_) | Fault::ResponseTooLarge(_) | Fault::HeadTooLarge(_) => "output-limit",
            Fault::Name(_) => "dns",
            Fault::Connect(_) | Fault::Unreachable(_) => "connect",
            Fault::Tls(_) => "tls",
            Fault::Untrusted(_) => "certificate",
            Fault::Slow(..) => "timeout",
            Fault::Protocol(_) => "protocol",
            Fault::Secret(_) => "secret",
            Fault::NoPlace | Fault::Host(_) => "host",
        }
    }

    /// How a call ends that fails for this reason; `None` where the tool itself made the mistake.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self {
            Fault::Denied(_) | Fault::Prohibited(_) | Fault::Secret(_) => Some(Outcome::Denied),
            Fault::Rejected(_) => None,
            Fault::TooMany(_) | Fault::TooManyAtOnce(_) => Some(Outcome::RequestLimit),
            Fault::RequestTooLarge(_) | Fault::ResponseTooLarge(_) | Fault::HeadTooLarge(_) => {
                Some(Outcome::OutputLimit)
            }
            Fault::NoPlace => Some(Outcome::Busy),
            _ => Some(Outcome::Upstream),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Denied(why) | Fault::Prohibited(why) => write!(f, "a request was denied: {why}"),
            Fault::Rejected(why) => write!(f, "a request was rejected: {why}"),
            Fault::TooMany(most) => write!(f, "tool wanted more than {most} requests"),
            Fault::TooManyAtOnce(most) => write!(f, "tool wanted more than {most} requests at once"),
            Fault::RequestTooLarge(most) => write!(f, "tool sent more than {} in one request", Bytes(*most as u64)),
            Fault::ResponseTooLarge(most) => write!(f, "tool was sent more than {} in responses", Bytes(*most as u64)),
            Fault::HeadTooLarge(most) => {
                let most = Bytes(*most as u64);
                write!(f, "tool was sent a head of more than {most} or {MAX_HEADERS} headers")
            }
            Fault::Name(why)
            | Fault::Connect(why)
            | Fault::Tls(why)
            | Fault::Untrusted(why)
            | Fault::Unreachable(why)
            | Fault::Slow(_, why)
            | Fault::Protocol(why) => write!(f, "a request failed: {why}"),
            Fault::Secret(name) => write!(f, "a response held the secret `{name}`"),
            Fault::NoPlace => f.write_str("too many files and connections are open; call again later"),
            Fault::Host(why) => write!(f, "a request failed: {why}"),
        }
    }
}

impl std::error::Error for Fault {}
