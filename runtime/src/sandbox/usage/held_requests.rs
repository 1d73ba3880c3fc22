//! Requests that wait for the answer about the effects of their call.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;

use crate::call::Exchange;
use crate::policy::HeldRequest;

use super::request_error::RequestError;

/// Maximum number of requests that wait for one answer, and maximum bytes of them.
const MAX_WAITING: usize = 256;
const MAX_BYTES: usize = 16 << 20;

/// Request that waits, with the way to send it.
pub(crate) struct WaitingRequest {
    pub(crate) description: HeldRequest,
    pub(in crate::sandbox) send: Box<dyn FnOnce() -> BoxFuture<'static, SentRequest> + Send + Sync>,
}

/// Result of a request that waited.
pub(crate) struct SentRequest {
    pub(crate) exchange: Exchange,
    /// Names of the secrets that it carried.
    pub(crate) secrets: Vec<String>,
    /// Reason for which it has no response.
    pub(crate) error: Option<RequestError>,
}

/// Requests that wait, in their order; `None` once somebody is asked about them.
pub(crate) struct WaitingRequests(Mutex<Option<Vec<WaitingRequest>>>);

impl Default for WaitingRequests {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl WaitingRequest {
    /// Bytes that the request takes.
    fn bytes(&self) -> usize {
        let HeldRequest { method, url, headers, body } = &self.description;
        let headers: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        method.len() + url.len() + headers + body.len()
    }

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
    /// [`RequestError::TooManyHeld`], or [`RequestError::Rejected`] once the requests were taken.
    pub(in crate::sandbox) fn add(&self, request: WaitingRequest) -> Result<(), RequestError> {
        let mut waiting = self.waiting();
        let Some(waiting) = &mut *waiting else { return Err(RequestError::Rejected("its call has ended".to_owned())) };
        let bytes = waiting.iter().map(|other| other.bytes()).fold(request.bytes(), usize::saturating_add);
        if waiting.len() >= MAX_WAITING || bytes > MAX_BYTES {
            return Err(RequestError::TooManyHeld);
        }
        waiting.push(request);
        Ok(())
    }

    /// Takes all requests; no other is added.
    pub(crate) fn take(&self) -> Vec<WaitingRequest> {
        self.waiting().take().unwrap_or_default()
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Vec<WaitingRequest>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for WaitingRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WaitingRequests").field(&self.waiting().as_ref().map(Vec::len)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize) -> WaitingRequest {
        WaitingRequest {
            description: HeldRequest {
                method: String::new(),
                url: String::new(),
                headers: Vec::new(),
                body: vec![0; bytes],
            },
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
        assert!(matches!(waiting.add(request(0)), Err(RequestError::Rejected(_))), "nobody is asked about it");
        let waiting = WaitingRequests::default();
        for _ in 0..MAX_WAITING {
            waiting.add(request(0)).unwrap();
        }
        assert_eq!(waiting.add(request(0)), Err(RequestError::TooManyHeld));
    }
}
