//! Service over HTTP: connections with limits, TLS, a check of each request, and the end in which running requests finish.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, BodyStream, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcrib_base::http_server::{
    self, Connections, MAX_HEAD, Origin, RequestLimits, ServedHost, Use, WriteLimit, accept, head_size, share,
};
use toolcrib_base::{interrupt, render};

use super::access::{Access, Identity, TokenScope};
use super::certificate::Certificate;
use super::conversations::{self, Conversations};
use super::handler::Handler;
use super::key;
use super::live::{LiveService, LiveSettings, PresentService, ServiceParts};
use super::media_ranges;
use super::message;
use super::metrics;
use super::refusal::Refusal;

/// Path of the protocol.
const PROTOCOL: &str = "/mcp";
/// Start of the paths at which a server describes itself.
const WELL_KNOWN: &str = "/.well-known/";
/// Path of the figures.
const FIGURES: &str = "/metrics";
/// Path of the readiness.
const READINESS: &str = "/readyz";
/// Hosts of a server's own origin on a loopback address. The server has no pages, so no page has this origin.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// Type of answers that people read.
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// Type of the protocol's messages.
const JSON: &str = "application/json";
/// First revision with empty events, which state when to connect again. Clients of earlier ones read them as messages.
const EMPTY_SINCE: &str = "2025-11-25";
/// Data of an empty event, as the library writes it.
const EMPTY_DATA: &[u8] = b"data: \n";

/// Time in which the answers of stopped calls are sent when the server ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

type Body = BoxBody<Bytes, Infallible>;

/// Permission of a running request, which its call keeps beyond the connection.
#[derive(Clone)]
struct Running(#[expect(dead_code, reason = "it is returned when the last copy is dropped")] Arc<OwnedSemaphorePermit>);

/// Listening server.
pub struct Endpoint {
    /// Listening socket.
    pub listener: TcpListener,
    /// TLS, unless the server answers plain HTTP.
    pub tls: Option<Certificate>,
    /// Accepted clients.
    pub access: Access,
    /// Settings, which can change while the server runs.
    pub settings: watch::Receiver<LiveSettings>,
    /// `true` if no conversation is kept between requests.
    pub is_stateless: bool,
}

/// State of all connections.
struct Server {
    handler: Handler,
    live: PresentService,
    conversations: Conversations,
    connections: Connections,
    access: Access,
    requests: Arc<Semaphore>,
}

/// Serves clients until the program is interrupted; running requests may finish then.
///
/// # Errors
///
/// The listener has no address.
pub async fn serve(handler: Handler, endpoint: Endpoint) -> anyhow::Result<ExitCode> {
    let Endpoint { listener, tls, access, settings, is_stateless } = endpoint;
    let first = settings.borrow().clone();
    let (address, limits) = (listener.local_addr()?, first.limits);
    let tls = tls.map(Arc::new);
    let scheme = scheme(tls.is_some());
    let own = |host: &&str| format!("{scheme}://{host}:{}", address.port()).parse().ok();
    let own_origins: Vec<Origin> =
        if address.ip().is_loopback() { LOOPBACK.iter().filter_map(own).collect() } else { Vec::new() };
    render::aside(&format!("serving {}", own_address(address, tls.is_some(), &first.hosts)));
    let _guard = interrupt::server();
    // New connections end at the first, and running requests at the second.
    let (stop, end) = (CancellationToken::new(), CancellationToken::new());
    let sessions = Arc::new(conversations::sessions());
    let parts = ServiceParts { handler, sessions: sessions.clone(), own_origins, is_stateless, end: end.clone() };
    let handler = parts.handler.clone();
    let live = PresentService::new(parts, settings);
    let conversations = Conversations::new(sessions, if is_stateless { usize::MAX } else { limits.sessions });
    let requests = Arc::new(Semaphore::new(limits.requests));
    let connections = Connections::new(limits.connections);
    let server = Arc::new(Server { handler, live, conversations, connections, access, requests });
    let tasks = TaskTracker::new();
    let over = async {
        interrupt::soft_stop().await;
        let delay = server.live.get().limits.delay;
        if !delay.is_zero() {
            render::aside("stopping: `/readyz` fails, and requests are still accepted for a while");
        }
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = interrupt::hard_stop() => {}
        }
    };
    let mut over = std::pin::pin!(over);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &server.connections) => accepted,
            () = &mut over => break,
        };
        if let Some((stream, room)) = accepted {
            tasks.spawn(server.clone().connect(stream, room, tls.clone(), stop.clone()));
        }
    }
    drop(listener);
    render::aside("stopping: running requests may finish");
    tasks.close();
    server.handler.closing().cancel();
    stop.cancel();
    tokio::select! {
        _ = tokio::time::timeout(server.live.get().limits.drain, tasks.wait()) => {}
        () = interrupt::hard_stop() => {}
    }
    server.handler.stop().await;
    let _ = tokio::time::timeout(LAST_ANSWERS, tasks.wait()).await;
    end.cancel();
    Ok(ExitCode::SUCCESS)
}

