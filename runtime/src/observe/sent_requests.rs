//! Requests that calls have sent, counted by method and host.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::call::{Exchange, NetworkUse};

use super::{Event, EventKind, Observer};

/// Maximum number of hosts and methods that are told apart.
const MAX_KINDS: usize = 64;
/// Errors of requests that did not leave.
const UNSENT: [&str; 4] = ["denied", "rejected", "request-limit", "secret"];

/// Requests that calls have sent, by method and host. As an observer, it counts those of all calls.
#[derive(Debug, Default)]
pub struct SentRequests(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    kinds: BTreeMap<String, u64>,
    /// Requests of further kinds, and those that a receipt does not list.
    others: u64,
}

impl SentRequests {
    /// Adds the requests of a call, without those that were refused or are held back.
    pub fn add(&self, network: &NetworkUse) {
        let mut counts = self.counts();
        counts.others += network.count.saturating_sub(network.requests.len() as u64);
        let is_sent = |one: &&Exchange| !one.held && one.error.is_none_or(|error| !UNSENT.contains(&error));
        for request in network.requests.iter().filter(is_sent) {
            let port = request.port.map(|port| format!(":{port}")).unwrap_or_default();
            counts.add(format!("{} {}{port}", request.method, request.host));
        }
    }

    /// Lists the requests, a line such as `POST example.com (2)` for each method and host. The names come from guests.
    pub fn lines(&self) -> Vec<String> {
        let counts = self.counts();
        // A receipt does not say whether they were refused or held back.
        let others = (counts.others > 0).then(|| format!("others, sent, held back or refused ({})", counts.others));
        counts.kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).chain(others).collect()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for SentRequests {
    fn observe(&self, event: &Event<'_>) {
        if let EventKind::Ended(result) = &event.kind {
            result.receipt.network.iter().for_each(|network| self.add(network));
        }
    }
}

impl Counts {
    fn add(&mut self, kind: String) {
        match self.kinds.len() < MAX_KINDS || self.kinds.contains_key(&kind) {
            true => *self.kinds.entry(kind).or_default() += 1,
            false => self.others += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_hosts_are_told_apart_and_the_rest_is_counted() {
        let sent = SentRequests::default();
        for number in 0..MAX_KINDS + 3 {
            sent.counts().add(format!("GET host-{number}"));
        }
        sent.counts().add("GET host-0".to_owned());
        let lines = sent.lines();
        assert_eq!(lines.len(), MAX_KINDS + 1);
        assert!(lines.contains(&"GET host-0 (2)".to_owned()), "{lines:?}");
        assert_eq!(lines.last().unwrap(), "others, sent, held back or refused (3)");
    }
}
