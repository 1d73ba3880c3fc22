//! Where one tool may send requests: what it was granted against what one request names, first by its name and then by
//! every address that the name leads to.
//!
//! A grant by name never reaches an address that is not for the world: this host, its neighbours, its cloud's metadata.
//! Such an address has to be granted itself, as an address or as a network that lies inside its range; then a request may
//! name it, and so may a granted name that leads to it. A network wider than a range does not open that range.

use std::net::IpAddr;

use crate::call::Denial;
use crate::tool::{Destination, Host, NetworkRequest, Tool, is_method};

use super::address::{Range, embedded, tempting};
use super::target::Target;

/// The methods that change nothing (RFC 9110, section 9.2.1), but TRACE, which is never sent.
const SAFE: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// The destinations of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    allowed: Vec<Destination>,
    denied: Vec<Destination>,
    prospect: Prospect,
}

/// What a flag could still allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prospect {
    /// Whether it could allow more destinations.
    widens: bool,
    /// Whether the tool is held to methods that change nothing.
    only_reads: bool,
}

impl Prospect {
    /// For what no flag changes.
    pub(crate) const NONE: Self = Self { widens: false, only_reads: false };

    /// Whether it could allow a request with this method. No flag names what is no plain method: a guest chose it, and
    /// people put the flag into a shell.
    pub(crate) fn helps(self, method: &str) -> bool {
        self.widens && is_method(method) && (!self.only_reads || SAFE.contains(&method))
    }

    /// Whether a hint may name the flag that could allow a request. A guest, or whoever gives a name its addresses,
    /// chooses where it leads: neither puts the key to the cloud's credentials into a hint.
    pub(crate) fn hints(self, target: &Target, method: &str) -> bool {
        self.helps(method) && !matches!(target.host, Host::Address(address) if tempting(address))
    }
}

/// Why a request is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What was wanted, and the flag that would have allowed it.
    pub(crate) denial: Denial,
    /// Why, in words for the model: without addresses.
    pub(crate) why: String,
}

impl Network {
    /// What `tool` asks for and `allowed` allows; what is not allowed is noted. `by_naming` says whether what the tool's
    /// source names is allowed by that.
    pub(super) fn new(
        tool: &Tool,
        by_naming: bool,
        allowed: &[Destination],
        denied: &[Destination],
        notes: &mut Vec<Denial>,
    ) -> Self {
        let stated = tool.requested.stated;
        let mut granted: Vec<Destination> = match &tool.requested.network {
            NetworkRequest::None if stated => Vec::new(),
            NetworkRequest::None => allowed.to_vec(),
            NetworkRequest::Workspace => {
                if allowed.is_empty() {
                    let flag = denied.is_empty().then(|| "--allow-net=HOST".to_owned());
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
        let only_reads = tool.interface.safety.is_read_only.value;
        if only_reads {
            // Its own word is kept for it.
            granted = granted.into_iter().filter_map(|granted| granted.restrict_methods(&SAFE)).collect();
        }
        let mut once = Vec::with_capacity(granted.len());
        granted.into_iter().for_each(|granted| {
            if !once.contains(&granted) && !denied.iter().any(|denied| denied.covers(&granted)) {
                once.push(granted);
            }
        });
        let named = matches!(tool.requested.network, NetworkRequest::Destinations(_));
        // What is denied is not held against each request of a tool without any grant, so no flag is promised to it then.
        let in_vain = once.is_empty() && !denied.is_empty();
        let wants_none = stated && tool.requested.network == NetworkRequest::None;
        let widens = !(named || in_vain || wants_none);
        Self { allowed: once, denied: denied.to_vec(), prospect: Prospect { widens, only_reads } }
    }

    /// The destinations.
    pub fn destinations(&self) -> &[Destination] {
        &self.allowed
    }

    /// Whether nothing can be sent anywhere.
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }

    /// Whether a request may be sent by what it names.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn judge(&self, target: &Target, method: &str) -> Result<(), Refusal> {
        let Target { scheme, host, port } = target;
        if self.denied.iter().any(|denied| denied.matches(*scheme, host, *port, method)) {
            return Err(Refusal::new(format!("{target}"), None, "is denied by the operator".to_owned()));
        }
        if self.allowed.iter().any(|allowed| allowed.allows(*scheme, host, *port, method)) {
            return Ok(());
        }
        let but_method = self.reaches(target);
        let wanted = if but_method { format!("{method} {target}") } else { target.to_string() };
        let why = match but_method {
            true if self.prospect.only_reads => format!("with {method} is not granted to a tool that only reads"),
            true => format!("with {method} is not granted to this tool"),
            false => format!("over {} is not granted to this tool", scheme.as_str()),
        };
        let flag = self.prospect.hints(target, method).then(|| match but_method {
            true => format!("--allow-net='{wanted}'"),
            false => format!("--allow-net={wanted}"),
        });
        Err(Refusal::new(wanted, flag, why))
    }

    /// Whether some request to a target may be sent, whatever its method.
    pub(crate) fn reaches(&self, target: &Target) -> bool {
        let Target { scheme, host, port } = target;
        let method_of = |allowed: &Destination| allowed.any_method().to_owned();
        self.allowed.iter().any(|allowed| allowed.allows(*scheme, host, *port, &method_of(allowed)))
    }

    /// Those addresses of a target's host to which a request may be sent: all of them or none. One forbidden address
    /// forbids the name, for whoever gave it would choose by chance, or by malice, which one is used. Only `localhost`
    /// leads where this host says itself, so that of its addresses those that are granted are used.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn admit(
        &self,
        target: &Target,
        method: &str,
        mut addresses: Vec<IpAddr>,
    ) -> Result<Vec<IpAddr>, Refusal> {
        let refused = |address: &IpAddr| self.admit_one(target, method, *address).err();
        if is_localhost(&target.host) && addresses.iter().any(|address| refused(address).is_none()) {
            addresses.retain(|address| refused(address).is_none());
            return Ok(addresses);
        }
        let mut refusals = addresses.iter().filter_map(refused);
        let Some(mut first) = refusals.next() else { return Ok(addresses) };
        if !is_localhost(&target.host) {
            // All of them are needed, or none is of use.
            for other in refusals {
                let both = first.denial.flag.zip(other.denial.flag);
                first.denial.flag = both.and_then(|(flag, other)| join(flag, &other));
            }
        }
        Err(first)
    }

