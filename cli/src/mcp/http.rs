//! Service over HTTP: connections with limits, TLS, a check of each request, and the end in which running requests finish.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{interrupt, render};

use super::access::{Access, Identity, Limits};
use super::handler::Handler;

/// Path of the protocol.
const PROTOCOL: &str = "/mcp";
/// Header with the identifier of a conversation.
const SESSION: &str = "mcp-session-id";
/// Hosts of a server's own origin on a loopback address. The server has no pages, so no page has this origin.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];
/// Maximum size of the head of a request in bytes.
const MAX_HEAD: usize = 64 << 10;

/// Method that begins a conversation.
const BEGIN: &str = "initialize";

type Body = BoxBody<Bytes, Infallible>;

/// Method of a message.
#[derive(Deserialize)]
struct Message {
    method: String,
}

/// Listening server.
pub(crate) struct Endpoint {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) access: Access,
    pub(crate) limits: Limits,
    /// Hosts that requests may name.
    pub(crate) hosts: Vec<String>,
    /// Origins of web pages that may send requests, besides the server's own on a loopback address.
    pub(crate) origins: Vec<String>,
    /// `true` if no conversation is kept between requests.
    pub(crate) is_stateless: bool,
}

/// State of all connections.
struct Server {
    handler: Handler,
    service: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    access: Access,
    limits: Limits,
    requests: Arc<Semaphore>,
    /// Clients of the conversations, by the identifier of the conversation.
    owners: Mutex<HashMap<String, String>>,
}

/// Serves clients until the program is interrupted; running requests may finish then.
///
/// # Errors
///
/// The listener has no address.
pub(crate) async fn serve(handler: Handler, endpoint: Endpoint) -> anyhow::Result<ExitCode> {
    let Endpoint { listener, tls, access, limits, hosts, mut origins, is_stateless } = endpoint;
    let address = listener.local_addr()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    if address.ip().is_loopback() {
        origins.extend(LOOPBACK.map(|host| format!("{scheme}://{host}:{}", address.port())));
    }
    let _guard = interrupt::server();
    // New connections end at the first, and running requests at the second.
    let (stop, end) = (CancellationToken::new(), CancellationToken::new());
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_legacy_session_mode(!is_stateless)
        .with_json_response(is_stateless)
        .with_max_request_body_bytes(limits.body)
        .with_cancellation_token(end.clone());
    let sessions = Arc::new(LocalSessionManager::default());
    let each = handler.clone();
    let service = StreamableHttpService::new(move || Ok(each.for_conversation()), sessions.clone(), config);
    let requests = Arc::new(Semaphore::new(limits.requests));
    let server = Arc::new(Server { handler, service, sessions, access, limits, requests, owners: Mutex::default() });
    let (connections, tasks) = (Arc::new(Semaphore::new(limits.connections)), TaskTracker::new());
    render::aside(&format!("serving {scheme}://{address}{PROTOCOL}"));
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections) => accepted,
            () = interrupt::soft_stop() => break,
        };
        let Some((stream, _from, permit)) = accepted else { continue };
        let (server, tls, stop) = (server.clone(), tls.clone(), stop.clone());
        tasks.spawn(async move {
            let _permit = permit;
            match tls {
                None => server.connection(stream, stop).await,
                Some(tls) => {
                    let secured = tokio::time::timeout(server.limits.arrival, tls.accept(stream)).await;
                    if let Ok(Ok(stream)) = secured {
                        server.connection(stream, stop).await;
                    }
                }
            }
        });
    }
    drop(listener);
    render::aside("stopping: running requests may finish");
    tasks.close();
    server.handler.closing().cancel();
    stop.cancel();
    let _ = tokio::time::timeout(limits.drain, tasks.wait()).await;
    server.handler.stop().await;
    end.cancel();
    Ok(ExitCode::SUCCESS)
}

/// Accepts a connection once there is room for one; `None` after a fault of one connection.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let permit = connections.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, from)) => {
            // Answers are small: they are sent at once.
            let _ = stream.set_nodelay(true);
            Some((stream, from, permit))
        }
        Err(_) => {
            // Such as too many open files: the next attempt waits for others to end.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            None
        }
    }
}

