//! One request and its response: judged, resolved, connected, sent, and read as far as its head. It is one future, with
//! no task beside it: what drops it, or the body it gave, closes the connection.

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

use crate::call::Denial;
use crate::policy::{Credentials, Network, Prospect, Refusal, Target};
use crate::sandbox::Usage;
use crate::tool::{Host, Limits};

use super::body::{Received, Sent};
use super::connect::{Allowance, Bounded, MAX_HANDSHAKE, connect, overflowed};
use super::fault::{Fault, Phase};
use super::headers::{self, MAX_HEADERS};
use super::ledger::Entry;
use super::secret::Sieve;
use super::{Client, clip, secret};

/// How long a connection, the head of a response and each silence in its body may take. A guest may ask for less.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Until there is a connection, and from there until its handshake is done.
    pub(crate) connect: Duration,
    /// From there to the head of the response.
    pub(crate) first_byte: Duration,
    /// Between two parts of its body.
    pub(crate) between_bytes: Duration,
}

impl Times {
    /// The longest.
    pub(crate) const MAX: Self = Self {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs(30),
        between_bytes: Duration::from_secs(30),
    };
}

/// What moves the bytes of an exchange whose response has begun. It ends with the connection.
pub(crate) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The gate through which all requests of one call go.
pub(crate) struct Gate {
    pub(crate) client: Arc<Client>,
    pub(crate) grant: Arc<Network>,
    /// The secrets of the call, where it has any.
    pub(crate) credentials: Option<Arc<Credentials>>,
    pub(crate) limits: Limits,
    pub(crate) usage: Arc<Usage>,
}

impl Gate {
    /// Sends a request, which names its whole URL, and gives the response when its head has come. The body comes while
    /// the driver is polled.
    ///
    /// # Errors
    ///
    /// Why it was not sent, or not answered. It is noted in the ledger, too.
    pub(crate) async fn exchange<B>(
        &self,
        request: Request<B>,
        times: Times,
    ) -> Result<(Response<Received>, Driver), Fault>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut entry = Entry::begin(&self.usage, &clip(request.method().as_str()), &self.limits)?;
        let held = entry.hold(DESCRIPTORS);
        let entry = Arc::new(entry);
        let exchanged = match held {
            Ok(()) => self.send(request, times, &entry).await,
            Err(fault) => Err(fault),
        };
        match &exchanged {
            Ok((response, _)) => entry.answered(response.status().as_u16()),
            Err(fault) => entry.failed(fault),
        }
        exchanged
    }

    async fn send<B>(
        &self,
        request: Request<B>,
        times: Times,
        entry: &Arc<Entry>,
    ) -> Result<(Response<Received>, Driver), Fault>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        let target = target(&parts.uri, entry)?;
        headers::prepare(&mut parts, &target, &self.limits)?;
        let method = parts.method.as_str();
        self.grant.judge(&target, method).map_err(|refusal| Fault::Denied(entry.refused(refusal)))?;
        let addresses = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.client.names.addresses(name).await?,
        };
        let admitted = self.grant.admit(&target, method, addresses);
        let addresses = admitted.map_err(|refusal| Fault::Prohibited(entry.refused(refusal)))?;
        let announced = headers::content_length(&parts.headers)?;
        let stream = connect(&self.client.tls, &target, &addresses, times.connect).await?;
        // All checks are behind and the first byte is ahead.
        let credentials = self.credentials.as_deref();
        if let Some(credentials) = credentials {
            secret::place(credentials, &target, &mut parts, entry)?;
        }
        let request = Request::from_parts(parts, Sent::new(body, entry.clone(), &self.limits, announced));
        let (response, driver) = self.speak(stream, request, times.first_byte).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Fault::Protocol("the server switched protocols"));
        }
        let scanner = credentials.map(|credentials| &credentials.scanner);
        if let Some(scanner) = scanner {
            secret::check_head(scanner, response.headers())?;
        }
        let sieve = scanner.map(Sieve::new);
        let received = |body| Received::new(body, entry.clone(), &self.limits, times.between_bytes, sieve);
        let response = response.map(received);
        Ok((response, driver))
    }

    /// Speaks HTTP/1.1 until the head of the response.
    async fn speak<B>(
        &self,
        stream: Box<dyn super::connect::Stream>,
        request: Request<Sent<B>>,
        first_byte: Duration,
    ) -> Result<(Response<hyper::body::Incoming>, Driver), Fault>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let head = self.limits.http_head;
        let buffer = head.max(SMALLEST_BUFFER);
        let allowance = Allowance::new(head + buffer);
        let stream = Bounded { stream, allowance: allowance.clone() };
        let mut http = http1::Builder::new();
        http.max_headers(MAX_HEADERS).max_buf_size(buffer).max_header_size(head);
        let shaken = tokio::time::timeout(MAX_HANDSHAKE, http.handshake(TokioIo::new(stream))).await;
        let broken = |error: hyper::Error| broken(&error, head);
        let (mut sender, connection) =
            shaken.map_err(|_| Fault::Slow(Phase::Head, "the server is too slow"))?.map_err(broken)?;
        // The connection moves what the sender waits for, and its end is the sender's too.
        let mut connection = Box::pin(connection.map(|_| ()).fuse());
        let mut answer = pin!(sender.send_request(request));
        let answered = poll_fn(|cx| {
            let _ = connection.poll_unpin(cx);
            answer.as_mut().poll(cx)
        });
        let answered = tokio::time::timeout(first_byte, answered).await;
        let response =
            answered.map_err(|_| Fault::Slow(Phase::Head, "the server did not answer in time"))?.map_err(broken)?;
        allowance.grant(self.limits.received.saturating_mul(MAX_FRAMING).saturating_add(head));
        Ok((response, connection))
    }
}

