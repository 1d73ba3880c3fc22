//! Where a tool may send requests, as people write it: a host, its port, its scheme and the methods. It knows what it
//! means to allow and to deny it, and nothing of requests.

use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;

use super::host::{Host, split_port};

/// How destinations are written, for messages.
const EXAMPLES: &str = "write it like `api.example.com`, `*.example.com:443`, `http://localhost:8080`, `[::1]:8080`, `10.0.0.0/8:443` or `GET,HEAD api.example.com`";

/// A destination: `[METHOD[,METHOD…] ][http://|https://]HOST[:PORT]`.
///
/// `HOST` is a name, `*.NAME` for every name below it, an IPv4 address, an IPv6 address in brackets, a network such as
/// `10.0.0.0/8` or `[fd00::/8]`, or `*` for every name. An allowance without a scheme and a port is `https` on 443; with
/// a port alone it is both schemes there; with a scheme alone it is the scheme's own port. A denial means everything that
/// it leaves open: every port, both schemes, every method.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    methods: Vec<String>,
    scheme: Option<Scheme>,
    host: Place,
    port: Option<u16>,
}

/// The scheme of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

/// Which hosts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Any,
    Name(String),
    Below(String),
    Network(IpNet),
}

impl Scheme {
    /// The scheme as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port that it means where none is written.
    pub fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl Destination {
    /// Every host: as a denial, everything.
    pub fn everything() -> Self {
        Self { methods: Vec::new(), scheme: None, host: Place::Any, port: None }
    }

    /// Destinations separated by commas. A comma behind a method belongs to the methods: `GET,HEAD a.example,b.example`
    /// are two.
    ///
    /// # Errors
    ///
    /// What is wrong with the first that is none.
    pub fn list(text: &str) -> Result<Vec<Self>, String> {
        let mut methods = String::new();
        let mut found = Vec::new();
        for part in text.split(',') {
            if is_method(part.trim()) {
                methods = methods + part.trim() + ",";
                continue;
            }
            found.push((std::mem::take(&mut methods) + part.trim()).parse()?);
        }
        if methods.is_empty() { Ok(found) } else { Err(wrong(text, "methods must be followed by a host")) }
    }

    /// What it allows, with nothing left open but the scheme.
    pub(crate) fn settled(mut self) -> Self {
        if self.port.is_none() {
            let scheme = *self.scheme.get_or_insert(Scheme::Https);
            self.port = Some(scheme.port());
        }
        self
    }

    /// Whether it names this host, scheme, port and method. What it leaves open is named.
    pub(crate) fn names(&self, scheme: Scheme, host: &Host, port: u16, method: &str) -> bool {
        self.is_host(host)
            && self.port.is_none_or(|own| own == port)
            && self.scheme.is_none_or(|own| own == scheme)
            && self.has_method(method)
    }

    /// A method that it names.
    pub(crate) fn a_method(&self) -> &str {
        self.methods.first().map_or("GET", String::as_str)
    }

    /// Whether it names this method, or none at all.
    fn has_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|own| own == method)
    }

    /// The same for some methods only; `None` where it names none of them.
    pub(crate) fn only(mut self, methods: &[&str]) -> Option<Self> {
        if self.methods.is_empty() {
            self.methods = methods.iter().map(|&method| method.to_owned()).collect();
        } else {
            self.methods.retain(|own| methods.contains(&own.as_str()));
        }
        (!self.methods.is_empty()).then_some(self)
    }

    /// The addresses that it names, where it names addresses.
    pub(crate) fn network(&self) -> Option<IpNet> {
        match self.host {
            Place::Network(network) => Some(network),
            _ => None,
        }
    }

    /// What both name, of two that are settled.
    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        let host = self.host.meet(&other.host)?;
        let port = one_of(self.port, other.port)?;
        let scheme = one_of(self.scheme, other.scheme)?;
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

    /// Whether it names all that another does.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.meet(other).as_ref() == Some(other)
    }

    fn is_host(&self, host: &Host) -> bool {
        match (&self.host, host) {
            (Place::Any, _) => true,
            (Place::Name(own), Host::Name(name)) => own == name,
            (Place::Below(own), Host::Name(name)) => is_below(name, own),
            (Place::Network(network), Host::Address(address)) => network.contains(address),
            _ => false,
        }
    }

    /// Whether an allowance of it reaches a host: `*` is every name, and no address.
    pub(crate) fn allows(&self, scheme: Scheme, host: &Host, port: u16, method: &str) -> bool {
        let unnamed = self.host == Place::Any && matches!(host, Host::Address(_));
        !unnamed && self.names(scheme, host, port, method)
    }
}