impl Server {
    /// Serves one connection until it ends or the server stops.
    async fn connection(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        stop: CancellationToken,
    ) {
        let metrics = self.handler.metrics().clone();
        metrics.connections.fetch_add(1, Relaxed);
        let arrival = self.limits.arrival;
        let service = service_fn(|request| {
            let server = self.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(arrival)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        tokio::select! {
            // A fault of a connection concerns its client only.
            ended = connection.as_mut() => drop(ended),
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                drop(connection.await);
            }
        }
        metrics.connections.fetch_sub(1, Relaxed);
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let metrics = self.handler.metrics();
        metrics.requests.fetch_add(1, Relaxed);
        let response = match (request.uri().path(), request.method()) {
            ("/healthz", &Method::GET) => Ok(text(StatusCode::OK, "ok\n")),
            ("/metrics", &Method::GET) => {
                self.access.admit(request.headers()).map(|_| text(StatusCode::OK, &metrics.text()))
            }
            (PROTOCOL, _) => self.protocol(request).await,
            _ => Err(StatusCode::NOT_FOUND),
        };
        response.unwrap_or_else(|status| {
            metrics.refused.fetch_add(1, Relaxed);
            refusal(status)
        })
    }

    /// Answers a request of the protocol.
    async fn protocol(&self, request: Request<Incoming>) -> Result<Response<Body>, StatusCode> {
        let identity = self.access.admit(request.headers())?;
        let Ok(running) = self.requests.clone().try_acquire_owned() else {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        };
        let is_new = self.check_session(request.headers(), &identity)?;
        let (mut parts, body) = request.into_parts();
        let whole = Limited::new(body, self.limits.body).collect();
        let body = match tokio::time::timeout(self.limits.arrival, whole).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(StatusCode::PAYLOAD_TOO_LARGE),
            Ok(Err(_)) => return Err(StatusCode::BAD_REQUEST),
            Err(_) => return Err(StatusCode::REQUEST_TIMEOUT),
        };
        if is_new {
            self.check_room(&body).await?;
        }
        let owner = identity.name.to_string();
        parts.extensions.insert::<Identity>(identity);
        // Credentials are of no use beyond this point.
        parts.headers.remove(header::AUTHORIZATION);
        let response = self.service.handle(Request::from_parts(parts, Full::new(body))).await;
        if let Some(session) = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).filter(|_| is_new) {
            self.owners.lock().unwrap_or_else(PoisonError::into_inner).insert(session.to_owned(), owner);
        }
        // A request runs until its answer is sent or dropped.
        Ok(response.map(|body| {
            let until_sent = move |frame| {
                let _ = &running;
                frame
            };
            body.map_frame(until_sent).boxed()
        }))
    }
}

impl Server {
    /// Checks the conversation of a request; returns `true` for a request without one.
    fn check_session(&self, headers: &HeaderMap, identity: &Identity) -> Result<bool, StatusCode> {
        let Some(session) = headers.get(SESSION) else { return Ok(true) };
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = session.to_str().ok().and_then(|session| owners.get(session));
        // The conversation of another client is as unknown as one that has ended.
        if owner.is_some_and(|owner| **owner == *identity.name) { Ok(false) } else { Err(StatusCode::NOT_FOUND) }
    }

    /// Refuses a request that may begin one conversation too many. Every other request needs none.
    async fn check_room(&self, body: &[u8]) -> Result<(), StatusCode> {
        let sessions = self.sessions.sessions.read().await;
        let begins = || serde_json::from_slice::<Message>(body).map_or(true, |message| message.method == BEGIN);
        if sessions.len() >= self.limits.sessions && begins() {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() >= self.limits.sessions * 2 {
            owners.retain(|session, _| sessions.contains_key(session.as_str()));
        }
        Ok(())
    }
}

/// Creates an answer with text.
fn text(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed());
    *response.status_mut() = status;
    let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// Creates the answer to a refused request.
fn refusal(status: StatusCode) -> Response<Body> {
    let reason = match status {
        StatusCode::UNAUTHORIZED => "a token is required: `Authorization: Bearer TOKEN`\n",
        StatusCode::TOO_MANY_REQUESTS => "too many requests: send fewer\n",
        StatusCode::SERVICE_UNAVAILABLE => "too many requests at once: repeat the request later\n",
        StatusCode::PAYLOAD_TOO_LARGE => "the body is larger than allowed\n",
        StatusCode::REQUEST_TIMEOUT => "the request did not arrive in time\n",
        StatusCode::NOT_FOUND => "not found: the server answers at `/mcp`, `/healthz` and `/metrics`\n",
        _ => "the request cannot be read\n",
    };
    let mut response = text(status, reason);
    let (name, value) = match status {
        StatusCode::UNAUTHORIZED => (header::WWW_AUTHENTICATE, "Bearer"),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => (header::RETRY_AFTER, "1"),
        _ => return response,
    };
    response.headers_mut().insert(name, header::HeaderValue::from_static(value));
    response
}
