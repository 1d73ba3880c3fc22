//! Errors of parsing a destination.

use crate::tool::host::HostError;

/// Examples of the syntax for error messages.
const EXAMPLES: &str = "write it like `api.example.com`, `*.example.com:443`, `http://localhost:8080`, `[::1]:8080`, `10.0.0.0/8:443` or `GET,HEAD api.example.com`";

/// Error of parsing a [`Destination`](super::Destination).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a destination: {reason}; {EXAMPLES}")]
pub struct DestinationError {
    text: String,
    reason: DestinationErrorReason,
}

impl DestinationError {
    pub(super) fn new(text: &str, reason: DestinationErrorReason) -> Self {
        Self { text: text.to_owned(), reason }
    }

    /// Returns the part of the text that is wrong.
    pub fn reason(&self) -> DestinationErrorReason {
        self.reason
    }
}

/// Reason why a text is not a [`Destination`](super::Destination).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationErrorReason {
    /// Methods without a host.
    #[error("methods must be followed by a host")]
    MissingHost,
    /// Text before the host that is not a list of methods.
    #[error("the text before the host is not a list of methods such as `GET,HEAD`")]
    Methods,
    /// Method that is never sent.
    #[error("CONNECT and TRACE are never sent")]
    ForbiddenMethod,
    /// Unknown scheme.
    #[error("its scheme is neither `http` nor `https`")]
    Scheme,
    /// IPv6 address without brackets.
    #[error("an IPv6 address must be in brackets")]
    BareIpv6,
    /// Invalid port.
    #[error("its port is not a number from 1 to 65535")]
    Port,
    /// Path.
    #[error("it has a path, and a grant covers a whole host: leave out the path")]
    Path,
    /// Malformed network.
    #[error("its network is not an address with a number of bits")]
    Network,
    /// Wildcard before an IP address.
    #[error("`*.` must be followed by a name")]
    WildcardAddress,
    /// Network with bits set after its prefix.
    #[error("the network has bits set behind its prefix")]
    HostBits,
    /// IPv4 address mapped into IPv6.
    #[error("an IPv4 address must be in IPv4 notation, not IPv6 notation")]
    MappedIpv4,
    /// Invalid host.
    #[error(transparent)]
    Host(#[from] HostError),
}
