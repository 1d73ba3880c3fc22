//! Network grant of a tool: a request is checked by its target's name, then by every address that the name resolves to.
//!
//! A grant by name does not cover special-purpose addresses: this host, private networks, cloud metadata. Such an
//! address must be granted itself, as an address or as a network within its special-purpose range; then requests may
//! name it, and granted names may resolve to it. A network that is wider than a special-purpose range does not cover
//! that range.

mod addresses;

use std::net::IpAddr;
use std::sync::Arc;

use toolcrib_foundation::address::is_metadata;

use crate::call::{Denial, pasted};
use crate::tool::{Destination, Host, NetworkRequest, Tool, is_method};

use super::target::Target;

/// Safe methods (RFC 9110, section 9.2.1) except TRACE, which is never sent.
const SAFE_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// Network grant of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    allowed: Vec<Destination>,
    hints: FlagHints,
}

/// Conditions under which a refusal names a flag that would allow the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FlagHints {
    /// Denied destinations, which no flag allows.
    denied: Arc<[Destination]>,
    /// `true` if a flag could allow more destinations.
    can_widen: bool,
    /// `true` if the tool is restricted to safe methods.
    safe_methods_only: bool,
}

impl FlagHints {
    /// Returns `true` if a flag could allow requests with this method. No flag contains a malformed method, because the
    /// guest chose it and users paste flags into a shell.
    fn can_allow(&self, method: &str) -> bool {
        self.can_widen && is_method(method) && (!self.safe_methods_only || SAFE_METHODS.contains(&method))
    }

    /// Returns `true` if a refusal may name the flag that would allow a request. The guest or a DNS server chooses the
    /// target, so no flag is named that would expose the credentials of the cloud.
    pub(crate) fn names_flag(&self, target: &Target, method: &str) -> bool {
        let Target { scheme, host, port } = target;
        let is_denied = |denied: &Destination| denied.matches(*scheme, host, *port, method);
        // No destination can be written for an IPv4 address in IPv6 notation.
        let is_mapped = matches!(host, Host::Address(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some());
        self.can_allow(method)
            && !is_mapped
            && !matches!(host, Host::Address(address) if is_metadata(*address))
            && !self.denied.iter().any(is_denied)
    }
}

/// Refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The denied capability, with the flag that would have allowed it.
    pub(crate) denial: Denial,
    /// Reason, worded for the model: without addresses.
    pub(crate) why: String,
}

impl Network {
    /// Grants the destinations that `tool` requests and `allowed` allows, and records denied ones in `notes`. If
    /// `by_naming` is `true`, the source of the tool is the operator's own and its requests are allowed.
    pub(super) fn new(
        tool: &Tool,
        by_naming: bool,
        allowed: &[Destination],
        denied: &[Destination],
        notes: &mut Vec<Denial>,
    ) -> Self {
        let declared = tool.requested.declared;
        let mut granted: Vec<Destination> = match &tool.requested.network {
            NetworkRequest::None if declared => Vec::new(),
            NetworkRequest::None => allowed.to_vec(),
            NetworkRequest::Workspace => {
                if allowed.is_empty() {
                    let can_allow = !denied.contains(&Destination::everything());
                    let flag = can_allow.then(|| "--allow-net=HOST".to_owned());
                    notes.push(Denial { capability: "net".to_owned(), flag });
                }
                allowed.to_vec()
            }
            NetworkRequest::Destinations(asked) => {
                let mut granted = Vec::new();
                for asked in asked {
                    granted.extend(granted_of(&asked.clone().with_default_port(), by_naming, allowed, denied, notes));
                }
                granted
            }
        };
        let safe_methods_only = tool.interface.safety.is_read_only.value;
        if safe_methods_only {
            // The tool declares itself read-only, which restricts its methods.
            granted = granted.into_iter().filter_map(|granted| granted.restrict_methods(&SAFE_METHODS)).collect();
        }
        let mut once = Vec::with_capacity(granted.len());
        granted.into_iter().for_each(|granted| {
            if !once.contains(&granted) && !denied.iter().any(|denied| denied.covers(&granted)) {
                once.push(granted);
            }
        });
        let named = matches!(tool.requested.network, NetworkRequest::Destinations(_));
        let wants_none = declared && tool.requested.network == NetworkRequest::None;
        let can_widen = !(named || wants_none);
        Self { allowed: once, hints: FlagHints { denied: denied.into(), can_widen, safe_methods_only } }
    }

    /// Grants these destinations alone, for requests of the host itself.
    pub(crate) fn of_host(destinations: impl IntoIterator<Item = Destination>) -> Self {
        let allowed = destinations.into_iter().map(Destination::with_default_port).collect();
        Self { allowed, hints: FlagHints::default() }
    }

    /// Granted destinations.
    pub fn destinations(&self) -> &[Destination] {
        &self.allowed
    }

