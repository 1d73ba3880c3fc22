//! Addresses that the client may connect to: ranges, the policy hook and the name lookup that applies it.
//!
//! A name is looked up once for each connection, every address is judged, and the connection goes to the judged
//! addresses: a name that changes between the check and the connection changes nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use toolcrib_foundation::address::{Range, RangeKind, embedded};
use url::Host;

use crate::limits::MAX_ADDRESSES;

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The registry that the caller named.
    Registry,
    /// The token server that the registry named.
    TokenServer,
    /// A host that a response redirected to.
    Redirect,
}

/// Address about to be connected to.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Peer<'a> {
    /// Host name or address as written in the URL.
    pub host: &'a str,
    /// Address that the host resolved to.
    pub address: IpAddr,
    /// Purpose of the connection.
    pub role: Role,
    /// Addresses of the registry seen so far by this client.
    pub registry: &'a [IpAddr],
}

/// Decision over each address before it is connected to.
///
/// Every closure `Fn(&Peer) -> bool` is a policy.
pub trait AddressPolicy: Send + Sync {
    /// Returns `true` if the connection is allowed. One refused address refuses the whole host.
    fn permits(&self, peer: &Peer<'_>) -> bool;
}

impl<F: Fn(&Peer<'_>) -> bool + Send + Sync> AddressPolicy for F {
    fn permits(&self, peer: &Peer<'_>) -> bool {
        self(peer)
    }
}

/// Default policy: a registry may be anywhere, since the caller named it. A token server or redirect target must be
/// public, or lie in a range in which the registry itself lies.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PublicOrBesideRegistry;

impl AddressPolicy for PublicOrBesideRegistry {
    fn permits(&self, peer: &Peer<'_>) -> bool {
        let range = AddressRange::of(peer.address);
        match peer.role {
            Role::Registry => true,
            Role::TokenServer | Role::Redirect => match range {
                AddressRange::Public => true,
                AddressRange::Reserved | AddressRange::Metadata => false,
                _ => peer.registry.iter().any(|address| AddressRange::of(*address) == range),
            },
        }
    }
}

/// Kind of network that an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressRange {
    /// Reachable from the whole Internet.
    Public,
    /// The same machine.
    Loopback,
    /// Private networks and unique local addresses.
    Private,
    /// Shared address space of carriers (RFC 6598).
    Shared,
    /// One link.
    LinkLocal,
    /// Metadata services of clouds, which give credentials to whoever asks from the machine. Some have public addresses.
    Metadata,
    /// Unspecified, multicast, documentation and every other special range.
    Reserved,
}

impl AddressRange {
    /// Returns the range of an address. An IPv6 address that embeds an IPv4 address has the range of the latter.
    pub fn of(address: IpAddr) -> Self {
        let Some(range) = Range::of(address) else { return Self::Public };
        match range.kind {
            RangeKind::Loopback => Self::Loopback,
            RangeKind::Private => Self::Private,
            RangeKind::Shared => Self::Shared,
            RangeKind::LinkLocal => Self::LinkLocal,
            RangeKind::Metadata => Self::Metadata,
            RangeKind::Embedding => embedded(address).map_or(Self::Reserved, Self::of),
            _ => Self::Reserved,
        }
    }
}

/// Future of a name lookup.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Name lookup. The default asks the operating system.
pub trait NameLookup: Send + Sync {
    /// Looks up the addresses of `host`, a lowercase DNS name.
    fn lookup(&self, host: String) -> Lookup;
}

/// Name lookup of the operating system.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemLookup;

impl NameLookup for SystemLookup {
    fn lookup(&self, host: String) -> Lookup {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(addresses.map(|address| address.ip()).take(MAX_ADDRESSES).collect())
        })
    }
}

/// Refusal of an address, found again in the source chain behind a connection error.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the address policy refuses `{address}`")]
pub(crate) struct AddressRefused {
    pub(crate) address: IpAddr,
}

/// Name lookup under the policy, for connections of one role.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) role: Role,
    pub(crate) policy: Arc<dyn AddressPolicy>,
    pub(crate) lookup: Arc<dyn NameLookup>,
    /// Registry addresses, shared by the gates of all roles.
    pub(crate) registry: Arc<Mutex<Vec<IpAddr>>>,
}

impl Gate {
    /// Judges one address, and remembers it if it is the registry's.
    pub(crate) fn judge(&self, host: &str, address: IpAddr) -> Result<(), AddressRefused> {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // A name of the own machine must stay there (RFC 6761, section 6.3): plain HTTP is allowed to it.
        let stays = !is_localhost(host) || AddressRange::of(address) == AddressRange::Loopback;
        if !stays || !self.policy.permits(&Peer { host, address, role: self.role, registry: &registry }) {
            return Err(AddressRefused { address });
        }
        if self.role == Role::Registry && !registry.contains(&address) && registry.len() < MAX_ADDRESSES {
            registry.push(address);
        }
        Ok(())
    }
}

