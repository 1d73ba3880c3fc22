//! Documents and answers of authorization servers: requests to one address each, with bounds and without redirects.

use anyhow::{Context, anyhow, bail};
use futures::TryStreamExt;
use serde_json::Value;
use toolcrib::HostGate;
use toolcrib::remote::{Gate, GateRequest, GateResponse};
use toolcrib::tool::{Host, RemoteAddress};
use toolcrib_base::render::{one_line, shortened};
use toolcrib_foundation::address::{Range, RangeKind};
use toolcrib_foundation::json::{Limits, parse_within};

/// Maximum bytes of a document.
const MAX_BYTES: usize = 256 << 10;
/// Maximum bytes of a text that is kept.
const MAX_KEPT: usize = 2048;
/// Limits of a document.
const LIMITS: Limits = Limits { depth: 20, values: 10_000 };
/// Maximum characters shown of a foreign text.
const MAX_SHOWN: usize = 300;

/// Sends requests on behalf of one login.
pub(super) struct Documents<'a> {
    pub(super) gate: &'a HostGate,
    /// Server at which somebody logs in. Special addresses are reached only if it has them itself.
    pub(super) server: &'a RemoteAddress,
}

impl Documents<'_> {
    /// Parses an address that a server has named.
    ///
    /// # Errors
    ///
    /// It is no address without a user name and over TLS, or leads into a private network that the server is not in.
    pub(super) fn address(&self, what: &str, text: &str) -> anyhow::Result<RemoteAddress> {
        let address: RemoteAddress = text.parse().with_context(|| format!("{what} cannot be used"))?;
        let kind = |address: &RemoteAddress| match address.host().host() {
            Host::Address(address) => Range::of(*address).map(|range| range.kind),
            Host::Name(name) => (name == "localhost").then_some(RangeKind::Loopback),
        };
        let is_allowed = match kind(&address) {
            None => true,
            Some(RangeKind::Loopback) => kind(self.server) == Some(RangeKind::Loopback),
            Some(_) => address.host().host() == self.server.host().host(),
        };
        if is_allowed {
            Ok(address)
        } else {
            bail!("{what} `{address}` is a special address, and the server's own is another")
        }
    }

    /// Gets a document; `None` if the server has none there.
    pub(super) async fn get(&self, address: &RemoteAddress) -> anyhow::Result<Option<Value>> {
        let request = GateRequest {
            method: "GET".to_owned(),
            url: address.as_str().to_owned(),
            headers: vec![("accept".to_owned(), "application/json".to_owned())],
            body: Vec::new(),
        };
        let response = self.gate.open(address, None)?.send(request).await;
        let response = response.map_err(|error| anyhow!("cannot get `{address}`: {error}"))?;
        match response.status {
            200 => Ok(Some(json(address, response).await?)),
            // Some servers answer every unknown path with a page or a login.
            401 | 403 | 404 | 405 | 410 => Ok(None),
            status => bail!("`{address}` answered with the status {status}"),
        }
    }

    /// Sends a body, and returns the status and the answer.
    pub(super) async fn post(
        &self,
        address: &RemoteAddress,
        kind: &str,
        body: String,
        authorization: Option<String>,
    ) -> anyhow::Result<(u16, Value)> {
        let mut headers =
            vec![("accept".to_owned(), "application/json".to_owned()), ("content-type".to_owned(), kind.to_owned())];
        headers.extend(authorization.map(|value| ("authorization".to_owned(), value)));
        let request = GateRequest {
            method: "POST".to_owned(),
            url: address.as_str().to_owned(),
            headers,
            body: body.into_bytes(),
        };
        let response = self.gate.open(address, None)?.send(request).await;
        let response = response.map_err(|error| anyhow!("cannot reach `{address}`: {error}"))?;
        let status = response.status;
        match json(address, response).await {
            Ok(answer) => Ok((status, answer)),
            // The body of a failure need not be JSON.
            Err(_) if status >= 300 => Ok((status, Value::Null)),
            Err(error) => Err(error),
        }
    }
}

async fn json(address: &RemoteAddress, mut response: GateResponse) -> anyhow::Result<Value> {
    let mut bytes = Vec::new();
    while let Some(part) =
        response.body.try_next().await.map_err(|error| anyhow!("cannot read `{address}`: {error}"))?
    {
        if bytes.len() + part.len() > MAX_BYTES {
            bail!("`{address}` answered with more than {MAX_BYTES} bytes");
        }
        bytes.extend_from_slice(&part);
    }
    // The error of the parser has no text of the document, which may hold a token.
    let value = parse_within(&bytes, LIMITS).map_err(|_| anyhow!("`{address}` did not answer with JSON"))?;
    if value.is_object() { Ok(value) } else { bail!("`{address}` did not answer with a JSON object") }
}

/// Returns a text of a document.
pub(super) fn text(document: &Value, field: &str) -> Option<String> {
    document[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns a text of a document that is kept in the list of logins; `None` if it is too long for that.
pub(super) fn short_text(document: &Value, field: &str) -> Option<String> {
    text(document, field).filter(|text| text.len() <= MAX_KEPT)
}

/// Describes an error of OAuth in an answer.
pub(super) fn error_of(answer: &Value) -> String {
    let shown = |field: &str| answer[field].as_str().map(|text| one_line(&shortened(text, MAX_SHOWN)).to_string());
    match (shown("error"), shown("error_description")) {
        (Some(error), Some(description)) => format!("{error}: {description}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "without a reason".to_owned(),
    }
}