    fn admit_one(&self, target: &Target, method: &str, address: IpAddr) -> Result<(), Refusal> {
        let Target { scheme, port, .. } = *target;
        let names = |one: &Destination, address| one.matches(scheme, &Host::Address(address), port, method);
        let is_denied = |address| self.denied.iter().any(|denied| denied.network().is_some() && names(denied, address));
        let wanted = target.to_string();
        if is_denied(address) || embedded(address).is_some_and(is_denied) {
            return Err(Refusal::new(wanted, None, "leads to an address that the operator denies".to_owned()));
        }
        let Some(range) = Range::of(address) else { return Ok(()) };
        let opens = |one: &Destination| one.network().is_some_and(|network| range.network.contains(&network));
        if self.allowed.iter().any(|allowed| opens(allowed) && names(allowed, address)) {
            return Ok(());
        }
        let helps = self.prospect.helps(method) && !tempting(address);
        let flag = helps.then(|| format!("--allow-net={}:{port}", Host::Address(address)));
        let why = format!("leads to a {} address, which has to be granted by address", range.name);
        Err(Refusal::new(wanted, flag, why))
    }

    /// The refusal of a tool that was granted nothing, which has no need of a whole grant.
    pub(crate) fn closed(target: &Target, method: &str, prospect: Prospect) -> Refusal {
        let flag = prospect.hints(target, method).then(|| format!("--allow-net={target}"));
        Refusal::new(target.to_string(), flag, "is not granted: this tool was granted no network".to_owned())
    }

    /// What a flag could still allow.
    pub(crate) fn prospect(&self) -> Prospect {
        self.prospect
    }
}

impl Refusal {
    fn new(wanted: String, flag: Option<String>, why: String) -> Self {
        let why = format!("`{wanted}` {why}");
        Self { denial: Denial { capability: format!("net:{wanted}"), flag }, why }
    }
}

/// The longest flag that a hint names, in bytes.
const MAX_FLAG_LEN: usize = 200;

/// Two flags in one; `None` where that is no longer readable.
fn join(flag: String, other: &str) -> Option<String> {
    let more = other.strip_prefix("--allow-net=")?;
    let known = flag.split(['=', ',']).any(|one| one == more);
    let both = if known { flag } else { format!("{flag},{more}") };
    (both.len() <= MAX_FLAG_LEN).then_some(both)
}

/// Whether a name is this host's own (RFC 6761, section 6.3).
fn is_localhost(host: &Host) -> bool {
    matches!(host, Host::Name(name) if name == "localhost" || name.ends_with(".localhost"))
}

/// What is granted of one destination that is asked for by name.
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
        // No flag undoes a denial.
        let text = asked.to_string();
        let flag = if text.contains(' ') { format!("--allow-net='{text}'") } else { format!("--allow-net={text}") };
        notes.push(Denial { capability: format!("net:{text}"), flag: (!is_denied).then_some(flag) });
    }
    granted
}

#[cfg(test)]
mod tests {
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

    /// What a request to `url` comes to where its host leads to `addresses`.
    fn sent(network: &Network, url: &str, addresses: &[&str]) -> Result<(), Refusal> {
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        network.judge(&target(url), "GET")?;
        network.admit(&target(url), "GET", addresses).map(|_| ())
    }

