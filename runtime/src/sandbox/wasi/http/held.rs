//! Requests that are held back: they wait for the answer about their call, which goes on with the status 202.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;

use crate::sandbox::usage::{RequestError, SentRequest, Usage, WaitingRequest, WaitingRequests};

use super::body::{RequestBody, ResponseBody};
use super::egress::{Driver, HttpEgress, Timeouts};
use super::logged::LoggedRequest;

/// Header of the answer in place of the server's.
const HELD: HeaderName = HeaderName::from_static("toolcrib-held");

impl HttpEgress {
    /// Returns the head of a request as the guest made it, with the place where it waits, if its method can change something and it
    /// is held back.
    pub(super) fn held(&self, parts: &Parts) -> Option<(&WaitingRequests, Request<()>)> {
        let effects = self.usage.whole().effects.get()?;
        let waiting = effects.requests.as_ref().filter(|_| !parts.method.is_safe())?;
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
        body: RequestBody<B>,
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
        let egress = Self {
            client: self.client.clone(),
            grant: self.grant.clone(),
            credentials: self.credentials.clone(),
            limits: self.limits,
            usage: Arc::new(Usage::default()),
        };
        let (method, url) = (head.method().to_string(), head.uri().to_string());
        let request = head.map(|()| Full::new(body.clone()));
        waiting.add(WaitingRequest { method, url, body, send: Box::new(|| egress.send_held(request)) })?;
        logged.hold();
        let mut response = Response::new(ResponseBody::empty());
        *response.status_mut() = StatusCode::ACCEPTED;
        response.headers_mut().insert(HELD, HeaderValue::from_static("true"));
        Ok((response, Box::pin(async {})))
    }

    /// Sends a request that waited. Only the head of its response is read.
    fn send_held(self, request: Request<Full<Bytes>>) -> BoxFuture<'static, SentRequest> {
        Box::pin(async move {
            let sent = self.exchange(request, Timeouts::MAX).await;
            let error = sent.err();
            let exchange = self.usage.requests().summary().and_then(|network| network.requests.into_iter().next());
            SentRequest { exchange: exchange.unwrap_or_default(), secrets: self.usage.requests().secrets(), error }
        })
    }
}
