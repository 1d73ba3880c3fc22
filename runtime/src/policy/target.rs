//! Target of a request, parsed strictly from its authority so that it cannot be interpreted in two ways.

use std::fmt;

use crate::tool::{Host, Scheme, parse_port, split_port};

/// Scheme, host and port of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) scheme: Scheme,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Target {
    /// Parses an authority, `HOST[:PORT]`.
    ///
    /// # Errors
    ///
    /// The reason for its refusal: user information, an empty or malformed port, or a host that is not in its normal
    /// form.
    pub(crate) fn read(scheme: Scheme, authority: &str) -> Result<Self, &'static str> {
        if authority.contains('@') {
            return Err("the authority has user information");
        }
        let (host, written) = split_port(authority);
        let port = written.map_or(Some(scheme.port()), parse_port).ok_or("the port is not a number from 1 to 65535")?;
        Ok(Self { scheme, host: Host::parse_strict(host).map_err(|error| error.as_str())?, port })
    }

    /// Parses the authority of a URL, or a host without scheme, which means `https`.
    ///
    /// # Errors
    ///
    /// As for [`Target::read`].
    pub(crate) fn of_url(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = match url.split_once("://") {
            None => (Scheme::Https, url),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some(_) => return Err("its scheme is neither `http` nor `https`"),
        };
        Self::read(scheme, rest.split(['/', '?', '#']).next().unwrap_or(rest))
    }

    /// Formats the authority in its normal form, with the port only if it is not the default of the scheme.
    pub(crate) fn authority(&self) -> String {
        match self.port == self.scheme.port() {
            true => self.host.to_string(),
            false => self.to_string(),
        }
    }
}

impl fmt::Display for Target {
    /// Writes `HOST:PORT`, as in a capability and in the flag that allows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_host_and_a_port() {
        for (authority, target) in [
            ("example.com", "example.com:443"),
            ("EXAMPLE.com:8443", "example.com:8443"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[::1]", "[::1]:443"),
            ("[::1]:65535", "[::1]:65535"),
        ] {
            assert_eq!(Target::read(Scheme::Https, authority).unwrap().to_string(), target, "{authority}");
        }
    }

    #[test]
    fn an_ambiguous_authority_is_refused() {
        for authority in [
            "",
            ":443",
            "allowed.example@evil.example",
            "allowed.example:80@evil.example",
            "user:password@allowed.example",
            "allowed.example.",
            "allowed.example\\.evil.example",
            "allowed.example ",
            "allowed.example:",
            "allowed.example:0",
            "allowed.example:00443",
            "allowed.example:+443",
            "allowed.example:65536",
            "allowed.example:443:80",
            "allowed%2eexample",
            "0x7f.1",
            "[::1]x",
            "[::1]:",
        ] {
            assert!(Target::read(Scheme::Https, authority).is_err(), "{authority:?}");
        }
    }

    #[test]
    fn a_url_leads_to_its_authority() {
        let of = |url| Target::of_url(url).map(|target| (target.scheme, target.to_string()));
        assert_eq!(of("http://a.example/b?c#d"), Ok((Scheme::Http, "a.example:80".into())));
        assert_eq!(of("a.example"), Ok((Scheme::Https, "a.example:443".into())));
        assert_eq!(of("https://a.example:8443?x=http://b.example"), Ok((Scheme::Https, "a.example:8443".into())));
        assert!(of("ftp://a.example").is_err() && of("https://a@b").is_err() && of("https:///x").is_err());
    }
}
