//! Addresses of a request's host. Special-purpose ones are granted by address, except that `localhost` is granted by its name.

use std::net::IpAddr;

use toolcrib_foundation::address::{Range, embedded, is_metadata};

use crate::policy::target::Target;
use crate::tool::{Destination, Host};

use super::{Network, Refusal};

/// Maximum length of a flag in a hint, in bytes.
const MAX_FLAG_LEN: usize = 200;

impl Network {
    /// Checks the addresses that a target's host resolves to, and returns the ones that may be used: all of them or
    /// none. One forbidden address forbids the name, because the DNS server could otherwise choose which one is used.
    /// Only `localhost` is resolved by this machine itself, so its granted addresses are used and the others are dropped, unless
    /// one is denied.
    ///
    /// # Errors
    ///
    /// The refusal, if no address may be used.
    pub(crate) fn check_addresses(
        &self,
        target: &Target,
        method: &str,
        mut addresses: Vec<IpAddr>,
    ) -> Result<Vec<IpAddr>, Refusal> {
        if let Some(denial) = addresses.iter().find_map(|address| self.denial(target, method, *address)) {
            return Err(denial);
        }
        let refused = |address: &IpAddr| self.check_address(target, method, *address).err();
        if is_localhost(&target.host) && addresses.iter().any(|address| refused(address).is_none()) {
            addresses.retain(|address| refused(address).is_none());
            return Ok(addresses);
        }
        let mut refusals = addresses.iter().filter_map(refused);
        let Some(mut first) = refusals.next() else { return Ok(addresses) };
        if !is_localhost(&target.host) {
            // The flag must allow all addresses.
            for other in refusals {
                let both = first.denial.flag.zip(other.denial.flag);
                first.denial.flag = both.and_then(|(flag, other)| join(flag, &other));
            }
        }
        Err(first)
    }

    /// Returns the refusal of an address that the operator denies.
    fn denial(&self, target: &Target, method: &str, address: IpAddr) -> Option<Refusal> {
        let denies = |address| {
            let names = |one: &Destination| one.matches(target.scheme, &Host::Address(address), target.port, method);
            self.hints.denied.iter().any(|denied| denied.network().is_some() && names(denied))
        };
        let is_denied = denies(address) || embedded(address).is_some_and(denies);
        let why = "resolves to an address that the operator denies";
        is_denied.then(|| Refusal::new(target.to_string(), None, why.to_owned()))
    }

    fn check_address(&self, target: &Target, method: &str, address: IpAddr) -> Result<(), Refusal> {
        let Target { scheme, port, .. } = *target;
        let names = |one: &Destination, address| one.matches(scheme, &Host::Address(address), port, method);
        let capability = target.to_string();
        if is_localhost(&target.host) {
            if !address.is_loopback() {
                return Err(Refusal::new(capability, None, "resolves to an address of another machine".to_owned()));
            }
            // A grant of the name can mean nothing else.
            if self.allowed.iter().any(|one| one.is_of_name() && one.allows(scheme, &target.host, port, method)) {
                return Ok(());
            }
        }
        let Some(range) = Range::of(address) else { return Ok(()) };
        let opens = |one: &Destination| one.network().is_some_and(|network| range.network.contains(&network));
        if self.allowed.iter().any(|allowed| opens(allowed) && names(allowed, address)) {
            return Ok(());
        }
        let can_allow = self.hints.can_allow(method) && !is_metadata(address);
        let flag = can_allow.then(|| format!("--allow-net={}:{port}", Host::Address(address)));
        let why = format!("resolves to a {} address, which must be granted by address", range.name);
        Err(Refusal::new(capability, flag, why))
    }
}

/// Joins two flags; `None` if the result is too long.
fn join(flag: String, other: &str) -> Option<String> {
    let more = other.strip_prefix("--allow-net=")?;
    let known = flag.split(['=', ',']).any(|one| one == more);
    let both = if known { flag } else { format!("{flag},{more}") };
    (both.len() <= MAX_FLAG_LEN).then_some(both)
}

/// Returns `true` if a name refers to this machine (RFC 6761, section 6.3).
fn is_localhost(host: &Host) -> bool {
    matches!(host, Host::Name(name) if name == "localhost" || name.ends_with(".localhost"))
}
