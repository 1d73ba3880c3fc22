//! Sends requests through `wasi:http` exactly as its arguments state, and reports each response, or each error by name.
//! Follows redirects, repeats requests, and sends several at once, if its arguments request it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Error, Value, error, json};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::StreamError;

#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, default)]
struct Args {
    /// Method; `GET` if empty.
    method: String,
    /// Address, split without any check; overrides the three fields below.
    url: String,
    scheme: Option<String>,
    authority: Option<String>,
    path: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<String>,
    /// Bytes of a generated body, which is sent even if the server does not read it.
    body_bytes: u64,
    /// Time-outs in milliseconds: for connecting, for the first byte, and between bytes.
    times: Option<[u64; 3]>,
    /// Maximum redirects to follow.
    follow: u32,
    /// Number of requests, one after another.
    repeat: Option<u64>,
    /// Number of requests that are started before the first is awaited.
    together: usize,
    /// Bytes of each body to read; all by default.
    read: Option<u64>,
    /// Fails if the last request failed, and reports the error.
    strict: bool,
    /// Fails if the last request failed, without a message.
    silent: bool,
}

/// Result of one request.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    bytes: u64,
    error: Option<String>,
}

/// Maximum bytes of a body in the report.
const SHOWN: usize = 2048;

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Value, Error> {
    if args.together > 0 {
        let begun: Vec<_> = (0..args.together).map(|_| begin(&args)).collect();
        return count(&args, begun.into_iter().map(|future| future.and_then(|future| end(&args, future))));
    }
    if let Some(times) = args.repeat {
        return count(&args, (0..times).map(|_| ask(&args)));
    }
    let (mut args, mut hops) = (args, 0);
    loop {
        let answer = ask(&args);
        let location = answer.as_ref().ok().and_then(next).filter(|_| hops < args.follow);
        if let Some(location) = location {
            (args.url, args.scheme, args.authority, args.path) = (resolved(&args.url, &location), None, None, None);
            hops += 1;
            continue;
        }
        let told = match &answer {
            Ok(answer) => json!({
                "status": answer.status, "headers": answer.headers, "bytes": answer.bytes, "error": answer.error,
                "body": String::from_utf8_lossy(&answer.body), "hops": hops,
            }),
            Err(error) => json!({ "error": error, "hops": hops }),
        };
        return if fails(&answer) { failure(&args, told) } else { Ok(told) };
    }
}

/// Counts the requests by their result.
fn count(args: &Args, answers: impl Iterator<Item = Result<Answer, String>>) -> Result<Value, Error> {
    let mut ended = BTreeMap::<String, u64>::new();
    let mut failed = false;
    for answer in answers {
        failed = fails(&answer);
        *ended.entry(name(&answer)).or_default() += 1;
    }
    let told = json!({ "ended": ended });
    if failed { failure(args, told) } else { Ok(told) }
}

fn failure(args: &Args, told: Value) -> Result<Value, Error> {
    if args.silent {
        std::process::exit(3);
    }
    if args.strict { Err(error!("{told}")) } else { Ok(told) }
}

fn fails(answer: &Result<Answer, String>) -> bool {
    answer.as_ref().map_or(true, |answer| answer.error.is_some())
}

fn name(answer: &Result<Answer, String>) -> String {
    match answer {
        Ok(Answer { error: Some(error), .. }) | Err(error) => error.clone(),
        Ok(answer) => answer.status.to_string(),
    }
}

fn ask(args: &Args) -> Result<Answer, String> {
    begin(args).and_then(|future| end(args, future))
}

