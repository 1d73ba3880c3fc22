//! HTTP request log of one call: requests are counted against their limits while the call runs, and reported in its
//! receipt. A call without requests allocates nothing here.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::call::{Denial, Exchange, NetworkUse};
use crate::error::{Outcome, ToolError};
use crate::policy::Refusal;
use crate::tool::Limits;

use super::counters::MAX_RECORDED;
use super::request_error::RequestError;

/// Log of one call's requests.
#[derive(Debug, Default)]
pub(crate) struct RequestLog(OnceLock<Box<Mutex<Totals>>>);

/// Figures for all requests of one call.
#[derive(Debug, Default)]
struct Totals {
    network: NetworkUse,
    /// Number of requests with a response that is not read to its end.
    active: usize,
    denials: Vec<Denial>,
    /// Names of the secrets that requests carried.
    secrets: Vec<String>,
    /// First secret that a response contained.
    leaked: Option<Arc<str>>,
    /// Error of the latest request, until the guest sends another.
    latest: Option<RequestError>,
}

impl RequestLog {
    /// Returns the totals if the call has sent a request.
    fn existing(&self) -> Option<MutexGuard<'_, Totals>> {
        self.0.get().map(|totals| totals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the totals, created if there are none.
    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.0.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new request and returns its index among the recorded ones, if it has one.
    ///
    /// # Errors
    ///
    /// [`RequestError::TooMany`] and [`RequestError::TooManyAtOnce`]. Such a request is counted too.
    pub(in crate::sandbox) fn begin(&self, method: &str, limits: &Limits) -> Result<Option<usize>, RequestError> {
        let mut totals = self.totals();
        totals.network.count += 1;
        let error = if totals.network.count > limits.requests as u64 {
            Some(RequestError::TooMany(limits.requests))
        } else if totals.active >= limits.requests_at_once {
            Some(RequestError::TooManyAtOnce(limits.requests_at_once))
        } else {
            None
        };
        if let Some(error) = error {
            totals.latest = Some(error.clone());
            return Err(error);
        }
        let requests = &mut totals.network.requests;
        let index = (requests.len() < MAX_RECORDED).then_some(requests.len());
        if index.is_some() {
            requests.push(Exchange { method: method.to_owned(), ..Exchange::default() });
        }
        totals.active += 1;
        // The guest continued after an earlier failure.
        totals.latest = None;
        Ok(index)
    }

    /// Counts the end of a request.
    pub(in crate::sandbox) fn end(&self) {
        let mut totals = self.totals();
        totals.active = totals.active.saturating_sub(1);
    }

    /// Updates a recorded request.
    pub(in crate::sandbox) fn update(&self, index: Option<usize>, update: impl FnOnce(&mut Exchange)) {
        let Some(index) = index else { return };
        self.totals().network.requests.get_mut(index).map(update);
    }

    /// Records a refusal and returns its reason. Each denial is recorded once, and at most [`MAX_RECORDED`] are.
    pub(in crate::sandbox) fn refuse(&self, refusal: Refusal) -> String {
        let Refusal { denial, why } = refusal;
        let mut totals = self.totals();
        if totals.denials.len() < MAX_RECORDED && !totals.denials.contains(&denial) {
            totals.denials.push(denial);
        }
        why
    }

    /// Records that a request carries a secret.
    pub(crate) fn carry(&self, secret: &str) {
        let mut totals = self.totals();
        if !totals.secrets.iter().any(|known| known == secret) {
            totals.secrets.push(secret.to_owned());
        }
    }

    /// Records the error of a request.
    pub(in crate::sandbox) fn fail(&self, index: Option<usize>, error: &RequestError) {
        self.update(index, |exchange| exchange.error = Some(error.word()));
        let mut totals = self.totals();
        if let RequestError::Secret(name) = error {
            totals.leaked.get_or_insert(name.clone());
        }
        totals.latest = Some(error.clone());
    }

    /// Records the status of a response.
    pub(in crate::sandbox) fn answer(&self, index: Option<usize>, status: u16) {
        self.update(index, |exchange| exchange.status = Some(status));
        self.totals().latest = None;
    }

    /// Counts bytes in a response body, and returns the bytes in all response bodies of the call.
    pub(in crate::sandbox) fn receive(&self, index: Option<usize>, bytes: u64) -> u64 {
        let total = {
            let mut totals = self.totals();
            totals.network.received_bytes += bytes;
            totals.network.received_bytes
        };
        self.update(index, |exchange| exchange.bytes += bytes);
        total
    }

    /// Counts bytes of a request body.
    pub(in crate::sandbox) fn send(&self, bytes: u64) {
        self.totals().network.sent_bytes += bytes;
    }

    /// Returns the summary for the receipt.
    pub(crate) fn summary(&self) -> Option<NetworkUse> {
        self.existing().map(|totals| totals.network.clone())
    }

    /// Returns the denials, with the flags that would have allowed each request.
    pub(crate) fn denials(&self) -> Vec<Denial> {
        self.existing().map(|totals| totals.denials.clone()).unwrap_or_default()
    }

    /// Returns the names of the secrets that requests carried, each once.
    pub(crate) fn secrets(&self) -> Vec<String> {
        self.existing().map(|totals| totals.secrets.clone()).unwrap_or_default()
    }

    /// Returns the name of the first secret that a response contained.
    pub(crate) fn leaked(&self) -> Option<Arc<str>> {
        self.existing().and_then(|totals| totals.leaked.clone())
    }

    /// Returns `true` if the latest request was denied.
    pub(crate) fn is_latest_denied(&self) -> bool {
        let latest = self.existing().and_then(|totals| totals.latest.clone());
        latest.is_some_and(|error| error.outcome() == Some(Outcome::Denied))
    }

    /// Forgets the error of the latest request, so that later failures are not attributed to it.
    pub(crate) fn clear_latest(&self) {
        if let Some(mut totals) = self.existing() {
            totals.latest = None;
        }
    }

    /// Attributes the failure of a call to the request that failed right before it. A failure that the tool reported as
    /// JSON stays as it is, for it may have another reason; the receipt still names the request.
    pub(crate) fn attribute(&self, error: ToolError) -> ToolError {
        if !matches!(error.outcome, Outcome::Failed | Outcome::Trap) || error.json.is_some() {
            return error;
        }
        let latest = self.existing().and_then(|totals| totals.latest.clone());
        let Some((cause, outcome)) = latest.and_then(|cause| cause.outcome().map(|outcome| (cause, outcome))) else {
            return error;
        };
        let message = match error.outcome {
            Outcome::Failed => format!("{cause}; the tool reported: {}", error.message),
            _ => cause.to_string(),
        };
        ToolError::new(outcome, message)
    }
}