/// The most descriptors that one request holds open: its connection, and what its name is asked for by.
const DESCRIPTORS: usize = 2;
/// The most bytes on the wire for one of a body: a chunk of a single byte is six.
const MAX_FRAMING: usize = 8;
/// The smallest buffer that the protocol's implementation works with.
const SMALLEST_BUFFER: usize = 8192;

/// Where a request goes, noted; an authority that could be read in two ways goes nowhere.
fn target(uri: &http::Uri, entry: &Entry) -> Result<Target, Fault> {
    match headers::target(uri) {
        Ok(target) => {
            entry.goes_to(&clip(&target.host.to_string()), Some(target.port));
            Ok(target)
        }
        Err((authority, why)) => {
            let authority = clip(&authority);
            entry.goes_to(&authority, None);
            let denial = Denial { capability: format!("net:{authority}"), flag: None };
            Err(Fault::Denied(entry.refused(Refusal { denial, why: format!("`{authority}`: {why}") })))
        }
    }
}

/// A request to which nothing is granted: noted like any other, and sent nowhere.
pub(crate) fn refuse(uri: &http::Uri, method: &str, prospect: Prospect, limits: &Limits, usage: &Arc<Usage>) -> Fault {
    let entry = match Entry::begin(usage, &clip(method), limits) {
        Ok(entry) => entry,
        Err(fault) => return fault,
    };
    let fault = match target(uri, &entry) {
        Ok(target) => Fault::Denied(entry.refused(Network::closed(&target, method, prospect))),
        Err(fault) => fault,
    };
    entry.failed(&fault);
    fault
}

/// What a broken connection was broken by, before a head of at most so many bytes was whole.
fn broken(error: &hyper::Error, most: usize) -> Fault {
    // What ended the request's own body is the reason, not what it did to the connection.
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(fault) = inner.downcast_ref::<Fault>() {
            return fault.clone();
        }
        source = inner.source();
    }
    if error.is_parse_too_large() || overflowed(error) {
        return Fault::HeadTooLarge(most);
    }
    Fault::Protocol(if error.is_parse() {
        "the server does not speak HTTP/1.1"
    } else if error.is_incomplete_message() {
        "the server closed the connection before its response"
    } else {
        "the connection broke"
    })
}
