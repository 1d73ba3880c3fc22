//! Destinations of requests as a person writes them: methods, scheme, host and port. Implements matching for
//! allowances and denials; sends no requests.

mod error;
mod host_pattern;

use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;

use super::host::{Host, split_port};

pub use error::{DestinationError, DestinationErrorReason};
use host_pattern::HostPattern;

/// Maximum length of a method in characters.
const MAX_METHOD_LEN: usize = 32;

/// Destination of requests: `[METHOD[,METHOD…] ][http://|https://]HOST[:PORT]`.
///
/// `HOST` is a name, `*.NAME` for every name below it, an IPv4 address, an IPv6 address in brackets, a network such as
/// `10.0.0.0/8` or `[fd00::/8]`, or `*` for every name. An allowance without a scheme and a port means `https` on port
/// 443; with a port alone it means both schemes on that port; with a scheme alone it means the default port of the
/// scheme. A denial covers everything that it does not specify: every port, both schemes, every method.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    methods: Vec<String>,
    scheme: Option<Scheme>,
    host: HostPattern,
    port: Option<u16>,
}

/// Scheme of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// HTTP without encryption.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// Returns the scheme as written in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// Returns the default port of the scheme.
    pub fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl Destination {
    /// Returns the destination that covers every host. As a denial it denies all requests.
    pub fn everything() -> Self {
        Self { methods: Vec::new(), scheme: None, host: HostPattern::Any, port: None }
    }

    /// Parses destinations separated by commas. A comma after a method continues the list of methods:
    /// `GET,HEAD a.example,b.example` contains two destinations.
    ///
    /// # Errors
    ///
    /// [`DestinationError`] of the first invalid destination.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, DestinationError> {
        let mut methods = String::new();
        let mut destinations = Vec::new();
        for part in text.split(',') {
            if is_method(part.trim()) {
                methods = methods + part.trim() + ",";
                continue;
            }
            destinations.push((std::mem::take(&mut methods) + part.trim()).parse()?);
        }
        if methods.is_empty() {
            Ok(destinations)
        } else {
            Err(DestinationError::new(text, DestinationErrorReason::MissingHost))
        }
    }

    /// Returns the destination as an allowance, with its default port filled in. The scheme stays unspecified if only a
    /// port was written.
    pub(crate) fn with_default_port(mut self) -> Self {
        if self.port.is_none() {
            let scheme = *self.scheme.get_or_insert(Scheme::Https);
            self.port = Some(scheme.port());
        }
        self
    }

    /// Returns `true` if the destination covers this scheme, host, port and method. Unspecified parts cover everything.
    pub(crate) fn matches(&self, scheme: Scheme, host: &Host, port: u16, method: &str) -> bool {
        self.host.matches(host)
            && self.port.is_none_or(|own| own == port)
            && self.scheme.is_none_or(|own| own == scheme)
            && self.has_method(method)
    }

    /// Returns `true` if an allowance of the destination covers the request. In an allowance `*` covers every name, but
    /// no address.
    pub(crate) fn allows(&self, scheme: Scheme, host: &Host, port: u16, method: &str) -> bool {
        let is_unnamed_address = self.host == HostPattern::Any && matches!(host, Host::Address(_));
        !is_unnamed_address && self.matches(scheme, host, port, method)
    }

    /// Returns `true` if the destination is one name.
    pub(crate) fn is_of_name(&self) -> bool {
        matches!(self.host, HostPattern::Name(_))
    }

    /// Returns `true` if the destination lists methods.
    pub(crate) fn has_methods(&self) -> bool {
        !self.methods.is_empty()
    }

    /// Returns a weight: a destination with fewer hosts goes before one with more.
    pub(crate) fn specificity(&self) -> usize {
        let host = match &self.host {
            HostPattern::Any => 0,
            HostPattern::Subdomains(parent) => 1 + parent.len(),
            HostPattern::Network(network) => 1000 + usize::from(network.prefix_len()),
            HostPattern::Name(_) => 2000,
        };
        host + usize::from(self.port.is_some())
    }

    /// Returns one method that the destination covers.
    pub(crate) fn any_method(&self) -> &str {
        self.methods.first().map_or("GET", String::as_str)
    }

    /// Returns `true` if the destination lists this method or lists none.
    fn has_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|own| own == method)
    }

    /// Restricts the destination to these methods; `None` if it covers none of them.
    pub(crate) fn restrict_methods(mut self, methods: &[&str]) -> Option<Self> {
        if self.methods.is_empty() {
            self.methods = methods.iter().map(|&method| method.to_owned()).collect();
        } else {
            self.methods.retain(|own| methods.contains(&own.as_str()));
        }
        (!self.methods.is_empty()).then_some(self)
    }

    /// Returns the addresses that the destination covers, if its host is an address or a network.
    pub(crate) fn network(&self) -> Option<IpNet> {
        match self.host {
            HostPattern::Network(network) => Some(network),
            _ => None,
        }
    }

    /// Returns the destination of the requests that both destinations cover.
    pub(crate) fn intersection(&self, other: &Self) -> Option<Self> {
        let host = self.host.intersection(&other.host)?;
        let port = common(self.port, other.port)?;
        let scheme = common(self.scheme, other.scheme)?;
        let methods = match (self.methods.is_empty(), other.methods.is_empty()) {
            (true, _) => other.methods.clone(),
            (_, true) => self.methods.clone(),
            _ => {
                let both: Vec<_> = self.methods.iter().filter(|own| other.methods.contains(own)).cloned().collect();
                (!both.is_empty()).then_some(both)?
            }
        };
        Some(Self { methods, scheme, host, port })
    }

    /// Returns `true` if there is a request that both destinations cover.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.intersection(other).is_some()
    }

    /// Returns `true` if the destination covers everything that `other` covers.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.intersection(other).as_ref() == Some(other)
    }
}

