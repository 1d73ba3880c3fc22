//! One request through `wasi:http` and its whole, bounded response, with the host's reasons in plain words. The host
//! follows no redirect, and the tool's grant decides about the destinations. Exists only in components: natively there
//! is no such host.

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::StreamError;

/// Maximum size of a response body, in bytes.
const MAX_BODY: usize = 8 << 20;

/// Maximum size of one write to the host, in bytes.
const PIECE: usize = 4096;

/// HTTP request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Method, such as `GET`.
    pub method: String,
    /// `true` for a request over TLS.
    pub https: bool,
    /// Host, and the port if it is not the default.
    pub authority: String,
    /// Path with the query.
    pub path: String,
    /// Header names and values.
    pub headers: Vec<(String, String)>,
    /// Body; empty for none.
    pub body: String,
    /// Time-out in milliseconds for connecting, for the first byte, and between two bytes.
    pub timeout_ms: Option<u64>,
}

/// HTTP response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status, such as 200.
    pub status: u16,
    /// Headers: each name once, in lower case; several values of one name are joined by commas.
    pub headers: Vec<(String, String)>,
    /// Whole body.
    pub body: Vec<u8>,
}

/// Sends a request and reads its response.
///
/// # Errors
///
/// The reason why there is no response.
pub fn exchange(request: &Request) -> Result<Answer, String> {
    let headers = Fields::new();
    for (name, value) in &request.headers {
        let refused = |what| format!("the header `{name}` is refused: {what:?}");
        headers.append(name, value.as_bytes()).map_err(refused)?;
    }
    let outgoing = OutgoingRequest::new(headers);
    let scheme = if request.https { Scheme::Https } else { Scheme::Http };
    outgoing.set_method(&method(&request.method)).map_err(|()| format!("unknown method `{}`", request.method))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| "the scheme is refused")?;
    outgoing.set_authority(Some(&request.authority)).map_err(|()| "it is not the name of a host")?;
    outgoing.set_path_with_query(Some(&request.path)).map_err(|()| "the path is refused")?;
    let body = outgoing.body().map_err(|()| "the host takes no body")?;
    let future = handle(outgoing, request.timeout_ms.map(options)).map_err(|code| words(&code))?;
    let sent = send(body, request.body.as_bytes());
    let response = wait(&future);
    // A refusal of the request is the reason to report, not the closed body that follows from it.
    let answer = read(response?)?;
    sent.map(|()| answer)
}

fn options(timeout_ms: u64) -> RequestOptions {
    let options = RequestOptions::new();
    let nanos = Some(timeout_ms.saturating_mul(1_000_000));
    // A host without such a limit keeps its own; the deadline of the call holds in any case.
    let _ = options.set_connect_timeout(nanos);
    let _ = options.set_first_byte_timeout(nanos);
    let _ = options.set_between_bytes_timeout(nanos);
    options
}

fn send(body: OutgoingBody, bytes: &[u8]) -> Result<(), String> {
    let stream = body.write().map_err(|()| "the host takes no body")?;
    for piece in bytes.chunks(PIECE) {
        stream.blocking_write_and_flush(piece).map_err(broken)?;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(|code| words(&code))
}

fn wait(future: &FutureIncomingResponse) -> Result<IncomingResponse, String> {
    loop {
        match future.get() {
            Some(Ok(response)) => return response.map_err(|code| words(&code)),
            Some(Err(())) => return Err("the response was already taken".to_owned()),
            None => future.subscribe().block(),
        }
    }
}

fn read(response: IncomingResponse) -> Result<Answer, String> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in response.headers().entries() {
        let (name, value) = (name.to_ascii_lowercase(), String::from_utf8_lossy(&value).into_owned());
        match headers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => *values = format!("{values}, {value}"),
            None => headers.push((name, value)),
        }
    }
    let status = response.status();
    let incoming = response.consume().map_err(|()| "the answer has no body")?;
    let stream = incoming.stream().map_err(|()| "the answer has no body")?;
    let mut body = Vec::new();
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(piece) => body.extend_from_slice(&piece),
            Err(StreamError::Closed) => break,
            Err(failed) => return Err(broken(failed)),
        }
        if body.len() > MAX_BODY {
            return Err(format!("the body of the answer is over the limit of {MAX_BODY} bytes"));
        }
    }
    drop(stream);
    drop(IncomingBody::finish(incoming));
    Ok(Answer { status, headers, body })
}

fn broken(failed: StreamError) -> String {
    match failed {
        StreamError::Closed => "the connection was closed".to_owned(),
        StreamError::LastOperationFailed(failed) => match http_error_code(&failed) {
            Some(code) => words(&code),
            None => failed.to_debug_string(),
        },
    }
}

/// Reason of the host, in words for the author of a script.
fn words(code: &ErrorCode) -> String {
    let plain = match code {
        ErrorCode::HttpRequestDenied => "denied by the grant (see --allow-net)",
        ErrorCode::DestinationIpProhibited => "its address is prohibited",
        ErrorCode::DnsTimeout | ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => "there is no such host",
        ErrorCode::DestinationUnavailable | ErrorCode::DestinationIpUnroutable => "the host cannot be reached",
        ErrorCode::ConnectionRefused => "the connection was refused",
        ErrorCode::ConnectionTerminated | ErrorCode::HttpResponseIncomplete => "the connection was closed",
        ErrorCode::ConnectionTimeout => "connecting took too long",
        ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout => "the answer took too long",
        ErrorCode::ConnectionWriteTimeout => "sending took too long",
        ErrorCode::ConnectionLimitReached => "the limit of requests is reached",
        ErrorCode::TlsProtocolError | ErrorCode::TlsCertificateError | ErrorCode::TlsAlertReceived(_) => {
            "the secure connection failed"
        }
        ErrorCode::HttpRequestMethodInvalid => "the method is refused",
        ErrorCode::HttpRequestUriInvalid | ErrorCode::HttpRequestUriTooLong => "the address is refused",
        ErrorCode::HttpRequestBodySize(_) => "the body is too large",
        ErrorCode::HttpResponseBodySize(_) => "the body of the answer is too large",
        ErrorCode::InternalError(Some(text)) => return text.clone(),
        other => return format!("{other:?}"),
    };
    plain.to_owned()
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}
