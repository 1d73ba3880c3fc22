//! The network gate for remote tools: the same egress as for guests, without a guest.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use http::{HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use hyper::body::Body;

use crate::error::{Outcome, ToolError};
use crate::policy::{Credentials, Network};
use crate::remote::{Gate, GateRequest, GateResponse};
use crate::tool::Limits;

use super::program::Sandbox;
use super::usage::{RequestError, Usage};
use super::wasi::{Driver, HttpClient, HttpEgress, ResponseBody, Timeouts};

/// Gate of one call.
pub(crate) struct EgressGate(HttpEgress);

impl Sandbox {
    /// Returns the gate of a call under its grant.
    pub(crate) fn gate(
        &self,
        network: &Arc<Network>,
        credentials: Option<&Arc<Credentials>>,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> EgressGate {
        EgressGate::new(self.http_client.clone(), network.clone(), credentials.cloned(), *limits, usage.clone())
    }
}

impl EgressGate {
    /// Creates a gate.
    pub(crate) fn new(
        client: Arc<HttpClient>,
        grant: Arc<Network>,
        credentials: Option<Arc<Credentials>>,
        limits: Limits,
        usage: Arc<Usage>,
    ) -> Self {
        Self(HttpEgress { client, grant, credentials, limits, usage })
    }

    async fn exchange(&self, request: GateRequest) -> Result<GateResponse, ToolError> {
        let request = http_request(request)?;
        let timeouts =
            Timeouts { first_byte: self.0.limits.deadline, between_bytes: self.0.limits.deadline, ..Timeouts::MAX };
        let (response, driver) = self.0.exchange(request, timeouts).await.map_err(|error| tool_error(&error))?;
        let (head, body) = response.into_parts();
        let text =
            |(name, value): (&HeaderName, &HeaderValue)| Some((name.to_string(), value.to_str().ok()?.to_owned()));
        let headers = head.headers.iter().filter_map(text).collect();
        let body = Received { body, driver: Some(driver) }.boxed();
        Ok(GateResponse { status: head.status.as_u16(), headers, body })
    }
}

impl Gate for EgressGate {
    fn send(&self, request: GateRequest) -> BoxFuture<'_, Result<GateResponse, ToolError>> {
        Box::pin(self.exchange(request))
    }
}

/// Body of a response. Its bytes arrive while the connection is polled.
struct Received {
    body: ResponseBody,
    driver: Option<Driver>,
}

impl Stream for Received {
    type Item = Result<Vec<u8>, ToolError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready()) {
                self.driver = None;
            }
            return match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(None) => Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(tool_error(&error)))),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => Poll::Ready(Some(Ok(data.to_vec()))),
                    // Trailers say nothing here.
                    Err(_) => continue,
                },
            };
        }
    }
}

fn http_request(request: GateRequest) -> Result<Request<Full<Bytes>>, ToolError> {
    let GateRequest { method, url, headers, body } = request;
    let refuse = |why: &str| ToolError::new(Outcome::Upstream, format!("a request was rejected: {why}"));
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| refuse("its method is invalid"))?;
    let length = body.len();
    let mut built = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        built = built.header(name, value);
    }
    if length > 0 {
        built = built.header(http::header::CONTENT_LENGTH, length);
    }
    built.body(Full::new(Bytes::from(body))).map_err(|_| refuse("its address or a header is invalid"))
}

/// Returns the error of a request for a call whose only effect it is.
fn tool_error(error: &RequestError) -> ToolError {
    ToolError::new(error.outcome().unwrap_or(Outcome::Upstream), error.to_string())
}
