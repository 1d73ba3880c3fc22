//! Secret that a tool requests by name: the host that receives it and the placement in the request. Contains no secret
//! values.

mod placement;

use std::fmt;
use std::str::FromStr;

use super::destination::{Destination, DestinationError, Scheme, parse_port};
use super::host::{Host, HostError, split_port};

pub use placement::{Placement, PlacementError, SECRET_PLACEHOLDER};

/// Maximum length of a secret's name in characters.
const MAX_NAME_LEN: usize = 64;

/// Request of a tool for one secret, for one host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretRequest {
    /// Name under which the operator stores the secret.
    pub name: String,
    /// Host that receives the secret.
    pub host: SecretHost,
    /// Placement of the secret in a request to that host.
    pub placement: Placement,
}

impl SecretRequest {
    /// Formats the capability as `secret:NAME@HOST#PLACE`, such as `secret:github@api.github.com#header:authorization`.
    pub fn capability(&self) -> String {
        format!("secret:{}", self.flag_value())
    }

    /// Formats name, host and placement as the value of a flag, `NAME@HOST#PLACE`.
    pub fn flag_value(&self) -> String {
        format!("{}@{}#{}", self.name, self.host, self.placement.place())
    }
}

/// Host that receives a secret: over TLS by its name or address, or without TLS on a loopback address.
///
/// Written `HOST`, `HOST:PORT` or with the prefix `https://`; `http://127.0.0.1:PORT` and `http://[::1]:PORT` are without
/// TLS. The default port is 443, or 80 without TLS. Wildcards are not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretHost {
    scheme: Scheme,
    host: Host,
    port: u16,
}

/// Error of parsing a [`SecretHost`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid host for a secret: {reason}")]
pub struct SecretHostError {
    text: String,
    reason: SecretHostErrorReason,
}

impl SecretHostError {
    /// Returns the part of the text that is wrong.
    pub fn reason(&self) -> SecretHostErrorReason {
        self.reason
    }
}

/// Reason why a text is not a [`SecretHost`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretHostErrorReason {
    /// Unknown scheme.
    #[error("its scheme is neither `http` nor `https`")]
    Scheme,
    /// Invalid port.
    #[error("its port is not a number from 1 to 65535")]
    Port,
    /// Plain HTTP to another host than `localhost` or a loopback address.
    #[error("without TLS it could be read on the way; only this machine, such as `http://127.0.0.1:8080`, needs none")]
    Unencrypted,
    /// Invalid host.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl SecretHost {
    /// Returns `true` if a request with this scheme, host and port goes to the secret's host.
    pub fn matches(&self, scheme: Scheme, host: &Host, port: u16) -> bool {
        (self.scheme, &self.host, self.port) == (scheme, host, port)
    }

    /// Returns the name or address of the host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the destination of requests to the host.
    ///
    /// # Errors
    ///
    /// The host is an address that stands for another one.
    pub(super) fn destination(&self) -> Result<Destination, DestinationError> {
        format!("{}://{}:{}", self.scheme.as_str(), self.host, self.port).parse()
    }

    /// Formats the origin, with the port only if it is not the default of the scheme.
    pub(super) fn origin(&self) -> String {
        let port = if self.port == self.scheme.port() { String::new() } else { format!(":{}", self.port) };
        format!("{}://{}{port}", self.scheme.as_str(), self.host)
    }
}

impl FromStr for SecretHost {
    type Err = SecretHostError;

    fn from_str(text: &str) -> Result<Self, SecretHostError> {
        let error = |reason| SecretHostError { text: text.to_owned(), reason };
        let (scheme, authority) = match text.split_once("://") {
            None => (Scheme::Https, text),
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(_) => return Err(error(SecretHostErrorReason::Scheme)),
        };
        let (host, port) = split_port(authority);
        let port = port.map_or(Some(scheme.port()), parse_port);
        let port = port.ok_or_else(|| error(SecretHostErrorReason::Port))?;
        let host = Host::parse(host).map_err(|reason| error(reason.into()))?;
        // Requests to `localhost` leave this machine as little as those to its addresses.
        let is_loopback = match &host {
            Host::Address(address) => address.is_loopback(),
            Host::Name(name) => name == "localhost",
        };
        if scheme == Scheme::Http && !is_loopback {
            return Err(error(SecretHostErrorReason::Unencrypted));
        }
        Ok(Self { scheme, host, port })
    }
}

impl fmt::Display for SecretHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scheme == Scheme::Http {
            f.write_str("http://")?;
        }
        self.host.fmt(f)?;
        if self.port == self.scheme.port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// Returns `true` if the text is a valid name of a secret: `[a-z0-9][a-z0-9_-]*`, at most 64 characters.
pub fn is_secret_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= MAX_NAME_LEN
        && text.bytes().next().is_some_and(is_plain)
        && text.bytes().all(|byte| is_plain(byte) || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_host_however_it_is_written() {
        for (text, shown) in [
            ("api.github.com", "api.github.com"),
            ("https://API.GitHub.com:443", "api.github.com"),
            ("пример.рф:8443", "xn--e1afmkfd.xn--p1ai:8443"),
            ("http://127.0.0.1", "http://127.0.0.1"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://LOCALHOST:3000", "http://localhost:3000"),
            ("10.0.0.1", "10.0.0.1"),
            ("[2001:DB8::1]:1", "[2001:db8::1]:1"),
        ] {
            assert_eq!(text.parse::<SecretHost>().unwrap().to_string(), shown);
        }
        let host: SecretHost = "api.github.com".parse().unwrap();
        let is = |scheme, name: &str, port| host.matches(scheme, &Host::parse(name).unwrap(), port);
        assert!(is(Scheme::Https, "api.github.com", 443));
        for (scheme, name, port) in [
            (Scheme::Http, "api.github.com", 443),
            (Scheme::Https, "api.github.com", 444),
            (Scheme::Https, "api.github.com.evil.example", 443),
            (Scheme::Https, "x.api.github.com", 443),
        ] {
            assert!(!is(scheme, name, port), "{name}");
        }
    }

    #[test]
    fn what_could_be_another_host_is_no_host_for_a_secret() {
        for text in [
            "",
            "*",
            "*.github.com",
            "a/b",
            "a@b",
            "user:pass@host",
            "http://api.github.com",
            "http://10.0.0.1",
            "http://app.localhost",
            "http://localhost.example",
            "a b",
            "a\\b",
            "host.",
            ".host",
            "a..b",
            "1.2.3",
            "0x7f000001",
            "2130706433",
            "0177.0.0.1",
            "127.0.0.01",
            "host:0",
            "host:080",
            "host:65536",
            "host:",
            "::1",
            "[::1",
            "[a]:1",
            "ftp://host",
            "https://",
            "a?b",
            "a#b",
        ] {
            assert!(text.parse::<SecretHost>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_plain() {
        assert!(["a", "github", "0-a_b"].into_iter().all(is_secret_name));
        assert!(!["", "A", "-a", "_a", "a b", "a/b", "ä", &"a".repeat(65)].into_iter().any(is_secret_name));
    }
}
