//! Requests that wait for the answer about the effects of their call.

use std::fmt;
use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::call::Exchange;
use crate::policy::HeldRequest;

use super::request_error::RequestError;

/// Maximum number of requests that wait for one answer, and maximum bytes in their bodies.
const MAX_WAITING: usize = 256;
const MAX_BYTES: usize = 16 << 20;

/// Request that waits, with the way to send it.
pub(crate) struct WaitingRequest {
    pub(in crate::sandbox) method: String,
    pub(in crate::sandbox) url: String,
    pub(in crate::sandbox) body: Bytes,
    pub(in crate::sandbox) send: Box<dyn FnOnce() -> BoxFuture<'static, SentRequest> + Send>,
}

/// Result of a request that waited.
pub(crate) struct SentRequest {
    pub(crate) exchange: Exchange,
    /// Names of the secrets that it carried.
    pub(crate) secrets: Vec<String>,
    /// Reason for which it has no response.
    pub(crate) error: Option<RequestError>,
}

/// Requests that wait, in their order.
#[derive(Default)]
pub(crate) struct WaitingRequests(Mutex<Vec<WaitingRequest>>);

impl WaitingRequest {
    /// Sends the request.
    pub(crate) async fn send(self) -> SentRequest {
        (self.send)().await
    }
}

impl WaitingRequests {
    /// Adds a request.
    ///
    /// # Errors
    ///
    /// [`RequestError::TooManyHeld`].
    pub(in crate::sandbox) fn add(&self, request: WaitingRequest) -> Result<(), RequestError> {
        let mut waiting = self.waiting();
        let bytes = waiting.iter().fold(request.body.len(), |bytes, other| bytes + other.body.len());
        if waiting.len() >= MAX_WAITING || bytes > MAX_BYTES {
            return Err(RequestError::TooManyHeld);
        }
        waiting.push(request);
        Ok(())
    }

    /// Describes the requests for a person.
    pub(crate) fn describe(&self) -> Vec<HeldRequest> {
        let waiting = self.waiting();
        waiting.iter().map(|one| HeldRequest::new(one.method.clone(), one.url.clone(), one.body.to_vec())).collect()
    }

    /// Takes all requests.
    pub(crate) fn take(&self) -> Vec<WaitingRequest> {
        take(&mut self.waiting())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<WaitingRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for WaitingRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WaitingRequests").field(&self.waiting().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize) -> WaitingRequest {
        WaitingRequest {
            method: "POST".to_owned(),
            url: "http://a/".to_owned(),
            body: vec![0; bytes].into(),
            send: Box::new(|| Box::pin(std::future::pending())),
        }
    }

    #[test]
    fn the_number_and_the_bytes_of_waiting_requests_are_bounded() {
        let waiting = WaitingRequests::default();
        assert_eq!(waiting.add(request(MAX_BYTES + 1)), Err(RequestError::TooManyHeld));
        waiting.add(request(MAX_BYTES)).unwrap();
        assert_eq!(waiting.add(request(1)), Err(RequestError::TooManyHeld));
        assert_eq!(waiting.take().len(), 1);
        for _ in 0..MAX_WAITING {
            waiting.add(request(0)).unwrap();
        }
        assert_eq!(waiting.add(request(0)), Err(RequestError::TooManyHeld));
    }
}