fn begin(args: &Args) -> Result<FutureIncomingResponse, String> {
    let headers = Fields::new();
    for (name, value) in &args.headers {
        headers.append(name, value.as_bytes()).map_err(|error| format!("header {name}: {}", word(&error)))?;
    }
    let request = OutgoingRequest::new(headers);
    let (scheme, authority, path) = split(&args.url);
    let scheme = match args.scheme.as_deref().unwrap_or(scheme) {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    let authority = args.authority.as_deref().unwrap_or(authority);
    let path = args.path.as_deref().unwrap_or(path);
    request.set_method(&method(&args.method)).map_err(|()| "set-method")?;
    request.set_scheme(Some(&scheme)).map_err(|()| "set-scheme")?;
    request.set_authority(Some(authority)).map_err(|()| "set-authority")?;
    request.set_path_with_query(Some(path)).map_err(|()| "set-path-with-query")?;
    let options = args.times.map(|[connect, first, between]| {
        let options = RequestOptions::new();
        let nanos = |ms: u64| Some(ms.saturating_mul(1_000_000));
        let _ = options.set_connect_timeout(nanos(connect));
        let _ = options.set_first_byte_timeout(nanos(first));
        let _ = options.set_between_bytes_timeout(nanos(between));
        options
    });
    let body = (args.body.is_some() || args.body_bytes > 0).then(|| request.body()).transpose();
    let body = body.map_err(|()| "outgoing-request.body")?;
    let future = handle(request, options).map_err(|error| word(&error))?;
    if let Some(body) = body {
        // A host that refuses in the future also refuses the body; the future holds the reason.
        send(args, body).or_else(|error| if error == "closed" { Ok(()) } else { Err(error) })?;
    }
    Ok(future)
}

fn send(args: &Args, body: OutgoingBody) -> Result<(), String> {
    let stream = body.write().map_err(|()| "outgoing-body.write")?;
    if let Some(text) = &args.body {
        for part in text.as_bytes().chunks(4096) {
            stream.blocking_write_and_flush(part).map_err(broken)?;
        }
    }
    let part = [b'x'; 4096];
    let mut left = args.body_bytes;
    while left > 0 {
        let length = left.min(part.len() as u64);
        stream.blocking_write_and_flush(&part[..length as usize]).map_err(broken)?;
        left -= length;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(|error| word(&error))
}

fn end(args: &Args, future: FutureIncomingResponse) -> Result<Answer, String> {
    let response = loop {
        match future.get() {
            Some(Ok(response)) => break response.map_err(|error| word(&error))?,
            Some(Err(())) => return Err("taken twice".to_owned()),
            None => future.subscribe().block(),
        }
    };
    Ok(read(args, response))
}

fn read(args: &Args, response: IncomingResponse) -> Answer {
    let headers = response.headers().entries().into_iter();
    let headers = headers.map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect();
    let mut answer = Answer { status: response.status(), headers, body: Vec::new(), bytes: 0, error: None };
    let Ok(body) = response.consume() else {
        answer.error = Some("consume".to_owned());
        return answer;
    };
    if let Ok(stream) = body.stream() {
        let most = args.read.unwrap_or(u64::MAX);
        while answer.bytes < most {
            match stream.blocking_read((most - answer.bytes).min(64 << 10)) {
                Ok(part) => {
                    answer.bytes += part.len() as u64;
                    let room = SHOWN.saturating_sub(answer.body.len());
                    answer.body.extend_from_slice(&part[..room.min(part.len())]);
                }
                Err(StreamError::Closed) => break,
                Err(error) => {
                    answer.error = Some(broken(error));
                    break;
                }
            }
        }
    }
    drop(IncomingBody::finish(body));
    answer
}

fn broken(error: StreamError) -> String {
    match error {
        StreamError::Closed => "closed".to_owned(),
        StreamError::LastOperationFailed(error) => match http_error_code(&error) {
            Some(code) => word(&code),
            None => error.to_debug_string(),
        },
    }
}

/// `ErrorCode::HttpRequestDenied` → `HttpRequestDenied`, without its payload; the text of an internal error is kept.
fn word(error: &dyn std::any::Any) -> String {
    if let Some(ErrorCode::InternalError(Some(text))) = error.downcast_ref::<ErrorCode>() {
        return format!("InternalError: {text}");
    }
    let code = error.downcast_ref::<ErrorCode>().map(|code| format!("{code:?}"));
    let header = error.downcast_ref::<wasip2::http::types::HeaderError>().map(|error| format!("{error:?}"));
    let text = code.or(header).unwrap_or_default();
    let text = text.rsplit_once("Code::").or_else(|| text.rsplit_once("Error::")).map_or(text.as_str(), |(_, it)| it);
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn method(name: &str) -> Method {
    match name {
        "" | "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

/// Splits `http://host:80/path?query` into scheme, authority and path.
fn split(url: &str) -> (&str, &str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let path = if end == rest.len() { "/" } else { &rest[end..] };
    (scheme, &rest[..end], path)
}

/// Target of a redirect; `None` for any other response.
fn next(answer: &Answer) -> Option<String> {
    let redirect = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
    let location = answer.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
    location.filter(|_| redirect).map(|(_, value)| value.clone())
}

fn resolved(url: &str, location: &str) -> String {
    let (scheme, authority, _) = split(url);
    match location {
        whole if whole.contains("://") => whole.to_owned(),
        host if host.starts_with("//") => format!("{scheme}:{host}"),
        path => format!("{scheme}://{authority}{path}"),
    }
}