impl Place {
    fn meet(&self, other: &Self) -> Option<Self> {
        let narrower = match (self, other) {
            (Place::Any, it) | (it, Place::Any) => it,
            (Place::Network(a), Place::Network(b)) if a.contains(b) => other,
            (Place::Network(a), Place::Network(b)) if b.contains(a) => self,
            (Place::Name(a), Place::Name(b)) if a == b => self,
            (Place::Name(name), Place::Below(top)) if is_below(name, top) => self,
            (Place::Below(top), Place::Name(name)) if is_below(name, top) => other,
            (Place::Below(a), Place::Below(b)) if a == b || is_below(a, b) => self,
            (Place::Below(a), Place::Below(b)) if is_below(b, a) => other,
            _ => return None,
        };
        Some(narrower.clone())
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        if text == "*" {
            return Ok(Place::Any);
        }
        if text.contains('/') {
            let network: IpNet = text.parse().map_err(|_| "a path or a malformed network; a grant has no path")?;
            return network_of(network);
        }
        let below = text.strip_prefix("*.");
        match Host::read(below.unwrap_or(text))? {
            Host::Name(top) if below.is_some() => Ok(Place::Below(top)),
            Host::Name(name) => Ok(Place::Name(name)),
            Host::Address(_) if below.is_some() => Err("`*.` must be followed by a name"),
            Host::Address(address) => network_of(address.into()),
        }
    }
}

/// A network that means what it says.
fn network_of(network: IpNet) -> Result<Place, &'static str> {
    if network.trunc() != network {
        return Err("the network has bits set behind its prefix");
    }
    match network {
        IpNet::V6(inner) if inner.addr().to_ipv4_mapped().is_some() && inner.prefix_len() >= 96 => {
            Err("an IPv4 address is written as one, not inside IPv6")
        }
        network => Ok(Place::Network(network)),
    }
}

