//! Searches for a secret everywhere: its environment, and the headers and body of a response. Reveals it in every way:
//! its answer, its error, standard error, a file, a panic.

#![allow(clippy::print_stderr, reason = "it tells what it saw in every way it has")]

use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Error, Value, error, json};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, IncomingBody, IncomingResponse, OutgoingRequest, Scheme, http_error_code};
use wasip2::io::streams::StreamError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    /// `http://AUTHORITY/PATH`; no request without it.
    url: Option<String>,
    /// Headers of the request.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// Ways to reveal it: `answer`, `fail`, `stderr`, `file` and `panic`.
    #[serde(default)]
    tell: Vec<String>,
    /// Number of repetitions in the answer.
    #[serde(default)]
    times: usize,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Value, Error> {
    let mut seen = Vec::new();
    seen.extend(std::env::vars().map(|(name, value)| format!("{name}={value}")));
    seen.extend(std::env::args());
    if let Some(url) = &args.url {
        seen.extend(ask(url, &args.headers).unwrap_or_else(|error| vec![format!("error: {error}")]));
    }
    let tells = |way: &str| args.tell.iter().any(|told| told == way);
    let text = seen.join("\n");
    if tells("file") {
        std::fs::write("seen", &text)?;
    }
    if tells("stderr") {
        eprintln!("{text}");
    }
    if tells("panic") {
        panic!("{text}");
    }
    if tells("fail") {
        return Err(error!("{text}"));
    }
    Ok(json!({ "seen": seen, "again": text.repeat(args.times) }))
}

fn ask(url: &str, headers: &[(String, String)]) -> Result<Vec<String>, String> {
    let rest = url.strip_prefix("http://").ok_or("http:// alone")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let fields = Fields::new();
    for (name, value) in headers {
        fields.append(name, value.as_bytes()).map_err(|error| format!("{error:?}"))?;
    }
    let request = OutgoingRequest::new(fields);
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| "scheme")?;
    request.set_authority(Some(authority)).map_err(|()| "authority")?;
    request.set_path_with_query(Some(path)).map_err(|()| "path")?;
    let sent = request.headers().entries().into_iter().map(shown);
    let mut seen: Vec<String> = sent.collect();
    let answer = handle(request, None).map_err(|error| format!("{error:?}"))?;
    answer.subscribe().block();
    let response = answer.get().and_then(Result::ok).ok_or("no answer")?.map_err(|error| format!("{error:?}"))?;
    read(&response, &mut seen);
    Ok(seen)
}

/// Reads the visible part of a response, up to the place where it is cut.
fn read(response: &IncomingResponse, seen: &mut Vec<String>) {
    seen.push(response.status().to_string());
    seen.extend(response.headers().entries().into_iter().map(shown));
    let Ok(body) = response.consume() else { return };
    let mut bytes = Vec::new();
    if let Ok(stream) = body.stream() {
        loop {
            match stream.blocking_read(4096) {
                Ok(part) => bytes.extend(part),
                Err(StreamError::LastOperationFailed(error)) => {
                    break seen.push(format!("{:?}", http_error_code(&error)));
                }
                Err(StreamError::Closed) => break,
            }
        }
    }
    seen.push(String::from_utf8_lossy(&bytes).into_owned());
    let trailers = IncomingBody::finish(body);
    trailers.subscribe().block();
    if let Some(Ok(Ok(Some(trailers)))) = trailers.get() {
        seen.extend(trailers.entries().into_iter().map(shown));
    }
}

fn shown((name, value): (String, Vec<u8>)) -> String {
    format!("{name}: {}", String::from_utf8_lossy(&value))
}
