//! What the requests of one call came to: counted against their caps while the call runs, and told in its receipt. A call
//! that sends none holds nothing here.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::call::{Denial, Exchange, NetworkUse};
use crate::error::{Outcome, ToolError};
use crate::policy::Refusal;
use crate::sandbox::Usage;
use crate::sandbox::files::{OpenFiles, Places};
use crate::tool::Limits;

use super::fault::Fault;

/// The most requests and denials of one call that are told.
const MAX_TOLD: usize = 16;

/// The account of one call.
#[derive(Debug, Default)]
pub(crate) struct Ledger(OnceLock<Box<Mutex<Account>>>);

#[derive(Debug, Default)]
struct Account {
    told: NetworkUse,
    under_way: usize,
    denials: Vec<Denial>,
    /// Names of the secrets that its requests carried.
    secrets: Vec<String>,
    /// The first secret that a response held.
    leaked: Option<Arc<str>>,
    /// What the latest request failed for, until the guest makes another.
    latest: Option<Fault>,
}

/// One request of a call. While it lives, the request is under way.
#[derive(Debug)]
pub(super) struct Entry {
    usage: Arc<Usage>,
    /// Its place among those that are told.
    index: Option<usize>,
    /// What it holds of the descriptors of the process.
    places: Option<Places>,
}

impl Ledger {
    /// The account, if there is one.
    fn kept(&self) -> Option<MutexGuard<'_, Account>> {
        self.0.get().map(|account| account.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The account, opened now if there is none.
    fn account(&self) -> MutexGuard<'_, Account> {
        self.0.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more request and gives its place among those that are told.
    fn begin(&self, method: &str, limits: &Limits) -> Result<Option<usize>, Fault> {
        let mut account = self.account();
        account.told.count += 1;
        let fault = if account.told.count > limits.requests as u64 {
            Some(Fault::TooMany(limits.requests))
        } else if account.under_way >= limits.requests_at_once {
            Some(Fault::TooManyAtOnce(limits.requests_at_once))
        } else {
            None
        };
        if let Some(fault) = fault {
            account.latest = Some(fault.clone());
            return Err(fault);
        }
        let requests = &mut account.told.requests;
        let index = (requests.len() < MAX_TOLD).then_some(requests.len());
        if index.is_some() {
            requests.push(Exchange { method: method.to_owned(), ..Exchange::default() });
        }
        account.under_way += 1;
        // The guest went on after what failed before.
        account.latest = None;
        Ok(index)
    }

    /// What is told in the receipt.
    pub(crate) fn told(&self) -> Option<NetworkUse> {
        self.kept().map(|account| account.told.clone())
    }

    /// What was refused, with the flags that would have allowed it.
    pub(crate) fn denials(&self) -> Vec<Denial> {
        self.kept().map(|account| account.denials.clone()).unwrap_or_default()
    }

    /// The secrets that were put into requests, each once.
    pub(crate) fn secrets(&self) -> Vec<String> {
        self.kept().map(|account| account.secrets.clone()).unwrap_or_default()
    }

    /// The first secret that a response held.
    pub(crate) fn leaked(&self) -> Option<Arc<str>> {
        self.kept().and_then(|account| account.leaked.clone())
    }

    /// What follows is not due to what failed before.
    pub(crate) fn begin_anew(&self) {
        if let Some(mut account) = self.kept() {
            account.latest = None;
        }
    }

    /// The end of a call that failed right after a request did, without an error object of its own: it failed for that
    /// reason. What a tool says by itself stands, for its failure may be another: the receipt tells of the request.
    pub(crate) fn blame(&self, error: ToolError) -> ToolError {
        if !matches!(error.outcome, Outcome::Failed | Outcome::Trap) || error.json.is_some() {
            return error;
        }
        let latest = self.kept().and_then(|account| account.latest.clone());
        let Some((fault, outcome)) = latest.and_then(|fault| fault.outcome().map(|outcome| (fault, outcome))) else {
            return error;
        };
        let message = match error.outcome {
            Outcome::Failed => format!("{fault}; the tool said: {}", error.message),
            _ => fault.to_string(),
        };
        ToolError::new(outcome, message)
    }
}

impl Entry {
    /// Opens the account of one more request.
    ///
    /// # Errors
    ///
    /// [`Fault::TooMany`] and [`Fault::TooManyAtOnce`]; such a request is counted, too.
    pub(super) fn begin(usage: &Arc<Usage>, method: &str, limits: &Limits) -> Result<Self, Fault> {
        let index = usage.ledger().begin(method, limits)?;
        Ok(Self { usage: usage.clone(), index, places: None })
    }

    /// Takes places for so many descriptors, for as long as it lives.
    ///
    /// # Errors
    ///
    /// [`Fault::NoPlace`].
    pub(super) fn hold(&mut self, descriptors: usize) -> Result<(), Fault> {
        self.places = OpenFiles::of_process().take(descriptors);
        if self.places.is_some() { Ok(()) } else { Err(Fault::NoPlace) }
    }

    fn note<T>(&self, write: impl FnOnce(&mut Account) -> T) -> T {
        write(&mut self.usage.ledger().account())
    }