fn is_below(name: &str, top: &str) -> bool {
    name.strip_suffix(top).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

fn one_of<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<Option<T>> {
    match (a, b) {
        (Some(a), Some(b)) => (a == b).then_some(Some(a)),
        (a, b) => Some(a.or(b)),
    }
}

/// The most characters of a method.
const MAX_METHOD_LEN: usize = 32;

/// A method as it stands in a destination, and the only ones that are sent: what else HTTP calls one may hold quotes. A
/// host in capital letters is written otherwise.
pub(crate) fn is_method(text: &str) -> bool {
    (1..=MAX_METHOD_LEN).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

/// A port as it is written: 1 to 65535, without a sign and without leading zeros.
pub(crate) fn port(text: &str) -> Option<u16> {
    let plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

fn wrong(text: &str, why: &str) -> String {
    format!("`{text}` is not a destination: {why}; {EXAMPLES}")
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| wrong(text, why);
        let (methods, rest) = text.trim().rsplit_once(' ').unwrap_or(("", text.trim()));
        let methods: Vec<String> = methods.split(',').map(str::trim).map(str::to_owned).collect();
        let mut methods = if methods == [""] { Vec::new() } else { methods };
        // So that two lists of the same methods are the same list.
        methods.sort_unstable();
        methods.dedup();
        if !methods.iter().all(|method| is_method(method)) {
            return Err(wrong("the text before the host is not a list of methods such as `GET,HEAD`"));
        }
        if methods.iter().any(|method| matches!(method.as_str(), "CONNECT" | "TRACE")) {
            return Err(wrong("CONNECT and TRACE are never sent"));
        }
        let (scheme, rest) = match rest.split_once("://") {
            None => (None, rest),
            Some(("http", rest)) => (Some(Scheme::Http), rest),
            Some(("https", rest)) => (Some(Scheme::Https), rest),
            Some(_) => return Err(wrong("its scheme is neither `http` nor `https`")),
        };
        let (host, written) = split_port(rest);
        if host.contains(':') && !host.starts_with('[') {
            return Err(wrong("an IPv6 address stands in brackets"));
        }
        let network = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|it| it.contains('/'));
        let host = Place::read(network.unwrap_or(host)).map_err(wrong)?;
        let port = match written {
            None => None,
            Some(written) => Some(port(written).ok_or_else(|| wrong("its port is not a number from 1 to 65535"))?),
        };
        Ok(Self { methods, scheme, host, port })
    }
}

impl fmt::Display for Destination {
    /// As it is written: what is read from this is the same destination.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.methods.is_empty() {
            write!(f, "{} ", self.methods.join(","))?;
        }
        if let Some(scheme) = self.scheme {
            write!(f, "{}://", scheme.as_str())?;
        }
        match &self.host {
            Place::Any => f.write_str("*"),
            Place::Name(name) => f.write_str(name),
            Place::Below(name) => write!(f, "*.{name}"),
            Place::Network(network) if network.prefix_len() == network.max_prefix_len() => {
                Host::Address(network.addr()).fmt(f)
            }
            Place::Network(IpNet::V4(network)) => network.fmt(f),
            Place::Network(IpNet::V6(network)) => write!(f, "[{network}]"),
        }?;
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
        of(grant).settled().allows(scheme, &Host::strict(host).unwrap(), port.parse().unwrap(), method)
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
            assert!(of(denial).names(Scheme::Http, &host, 8080, "POST"), "{denial}");
        }
        for denial in ["https://a.example.com", "a.example.com:80", "GET a.example.com", "example.com"] {
            assert!(!of(denial).names(Scheme::Http, &host, 8080, "POST"), "{denial}");
        }
        assert!(Destination::everything().names(Scheme::Http, &Host::Address([127, 0, 0, 1].into()), 1, "X"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["a.example", "GET,HEAD https://*.a.example:8443", "10.0.0.0/8:443", "[fd00::/8]", "[::1]:1", "*"] {
            assert_eq!(of(text).to_string(), text);
        }
        assert_eq!(of("127.0.0.1/32").to_string(), "127.0.0.1");
        let list = Destination::list("GET,HEAD a.example, b.example:1,POST c.example").unwrap();
        let list: Vec<_> = list.iter().map(ToString::to_string).collect();
        assert_eq!(list, ["GET,HEAD a.example", "b.example:1", "POST c.example"]);
    }

    #[test]
    fn two_meet_in_what_both_name() {
        let meet = |a: &str, b: &str| of(a).settled().meet(&of(b).settled()).map(|both| both.to_string());
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
            ("", "there is no host"),
            ("ftp://a.example", "its scheme is neither"),
            ("a.example:0", "its port is no number"),
            ("a.example:080", "its port is no number"),
            ("a.example:+80", "its port is no number"),
            ("a.example:65536", "its port is no number"),
            ("a.example:", "its port is no number"),
            ("a.example/v1", "a grant has no path"),
            ("::1", "an IPv6 address stands in brackets"),
            ("user@a.example", "the host is not a DNS name"),
            ("a.*.example", "the host is not a DNS name"),
            ("*.127.0.0.1", "`*.` must be followed by a name"),
            ("127.1:80", "the host ends in a number"),
            ("10.0.0.1/8", "bits set behind its prefix"),
            ("[::ffff:10.0.0.1]:80", "an IPv4 address is written as one"),
            ("get a.example", "no list of methods"),
            ("CONNECT a.example", "never sent"),
        ] {
            let error = text.parse::<Destination>().unwrap_err();
            assert!(error.starts_with(&format!("`{text}` is no destination: ")), "{error}");
            assert!(error.contains(why) && error.contains("write it like"), "{text}: {error}");
        }
        assert!(Destination::list("GET").unwrap_err().contains("methods must be followed by a host"));
    }
}
