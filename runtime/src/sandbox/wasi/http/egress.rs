//! One request and its response: authorized, resolved, connected, sent, and read up to the end of its head. It is one
//! future without tasks, so that dropping it, or the body, closes the connection.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response, StatusCode};
use hyper::body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::call::{Denial, clipped};
use crate::policy::{Credentials, FlagHints, Network, Refusal, Target};
use crate::sandbox::usage::{MAX_HEADERS, RequestError, RequestPhase, Usage};
use crate::tool::{Host, Limits};

use super::body::{RequestBody, ResponseBody};
use super::client::HttpClient;
use super::connect::{BoundedStream, MAX_CONNECT, ReadBudget, Stream, connect, overflowed};
use super::headers;
use super::logged::LoggedRequest;
use super::secret;
use super::secret::SecretFilter;

/// Timeouts of a request. A guest may shorten them.
#[derive(Debug, Clone, Copy)]
pub(in crate::sandbox) struct Timeouts {
    /// Time for the lookup of the name, again until the connection is established, and again until its handshake is complete.
    pub(in crate::sandbox) connect: Duration,
    /// Time from there to the head of the response.
    pub(in crate::sandbox) first_byte: Duration,
    /// Time between two frames of the body.
    pub(in crate::sandbox) between_bytes: Duration,
}

impl Timeouts {
    /// Maximum timeouts.
    pub(in crate::sandbox) const MAX: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(30),
        between_bytes: Duration::from_secs(30),
    };
}

/// Future that transfers the bytes of an exchange after the response's head. It ends with the connection.
pub(in crate::sandbox) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The only way out for the requests of one call.
pub(in crate::sandbox) struct HttpEgress {
    pub(in crate::sandbox) client: Arc<HttpClient>,
    pub(in crate::sandbox) grant: Arc<Network>,
    /// Secrets of the call, if it has any.
    pub(in crate::sandbox) credentials: Option<Arc<Credentials>>,
    pub(in crate::sandbox) limits: Limits,
    pub(in crate::sandbox) usage: Arc<Usage>,
}

impl HttpEgress {
    /// Sends a request with an absolute URL, and returns the response after its head has arrived. The body arrives
    /// while the driver is polled.
    ///
    /// # Errors
    ///
    /// The reason why the request was not sent or not answered, which is logged too.
    pub(in crate::sandbox) async fn exchange<B>(
        &self,
        request: Request<B>,
        timeouts: Timeouts,
    ) -> Result<(Response<ResponseBody>, Driver), RequestError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut logged = LoggedRequest::begin(&self.usage, &clipped(request.method().as_str()), &self.limits)?;
        let permit = logged.take_descriptors(DESCRIPTORS_PER_REQUEST);
        let logged = Arc::new(logged);
        let exchanged = match permit {
            Ok(()) => self.send(request, timeouts, &logged).await,
            Err(error) => Err(error),
        };
        match &exchanged {
            Ok((response, _)) => logged.answer(response.status().as_u16()),
            Err(error) => logged.fail(error),
        }
        exchanged
    }

    async fn send<B>(
        &self,
        request: Request<B>,
        timeouts: Timeouts,
        logged: &Arc<LoggedRequest>,
    ) -> Result<(Response<ResponseBody>, Driver), RequestError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        let target = target(&parts.uri, logged)?;
        let held = self.held(&parts);
        headers::prepare(&mut parts, &target, &self.limits)?;
        let method = parts.method.as_str();
        self.grant.check_target(&target, method).map_err(|refusal| RequestError::Denied(logged.refuse(refusal)))?;
        // The lookup of a name tells its server something too.
        logged.check_flow()?;
        if let Some(held) = held {
            let announced = headers::content_length(&parts.headers)?;
            let body = RequestBody::new(body, logged.clone(), &self.limits, announced);
            return self.hold(held, (body, announced), logged).await;
        }
        let addresses = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.client.names.addresses(name, timeouts.connect).await?,
        };
        let admitted = self.grant.check_addresses(&target, method, addresses);
        let addresses = admitted.map_err(|refusal| RequestError::Prohibited(logged.refuse(refusal)))?;
        let announced = headers::content_length(&parts.headers)?;
        let stream = connect(&self.client.tls, &target, &addresses, timeouts.connect).await?;
        // Every check has passed, and no byte has been sent yet.
        let credentials = self.credentials.as_deref();
        if let Some(credentials) = credentials {
            secret::insert(credentials, &target, &mut parts, logged)?;
        }
        logged.check_flow()?;
        let request = Request::from_parts(parts, RequestBody::new(body, logged.clone(), &self.limits, announced));
        let (response, driver) = self.send_http1(stream, request, timeouts.first_byte).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(RequestError::Protocol("the server switched protocols"));
        }
        logged.note_response(&target);
        let scanner = credentials.map(|credentials| &credentials.scanner);
        if let Some(scanner) = scanner {
            secret::check_head(scanner, response.headers())?;
        }
        let filter = scanner.map(SecretFilter::new);
        let received = |body| ResponseBody::new(body, logged.clone(), &self.limits, timeouts.between_bytes, filter);
        let response = response.map(received);
        Ok((response, driver))
    }

    /// Speaks HTTP/1.1 until the end of the response's head.
    async fn send_http1<B>(
        &self,
        stream: Box<dyn Stream>,
        request: Request<RequestBody<B>>,
        first_byte: Duration,
    ) -> Result<(Response<hyper::body::Incoming>, Driver), RequestError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let head = self.limits.http_head;
        let buffer = head.max(MIN_BUFFER_BYTES);
        let budget = ReadBudget::new(head + buffer);
        let stream = BoundedStream { stream, budget: budget.clone() };
        let mut http = http1::Builder::new();
        http.max_headers(MAX_HEADERS).max_buf_size(buffer).max_header_size(head);
        let handshake = tokio::time::timeout(MAX_CONNECT, http.handshake(TokioIo::new(stream))).await;
        let connection_error = |error: hyper::Error| connection_error(&error, head);
        let (mut sender, connection) = handshake
            .map_err(|_| RequestError::Slow(RequestPhase::Head, "the server is too slow"))?
            .map_err(connection_error)?;
        // The connection must be polled for the sender to progress, and ends the sender when it ends.
        let mut connection = Box::pin(connection.map(|_| ()).fuse());
        let mut answer = pin!(sender.send_request(request));
        let answered = poll_fn(|cx| {
            let _ = connection.poll_unpin(cx);
            answer.as_mut().poll(cx)
        });
        let answered = tokio::time::timeout(first_byte, answered).await;
        let response = answered
            .map_err(|_| RequestError::Slow(RequestPhase::Head, "the server did not answer in time"))?
            .map_err(connection_error)?;
        budget.extend(self.limits.received.saturating_mul(MAX_FRAMING).saturating_add(head));
        Ok((response, connection))
    }
}

