//! A secret that a tool asks for by its name: into requests to which host its value would be put, and where in them.
//! Values are no part of it.

use std::fmt;
use std::str::FromStr;

use super::destination::{Scheme, port};
use super::host::Host;

/// The longest name of a secret.
const MAX_NAME_LEN: usize = 64;
/// What marks the place of the value in a format.
pub const SLOT: &str = "{}";
/// Headers that make a request what it is. A value in one of them would change where it goes or how it is read.
const FRAMING: [&str; 12] = [
    "host",
    "connection",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "accept-encoding",
    "te",
    "trailer",
    "upgrade",
    "keep-alive",
    "expect",
    "range",
];

/// One secret, for one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretRequest {
    /// The name under which an operator keeps it.
    pub name: String,
    /// The host that gets it.
    pub host: SecretHost,
    /// Where in a request to that host.
    pub placement: Placement,
}

impl SecretRequest {
    /// The capability in words, `secret:NAME@HOST#PLACE`, such as `secret:github@api.github.com#header:authorization`.
    pub fn capability(&self) -> String {
        format!("secret:{}", self.full())
    }

    /// Name, host and place as a flag names them, `NAME@HOST#PLACE`.
    pub fn full(&self) -> String {
        format!("{}@{}#{}", self.name, self.host, self.placement.place())
    }
}

/// Where in a request a secret is put. The guest's own values there are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// In a header.
    Header {
        /// Its name, lower case.
        name: String,
        /// Its value, in which `{}` is the secret's.
        format: String,
    },
    /// In a parameter of the query.
    Query {
        /// Its name.
        name: String,
    },
}

impl Placement {
    /// A header whose value is `format` with the secret in the place of `{}`.
    ///
    /// # Errors
    ///
    /// A text, where the name is no header that may carry a secret or has other characters than letters, digits, `_` and
    /// `-`, so that a flag with it means nothing else to a shell; or the format has not exactly one `{}`.
    pub fn header(name: &str, format: &str) -> Result<Self, String> {
        let lower = name.to_ascii_lowercase();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if !lower.bytes().all(plain) || http::HeaderName::from_bytes(lower.as_bytes()).is_err() {
            return Err(format!("{name:?} is not the name of a header: letters, digits, `_` and `-`"));
        }
        if FRAMING.contains(&lower.as_str()) || lower.starts_with("proxy-") {
            return Err(format!("the header `{lower}` is set by the host and cannot carry a secret"));
        }
        if format.matches(SLOT).count() != 1 || http::HeaderValue::from_str(format).is_err() {
            return Err(format!(
                "{format:?} is not a valid format: one line with one `{SLOT}`, such as \"Bearer {SLOT}\""
            ));
        }
        Ok(Self::Header { name: lower, format: format.to_owned() })
    }

    /// A parameter of the query.
    ///
    /// # Errors
    ///
    /// A text, where the name is empty or has other characters than letters, digits, `.`, `_` and `-`.
    pub fn query(name: &str) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(format!("{name:?} is not the name of a parameter: letters, digits, `.`, `_` and `-`"));
        }
        Ok(Self::Query { name: name.to_owned() })
    }

    /// The place alone, `header:NAME` or `query:NAME`.
    pub fn place(&self) -> String {
        match self {
            Placement::Header { name, .. } => format!("header:{name}"),
            Placement::Query { name } => format!("query:{name}"),
        }
    }

    /// A place as a flag names it. Its format is no part of it.
    ///
    /// # Errors
    ///
    /// A text, where it is neither `header:NAME` nor `query:NAME`, or nothing may stand there.
    pub fn at(place: &str) -> Result<Self, String> {
        match place.split_once(':') {
            Some(("header", name)) => Self::header(name, SLOT),
            Some(("query", name)) => Self::query(name),
            _ => Err(format!("{place:?} is not a place in a request; write `header:NAME` or `query:NAME`")),
        }
    }

    /// Whether both are one place of a request, whatever is written around the secret there.
    pub fn shares_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Placement::Header { name: one, .. }, Placement::Header { name: other, .. })
            | (Placement::Query { name: one }, Placement::Query { name: other }) => one == other,
            _ => false,
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Header { name, .. } => write!(f, "header {name}"),
            Placement::Query { name } => write!(f, "query {name}"),
        }
    }
}

/// The one host that gets a secret: by TLS under its name or address, or without TLS on this very machine.
///
/// Written `HOST`, `HOST:PORT` or with `https://` before it; `http://127.0.0.1:PORT` and `http://[::1]:PORT` are without
/// TLS. The port is 443, or 80 without TLS, where none is written. There are no wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretHost {
    scheme: Scheme,
    host: Host,
    port: u16,
}

impl SecretHost {
    /// Whether a request goes to it.
    pub fn is(&self, scheme: Scheme, host: &Host, port: u16) -> bool {
        (self.scheme, &self.host, self.port) == (scheme, host, port)
    }
}

impl FromStr for SecretHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?} is not a valid host for a secret: {why}");
        let (scheme, authority) = match text.split_once("://") {
            None => (Scheme::Https, text),
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(_) => return Err(wrong("its scheme is neither `http` nor `https`")),
        };
        // A colon in brackets belongs to an address.
        let (host, written) = match authority.rsplit_once(':').filter(|(_, behind)| !behind.contains(']')) {
            Some((host, written)) => (host, Some(written)),
            None => (authority, None),
        };
        let port = written.map_or(Some(scheme.port()), port);
        let port = port.ok_or_else(|| wrong("its port is not a number from 1 to 65535"))?;
        let host = Host::read(host).map_err(wrong)?;
        let is_loopback = matches!(&host, Host::Address(address) if address.is_loopback());
        if scheme == Scheme::Http && !is_loopback {
            let why = "without TLS it could be read on the way; only a loopback address such as `http://127.0.0.1:8080` needs none";
            return Err(wrong(why));
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

/// Whether a text may name a secret: `[a-z0-9][a-z0-9_-]*`, at most 64 characters.
pub fn is_secret_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= MAX_NAME_LEN
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|byte| plain(byte) || b"_-".contains(&byte))
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
            ("10.0.0.1", "10.0.0.1"),
            ("[2001:DB8::1]:1", "[2001:db8::1]:1"),
        ] {
            assert_eq!(text.parse::<SecretHost>().unwrap().to_string(), shown);
        }
        let host: SecretHost = "api.github.com".parse().unwrap();
        let is = |scheme, name: &str, port| host.is(scheme, &Host::read(name).unwrap(), port);
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
            "http://localhost",
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
    fn a_header_that_frames_a_request_carries_no_secret() {
        assert!(Placement::header("Authorization", "Bearer {}").is_ok());
        for (name, format) in [
            ("Host", "{}"),
            ("Proxy-Authorization", "{}"),
            ("a b", "{}"),
            ("x-`reboot`", "{}"),
            ("x$y", "{}"),
            ("", "{}"),
            ("x", "none"),
            ("x", "{}{}"),
            ("x", "a\r\nb: {}"),
        ] {
            assert!(Placement::header(name, format).is_err(), "{name}: {format}");
        }
        assert!(
            Placement::query("api_key").is_ok() && Placement::query("a&b").is_err() && Placement::query("").is_err()
        );
    }

    #[test]
    fn a_name_is_plain() {
        assert!(["a", "github", "0-a_b"].into_iter().all(is_secret_name));
        assert!(!["", "A", "-a", "_a", "a b", "a/b", "ä", &"a".repeat(65)].into_iter().any(is_secret_name));
    }
}
