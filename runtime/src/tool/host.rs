//! Host in a request or grant: a DNS name in its single normal form, or an IP address. Ambiguous text is rejected,
//! because other programs may interpret it differently.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

/// DNS name or IP address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// DNS name: ASCII, lower case, international labels as Punycode, without a trailing dot.
    Name(String),
    /// IP address.
    Address(IpAddr),
}

/// Reason why a text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostError {
    /// Empty text.
    Empty,
    /// Opening bracket without a closing one.
    UnclosedBracket,
    /// Brackets around something other than an IPv6 address.
    InvalidIpv6,
    /// Characters outside ASCII in a host that must already be normalized.
    NotAscii,
    /// Name that differs from its normal form in more than case.
    NotNormalized,
    /// Trailing dot.
    TrailingDot,
    /// Invalid DNS name.
    InvalidName,
    /// Numeric last label: many programs read such a name as an IPv4 address.
    NumericLabel,
}

impl HostError {
    /// Returns the message.
    pub fn as_str(self) -> &'static str {
        match self {
            HostError::Empty => "the host is missing",
            HostError::UnclosedBracket => "the `]` is missing",
            HostError::InvalidIpv6 => "the brackets contain no IPv6 address",
            HostError::NotAscii => "the host is not ASCII: an international name is sent as Punycode",
            HostError::NotNormalized => "the host is not in its normal form",
            HostError::TrailingDot => "the host ends in a dot",
            HostError::InvalidName => "the host is not a DNS name",
            HostError::NumericLabel => {
                "the host ends in a number: an IPv4 address is four decimal numbers without leading zeros"
            }
        }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for HostError {}

impl Host {
    /// Parses a host as a person writes it; international names are normalized (UTS #46).
    ///
    /// # Errors
    ///
    /// [`HostError`] if the text is not a host or is ambiguous.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inside) = text.strip_prefix('[') {
            let inside = inside.strip_suffix(']').ok_or(HostError::UnclosedBracket)?;
            let address: Ipv6Addr = inside.parse().map_err(|_| HostError::InvalidIpv6)?;
            return Ok(Host::Address(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Host::Address(address.into()));
        }
        parse_name(text).map(Host::Name)
    }

    /// Parses the host of a request, which must already be normalized except for case.
    ///
    /// # Errors
    ///
    /// [`HostError`] as for [`Host::parse`], or if normalization changes more than case.
    pub fn parse_strict(text: &str) -> Result<Self, HostError> {
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        let host = Self::parse(text)?;
        match &host {
            Host::Name(name) if !name.eq_ignore_ascii_case(text) => Err(HostError::NotNormalized),
            _ => Ok(host),
        }
    }
}

impl fmt::Display for Host {
    /// Formats the host as in a URL authority: an IPv6 address in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => address.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Splits `HOST[:PORT]` into host and port. A colon inside brackets belongs to an IPv6 address.
pub(crate) fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

/// Parses a DNS name into its normal form.
fn parse_name(text: &str) -> Result<String, HostError> {
    if text.is_empty() {
        return Err(HostError::Empty);
    }
    if text.ends_with('.') {
        return Err(HostError::TrailingDot);
    }
    let ascii = Uts46::new().to_ascii(text.as_bytes(), AsciiDenyList::URL, Hyphens::Allow, DnsLength::Verify);
    let ascii = ascii.map_err(|_| HostError::InvalidName)?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    if !ascii.bytes().all(is_plain) {
        return Err(HostError::InvalidName);
    }
    // Many programs read such a name as an IPv4 address: `127.1`, `0x7f.1`, `2130706433`, `0177.0.0.1`.
    let last = ascii.rsplit('.').next().unwrap_or_default();
    let is_hexadecimal = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(HostError::NumericLabel);
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
            assert_eq!(Host::parse(text), Ok(Host::Name(normal.into())), "{text}");
        }
        // The first letter is Cyrillic: another name.
        assert_ne!(Host::parse("еxample.com"), Host::parse("example.com"));
    }

    #[test]
    fn a_request_writes_the_normal_form() {
        for text in ["example.com", "Example.COM", "xn--e1afmkfd.xn--p1ai", "127.0.0.1", "[::1]", "localhost"] {
            assert!(Host::parse_strict(text).is_ok(), "{text}");
        }
        for text in ["пример.рф", "ｅxample.com", "example。com"] {
            assert!(Host::parse_strict(text).is_err(), "{text}");
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
            assert!(Host::parse(text).is_err(), "{text:?}");
        }
        assert!(Host::parse(&format!("{}.com", "a".repeat(64))).is_err());
        assert!(Host::parse(&"a.".repeat(130)).is_err());
    }
}