    /// Granted destinations.
    pub(crate) fn allowed(&self) -> impl Iterator<Item = &Destination> {
        self.allowed.iter()
    }

    /// Returns `true` if no destination is granted.
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }

    /// Checks a request by the name of its target.
    ///
    /// # Errors
    ///
    /// The refusal of the request.
    pub(crate) fn check_target(&self, target: &Target, method: &str) -> Result<(), Refusal> {
        let Target { scheme, host, port } = target;
        if self.hints.denied.iter().any(|denied| denied.matches(*scheme, host, *port, method)) {
            return Err(Refusal::new(format!("{target}"), None, "is denied by the operator".to_owned()));
        }
        if self.allowed.iter().any(|allowed| allowed.allows(*scheme, host, *port, method)) {
            return Ok(());
        }
        let is_reachable = self.reaches(target);
        let capability = if is_reachable { format!("{method} {target}") } else { target.to_string() };
        let why = match is_reachable {
            true if self.hints.safe_methods_only => format!("with {method} is not granted to a tool that only reads"),
            true => format!("with {method} is not granted to this tool"),
            false => format!("over {} is not granted to this tool", scheme.as_str()),
        };
        let flag = match is_reachable {
            true => pasted("--allow-net", &capability),
            false => Some(format!("--allow-net={capability}")),
        };
        let flag = flag.filter(|_| self.hints.names_flag(target, method));
        Err(Refusal::new(capability, flag, why))
    }

    /// Returns `true` if requests with some method may be sent to a target.
    pub(crate) fn reaches(&self, target: &Target) -> bool {
        let Target { scheme, host, port } = target;
        let method_of = |allowed: &Destination| allowed.any_method().to_owned();
        self.allowed.iter().any(|allowed| allowed.allows(*scheme, host, *port, &method_of(allowed)))
    }

    /// Refuses a request of a tool without any network grant.
    pub(crate) fn refuse(target: &Target, method: &str, hints: &FlagHints) -> Refusal {
        let flag = hints.names_flag(target, method).then(|| format!("--allow-net={target}"));
        Refusal::new(target.to_string(), flag, "is not granted: this tool was granted no network".to_owned())
    }

    /// Conditions under which a refusal names a flag.
    pub(crate) fn hints(&self) -> &FlagHints {
        &self.hints
    }
}

impl Refusal {
    fn new(capability: String, flag: Option<String>, why: String) -> Self {
        let why = format!("`{capability}` {why}");
        Self { denial: Denial { capability: format!("net:{capability}"), flag }, why }
    }
}

