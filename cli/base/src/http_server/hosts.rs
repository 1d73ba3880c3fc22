//! Hosts that requests may name. A page whose name was made to lead to this machine (DNS rebinding) names another one.

use std::str::FromStr;

use http::uri::Authority;
use http::{HeaderMap, Uri, header};

/// Form of a host, for errors.
const EXPECTED: &str = "expected a host such as `tools.example.com` or `192.0.2.1:8931`, without wildcards or a path";

/// Host of a server, with a port or for all ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedHost(Authority);

impl ServedHost {
    /// Returns `true` if a request for `authority` is one for this host.
    fn is_named_by(&self, authority: &Authority) -> bool {
        let is_port = |port| authority.port_u16() == Some(port);
        self.0.host().eq_ignore_ascii_case(authority.host()) && self.0.port_u16().is_none_or(is_port)
    }

    /// Returns the host without its port.
    pub fn name(&self) -> &str {
        self.0.host()
    }

    /// Returns the host with its port, if it has one.
    pub fn text(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for ServedHost {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_address = |text: &str| text.contains("::") && !text.starts_with('[');
        let text = if is_address(text) { format!("[{text}]") } else { text.to_owned() };
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let authority: Authority = text.parse().map_err(|_| EXPECTED)?;
        let is_port = authority.as_str().len() == authority.host().len() || authority.port_u16().is_some();
        let is_usable = text.chars().all(is_host) && !authority.host().is_empty() && is_port;
        if is_usable { Ok(Self(authority)) } else { Err(EXPECTED) }
    }
}

/// Hosts of a server.
#[derive(Debug, Clone)]
pub struct Hosts(Vec<ServedHost>);

impl Hosts {
    /// Creates the list of the hosts that a server answers for.
    pub fn new(served: Vec<ServedHost>) -> Self {
        Self(served)
    }

    /// Lists the hosts as texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(ServedHost::text)
    }

    /// Returns `true` if a request names one of the hosts, and only one.
    pub fn includes(&self, target: &Uri, headers: &HeaderMap) -> bool {
        let mut all = headers.get_all(header::HOST).iter();
        let stated = all.next().map(|host| host.to_str().ok().and_then(|host| host.parse().ok()));
        let named = match (stated, target.authority()) {
            (Some(host), _) => host,
            (None, authority) => authority.cloned(),
        };
        all.next().is_none() && named.is_some_and(|named| self.0.iter().any(|host| host.is_named_by(&named)))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_without_wildcards() {
        let text = |text: &str| text.parse::<ServedHost>().map(|host| host.text().to_owned());
        for host in ["tools.example.com", "tools.example.com:8931", "192.0.2.1", "[::1]:80", "localhost"] {
            assert_eq!(text(host).as_deref(), Ok(host));
        }
        assert_eq!(text("::1").as_deref(), Ok("[::1]"));
        for wrong in
            ["", "*", "*.example.com", "a/b", "a b", "https://a.example", "u@a.example", "a.example:", "a:x", "a:99999"]
        {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_request_names_one_of_the_hosts() {
        let hosts = Hosts::new(["localhost", "tools.example:8931"].map(|host| host.parse().unwrap()).into());
        let is_known = |stated: &[&str]| {
            let stated = stated.iter().map(|host| (header::HOST, HeaderValue::from_str(host).unwrap()));
            hosts.includes(&Uri::from_static("/mcp"), &stated.collect())
        };
        for known in ["localhost", "LOCALHOST:1", "tools.example:8931"] {
            assert!(is_known(&[known]), "{known}");
        }
        for other in ["evil.example", "tools.example", "tools.example:80", "localhost.evil.example", "", "a b"] {
            assert!(!is_known(&[other]), "{other}");
        }
        assert!(!is_known(&["localhost", "localhost"]) && !is_known(&[]));
        assert!(hosts.includes(&Uri::from_static("http://localhost/mcp"), &HeaderMap::new()));
    }
}