/// Returns the value that satisfies both options. An absent option allows any value.
fn common<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) => (a == b).then_some(Some(a)),
        (a, b) => Some(a.or(b)),
    }
}

/// Returns `true` if the text is a method: capital letters and `-`. Requests are sent with such methods alone, because
/// HTTP also permits characters such as quotes. A host in capital letters alone is rejected as a host.
pub(crate) fn is_method(text: &str) -> bool {
    (1..=MAX_METHOD_LEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

/// Parses a port: 1 to 65535, without a sign and without leading zeros.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let error = |reason| DestinationError::new(text, reason);
        let (methods, rest) = text.trim().rsplit_once(' ').unwrap_or(("", text.trim()));
        let methods: Vec<String> = methods.split(',').map(str::trim).map(str::to_owned).collect();
        let mut methods = if methods == [""] { Vec::new() } else { methods };
        // Lists of the same methods compare equal in any order.
        methods.sort_unstable();
        methods.dedup();
        if !methods.iter().all(|method| is_method(method)) {
            return Err(error(DestinationErrorReason::Methods));
        }
        if methods.iter().any(|method| matches!(method.as_str(), "CONNECT" | "TRACE")) {
            return Err(error(DestinationErrorReason::ForbiddenMethod));
        }
        let (scheme, rest) = match rest.split_once("://") {
            None => (None, rest),
            Some(("http", rest)) => (Some(Scheme::Http), rest),
            Some(("https", rest)) => (Some(Scheme::Https), rest),
            Some(_) => return Err(error(DestinationErrorReason::Scheme)),
        };
        let (host, port) = split_port(rest);
        if host.contains(':') && !host.starts_with('[') {
            return Err(error(DestinationErrorReason::BareIpv6));
        }
        let network = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|it| it.contains('/'));
        let host = HostPattern::parse(network.unwrap_or(host)).map_err(error)?;
        let port = match port {
            None => None,
            Some(port) => Some(parse_port(port).ok_or_else(|| error(DestinationErrorReason::Port))?),
        };
        Ok(Self { methods, scheme, host, port })
    }
}