/// Grants a requested destination as far as it is allowed.
fn granted_of(
    asked: &Destination,
    by_naming: bool,
    allowed: &[Destination],
    denied: &[Destination],
    notes: &mut Vec<Denial>,
) -> Vec<Destination> {
    let is_denied = denied.iter().any(|denied| denied.covers(asked));
    let granted: Vec<_> = match by_naming {
        true => vec![asked.clone()],
        false => allowed.iter().filter_map(|allowed| allowed.intersection(asked)).collect(),
    };
    if is_denied || granted.is_empty() {
        // No flag overrides a denial.
        let text = asked.to_string();
        let flag = match text.contains(' ') {
            true => pasted("--allow-net", &text),
            false => Some(format!("--allow-net={text}")),
        };
        notes.push(Denial { capability: format!("net:{text}"), flag: flag.filter(|_| !is_denied) });
    }
    granted
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use crate::tool::tests::plain;
    use crate::tool::{Basis, Fact, Scheme};

    use super::*;

    fn list(texts: &[&str]) -> Vec<Destination> {
        texts.iter().map(|text| text.parse::<Destination>().unwrap()).collect()
    }

    fn network(allowed: &[&str], denied: &[&str]) -> Network {
        let allowed: Vec<_> = list(allowed).into_iter().map(Destination::with_default_port).collect();
        Network::new(&plain("t"), false, &allowed, &list(denied), &mut Vec::new())
    }

    fn target(url: &str) -> Target {
        Target::of_url(url).unwrap()
    }

    /// Checks a request to `url` whose host resolves to `addresses`.
    fn sent(network: &Network, url: &str, addresses: &[&str]) -> Result<(), Refusal> {
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        network.check_target(&target(url), "GET")?;
        network.check_addresses(&target(url), "GET", addresses).map(|_| ())
    }

    #[test]
    fn a_refusal_names_a_flag_unless_a_denial_overrides_it() {
        let flag = |denied: &[&str], url: &str| {
            let hints = network(&[], denied).hints().clone();
            Network::refuse(&target(url), "GET", &hints).denial.flag
        };
        let allow = Some("--allow-net=api.example:443".to_owned());
        for denied in [&[][..], &["POST api.example"], &["http://api.example"], &["other.example"], &["10.0.0.0/8"]] {
            assert_eq!(flag(denied, "https://api.example"), allow, "{denied:?}");
        }
        for denied in [&["*"][..], &["api.example"], &["GET,POST *.example"], &["https://api.example:443"]] {
            assert_eq!(flag(denied, "https://api.example"), None, "{denied:?}");
        }
        assert_eq!(flag(&["10.0.0.0/8"], "https://10.1.2.3"), None);
    }

    #[test]
    fn a_name_is_granted_and_its_addresses_are_checked() {
        let one = network(&["api.example"], &[]);
        assert_eq!(sent(&one, "https://api.example", &["1.1.1.1", "2606:4700::1"]), Ok(()));
        for (addresses, range) in [
            (["1.1.1.1", "127.0.0.1"], "loopback"),
            (["10.0.0.1", "1.1.1.1"], "private"),
            (["1.1.1.1", "::ffff:1.1.1.1"], "IPv4-mapped"),
            (["1.1.1.1", "64:ff9b::a00:1"], "NAT64"),
        ] {
            let refusal = sent(&one, "https://api.example", &addresses).unwrap_err();
            assert!(refusal.why.contains(&format!("resolves to a {range} address")), "{}", refusal.why);
            assert!(!refusal.why.contains(addresses[0]) && !refusal.why.contains(addresses[1]), "{}", refusal.why);
            assert!(refusal.denial.flag.is_some_and(|flag| flag.starts_with("--allow-net=")));
        }
        let both = sent(&one, "https://api.example", &["10.0.0.1", "1.1.1.1", "10.0.0.2", "10.0.0.1"]).unwrap_err();
        assert_eq!(both.denial.flag.as_deref(), Some("--allow-net=10.0.0.1:443,10.0.0.2:443"));
        let metadata = sent(&one, "https://api.example", &["169.254.169.254"]).unwrap_err();
        assert_eq!((metadata.denial.capability.as_str(), metadata.denial.flag), ("net:api.example:443", None));
        for address in
            ["169.254.169.254", "192.0.0.192", "[64:ff9b::a9fe:a9fe]", "[fd00:ec2::254]", "[2002:a9fe:a9fe::]"]
        {
            let bare = address.trim_matches(['[', ']']);
            assert_eq!(sent(&one, "https://api.example", &[bare]).unwrap_err().denial.flag, None, "{address}");
            let url = target(&format!("http://{address}"));
            assert_eq!(one.check_target(&url, "GET").unwrap_err().denial.flag, None, "{address}");
            assert_eq!(Network::refuse(&url, "GET", one.hints()).denial.flag, None, "{address}");
        }
    }

    #[test]
    fn an_address_is_granted_by_address_alone() {
        let both = network(&["http://machine:80", "127.0.0.1:80"], &[]);
        assert_eq!(sent(&both, "http://machine", &["127.0.0.1"]), Ok(()));
        assert_eq!(sent(&both, "http://127.0.0.1", &["127.0.0.1"]), Ok(()));
        assert!(sent(&both, "http://machine", &["127.0.0.2"]).is_err());
        assert!(sent(&network(&["127.0.0.1:80"], &[]), "http://machine", &["127.0.0.1"]).is_err());
        assert!(sent(&network(&["*:80"], &[]), "http://127.0.0.1", &["127.0.0.1"]).is_err());
        // A port granted by name is not one granted by address.
        let ports = network(&["http://machine:8080", "127.0.0.1:80"], &[]);
        assert!(sent(&ports, "http://machine:8080", &["127.0.0.1"]).is_err());
    }

    #[test]
    fn localhost_is_granted_by_its_name_and_is_this_machine_alone() {
        let named = network(&["http://localhost:8080"], &[]);
        let of = |network: &Network, texts: &[&str]| {
            let addresses = texts.iter().map(|text| text.parse().unwrap()).collect();
            let used = network.check_addresses(&target("http://localhost:8080"), "GET", addresses).unwrap_or_default();
            used.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of(&named, &["::1", "127.0.0.1"]), ["::1", "127.0.0.1"]);
        assert_eq!(of(&named, &["192.168.1.5", "127.0.0.1"]), ["127.0.0.1"]);
        // Also a granted or public address of another machine is none of `localhost`.
        let wide = network(&["http://localhost:8080", "192.168.1.5:8080", "*"], &[]);
        assert!(of(&wide, &["192.168.1.5", "93.184.215.14"]).is_empty());
        for other in
            ["http://localhost:80", "https://localhost:8080", "*:8080", "*.localhost:8080", "POST localhost:8080"]
        {
            assert!(of(&network(&[other], &[]), &["127.0.0.1"]).is_empty(), "{other}");
        }
        let denied = network(&["http://localhost:8080"], &["127.0.0.0/8"]);
        assert!(of(&denied, &["127.0.0.1"]).is_empty() && of(&denied, &["::1", "127.0.0.1"]).is_empty());
        let by_address = network(&["*:8080", "127.0.0.1:8080"], &[]);
        assert_eq!(of(&by_address, &["::1", "127.0.0.1"]), ["127.0.0.1"], "the one that is granted is used");
    }

    #[test]
    fn a_network_wider_than_a_range_does_not_open_it() {
        let wide = network(&["0.0.0.0/0:80", "169.254.0.0/16:80"], &[]);
        assert_eq!(sent(&wide, "http://1.1.1.1", &["1.1.1.1"]), Ok(()));
        assert_eq!(sent(&wide, "http://169.254.1.1", &["169.254.1.1"]), Ok(()));
        for address in ["127.0.0.1", "10.0.0.1", "169.254.169.254"] {
            assert!(sent(&wide, &format!("http://{address}"), &[address]).is_err(), "{address}");
        }
    }

    #[test]
    fn a_denial_wins_and_covers_the_addresses_of_a_name() {
        let one = network(&["*:443", "10.0.0.0/8:443"], &["evil.example", "1.1.1.0/24", "10.1.0.0/16"]);
        assert_eq!(sent(&one, "https://good.example", &["1.0.0.1", "10.2.0.1"]), Ok(()));
        for (url, address) in [
            ("https://evil.example", "1.0.0.1"),
            ("https://good.example", "1.1.1.1"),
            ("https://good.example", "2002:101:101::1"),
            ("https://good.example", "10.1.0.1"),
            ("https://10.1.0.1", "10.1.0.1"),
        ] {
            assert_eq!(sent(&one, url, &[address]).unwrap_err().denial.flag, None, "{url} {address}");
        }
        assert!(network(&["*", "127.0.0.1"], &["*"]).is_empty());
    }

    #[test]
    fn a_refusal_names_the_flag_that_would_have_helped() {
        let one = network(&["GET api.example"], &[]);
        let flag = |method: &str, url| one.check_target(&target(url), method).unwrap_err().denial.flag;
        assert_eq!(flag("GET", "https://b.example:8443").as_deref(), Some("--allow-net=b.example:8443"));
        assert_eq!(flag("POST", "https://api.example").as_deref(), Some("--allow-net='POST api.example:443'"));
    }

    #[test]
    fn no_flag_holds_what_a_shell_would_read() {
        let one = network(&["GET api.example"], &[]);
        for method in ["'$A'", "X'A'", "X`A`", "A|B", "A&B", "A*", "post", "", &"X".repeat(33)] {
            for url in ["https://api.example", "https://b.example", "https://10.0.0.1"] {
                assert_eq!(one.check_target(&target(url), method).unwrap_err().denial.flag, None, "{method} {url}");
                assert_eq!(Network::refuse(&target(url), method, one.hints()).denial.flag, None, "{method} {url}");
            }
        }
        // Of a host, nothing comes as far as a flag that is not plain.
        for byte in (0..=127).map(char::from).filter(|byte| !byte.is_ascii_alphanumeric() && !"-_.".contains(*byte)) {
            let read = Host::parse_strict(&format!("a{byte}b.example"));
            assert!(read.is_err(), "{byte:?}: {read:?}");
        }
    }

    #[test]
    fn an_untrusted_tool_gets_its_requests_as_far_as_flags_allow() {
        let mut tool = plain("t");
        tool.requested.declared = true;
        tool.requested.network = NetworkRequest::Destinations(list(&["*.example", "other.test"]));
        let allowed: Vec<_> =
            list(&["a.example", "b.example:80"]).into_iter().map(Destination::with_default_port).collect();
        let mut notes = Vec::new();
        let granted = Network::new(&tool, false, &allowed, &[], &mut notes);
        assert_eq!(granted.destinations(), [allowed[0].clone()]);
        assert_eq!(notes[0].flag.as_deref(), Some("--allow-net=https://other.test:443"));
        // No flag grants a destination that the tool did not request.
        assert_eq!(granted.check_target(&target("https://c.test"), "GET").unwrap_err().denial.flag, None);
    }

    #[test]
    fn a_tool_that_only_reads_is_held_to_methods_that_change_nothing() {
        let mut tool = plain("t");
        tool.interface.safety.is_read_only = Fact { value: true, basis: Basis::Declared };
        let allowed: Vec<_> =
            list(&["api.example", "POST b.example"]).into_iter().map(Destination::with_default_port).collect();
        let granted = Network::new(&tool, false, &allowed, &[], &mut Vec::new());
        assert_eq!(granted.check_target(&target("https://api.example"), "GET"), Ok(()));
        for url in ["https://api.example", "https://b.example"] {
            assert!(granted.check_target(&target(url), "POST").is_err());
        }
        assert_eq!(target("https://api.example").scheme, Scheme::Https);
    }
}