/// Returns the protocol's address for clients of a server that listens at a socket address.
pub fn own_address(address: SocketAddr, has_tls: bool, hosts: &[ServedHost]) -> String {
    format!("{}://{}{PROTOCOL}", scheme(has_tls), named(address, has_tls, hosts))
}

fn scheme(has_tls: bool) -> &'static str {
    if has_tls { "https" } else { "http" }
}

/// Names an address for clients. Those on this machine use a loopback address itself; others name a host, also because certificates
/// are for hosts.
fn named(address: SocketAddr, has_tls: bool, hosts: &[ServedHost]) -> String {
    let usual_port = if has_tls { 443 } else { 80 };
    match hosts.iter().rfind(|host| !address.ip().is_loopback() && !LOOPBACK.contains(&host.name())) {
        Some(host) if host.text() != host.name() => host.text().to_owned(),
        Some(host) if address.port() == usual_port => host.name().to_owned(),
        Some(host) => format!("{}:{}", host.name(), address.port()),
        None => address.to_string(),
    }
}

impl Server {
    /// Serves a client that has connected, until it leaves, makes room for another, or the server stops.
    async fn connect(
        self: Arc<Self>,
        stream: TcpStream,
        room: OwnedSemaphorePermit,
        tls: Option<Arc<Certificate>>,
        stop: CancellationToken,
    ) {
        let client = self.connections.begin(room);
        let arrival = self.live.get().limits.arrival;
        let stream = WriteLimit::new(stream, arrival);
        let limits = RequestLimits { arrival, head: MAX_HEAD };
        let answer = |request: Request<Incoming>, used: Arc<Use>| {
            let server = self.clone();
            async move { server.answer(request, &used).await }
        };
        let connection = async {
            match tls {
                None => http_server::serve(stream, &client, limits, &stop, answer).await,
                Some(certificate) => {
                    let handshake = async { certificate.acceptor().await?.accept(stream).await.ok() };
                    if let Ok(Some(stream)) = tokio::time::timeout(arrival, handshake).await {
                        http_server::serve(stream, &client, limits, &stop, answer).await;
                    }
                }
            }
        };
        tokio::select! {
            () = connection => {}
            () = client.makes_room() => {}
        }
    }

