//! Requests that the calls of a command have sent while a stage held back what they wrote.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib_base::render::one_line;

/// Maximum number of hosts and methods that are told apart.
const MAX_KINDS: usize = 64;
/// Errors of requests that did not leave.
const UNSENT: [&str; 4] = ["denied", "rejected", "request-limit", "secret"];

/// Requests of all calls, by method and host.
#[derive(Debug, Default)]
pub(super) struct SentRequests(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    kinds: BTreeMap<String, u64>,
    /// Requests of further kinds, and those that a receipt does not list.
    others: u64,
}

impl SentRequests {
    /// Lists the requests, a line for each method and host.
    pub(super) fn lines(&self) -> Vec<String> {
        let counts = self.counts();
        // A receipt does not say whether they were refused.
        let others = (counts.others > 0).then(|| format!("others, sent or refused ({})", counts.others));
        counts.kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).chain(others).collect()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for SentRequests {
    fn observe(&self, event: &Event<'_>) {
        let EventKind::Ended(result) = &event.kind else { return };
        let Some(network) = &result.receipt.network else { return };
        let mut counts = self.counts();
        counts.others += network.count.saturating_sub(network.requests.len() as u64);
        for request in network.requests.iter().filter(|one| one.error.is_none_or(|error| !UNSENT.contains(&error))) {
            let port = request.port.map(|port| format!(":{port}")).unwrap_or_default();
            counts.add(one_line(&format!("{} {}{port}", request.method, request.host)));
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
        assert_eq!(lines.last().unwrap(), "others, sent or refused (3)");
    }
}