    #[test]
    fn a_name_is_granted_and_what_it_leads_to_is_judged() {
        let one = network(&["api.example"], &[]);
        assert_eq!(sent(&one, "https://api.example", &["1.1.1.1", "2606:4700::1"]), Ok(()));
        for (addresses, range) in [
            (["1.1.1.1", "127.0.0.1"], "loopback"),
            (["10.0.0.1", "1.1.1.1"], "private"),
            (["1.1.1.1", "::ffff:1.1.1.1"], "IPv4-mapped"),
            (["1.1.1.1", "64:ff9b::a00:1"], "NAT64"),
        ] {
            let refusal = sent(&one, "https://api.example", &addresses).unwrap_err();
            assert!(refusal.why.contains(&format!("leads to a {range} address")), "{}", refusal.why);
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
            assert_eq!(one.judge(&url, "GET").unwrap_err().denial.flag, None, "{address}");
            assert_eq!(Network::closed(&url, "GET", one.prospect()).denial.flag, None, "{address}");
        }
    }

    #[test]
    fn an_address_is_granted_by_address_alone() {
        let both = network(&["http://localhost:80", "127.0.0.1:80"], &[]);
        assert_eq!(sent(&both, "http://localhost", &["127.0.0.1"]), Ok(()));
        assert_eq!(sent(&both, "http://127.0.0.1", &["127.0.0.1"]), Ok(()));
        assert!(sent(&both, "http://localhost", &["127.0.0.2"]).is_err());
        let addresses: Vec<IpAddr> = ["::1", "127.0.0.1"].iter().map(|address| address.parse().unwrap()).collect();
        let used = both.admit(&target("http://localhost"), "GET", addresses.clone());
        assert_eq!(used, Ok(vec![addresses[1]]), "the one that is granted is used");
        assert!(sent(&network(&["127.0.0.1:80"], &[]), "http://localhost", &["127.0.0.1"]).is_err());
        assert!(sent(&network(&["*:80"], &[]), "http://127.0.0.1", &["127.0.0.1"]).is_err());
        // A port granted by name is not one granted by address.
        let ports = network(&["http://localhost:8080", "127.0.0.1:80"], &[]);
        assert!(sent(&ports, "http://localhost:8080", &["127.0.0.1"]).is_err());
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
    fn a_denial_wins_and_holds_for_what_a_name_leads_to() {
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
        let flag = |method: &str, url| one.judge(&target(url), method).unwrap_err().denial.flag;
        assert_eq!(flag("GET", "https://b.example:8443").as_deref(), Some("--allow-net=b.example:8443"));
        assert_eq!(flag("POST", "https://api.example").as_deref(), Some("--allow-net='POST api.example:443'"));
    }

    #[test]
    fn no_flag_holds_what_a_shell_would_read() {
        let one = network(&["GET api.example"], &[]);
        for method in ["'$A'", "X'A'", "X`A`", "A|B", "A&B", "A*", "post", "", &"X".repeat(33)] {
            for url in ["https://api.example", "https://b.example", "https://10.0.0.1"] {
                assert_eq!(one.judge(&target(url), method).unwrap_err().denial.flag, None, "{method} {url}");
                assert_eq!(Network::closed(&target(url), method, one.prospect()).denial.flag, None, "{method} {url}");
            }
        }
        // Of a host, nothing comes as far as a flag that is not plain.
        for byte in (0..=127).map(char::from).filter(|byte| !byte.is_ascii_alphanumeric() && !"-_.".contains(*byte)) {
            let read = Host::parse_strict(&format!("a{byte}b.example"));
            assert!(read.is_err(), "{byte:?}: {read:?}");
        }
    }

    #[test]
    fn a_stranger_gets_what_it_asks_for_as_far_as_flags_allow_it() {
        let mut tool = plain("t");
        tool.requested.stated = true;
        tool.requested.network = NetworkRequest::Destinations(list(&["*.example", "other.test"]));
        let allowed: Vec<_> =
            list(&["a.example", "b.example:80"]).into_iter().map(Destination::with_default_port).collect();
        let mut notes = Vec::new();
        let granted = Network::new(&tool, false, &allowed, &[], &mut notes);
        assert_eq!(granted.destinations(), [allowed[0].clone()]);
        assert_eq!(notes[0].flag.as_deref(), Some("--allow-net=https://other.test:443"));
        // What it did not ask for, no flag gives it.
        assert_eq!(granted.judge(&target("https://c.test"), "GET").unwrap_err().denial.flag, None);
    }

    #[test]
    fn a_tool_that_only_reads_is_held_to_methods_that_change_nothing() {
        let mut tool = plain("t");
        tool.interface.safety.is_read_only = Fact { value: true, basis: Basis::Declared };
        let allowed: Vec<_> =
            list(&["api.example", "POST b.example"]).into_iter().map(Destination::with_default_port).collect();
        let granted = Network::new(&tool, false, &allowed, &[], &mut Vec::new());
        assert_eq!(granted.judge(&target("https://api.example"), "GET"), Ok(()));
        for url in ["https://api.example", "https://b.example"] {
            assert!(granted.judge(&target(url), "POST").is_err());
        }
        assert_eq!(target("https://api.example").scheme, Scheme::Https);
    }
}