    async fn answer(&self, request: Request<Incoming>, used: &Use) -> Response<Body> {
        let (metrics, live) = (self.handler.metrics(), self.live.get());
        metrics.requests.inc();
        if let Some(headers) = live.origins.preflight(request.method(), request.headers()) {
            let mut response = text(StatusCode::NO_CONTENT, "");
            *response.headers_mut() = headers;
            return response;
        }
        let origin = live.origins.allowed(request.headers());
        // A server that is not ready says so, and refuses nothing.
        let is_refusable = request.uri().path() != READINESS;
        let part = if request.uri().path() == FIGURES { TokenScope::Metrics } else { TokenScope::Calls };
        let response = match (request.uri().path(), request.method()) {
            _ if head_size(&request) > MAX_HEAD => Err(Refusal::Head),
            ("/healthz", &Method::GET) => Ok(text(StatusCode::OK, "ok\n")),
            (FIGURES, &Method::GET) => self
                .admit(&live, &request, TokenScope::Metrics, used)
                .await
                .map(|_| figures(&metrics.text(self.running(&live), self.connections.number()))),
            (READINESS, &Method::GET) => Ok(self.readiness()),
            (PROTOCOL, _) => self.protocol(&live, request, used).await,
            (path, &Method::GET) if path.starts_with(WELL_KNOWN) => self.description(&live, &request).await,
            _ => Err(Refusal::UnknownPath),
        };
        let mut response = response.unwrap_or_else(|refusal| {
            let sign_in = self.access.sign_in();
            let mut response = text(refusal.status(), &refusal.text(sign_in.is_some()));
            response.headers_mut().extend(refusal.header(sign_in, part));
            response
        });
        let status = response.status();
        if is_refusable && (status.is_client_error() || status.is_server_error()) {
            metrics.refuse(status.as_u16());
        }
        if let Some(origin) = origin {
            share(response.headers_mut(), origin);
        }
        // The client sends its next request to a server that stays, on another connection.
        if interrupt::is_requested() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Returns the number of running protocol requests.
    fn running(&self, live: &LiveService) -> usize {
        live.limits.requests - self.requests.available_permits()
    }

    /// Answers whether a balancer should send requests: not to a server that ends, or has lost its shared store.
    fn readiness(&self) -> Response<Body> {
        match (interrupt::is_requested(), self.handler.has_store()) {
            (true, _) => {
                text(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down: send requests to another one\n")
            }
            (false, false) => text(StatusCode::SERVICE_UNAVAILABLE, "the shared store does not answer\n"),
            (false, true) => text(StatusCode::OK, "ready\n"),
        }
    }

    /// Returns the client of a request.
    ///
    /// # Errors
    ///
    /// The request names another host, is of a foreign page, has no valid token for this part, or exceeds the client's rate.
    async fn admit(
        &self,
        live: &LiveService,
        request: &Request<Incoming>,
        scope: TokenScope,
        used: &Use,
    ) -> Result<Identity, Refusal> {
        live.check_origin(request)?;
        self.access.admit(request.headers(), scope, live.limits.rate).await.inspect(|_| used.admit())
    }

    /// Answers where people get tokens for this server.
    async fn description(&self, live: &LiveService, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        live.check_origin(request)?;
        let sign_in = self.access.sign_in().filter(|sign_in| sign_in.describes(request.uri().path()));
        let document = sign_in.ok_or(Refusal::UnknownPath)?.document().await;
        let mut response = text(StatusCode::OK, &document.to_string());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        Ok(response)
    }

    /// Answers a request of the protocol.
    async fn protocol(
        &self,
        live: &LiveService,
        request: Request<Incoming>,
        used: &Use,
    ) -> Result<Response<Body>, Refusal> {
        let identity = self.admit(live, &request, TokenScope::Calls, used).await?;
        let running = self.requests.clone().try_acquire_owned().map_err(|_| Refusal::Running)?;
        let running = Running(Arc::new(running));
        self.conversations.check(request.headers(), &identity)?;
        let (mut parts, body) = request.into_parts();
        if body.size_hint().lower() > live.limits.body as u64 {
            return Err(Refusal::Body);
        }
        let whole = Limited::new(body, live.limits.body).collect();
        let body = match tokio::time::timeout(live.limits.arrival, whole).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(Refusal::Body),
            Ok(Err(_)) => return Err(Refusal::Unreadable),
            Err(_) => return Err(Refusal::Late),
        };
        let call = if parts.method == Method::POST { conversations::call(&body) } else { None };
        if let Some(call) = call {
            let needs_store = call.is_continued || call.has_key || parts.headers.contains_key(key::HEADER);
            if needs_store && !self.handler.has_store() {
                return Err(Refusal::Store);
            }
            if let Some(quotas) = self.handler.quotas()
                && let Some(admitted) = quotas.admit(&identity.holder, call.is_continued).await?
            {
                // The call keeps it as long as it runs.
                parts.extensions.insert(Arc::new(admitted));
            }
        }
        let beginning = self.conversations.begin(&parts, &body, &identity).await?;
        if beginning.is_none() {
            // A call can go on after its client has left. The first request of a conversation is kept by it.
            parts.extensions.insert(running.clone());
        }
        let is_listening = parts.method == Method::GET;
        let client = identity.holder.clone();
        parts.extensions.insert::<Identity>(identity);
        // Credentials are of no use beyond this point.
        parts.headers.remove(header::AUTHORIZATION);
        media_ranges::expand(&mut parts.headers);
        let is_json = header_starts(&parts.headers, &header::CONTENT_TYPE, JSON);
        let is_end = parts.method == Method::DELETE;
        let takes_empty = conversations::version(&parts.headers, &body).is_some_and(|version| *version >= *EMPTY_SINCE);
        let mut response = live.service.handle(Request::from_parts(parts, Full::new(body.clone()))).await;
        if is_end && response.status() == StatusCode::ACCEPTED {
            // Nothing remains to be done, and some clients take this status for a failure.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
            return Ok(unreadable(&body));
        }
        if let Some(beginning) = beginning {
            beginning.settle(response.headers(), client);
        }
        let closing = self.handler.closing().clone();
        let mut response = response.map(|body| {
            let until_sent = move |frame: Frame<Bytes>| {
                let _ = &running;
                if takes_empty { frame } else { frame.map_data(without_data) }
            };
            let body = body.map_frame(until_sent);
            match is_listening {
                // Nothing ends such a stream but the client or the server.
                true => BodyExt::boxed(StreamBody::new(BodyStream::new(body).take_until(closing.cancelled_owned()))),
                false => body.boxed(),
            }
        });
        if response.status().is_client_error() {
            // The library states no type for its own refusals.
            response.headers_mut().entry(header::CONTENT_TYPE).or_insert(PLAIN);
        }
        Ok(response)
    }
}

/// Returns `true` if a header starts with this text, in any case.
fn header_starts(headers: &HeaderMap, name: &HeaderName, start: &str) -> bool {
    let value = headers.get(name).map(HeaderValue::as_bytes).and_then(|value| value.get(..start.len()));
    value.is_some_and(|value| value.eq_ignore_ascii_case(start.as_bytes()))
}

/// Removes the data of an empty event: what remains is no event, but states when to connect again.
fn without_data(event: Bytes) -> Bytes {
    if event.starts_with(EMPTY_DATA) { event.slice(EMPTY_DATA.len()..) } else { event }
}

/// Creates the answer to a message that cannot be read.
fn unreadable(message: &[u8]) -> Response<Body> {
    let mut response = text(StatusCode::BAD_REQUEST, &message::refusal(message));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// Creates the answer with the figures.
fn figures(content: &str) -> Response<Body> {
    let mut response = text(StatusCode::OK, content);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(metrics::TYPE));
    response
}

/// Creates an answer with text.
fn text(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, PLAIN);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_name_the_host_of_a_server_that_others_reach() {
        let hosts: Vec<ServedHost> = ["localhost", "tools.example.com"].map(|host| host.parse().unwrap()).into();
        for (address, hosts, named) in [
            ("127.0.0.1:8931", &hosts[..], "https://127.0.0.1:8931/mcp"),
            ("0.0.0.0:8931", &hosts, "https://tools.example.com:8931/mcp"),
            ("192.0.2.7:443", &hosts, "https://tools.example.com/mcp"),
            ("192.0.2.7:8931", &hosts, "https://tools.example.com:8931/mcp"),
            ("192.0.2.7:443", &hosts[..1], "https://192.0.2.7:443/mcp"),
        ] {
            assert_eq!(own_address(address.parse().unwrap(), true, hosts), named);
        }
    }
}
