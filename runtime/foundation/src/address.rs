//! Special-purpose address ranges: this host, private networks, cloud metadata services, and unassigned addresses.
//! Source: the IANA registries of special-purpose addresses, and the documentation of the clouds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use RangeKind::{Embedding, LinkLocal, Loopback, Metadata, Private, Reserved, Shared};

/// Kind of network that a special-purpose address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RangeKind {
    /// The same machine.
    Loopback,
    /// Private networks and unique local addresses.
    Private,
    /// Shared address space of carriers (RFC 6598).
    Shared,
    /// One link.
    LinkLocal,
    /// Cloud metadata services, which give credentials to each program on the machine. Some have public addresses.
    Metadata,
    /// Addresses that stand for the IPv4 address in them: mapped (RFC 4291), NAT64 (RFC 6052) and 6to4 (RFC 3056).
    Embedding,
    /// Unspecified, multicast, documentation and every other special range.
    Reserved,
}

/// A special-purpose range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Range {
    /// Kind of network.
    pub kind: RangeKind,
    /// Purpose of the range.
    pub name: &'static str,
    /// Network of the range.
    pub network: IpNet,
}

const METADATA: &str = "cloud metadata";

/// First address, prefix length, kind and purpose of a range.
type Row<A> = (A, u8, RangeKind, &'static str);

/// Special-purpose ranges; of nested ranges, the narrowest comes first.
const V4: [Row<[u8; 4]>; 21] = [
    ([169, 254, 169, 254], 32, Metadata, METADATA),
    ([169, 254, 170, 2], 32, Metadata, METADATA),
    ([169, 254, 170, 23], 32, Metadata, METADATA),
    ([192, 0, 0, 192], 32, Metadata, METADATA),
    ([100, 100, 100, 200], 32, Metadata, METADATA),
    ([168, 63, 129, 16], 32, Metadata, METADATA),
    ([255, 255, 255, 255], 32, Reserved, "broadcast"),
    ([0, 0, 0, 0], 8, Reserved, "unspecified"),
    ([10, 0, 0, 0], 8, Private, "private"),
    ([100, 64, 0, 0], 10, Shared, "carrier-grade NAT"),
    ([127, 0, 0, 0], 8, Loopback, "loopback"),
    ([169, 254, 0, 0], 16, LinkLocal, "link-local"),
    ([172, 16, 0, 0], 12, Private, "private"),
    ([192, 0, 0, 0], 24, Reserved, "reserved"),
    ([192, 0, 2, 0], 24, Reserved, "documentation"),
    ([192, 88, 99, 0], 24, Reserved, "6to4 relay"),
    ([192, 168, 0, 0], 16, Private, "private"),
    ([198, 18, 0, 0], 15, Reserved, "benchmarking"),
    ([198, 51, 100, 0], 24, Reserved, "documentation"),
    ([203, 0, 113, 0], 24, Reserved, "documentation"),
    ([224, 0, 0, 0], 4, Reserved, "multicast"),
];
const V4_RESERVED: Row<[u8; 4]> = ([240, 0, 0, 0], 4, Reserved, "reserved");
const V6: [Row<[u16; 8]>; 19] = [
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, Metadata, METADATA),
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128, Metadata, METADATA),
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Metadata, METADATA),
    ([0; 8], 128, Reserved, "unspecified"),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, Loopback, "loopback"),
    ([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, Embedding, "IPv4-mapped"),
    ([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, Reserved, "IPv4-translated"),
    ([0; 8], 96, Reserved, "IPv4-compatible"),
    ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Embedding, "NAT64"),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Reserved, "NAT64"),
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64, Reserved, "discard-only"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Reserved, "Teredo"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Reserved, "documentation"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Reserved, "reserved"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Embedding, "6to4"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Reserved, "documentation"),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Private, "unique-local"),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, LinkLocal, "link-local"),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Reserved, "site-local"),
];
/// Range of global unicast addresses; other addresses that are not listed above are multicast or reserved.
const V6_GLOBAL: ([u16; 8], u8) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

impl Range {
    /// Finds the special-purpose range of an address; `None` for a public address.
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(inner) => V4.iter().chain([&V4_RESERVED]).find_map(|(first, prefix, kind, name)| {
                let network = network(Ipv4Addr::from(*first), *prefix);
                network.contains(&IpAddr::V4(inner)).then_some(Self { kind: *kind, name, network })
            }),
            IpAddr::V6(inner) => Self::of_v6(inner),
        }
    }

    fn of_v6(address: Ipv6Addr) -> Option<Self> {
        let address = IpAddr::V6(address);
        let named = V6.iter().find_map(|(first, prefix, kind, name)| {
            let network = network(Ipv6Addr::from(*first), *prefix);
            network.contains(&address).then_some(Self { kind: *kind, name, network })
        });
        if named.is_some() {
            return named;
        }
        let multicast = network(Ipv6Addr::from([0xff00, 0, 0, 0, 0, 0, 0, 0]), 8);
        if multicast.contains(&address) {
            return Some(Self { kind: Reserved, name: "multicast", network: multicast });
        }
        let global = network(Ipv6Addr::from(V6_GLOBAL.0), V6_GLOBAL.1);
        let everything = network(Ipv6Addr::UNSPECIFIED, 0);
        (!global.contains(&address)).then_some(Self { kind: Reserved, name: "reserved", network: everything })
    }
}