/// Returns `true` for `localhost` and the names below it.
fn is_localhost(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

/// Returns `true` if the host of a URL is the own machine, by name or by address.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => is_localhost(name),
        Some(Host::Ipv4(address)) => AddressRange::of(address.into()) == AddressRange::Loopback,
        Some(Host::Ipv6(address)) => AddressRange::of(address.into()) == AddressRange::Loopback,
        None => false,
    }
}

/// Returns the address in a URL that has an address instead of a name.
pub(crate) fn literal(url: &Url) -> Option<IpAddr> {
    match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        Some(Host::Domain(_)) | None => None,
    }
}

impl Resolve for Gate {
    fn resolve(&self, name: Name) -> Resolving {
        let gate = self.clone();
        Box::pin(async move {
            let addresses = gate.lookup.lookup(name.as_str().to_owned()).await?;
            let mut judged = Vec::new();
            for address in addresses.into_iter().take(MAX_ADDRESSES) {
                gate.judge(name.as_str(), address)?;
                // The port of the URL replaces port 0.
                judged.push(SocketAddr::new(address, 0));
            }
            if judged.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into());
            }
            Ok(Box::new(judged.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_range_is_recognised() {
        for (range, addresses) in [
            (AddressRange::Public, &["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101", "100.128.0.1"][..]),
            (AddressRange::Loopback, &["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"]),
            (
                AddressRange::Private,
                &["10.1.2.3", "172.31.0.1", "192.168.0.1", "fd00::1", "2002:a00:1::", "::ffff:10.0.0.1"],
            ),
            (AddressRange::Shared, &["100.64.0.1", "100.127.255.255"]),
            (AddressRange::LinkLocal, &["169.254.1.1", "fe80::1", "::ffff:169.254.1.1"]),
            (
                AddressRange::Metadata,
                &[
                    "169.254.169.254",
                    "::ffff:169.254.169.254",
                    "64:ff9b::a83f:8110",
                    "168.63.129.16",
                    "100.100.100.200",
                    "fd00:ec2::254",
                ],
            ),
            (
                AddressRange::Reserved,
                &[
                    "0.0.0.0",
                    "::",
                    "224.0.0.1",
                    "255.255.255.255",
                    "ff02::1",
                    "192.0.2.1",
                    "2001:db8::1",
                    "::7f00:1",
                    "2001::1",
                ],
            ),
        ] {
            for address in addresses {
                assert_eq!(AddressRange::of(address.parse().unwrap()), range, "{address}");
            }
        }
    }

    #[test]
    fn a_redirect_into_a_special_range_needs_a_registry_there() {
        let permits = |role, address: &str, registry: &str| {
            let registry: IpAddr = registry.parse().unwrap();
            let peer = Peer { host: "x.example", address: address.parse().unwrap(), role, registry: &[registry] };
            PublicOrBesideRegistry.permits(&peer)
        };
        for role in [Role::Redirect, Role::TokenServer] {
            assert!(permits(role, "1.1.1.1", "8.8.8.8"));
            assert!(permits(role, "1.1.1.1", "10.0.0.1"));
            assert!(permits(role, "192.168.1.1", "10.0.0.1"));
            assert!(!permits(role, "10.0.0.1", "8.8.8.8"));
            assert!(!permits(role, "127.0.0.1", "8.8.8.8"));
            assert!(!permits(role, "169.254.169.254", "10.0.0.1"));
            assert!(!permits(role, "169.254.169.254", "169.254.1.1"), "beside a registry on the link");
            assert!(!permits(role, "168.63.129.16", "1.1.1.1") && !permits(role, "100.100.100.200", "100.64.0.1"));
            assert!(!permits(role, "0.0.0.0", "127.0.0.1"));
            assert!(!permits(role, "0.0.0.0", "0.0.0.0"));
        }
        assert!(permits(Role::Registry, "10.0.0.1", "8.8.8.8"));
    }

    struct Many(usize);

    impl NameLookup for Many {
        fn lookup(&self, _host: String) -> Lookup {
            let addresses = vec![IpAddr::from([1, 1, 1, 1]); self.0];
            Box::pin(async move { Ok(addresses) })
        }
    }

    #[tokio::test]
    async fn the_addresses_of_a_name_are_bounded_and_none_is_an_error() {
        let found = async |count| {
            let (policy, lookup) = (Arc::new(PublicOrBesideRegistry), Arc::new(Many(count)));
            let gate = Gate { role: Role::Redirect, policy, lookup, registry: Arc::default() };
            gate.resolve("many.example".parse().unwrap()).await.map(|addresses| addresses.count())
        };
        assert_eq!(found(MAX_ADDRESSES + 1).await.unwrap(), MAX_ADDRESSES);
        assert!(found(0).await.is_err());
    }
}
