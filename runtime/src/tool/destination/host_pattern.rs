//! Pattern over hosts in a destination: every name, one name, the names below a name, or a network of addresses.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::tool::host::Host;

use super::DestinationErrorReason;

/// Pattern over hosts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum HostPattern {
    /// `*`.
    Any,
    /// One name.
    Name(String),
    /// `*.NAME`: every name below this one, without the name itself.
    Subdomains(String),
    /// Address network; a single address is a network of one.
    Network(IpNet),
}

impl HostPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// The reason why the text is not a pattern.
    pub(super) fn parse(text: &str) -> Result<Self, DestinationErrorReason> {
        if text == "*" {
            return Ok(HostPattern::Any);
        }
        if let Some((address, _)) = text.split_once('/') {
            let is_address = address.parse::<IpAddr>().is_ok();
            let reason = if is_address { DestinationErrorReason::Network } else { DestinationErrorReason::Path };
            return of_network(text.parse().map_err(|_| reason)?);
        }
        let parent = text.strip_prefix("*.");
        match Host::parse(parent.unwrap_or(text))? {
            Host::Name(parent_name) if parent.is_some() => Ok(HostPattern::Subdomains(parent_name)),
            Host::Name(name) => Ok(HostPattern::Name(name)),
            Host::Address(_) if parent.is_some() => Err(DestinationErrorReason::WildcardAddress),
            Host::Address(address) => of_network(address.into()),
        }
    }

    /// Returns `true` if the pattern matches the host.
    pub(super) fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (HostPattern::Any, _) => true,
            (HostPattern::Name(own), Host::Name(name)) => own == name,
            (HostPattern::Subdomains(parent), Host::Name(name)) => is_subdomain(name, parent),
            (HostPattern::Network(network), Host::Address(address)) => network.contains(address),
            _ => false,
        }
    }

    /// Returns the pattern of the hosts that both patterns match.
    pub(super) fn intersection(&self, other: &Self) -> Option<Self> {
        use HostPattern::{Any, Name, Network, Subdomains};
        let narrower = match (self, other) {
            (Any, pattern) | (pattern, Any) => pattern,
            (Network(a), Network(b)) if a.contains(b) => other,
            (Network(a), Network(b)) if b.contains(a) => self,
            (Name(a), Name(b)) if a == b => self,
            (Name(name), Subdomains(parent)) if is_subdomain(name, parent) => self,
            (Subdomains(parent), Name(name)) if is_subdomain(name, parent) => other,
            (Subdomains(a), Subdomains(b)) if a == b || is_subdomain(a, b) => self,
            (Subdomains(a), Subdomains(b)) if is_subdomain(b, a) => other,
            _ => return None,
        };
        Some(narrower.clone())
    }
}

impl fmt::Display for HostPattern {
    /// Formats the pattern in the syntax that it is parsed from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Any => f.write_str("*"),
            HostPattern::Name(name) => f.write_str(name),
            HostPattern::Subdomains(parent) => write!(f, "*.{parent}"),
            HostPattern::Network(network) if network.prefix_len() == network.max_prefix_len() => {
                Host::Address(network.addr()).fmt(f)
            }
            HostPattern::Network(IpNet::V4(network)) => network.fmt(f),
            HostPattern::Network(IpNet::V6(network)) => write!(f, "[{network}]"),
        }
    }
}

/// Returns the pattern of a network, unless its notation is ambiguous.
fn of_network(network: IpNet) -> Result<HostPattern, DestinationErrorReason> {
    if network.trunc() != network {
        return Err(DestinationErrorReason::HostBits);
    }
    match network {
        IpNet::V6(inner) if inner.addr().to_ipv4_mapped().is_some() && inner.prefix_len() >= 96 => {
            Err(DestinationErrorReason::MappedIpv4)
        }
        network => Ok(HostPattern::Network(network)),
    }
}

/// Returns `true` if `name` ends in `.PARENT` and has a label before it.
fn is_subdomain(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}
