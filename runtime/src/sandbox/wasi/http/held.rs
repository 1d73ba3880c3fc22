//! Requests that are held back: they wait for the answer about their call, which goes on with the status 202.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;

use crate::policy::HeldRequest;
use crate::sandbox::usage::{RequestError, SentRequest, Usage, WaitingRequest, WaitingRequests};

use super::body::{RequestBody, ResponseBody};
use super::egress::{Driver, HttpEgress, Timeouts};
use super::logged::LoggedRequest;

/// Methods that HTTP calls safe, without QUERY, which is made to carry a body. Their addresses can tell something all the same.
const SAFE: [Method; 3] = [Method::GET, Method::HEAD, Method::OPTIONS];
/// Header of the answer in place of the server's.
const HELD: HeaderName = HeaderName::from_static("toolcrib-held");

impl HttpEgress {
    /// Returns the head of a request as the guest made it, with the place where it waits, if its method can change something and it
    /// is held back.
    pub(super) fn held(&self, parts: &Parts) -> Option<(&WaitingRequests, Request<()>)> {
        if SAFE.contains(&parts.method) || !self.usage.holds_requests() {
            return None;
        }
        let waiting = &self.usage.whole().effects.get()?.requests;
        let mut head = Request::new(());
        *head.method_mut() = parts.method.clone();
        *head.uri_mut() = parts.uri.clone();
        *head.headers_mut() = parts.headers.clone();
        Some((waiting, head))
    }

    /// Holds a request back, and answers it.
    pub(super) async fn hold<B>(
        &self,
        (waiting, head): (&WaitingRequests, Request<()>),
        (body, announced): (RequestBody<B>, Option<u64>),
        logged: &LoggedRequest,
    ) -> Result<(Response<ResponseBody>, Driver), RequestError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let body = body.collect().await.map_err(|error| match error.downcast::<RequestError>() {
            Ok(error) => *error,
            Err(_) => RequestError::Protocol("the request's body broke off"),
        })?;
        let body = body.to_bytes();
        if announced.is_some_and(|announced| announced != body.len() as u64) {
            return Err(RequestError::Rejected("its body is shorter than it announced".to_owned()));
        }
        let egress = Self {
            client: self.client.clone(),
            grant: self.grant.clone(),
            credentials: self.credentials.clone(),
            limits: self.limits,
            usage: Arc::new(Usage::default()),
        };
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let description = HeldRequest {
            method: head.method().to_string(),
            url: head.uri().to_string(),
            headers: head.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: body.to_vec(),
        };
        let request = head.map(|()| Full::new(body));
        waiting.add(WaitingRequest { description, send: Box::new(|| egress.send_held(request)) })?;
        logged.hold();
        let mut response = Response::new(ResponseBody::empty());
        *response.status_mut() = StatusCode::ACCEPTED;
        response.headers_mut().insert(HELD, HeaderValue::from_static("true"));
        Ok((response, Box::pin(async {})))
    }

    /// Sends a request that waited. Its response is read to its end, and dropped.
    fn send_held(self, request: Request<Full<Bytes>>) -> BoxFuture<'static, SentRequest> {
        Box::pin(async move {
            let error = match self.exchange(request, Timeouts::MAX).await {
                Err(error) => Some(error),
                Ok((response, driver)) => {
                    let mut body = response.into_body();
                    let read = pin!(async { while let Some(Ok(_)) = body.frame().await {} });
                    // The bytes arrive while the driver is polled.
                    if let Either::Right(((), read)) = select(read, driver).await {
                        read.await;
                    }
                    None
                }
            };
            let exchange = self.usage.requests().summary().and_then(|network| network.requests.into_iter().next());
            SentRequest { exchange: exchange.unwrap_or_default(), secrets: self.usage.requests().secrets(), error }
        })
    }
}
