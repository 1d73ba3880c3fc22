//! A server that listens on this machine: messages over HTTP, as JSON or as an event stream. Nothing is sent to another machine
//! or through a proxy, and only to the path at which this program serves.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use tokio::time::timeout;
use toolcrib_base::event_stream::events;
use toolcrib_base::http;

use super::fault::{Fault, MAX_RECEIVED, shown};
use super::message::{REVISION, answer};

/// Path of the protocol.
const PATH: &str = "/mcp";
/// Header with the identifier of a conversation.
const SESSION: &str = "mcp-session-id";
/// Header with the revision of the protocol.
const VERSION: &str = "mcp-protocol-version";
/// Time for the end of a conversation.
const GRACE: Duration = Duration::from_secs(1);

/// Listening server.
pub struct LocalServer {
    client: Client,
    url: Url,
    /// Value of the header `Authorization`.
    authorization: Option<HeaderValue>,
    session: Option<HeaderValue>,
    /// `true` after the answer to `initialize`.
    is_greeted: bool,
    /// Bytes that the server may still send.
    left: Arc<AtomicUsize>,
}

impl LocalServer {
    /// Returns the address if a server of this program may listen there: a loopback address with its path.
    pub fn address(text: &str) -> Option<Url> {
        let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()))?;
        let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        (http::is_loopback(&url) && is_plain && url.path() == PATH).then_some(url)
    }

    /// Creates a client for a server at an [`address`](Self::address).
    ///
    /// # Errors
    ///
    /// The client cannot be created, or the token cannot be sent.
    pub fn new(url: Url, authorization: Option<&str>) -> Result<Self, Fault> {
        let client = http::local_client().map_err(|error| Fault::Unreachable(error.to_string()))?;
        let authorization = authorization.map(HeaderValue::from_str).transpose();
        let mut authorization = authorization.map_err(|_| Fault::Unauthorized)?;
        authorization.iter_mut().for_each(|value| value.set_sensitive(true));
        Ok(Self {
            client,
            url,
            authorization,
            session: None,
            is_greeted: false,
            left: Arc::new(AtomicUsize::new(MAX_RECEIVED)),
        })
    }

    fn with_headers(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(session) = &self.session {
            request = request.header(SESSION, session.clone());
        }
        if self.is_greeted { request.header(VERSION, REVISION) } else { request }
    }

    async fn post(&self, message: &Value) -> Result<Response, Fault> {
        let request = self.client.post(self.url.clone()).json(message);
        let request = self.with_headers(request).header(ACCEPT, "application/json, text/event-stream");
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED => Err(Fault::Unauthorized),
            status => Err(Fault::Status(status.as_u16())),
        }
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn ask(&mut self, request: &Value, id: u64) -> Result<Value, Fault> {
        let response = self.post(request).await?;
        if let Some(session) = response.headers().get(SESSION) {
            self.session = Some(session.clone());
        }
        self.is_greeted = true;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.starts_with("text/event-stream");
        let mut bytes = pin!(stream::try_unfold((response, self.left.clone()), part));
        if !is_stream {
            let mut text = Vec::new();
            while let Some(more) = bytes.try_next().await? {
                text.extend_from_slice(&more);
            }
            let text = String::from_utf8_lossy(&text);
            return answer(&text, id)?.ok_or_else(|| Fault::Foreign(shown(&text)));
        }
        let mut events = pin!(events(bytes));
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| error.or(|reason| Fault::Foreign(reason.to_owned())))?;
            // The first event of a stream can be without a message.
            if !event.data.trim().is_empty()
                && let Some(answer) = answer(&event.data, id)?
            {
                return Ok(answer);
            }
        }
        Err(Fault::Unreachable("the answer ended early".to_owned()))
    }

    /// Sends a message that has no answer.
    pub(super) async fn send(&self, message: &Value) -> Result<(), Fault> {
        self.post(message).await.map(drop)
    }

    /// Ends the conversation, so that the server need not keep it.
    pub(super) async fn end(self) {
        if self.session.is_some() {
            let request = self.with_headers(self.client.delete(self.url.clone()));
            // The server forgets it later otherwise.
            let _ = timeout(GRACE, request.send()).await;
        }
    }
}

/// Reads the next part of an answer, and takes it from the bytes that may still be received.
async fn part(
    (mut response, left): (Response, Arc<AtomicUsize>),
) -> Result<Option<(Bytes, (Response, Arc<AtomicUsize>))>, Fault> {
    let Some(bytes) = response.chunk().await.map_err(|error| unreachable(&error))? else { return Ok(None) };
    let rest = left.load(Relaxed).checked_sub(bytes.len());
    left.store(rest.unwrap_or(0), Relaxed);
    rest.map(|_| Some((bytes, (response, left)))).ok_or(Fault::TooMuch)
}

/// Describes an error by its innermost cause, which says more than the address.
fn unreachable(error: &reqwest::Error) -> Fault {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    Fault::Unreachable(shown(&cause.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_of_the_protocol_on_this_machine_is_asked() {
        for known in ["http://127.0.0.1:8931/mcp", "https://localhost:1/mcp", "http://[::1]:8931/mcp"] {
            assert!(LocalServer::address(known).is_some(), "{known}");
        }
        for other in [
            "http://192.0.2.1:8931/mcp",
            "http://localhost.example.com/mcp",
            "http://127.0.0.1:8931/admin",
            "http://127.0.0.1:8931/mcp?x=1",
            "http://me:pw@127.0.0.1:8931/mcp",
            "ftp://127.0.0.1/mcp",
            "127.0.0.1",
        ] {
            assert!(LocalServer::address(other).is_none(), "{other}");
        }
    }
}