    fn tell(&self, write: impl FnOnce(&mut Exchange)) {
        let Some(index) = self.index else { return };
        self.note(|account| account.told.requests.get_mut(index).map(write));
    }

    /// Notes where it goes.
    pub(super) fn goes_to(&self, host: &str, port: Option<u16>) {
        self.tell(|told| (told.host, told.port) = (host.to_owned(), port));
    }

    /// Notes what the grant refused, each once and no more than a few, and gives the reason.
    pub(super) fn refused(&self, refusal: Refusal) -> String {
        let Refusal { denial, why } = refusal;
        self.note(|account| {
            if account.denials.len() < MAX_TOLD && !account.denials.contains(&denial) {
                account.denials.push(denial);
            }
        });
        why
    }

    /// Notes that it carries a secret.
    pub(super) fn carries(&self, secret: &str) {
        self.note(|account| {
            if !account.secrets.iter().any(|known| known == secret) {
                account.secrets.push(secret.to_owned());
            }
        });
    }

    /// Notes that it failed.
    pub(super) fn failed(&self, fault: &Fault) {
        self.tell(|told| told.error = Some(fault.word()));
        self.note(|account| {
            if let Fault::Secret(name) = fault {
                account.leaked.get_or_insert(name.clone());
            }
            account.latest = Some(fault.clone());
        });
    }

    /// Notes the status of the response.
    pub(super) fn answered(&self, status: u16) {
        self.tell(|told| told.status = Some(status));
        self.note(|account| account.latest = None);
    }

    /// Counts bytes of the response's body.
    ///
    /// # Errors
    ///
    /// [`Fault::ResponseTooLarge`] where those of the whole call are more than `most`.
    pub(super) fn received(&self, bytes: usize, most: usize) -> Result<(), Fault> {
        let bytes = bytes as u64;
        let total = self.note(|account| {
            account.told.received_bytes += bytes;
            account.told.received_bytes
        });
        self.tell(|told| told.bytes += bytes);
        if total > most as u64 { Err(Fault::ResponseTooLarge(most)) } else { Ok(()) }
    }

    /// Counts bytes of the request's body.
    pub(super) fn sent(&self, bytes: usize) {
        self.note(|account| account.told.sent_bytes += bytes as u64);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.note(|account| account.under_way = account.under_way.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_and_few_are_told() {
        let usage = Arc::new(Usage::default());
        assert_eq!(usage.ledger().told(), None);
        let limits = Limits { requests: 20, requests_at_once: 2, ..Limits::default() };
        for _ in 0..20 {
            drop(Entry::begin(&usage, "GET", &limits).unwrap());
        }
        assert_eq!(Entry::begin(&usage, "GET", &limits).unwrap_err(), Fault::TooMany(20));
        let told = usage.ledger().told().unwrap();
        assert_eq!((told.requests.len(), told.count), (MAX_TOLD, 21));
    }

    #[test]
    fn a_request_is_under_way_until_it_is_dropped() {
        let usage = Arc::new(Usage::default());
        let limits = Limits { requests_at_once: 2, ..Limits::default() };
        let held = [Entry::begin(&usage, "GET", &limits).unwrap(), Entry::begin(&usage, "GET", &limits).unwrap()];
        assert_eq!(Entry::begin(&usage, "GET", &limits).unwrap_err(), Fault::TooManyAtOnce(2));
        drop(held);
        assert!(Entry::begin(&usage, "GET", &limits).is_ok());
    }

    #[test]
    fn a_failure_is_put_down_to_the_request_before_it_alone() {
        let usage = Arc::new(Usage::default());
        let ledger = usage.ledger();
        let failed = || ToolError::new(Outcome::Failed, "no luck");
        let entry = Entry::begin(&usage, "GET", &Limits::default()).unwrap();
        assert_eq!(ledger.blame(failed()).outcome, Outcome::Failed);
        entry.failed(&Fault::Slow(crate::sandbox::network::Phase::Head, "the far side was silent"));
        let blamed = ledger.blame(failed());
        assert_eq!(blamed.outcome, Outcome::Upstream);
        assert_eq!(blamed.message, "a request failed: the far side was silent; the tool said: no luck");
        let own = ToolError { json: Some(r#"{"error":"no luck"}"#.to_owned()), ..failed() };
        for fault in [Fault::Denied("`a.example:443` is denied".into()), Fault::TooMany(1), Fault::Unreachable("far")] {
            entry.failed(&fault);
            assert_eq!(ledger.blame(own.clone()), own, "what the tool says itself stands");
        }
        let next = Entry::begin(&usage, "GET", &Limits::default()).unwrap();
        assert_eq!(ledger.blame(failed()), failed(), "the guest went on");
        drop(next);
        entry.failed(&Fault::Rejected("its method".into()));
        assert_eq!(ledger.blame(failed()).outcome, Outcome::Failed);
        assert_eq!(entry.received(11, 10), Err(Fault::ResponseTooLarge(10)));
        entry.answered(200);
        assert_eq!(ledger.blame(failed()), failed());
        let late = ToolError::new(Outcome::Deadline, "tool timed out");
        entry.failed(&Fault::TooMany(1));
        assert_eq!(ledger.blame(late.clone()), late);
    }
}
