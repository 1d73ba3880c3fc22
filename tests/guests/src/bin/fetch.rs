//! Sends requests by `wasi:http`, one after the other, and reports the status and the body of each, or the error code. With
//! `fail` it ends as a failure where one of them got an error.

use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Error, Value, json};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{ErrorCode, Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    scheme: String,
    authority: String,
    #[serde(default = "slash")]
    path: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<String>,
    /// How many times the body is sent over.
    #[serde(default = "one")]
    repeat: usize,
    /// How many requests are sent.
    #[serde(default = "one")]
    times: usize,
    /// Keep every response open.
    #[serde(default)]
    hold: bool,
    #[serde(default)]
    fail: bool,
}

fn slash() -> String {
    "/".to_owned()
}

fn get() -> String {
    "GET".to_owned()
}

fn one() -> usize {
    1
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        let mut held = Vec::new();
        let mut told = Vec::new();
        for _ in 0..args.times {
            let sent = send(&args);
            if let (Err(error), true) = (&sent, args.fail) {
                return Err(Error::new(error.clone()));
            }
            match sent {
                Ok(response) if args.hold => {
                    told.push(json!({ "status": response.status() }));
                    held.push(response);
                }
                Ok(response) => match read(&response) {
                    Ok(body) => told.push(json!({ "status": response.status(), "body": body })),
                    Err(error) if args.fail => return Err(Error::new(error)),
                    Err(error) => told.push(json!({ "status": response.status(), "error": error })),
                },
                Err(error) => told.push(json!({ "error": error })),
            }
        }
        Ok(Value::Array(told))
    })
}

fn send(args: &Args) -> Result<IncomingResponse, String> {
    let headers = Fields::new();
    for (name, value) in &args.headers {
        headers.append(name, value.as_bytes()).map_err(|error| format!("header: {error:?}"))?;
    }
    let request = OutgoingRequest::new(headers);
    let scheme = if args.scheme == "https" { Scheme::Https } else { Scheme::Http };
    let method = match args.method.as_str() {
        "GET" => Method::Get,
        "POST" => Method::Post,
        other => Method::Other(other.to_owned()),
    };
    request.set_scheme(Some(&scheme)).map_err(|()| "scheme")?;
    request.set_authority(Some(&args.authority)).map_err(|()| "authority")?;
    request.set_path_with_query(Some(&args.path)).map_err(|()| "path")?;
    request.set_method(&method).map_err(|()| "method")?;
    let body = request.body().map_err(|()| "body")?;
    let response = handle(request, None).map_err(word)?;
    if let Some(text) = &args.body {
        let stream = body.write().map_err(|()| "stream")?;
        let whole = text.repeat(args.repeat);
        for part in whole.as_bytes().chunks(4096) {
            if stream.blocking_write_and_flush(part).is_err() {
                break;
            }
        }
        drop(stream);
    }
    OutgoingBody::finish(body, None).map_err(word)?;
    response.subscribe().block();
    response.get().ok_or("no response")?.map_err(|()| "taken")?.map_err(word)
}

fn read(response: &IncomingResponse) -> Result<String, String> {
    let body = response.consume().map_err(|()| "consumed")?;
    let stream = body.stream().map_err(|()| "streamed")?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(64 * 1024) {
            Ok(part) => bytes.extend(part),
            Err(StreamError::Closed) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(StreamError::LastOperationFailed(error)) => {
                let code = wasip2::http::types::http_error_code(&error);
                return Err(code.map_or_else(|| "unknown".to_owned(), word));
            }
        }
    }
}

fn word(code: ErrorCode) -> String {
    format!("{code:?}")
}
