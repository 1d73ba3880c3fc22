//! Entry of one request in its call's log.

use std::sync::Arc;

use crate::flow::{Source, Way};
use crate::policy::{Refusal, Target};
use crate::sandbox::descriptor_budget::{DescriptorBudget, DescriptorPermit};
use crate::sandbox::usage::{RequestError, Usage};
use crate::tool::Limits;

/// One request of a call. It counts as active until it is dropped.
#[derive(Debug)]
pub(super) struct LoggedRequest {
    usage: Arc<Usage>,
    /// Index among the recorded requests.
    index: Option<usize>,
    /// Descriptors that the request holds.
    permit: Option<DescriptorPermit>,
}

impl LoggedRequest {
    /// Begins the log entry of a new request.
    ///
    /// # Errors
    ///
    /// [`RequestError::TooMany`] and [`RequestError::TooManyAtOnce`]. Such a request is counted too.
    pub(super) fn begin(usage: &Arc<Usage>, method: &str, limits: &Limits) -> Result<Self, RequestError> {
        let index = usage.requests().begin(method, limits)?;
        Ok(Self { usage: usage.clone(), index, permit: None })
    }

    /// Takes this many descriptors for the lifetime of the request.
    ///
    /// # Errors
    ///
    /// [`RequestError::NoDescriptors`].
    pub(super) fn take_descriptors(&mut self, count: usize) -> Result<(), RequestError> {
        self.permit = DescriptorBudget::of_process().take(count);
        if self.permit.is_some() { Ok(()) } else { Err(RequestError::NoDescriptors) }
    }

    /// Records the target.
    pub(super) fn set_target(&self, host: &str, port: Option<u16>) {
        self.usage.requests().update(self.index, |exchange| (exchange.host, exchange.port) = (host.to_owned(), port));
    }

    /// Records a refusal by the grant, and returns its reason.
    pub(super) fn refuse(&self, refusal: Refusal) -> String {
        self.usage.requests().refuse(refusal)
    }

    /// Refuses to send more if a rule about flows forbids it after what the call has read.
    ///
    /// # Errors
    ///
    /// [`RequestError::Denied`].
    pub(super) fn check_flow(&self) -> Result<(), RequestError> {
        match self.usage.whole().flow.refusal(Way::Net) {
            None => Ok(()),
            Some((denial, why)) => Err(RequestError::Denied(self.refuse(Refusal { denial, why }))),
        }
    }

    /// Notes for the label of the call that it reads a response.
    pub(super) fn note_response(&self, target: &Target) {
        let flow = &self.usage.whole().flow;
        flow.read(Source::Host(target.scheme, &target.host, target.port));
        // The server may answer with what the secret opens.
        self.usage.requests().secrets().iter().for_each(|secret| flow.read(Source::Secret(secret)));
    }

    /// Records that the request carries a secret.
    pub(super) fn carry(&self, secret: &str) {
        self.usage.requests().carry(secret);
    }

    /// Records that the request is held back.
    pub(super) fn hold(&self) {
        self.usage.requests().update(self.index, |exchange| exchange.held = true);
    }

    /// Records the error that ended the request.
    pub(super) fn fail(&self, error: &RequestError) {
        self.usage.requests().fail(self.index, error);
    }

    /// Records the status of the response.
    pub(super) fn answer(&self, status: u16) {
        self.usage.requests().answer(self.index, status);
    }

    /// Counts bytes of the response body.
    ///
    /// # Errors
    ///
    /// [`RequestError::ResponseTooLarge`] if the response bodies of the whole call exceed `max` bytes.
    pub(super) fn receive(&self, bytes: usize, max: usize) -> Result<(), RequestError> {
        let total = self.usage.requests().receive(self.index, bytes as u64);
        if total > max as u64 { Err(RequestError::ResponseTooLarge(max)) } else { Ok(()) }
    }

    /// Counts bytes of the request body.
    pub(super) fn send(&self, bytes: usize) {
        self.usage.requests().send(bytes as u64);
    }
}

impl Drop for LoggedRequest {
    fn drop(&mut self) {
        self.usage.requests().end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Outcome, ToolError};
    use crate::sandbox::usage::RequestPhase;

    #[test]
    fn requests_are_counted_and_few_are_told() {
        let usage = Arc::new(Usage::default());
        assert_eq!(usage.requests().summary(), None);
        let limits = Limits { requests: 20, requests_at_once: 2, ..Limits::default() };
        for _ in 0..20 {
            drop(LoggedRequest::begin(&usage, "GET", &limits).unwrap());
        }
        assert_eq!(LoggedRequest::begin(&usage, "GET", &limits).unwrap_err(), RequestError::TooMany(20));
        let summary = usage.requests().summary().unwrap();
        assert_eq!((summary.requests.len(), summary.count), (16, 21));
    }

    #[test]
    fn a_request_is_under_way_until_it_is_dropped() {
        let usage = Arc::new(Usage::default());
        let limits = Limits { requests_at_once: 2, ..Limits::default() };
        let active = [
            LoggedRequest::begin(&usage, "GET", &limits).unwrap(),
            LoggedRequest::begin(&usage, "GET", &limits).unwrap(),
        ];
        assert_eq!(LoggedRequest::begin(&usage, "GET", &limits).unwrap_err(), RequestError::TooManyAtOnce(2));
        drop(active);
        assert!(LoggedRequest::begin(&usage, "GET", &limits).is_ok());
    }

    #[test]
    fn a_failure_is_put_down_to_the_request_before_it_alone() {
        let usage = Arc::new(Usage::default());
        let log = usage.requests();
        let failed = || ToolError::new(Outcome::Failed, "no luck");
        let logged = LoggedRequest::begin(&usage, "GET", &Limits::default()).unwrap();
        assert_eq!(log.attribute(failed()).outcome, Outcome::Failed);
        logged.fail(&RequestError::Slow(RequestPhase::Head, "the server was silent"));
        let attributed = log.attribute(failed());
        assert_eq!(attributed.outcome, Outcome::Upstream);
        assert_eq!(attributed.message, "a request failed: the server was silent; the tool reported: no luck");
        let own = ToolError { json: Some(r#"{"error":"no luck"}"#.to_owned()), ..failed() };
        for error in [
            RequestError::Denied("`a.example:443` is denied".into()),
            RequestError::TooMany(1),
            RequestError::Unreachable("far"),
        ] {
            logged.fail(&error);
            assert_eq!(log.attribute(own.clone()), own, "what the tool says itself stands");
        }
        let next = LoggedRequest::begin(&usage, "GET", &Limits::default()).unwrap();
        assert_eq!(log.attribute(failed()), failed(), "the guest went on");
        drop(next);
        logged.fail(&RequestError::Rejected("its method".into()));
        assert_eq!(log.attribute(failed()).outcome, Outcome::Failed);
        assert_eq!(logged.receive(11, 10), Err(RequestError::ResponseTooLarge(10)));
        logged.answer(200);
        assert_eq!(log.attribute(failed()), failed());
        let late = ToolError::new(Outcome::Deadline, "tool timed out");
        logged.fail(&RequestError::TooMany(1));
        assert_eq!(log.attribute(late.clone()), late);
    }
}