impl fmt::Display for Destination {
    /// Formats the destination in the syntax that it is parsed from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.methods.is_empty() {
            write!(f, "{} ", self.methods.join(","))?;
        }
        if let Some(scheme) = self.scheme {
            write!(f, "{}://", scheme.as_str())?;
        }
        self.host.fmt(f)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Destination {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn reached(grant: &str, request: &str) -> bool {
        let (method, rest) = request.split_once(' ').unwrap_or(("GET", request));
        let (scheme, rest) = rest.split_once("://").expect("a scheme");
        let scheme = if scheme == "http" { Scheme::Http } else { Scheme::Https };
        let (host, port) = rest.rsplit_once(':').expect("a port");
        of(grant).with_default_port().allows(scheme, &Host::parse_strict(host).unwrap(), port.parse().unwrap(), method)
    }

    #[test]
    fn a_grant_reaches_what_it_names_and_nothing_beside() {
        for (grant, yes, no) in [
            ("api.example.com", "https://api.example.com:443", "http://api.example.com:80"),
            ("api.example.com", "https://API.example.com:443", "https://api.example.com:8443"),
            ("api.example.com:8443", "http://api.example.com:8443", "https://api.example.com:443"),
            ("http://example.com", "http://example.com:80", "https://example.com:443"),
            ("https://example.com:8443", "https://example.com:8443", "http://example.com:8443"),
            ("*.example.com", "https://a.b.example.com:443", "https://example.com:443"),
            ("*.example.com", "https://a.example.com:443", "https://a.example.com.evil:443"),
            ("*.example.com", "https://a.example.com:443", "https://aexample.com:443"),
            ("127.0.0.1:80", "http://127.0.0.1:80", "http://localhost:80"),
            ("[::1]:80", "http://[::1]:80", "http://127.0.0.1:80"),
            ("10.0.0.0/8:80", "http://10.1.2.3:80", "http://11.0.0.1:80"),
            ("[fd00::/8]:80", "http://[fd12::1]:80", "http://[fe80::1]:80"),
            ("*", "https://anything.example:443", "https://192.0.2.1:443"),
            ("GET,HEAD example.com", "HEAD https://example.com:443", "POST https://example.com:443"),
            ("пример.рф", "https://xn--e1afmkfd.xn--p1ai:443", "https://xn--e1afmkfd.xn--p1a:443"),
            ("EXAMPLE.com", "https://example.com:443", "https://xn--xample-2of.com:443"),
        ] {
            assert!(reached(grant, yes), "{grant} reaches {yes}");
            assert!(!reached(grant, no), "{grant} does not reach {no}");
        }
    }

    #[test]
    fn a_denial_means_all_that_it_leaves_open() {
        let host = Host::Name("a.example.com".into());
        for denial in ["a.example.com", "*.example.com", "*", "http://a.example.com", "a.example.com:8080"] {
            assert!(of(denial).matches(Scheme::Http, &host, 8080, "POST"), "{denial}");
        }
        for denial in ["https://a.example.com", "a.example.com:80", "GET a.example.com", "example.com"] {
            assert!(!of(denial).matches(Scheme::Http, &host, 8080, "POST"), "{denial}");
        }
        assert!(Destination::everything().matches(Scheme::Http, &Host::Address([127, 0, 0, 1].into()), 1, "X"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["a.example", "GET,HEAD https://*.a.example:8443", "10.0.0.0/8:443", "[fd00::/8]", "[::1]:1", "*"] {
            assert_eq!(of(text).to_string(), text);
        }
        assert_eq!(of("127.0.0.1/32").to_string(), "127.0.0.1");
        let list = Destination::parse_list("GET,HEAD a.example, b.example:1,POST c.example").unwrap();
        let list: Vec<_> = list.iter().map(ToString::to_string).collect();
        assert_eq!(list, ["GET,HEAD a.example", "b.example:1", "POST c.example"]);
    }

    #[test]
    fn two_meet_in_what_both_name() {
        let meet = |a: &str, b: &str| {
            of(a).with_default_port().intersection(&of(b).with_default_port()).map(|both| both.to_string())
        };
        assert_eq!(meet("*.a.example", "x.a.example").as_deref(), Some("https://x.a.example:443"));
        assert_eq!(meet("a.example:80", "http://a.example").as_deref(), Some("http://a.example:80"));
        assert_eq!(meet("GET,PUT a.example", "GET,HEAD *").as_deref(), Some("GET https://a.example:443"));
        assert_eq!(meet("10.1.0.0/16", "10.0.0.0/8").as_deref(), Some("https://10.1.0.0/16:443"));
        for (a, b) in [("a.example", "b.example"), ("a.example:1", "a.example:2"), ("GET a.example", "PUT a.example")] {
            assert_eq!(meet(a, b), None, "{a} {b}");
        }
    }

    #[test]
    fn methods_are_a_set() {
        for (a, b) in [("HEAD,GET a.example", "GET,HEAD a.example"), ("GET,GET a.example", "GET a.example")] {
            assert_eq!(of(a), of(b));
            assert!(of(a).covers(&of(b)) && of(b).covers(&of(a)), "{a}");
        }
        assert!(of("POST,HEAD,GET a.example").covers(&of("HEAD,GET a.example")));
        assert!(!of("HEAD,GET a.example").covers(&of("POST,GET a.example")));
    }

    #[test]
    fn a_slip_is_told_with_what_is_wanted() {
        for (text, why) in [
            ("", "the host is missing"),
            ("ftp://a.example", "its scheme is neither"),
            ("a.example:0", "its port is not a number"),
            ("a.example:080", "its port is not a number"),
            ("a.example:+80", "its port is not a number"),
            ("a.example:65536", "its port is not a number"),
            ("a.example:", "its port is not a number"),
            ("a.example/v1", "a grant covers a whole host"),
            ("::1", "an IPv6 address must be in brackets"),
            ("user@a.example", "the host is not a DNS name"),
            ("a.*.example", "the host is not a DNS name"),
            ("*.127.0.0.1", "`*.` must be followed by a name"),
            ("127.1:80", "the host ends in a number"),
            ("10.0.0.1/8", "bits set behind its prefix"),
            ("[::ffff:10.0.0.1]:80", "an IPv4 address must be in IPv4 notation"),
            ("get a.example", "not a list of methods"),
            ("CONNECT a.example", "never sent"),
        ] {
            let error = text.parse::<Destination>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is not a destination: ")), "{error}");
            assert!(error.contains(why) && error.contains("write it like"), "{text}: {error}");
        }
        assert!(Destination::parse_list("GET").unwrap_err().to_string().contains("methods must be followed by a host"));
    }
}
