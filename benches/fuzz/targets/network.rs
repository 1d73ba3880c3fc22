//! Target for destinations: no spelling of another host matches the granted one, and a grant of all names allows no address
//! outside the public network. Nothing is sent: the URL is checked against the grant before the tool starts.

use std::net::IpAddr;
use std::path::Path;

use serde_json::json;
use toolcrib::policy::{Permission, Policy};
use toolcrib::tool::Destination;
use toolcrib::{Outcome, Runtime};

use super::{Act, call, manifest_of, parts};

/// Host of the first grant.
const HOST: &str = "api.example.com";

/// Target for destinations. Input: destinations as an operator writes them, a NUL, and a URL.
pub(super) fn network(folder: &Path) -> Act {
    let named = json!([{"field": "/url", "use": "connect"}]);
    let source = manifest_of(folder, json!({"interface": {"io_preflight_validation": named}}));
    let threads = super::threads();
    let granted = |host: &str| {
        let policy = Policy::default().allow(Permission::Net(host.parse().expect("a destination")));
        Runtime::builder(toolcrib::Audit::off())
            .source(&source)
            .policy(policy)
            .concurrency(1)
            .build()
            .expect("a runtime")
    };
    let [one, all] = [HOST, "*"].map(granted);
    Box::new(move |input| {
        let (list, url) = parts(input);
        let (Ok(list), Ok(url)) = (std::str::from_utf8(list), std::str::from_utf8(url)) else { return };
        for destination in Destination::parse_list(list).unwrap_or_default() {
            let again = destination.to_string().parse();
            assert_eq!(again.as_ref(), Ok(&destination), "{destination} is read as another");
        }
        let allowed = |runtime: &Runtime| {
            let result = call(&threads, runtime, "t", &json!({ "url": url }).to_string());
            result.receipt.outcome != Outcome::Denied
        };
        let authority = authority(url);
        if allowed(&one) {
            let host = authority.strip_suffix(":443").unwrap_or(&authority);
            assert_eq!(host, HOST, "{url:?} is taken for the host that is granted");
        }
        if allowed(&all) {
            let host =
                authority.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map_or(&*authority, |it| it.0);
            let address = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
            assert!(!address.is_some_and(|address| is_near(&address)), "{url:?} is not for the world");
            let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
            let numeric = match last.strip_prefix("0x") {
                Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
                None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
            };
            assert!(!numeric || address.is_some(), "{url:?} is an address in disguise");
            assert!(!authority.contains(['@', '\\', ' ', '%']), "{url:?} can be read in two ways");
        }
    })
}

/// Returns the host and port of a URL in lower case.
fn authority(url: &str) -> String {
    let url = url.to_ascii_lowercase();
    let rest = url.split_once("://").map_or(&*url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned()
}

/// Returns `true` if an address is not public: loopback, local network, multicast or unspecified.
fn is_near(address: &IpAddr) -> bool {
    let common = address.is_loopback() || address.is_unspecified() || address.is_multicast();
    common
        || match address {
            IpAddr::V4(address) => address.is_private() || address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => {
                let mapped = address.to_ipv4_mapped().is_some_and(|inner| is_near(&IpAddr::V4(inner)));
                mapped || address.is_unique_local() || address.is_unicast_link_local()
            }
        }
}
