//! Answers of a server to one request: JSON or an event stream, each with its bounds. Requests of the server in a stream are
//! refused, and its reports are passed on.

use std::pin::pin;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use serde_json::Value;
use toolcrib::ToolError;
use toolcrib::remote::GateResponse;
use toolcrib_base::event_stream::{EventError, events};

use super::fault::Fault;
use super::message::{Incoming, RpcError, incoming, read};

/// Maximum bytes of a message. The gate has a bound for all of a call.
const MAX_MESSAGE: usize = 16 << 20;
/// Maximum bytes that are read of a response that is no success.
const MAX_REASON: usize = 64 << 10;
/// Maximum number of messages before an answer.
const MAX_BEFORE: usize = 10_000;

/// Body of a response in parts.
type Body = BoxStream<'static, Result<Vec<u8>, ToolError>>;

/// Messages of a server before its answer.
pub(super) trait Listener {
    /// Hears a notification.
    fn notified(&mut self, method: &str, params: &Value);

    /// Hears a request, which is to be refused.
    ///
    /// # Errors
    ///
    /// The server may send none, or no more.
    fn requested(&mut self, id: Value, method: String) -> impl Future<Output = Result<(), Fault>>;
}

/// Reads a body of at most `max` bytes.
pub(super) async fn whole(mut body: Body, max: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    while let Some(part) = body.try_next().await? {
        if bytes.len() + part.len() > max {
            return Err(Fault::TooMuch(format!("more than {max} bytes in one answer")));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Reads the start of a body that is no success, and its JSON-RPC error if it has one.
pub(super) async fn reason(mut body: Body) -> Option<RpcError> {
    let mut bytes = Vec::new();
    while let Ok(Some(part)) = body.try_next().await {
        if bytes.len() + part.len() > MAX_REASON {
            return None;
        }
        bytes.extend_from_slice(&part);
    }
    match read(&bytes) {
        Ok(Incoming::Answer(_, Err(error))) => Some(error),
        _ => None,
    }
}

/// Reads the answer to the request with an identifier.
pub(super) async fn answer(
    response: GateResponse,
    id: u64,
    listener: &mut impl Listener,
) -> Result<Result<Value, RpcError>, Fault> {
    let kind = response.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "application/json" => {
            let bytes = whole(response.body, MAX_MESSAGE).await?;
            match incoming(bytes).await? {
                Incoming::Answer(of, result) => of_request(&of, id, result),
                _ => Err(Fault::foreign("a response holds a request in place of its answer")),
            }
        }
        "text/event-stream" => streamed(response.body, id, listener).await,
        "" => Err(Fault::foreign("a response has no content type")),
        other => Err(Fault::foreign(format!("a response has the content type `{other}`"))),
    }
}

async fn streamed(body: Body, id: u64, listener: &mut impl Listener) -> Result<Result<Value, RpcError>, Fault> {
    let mut events = pin!(events(body));
    let mut before = 0;
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| match error {
            EventError::Transport(error) => Fault::Gate(error),
            EventError::NotText => Fault::foreign("an event stream is not UTF-8"),
        })?;
        if event.data.trim().is_empty() {
            continue;
        }
        match incoming(event.data.into_bytes()).await? {
            Incoming::Answer(of, result) => return of_request(&of, id, result),
            Incoming::Notification(method, params) => listener.notified(&method, &params),
            Incoming::Request(of, method) => listener.requested(of, method).await?,
        }
        before += 1;
        if before > MAX_BEFORE {
            return Err(Fault::TooMuch(format!("more than {MAX_BEFORE} messages before an answer")));
        }
    }
    Err(Fault::foreign("an event stream ended before its answer"))
}

/// Returns the result of an answer, if it is one to the request.
fn of_request(of: &Value, id: u64, result: Result<Value, RpcError>) -> Result<Result<Value, RpcError>, Fault> {
    match of.as_u64() == Some(id) {
        true => Ok(result),
        // A request that could not be read has no identifier.
        false if of.is_null() && result.is_err() => Ok(result),
        false => Err(Fault::foreign(format!("an answer is to the request {of}, and {id} was asked"))),
    }
}