/// Number of descriptors that one request holds open: its connection, and its lookup's socket.
const DESCRIPTORS_PER_REQUEST: usize = 2;
/// Maximum number of bytes on the wire per body byte: a one-byte chunk needs six.
const MAX_FRAMING: usize = 8;
/// Minimum buffer size of the HTTP implementation.
const MIN_BUFFER_BYTES: usize = 8192;

/// Returns the target of a request and logs it. An ambiguous authority is refused.
fn target(uri: &http::Uri, logged: &LoggedRequest) -> Result<Target, RequestError> {
    match headers::target(uri) {
        Ok(target) => {
            logged.set_target(&clipped(&target.host.to_string()), Some(target.port));
            Ok(target)
        }
        Err((authority, reason)) => {
            let authority = clipped(&authority);
            logged.set_target(&authority, None);
            let denial = Denial { capability: format!("net:{authority}"), flag: None };
            Err(RequestError::Denied(logged.refuse(Refusal { denial, why: format!("`{authority}`: {reason}") })))
        }
    }
}

/// Refuses a request of a call without a network grant, and logs it.
pub(in crate::sandbox) fn refuse(
    uri: &http::Uri,
    method: &str,
    hints: &FlagHints,
    limits: &Limits,
    usage: &Arc<Usage>,
) -> RequestError {
    let logged = match LoggedRequest::begin(usage, &clipped(method), limits) {
        Ok(logged) => logged,
        Err(error) => return error,
    };
    let error = match target(uri, &logged) {
        Ok(target) => RequestError::Denied(logged.refuse(Network::refuse(&target, method, hints))),
        Err(error) => error,
    };
    logged.fail(&error);
    error
}

/// Returns a broken connection's error, before a head of at most `max` bytes was complete.
fn connection_error(error: &hyper::Error, max: usize) -> RequestError {
    // An error of the request's own body is the reason, not its effect on the connection.
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(error) = inner.downcast_ref::<RequestError>() {
            return error.clone();
        }
        source = inner.source();
    }
    if error.is_parse_too_large() || overflowed(error) {
        return RequestError::HeadTooLarge(max);
    }
    RequestError::Protocol(if error.is_parse() {
        "the server does not speak HTTP/1.1"
    } else if error.is_incomplete_message() {
        "the server closed the connection before its response"
    } else {
        "the connection broke"
    })
}
