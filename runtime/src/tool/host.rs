//! The host of a request or of a grant: a name in its one normal form, or an address. What could be read in two ways is
//! refused, not guessed at: other programs might read it the other way.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A DNS name: ASCII, lower case, international labels as Punycode, without a trailing dot.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl Host {
    /// A host as a person writes it: international names are normalised (UTS #46).
    ///
    /// # Errors
    ///
    /// Why it is no host.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        if let Some(inside) = text.strip_prefix('[') {
            let inside = inside.strip_suffix(']').ok_or("the `]` is missing")?;
            let address: Ipv6Addr = inside.parse().map_err(|_| "the brackets contain no IPv6 address")?;
            return Ok(Host::Address(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Host::Address(address.into()));
        }
        name(text).map(Host::Name)
    }

    /// A host as a request has to write it: nothing has to be normalised but the case.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub fn strict(text: &str) -> Result<Self, &'static str> {
        if !text.is_ascii() {
            return Err("the host is not ASCII: an international name is sent as Punycode");
        }
        let host = Self::read(text)?;
        match &host {
            Host::Name(name) if !name.eq_ignore_ascii_case(text) => Err("the host is not in its normal form"),
            _ => Ok(host),
        }
    }
}

impl fmt::Display for Host {
    /// As it stands in an authority: an IPv6 address in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => address.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// `HOST[:PORT]`, parted: a colon in brackets belongs to an address.
pub(crate) fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':').filter(|(_, behind)| !behind.contains(']')) {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

/// A DNS name in its normal form.
fn name(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        return Err("there is no host");
    }
    if text.ends_with('.') {
        return Err("the host ends in a dot");
    }
    let ascii = Uts46::new().to_ascii(text.as_bytes(), AsciiDenyList::URL, Hyphens::Allow, DnsLength::Verify);
    let ascii = ascii.map_err(|_| "the host is not a DNS name")?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    if !ascii.bytes().all(plain) {
        return Err("the host is not a DNS name");
    }
    // Such a name is an IPv4 address for many programs: `127.1`, `0x7f.1`, `2130706433`, `0177.0.0.1`.
    let last = ascii.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("the host ends in a number: an IPv4 address is four decimal numbers without leading zeros");
    }
    Ok(ascii.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_in_brackets_is_no_port() {
        for (authority, parted) in [
            ("a.example", ("a.example", None)),
            ("a.example:80", ("a.example", Some("80"))),
            ("a.example:", ("a.example", Some(""))),
            ("[::1]", ("[::1]", None)),
            ("[::1]:80", ("[::1]", Some("80"))),
            ("::1", (":", Some("1"))),
        ] {
            assert_eq!(split_port(authority), parted, "{authority}");
        }
    }

    #[test]
    fn a_name_has_one_normal_form() {
        for (text, normal) in [
            ("example.com", "example.com"),
            ("EXAMPLE.Com", "example.com"),
            ("пример.рф", "xn--e1afmkfd.xn--p1ai"),
            ("xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"),
            ("my_service", "my_service"),
            ("ｅxample。com", "example.com"),
        ] {
            assert_eq!(Host::read(text), Ok(Host::Name(normal.into())), "{text}");
        }
        // The first letter is Cyrillic: another name.
        assert_ne!(Host::read("еxample.com"), Host::read("example.com"));
    }

    #[test]
    fn a_request_writes_the_normal_form() {
        for text in ["example.com", "Example.COM", "xn--e1afmkfd.xn--p1ai", "127.0.0.1", "[::1]", "localhost"] {
            assert!(Host::strict(text).is_ok(), "{text}");
        }
        for text in ["пример.рф", "ｅxample.com", "example。com"] {
            assert!(Host::strict(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "",
            ".",
            "example.com.",
            "example..com",
            ".example.com",
            "user@example.com",
            "example.com\\evil",
            "exa mple.com",
            "example.com\t",
            "exam%70le.com",
            "example.com/x",
            "example.com#x",
            "127.1",
            "127.0.0.01",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "0x7f000001",
            "2130706433",
            "127.0.0.1.",
            "1.2.3.4.5",
            "256.0.0.1",
            "example.1",
            "example.0x",
            "１２７.0.0.1",
            "::1",
            "[::1",
            "[::1%eth0]",
            "[127.0.0.1]",
            "xn--a",
            "a\u{0}b.com",
        ] {
            assert!(Host::read(text).is_err(), "{text:?}");
        }
        assert!(Host::read(&format!("{}.com", "a".repeat(64))).is_err());
        assert!(Host::read(&"a.".repeat(130)).is_err());
    }
}