/// Returns `true` if an address or the address embedded in it belongs to a cloud metadata service.
pub fn is_metadata(address: IpAddr) -> bool {
    let metadata = |address| Range::of(address).is_some_and(|range| range.kind == Metadata);
    metadata(address) || embedded(address).is_some_and(metadata)
}

/// Extracts the IPv4 address embedded in an IPv6 address: mapped, translated, compatible, NAT64, 6to4 or Teredo.
pub fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else { return None };
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(IpAddr::V4(Ipv4Addr::new(w, x, y, z)))
    };
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0, 0, 0, 0, 0xffff, 0] | [0x64, 0xff9b, 0, 0, 0, 0] => v4(g, h),
        [0x64, 0xff9b, 1, ..] => v4(g, h),
        [0x2002, high, low, ..] => v4(high, low),
        // Teredo inverts the bits of the client's address.
        [0x2001, 0, ..] => v4(!g, !h),
        _ => None,
    }
}

fn network(first: impl Into<IpAddr>, prefix: u8) -> IpNet {
    IpNet::new_assert(first.into(), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_range_is_known_from_its_first_address_to_its_last() {
        for (address, name) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("10.0.0.0", "private"),
            ("10.255.255.255", "private"),
            ("100.64.0.0", "carrier-grade NAT"),
            ("100.127.255.255", "carrier-grade NAT"),
            ("100.100.100.200", METADATA),
            ("127.0.0.1", "loopback"),
            ("127.255.255.255", "loopback"),
            ("168.63.129.16", METADATA),
            ("169.254.0.1", "link-local"),
            ("169.254.169.254", METADATA),
            ("169.254.170.2", METADATA),
            ("169.254.170.23", METADATA),
            ("192.0.0.192", METADATA),
            ("172.16.0.0", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.8", "reserved"),
            ("192.0.2.1", "documentation"),
            ("192.88.99.1", "6to4 relay"),
            ("192.168.0.1", "private"),
            ("198.18.0.0", "benchmarking"),
            ("198.19.255.255", "benchmarking"),
            ("198.51.100.1", "documentation"),
            ("203.0.113.1", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::2", "IPv4-compatible"),
            ("::127.0.0.1", "IPv4-compatible"),
            ("::ffff:127.0.0.1", "IPv4-mapped"),
            ("::ffff:8.8.8.8", "IPv4-mapped"),
            ("::ffff:0:127.0.0.1", "IPv4-translated"),
            ("64:ff9b::7f00:1", "NAT64"),
            ("64:ff9b:1::a00:1", "NAT64"),
            ("64:ff9b:2::1", "reserved"),
            ("100::1", "discard-only"),
            ("2001::1", "Teredo"),
            ("2001:10::1", "reserved"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::", "6to4"),
            ("3fff::1", "documentation"),
            ("4000::1", "reserved"),
            ("fc00::1", "unique-local"),
            ("fd00:ec2::254", METADATA),
            ("fd00:ec2::23", METADATA),
            ("fd20:ce::254", METADATA),
            ("fdff::1", "unique-local"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
        ] {
            let range = Range::of(address.parse().unwrap());
            assert_eq!(range.map(|range| range.name), Some(name), "{address}");
            assert!(
                range.is_some_and(|range| range.network.contains(&address.parse::<IpAddr>().unwrap())),
                "{address}"
            );
        }
    }

    #[test]
    fn public_addresses_are_in_no_special_range() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00::1",
        ] {
            assert_eq!(Range::of(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn metadata_addresses_are_found_in_every_encoding() {
        for address in [
            "169.254.169.254",
            "192.0.0.192",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::6464:64c8",
            "2002:a9fe:aa17::1",
        ] {
            assert!(is_metadata(address.parse().unwrap()), "{address}");
        }
        for address in ["169.254.169.253", "10.0.0.1", "64:ff9b::a00:1", "1.1.1.1", "fd00:ec2::255"] {
            assert!(!is_metadata(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn an_embedded_address_is_found() {
        for (outer, inner) in [
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::ffff:0:10.0.0.1", "10.0.0.1"),
            ("::10.0.0.1", "10.0.0.1"),
            ("64:ff9b::10.0.0.1", "10.0.0.1"),
            ("64:ff9b:1::10.0.0.1", "10.0.0.1"),
            ("2002:a00:1::5", "10.0.0.1"),
            ("2001:0:1:2:3:4:f5ff:fffe", "10.0.0.1"),
        ] {
            assert_eq!(embedded(outer.parse().unwrap()), inner.parse().ok(), "{outer}");
        }
        assert_eq!(embedded("2606:4700::1111".parse().unwrap()), None);
        assert_eq!(embedded("10.0.0.1".parse().unwrap()), None);
    }
}
