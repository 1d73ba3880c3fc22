//! One conversation with a server, in either revision of the protocol: 2025-11-25 and its predecessors, which begin with a
//! handshake, and 2026-07-28, where each request states its version.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use toolcrib::remote::{Gate, GateRequest, GateResponse};
use toolcrib::tool::RemoteAddress;

use super::fault::Fault;
use super::headers::{encoded, meta};
use super::message::{RpcError, refusal, request};
use super::reply::{self, Listener};

/// Revision without a handshake.
pub(super) const STATELESS: &str = "2026-07-28";
/// Revisions with a handshake, the latest first.
const WITH_HANDSHAKE: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// Header with the identifier of a conversation.
const SESSION: &str = "mcp-session-id";
/// Header with the revision.
const VERSION: &str = "mcp-protocol-version";
/// Maximum length of a conversation's identifier.
const MAX_SESSION: usize = 1024;
/// Maximum number of server requests that are refused.
const MAX_REFUSED: usize = 16;
/// Maximum characters of a server's name and version.
const MAX_TITLE: usize = 100;
/// Code of the error that lists the supported revisions.
const UNSUPPORTED: i64 = -32_022;
/// Codes of other errors that only a server without a handshake gives.
const OF_STATELESS: [i64; 2] = [-32_020, -32_021];

/// State of a conversation between two requests.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    /// Revision of the protocol.
    pub(super) revision: String,
    /// Identifier that the server has given, in a revision with a handshake.
    session: Option<String>,
    /// Identifier of the next request: calls at the same time have different ones.
    next_id: Arc<AtomicU64>,
}

/// Server at the other end of a gate.
pub(super) struct Peer<'a> {
    gate: &'a dyn Gate,
    address: &'a RemoteAddress,
    pub(super) conversation: Conversation,
    refused: usize,
    /// `true` once the server has said that its tools changed.
    pub(super) has_changed: bool,
}

/// Report of a running call: steps that are done, and all steps if they are known.
pub(super) type Progress<'p> = &'p (dyn Fn(u64, Option<u64>) + Sync);

/// Returns `true` for a revision that begins with a handshake.
pub(super) fn has_handshake(revision: &str) -> bool {
    revision != STATELESS
}

impl<'a> Peer<'a> {
    fn new(gate: &'a dyn Gate, address: &'a RemoteAddress, revision: &str) -> Self {
        let next_id = Arc::new(AtomicU64::new(1));
        Self::resume(gate, address, Conversation { revision: revision.to_owned(), session: None, next_id })
    }

    /// Goes on with a conversation.
    pub(super) fn resume(gate: &'a dyn Gate, address: &'a RemoteAddress, conversation: Conversation) -> Self {
        Self { gate, address, conversation, refused: 0, has_changed: false }
    }

    /// Begins a conversation with a server of an unknown revision. Also returns the name and version that it states.
    pub(super) async fn meet(gate: &'a dyn Gate, address: &'a RemoteAddress) -> Result<(Self, Option<String>), Fault> {
        let mut peer = Self::new(gate, address, STATELESS);
        let known = match peer.ask("server/discover", Map::new(), &[], None).await {
            Ok(found) => {
                let versions = texts(&found["supportedVersions"]);
                if versions.iter().any(|version| version == STATELESS) {
                    return Ok((peer, title(&found)));
                }
                versions
            }
            Err(Fault::Revision(versions)) if !versions.is_empty() => versions,
            // A server of an earlier revision does not know the request, in one way or another.
            Err(Fault::Status(400..=499, _) | Fault::Refused { .. } | Fault::Foreign(_) | Fault::Forgotten) => {
                Vec::new()
            }
            Err(fault) => return Err(fault),
        };
        if !known.is_empty() && !known.iter().any(|version| WITH_HANDSHAKE.contains(&version.as_str())) {
            return Err(Fault::Revision(known));
        }
        Self::greet(gate, address).await
    }

    /// Begins a conversation with a server of a known revision.
    pub(super) async fn open(gate: &'a dyn Gate, address: &'a RemoteAddress, revision: &str) -> Result<Self, Fault> {
        match has_handshake(revision) {
            true => Ok(Self::greet(gate, address).await?.0),
            false => Ok(Self::new(gate, address, STATELESS)),
        }
    }

    /// Makes the handshake.
    async fn greet(gate: &'a dyn Gate, address: &'a RemoteAddress) -> Result<(Self, Option<String>), Fault> {
        let mut peer = Self::new(gate, address, "");
        let client = json!({ "name": "toolcrib", "version": env!("CARGO_PKG_VERSION") });
        let hello = [
            ("protocolVersion".to_owned(), json!(WITH_HANDSHAKE[0])),
            ("capabilities".to_owned(), json!({})),
            ("clientInfo".to_owned(), client),
        ];
        let found = peer.ask("initialize", Map::from_iter(hello), &[], None).await?;
        let version = found["protocolVersion"].as_str().unwrap_or_default();
        if !WITH_HANDSHAKE.contains(&version) {
            return Err(Fault::Revision(vec![version.to_owned()]));
        }
        version.clone_into(&mut peer.conversation.revision);
        let title = title(&found);
        let confirmed = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let response = peer.post(&confirmed, &[]).await?;
        peer.succeeded(response).await?;
        Ok((peer, title))
    }

    /// Sends a request, and returns its result.
    pub(super) async fn ask(
        &mut self,
        method: &'static str,
        mut params: Map<String, Value>,
        headers: &[(String, String)],
        progress: Option<Progress<'_>>,
    ) -> Result<Value, Fault> {
        let id = self.conversation.next_id.fetch_add(1, Ordering::Relaxed);
        let mut own = match has_handshake(&self.conversation.revision) {
            true => Map::new(),
            false => meta(&self.conversation.revision),
        };
        if progress.is_some() {
            own.insert("progressToken".to_owned(), id.into());
        }
        if !own.is_empty() {
            params.insert("_meta".to_owned(), own.into());
        }
        let mut all = vec![("mcp-method".to_owned(), method.to_owned())];
        if let Some(name) = params.get("name").and_then(Value::as_str) {
            all.push(("mcp-name".to_owned(), encoded(name)));
        }
        all.extend_from_slice(headers);
        let all = if has_handshake(&self.conversation.revision) { Vec::new() } else { all };
        let response = self.post(&request(id, method, params), &all).await?;
        let response = self.succeeded(response).await?;
        if method == "initialize" {
            self.conversation.session = session(&response)?;
        }
        if response.status == 202 {
            return Err(Fault::foreign("a request was accepted without an answer"));
        }
        let mut listener = OfRequest { peer: self, progress, token: id };
        match reply::answer(response, id, &mut listener).await? {
            Ok(result) => complete(result),
            Err(error) => Err(of_error(method, error)),
        }
    }

    /// Ends the conversation, so that the server need not keep it. Its answer says nothing.
    pub(super) async fn end(self) {
        if self.conversation.session.is_some() {
            let request = GateRequest {
                method: "DELETE".to_owned(),
                url: self.address.as_str().to_owned(),
                headers: self.headers(&[]),
                body: Vec::new(),
            };
            let _ = self.gate.send(request).await;
        }
    }

    fn headers(&self, more: &[(String, String)]) -> Vec<(String, String)> {
        let Conversation { revision, session, .. } = &self.conversation;
        let mut headers = vec![("user-agent".to_owned(), concat!("toolcrib/", env!("CARGO_PKG_VERSION")).to_owned())];
        if !revision.is_empty() {
            headers.push((VERSION.to_owned(), revision.clone()));
        }
        headers.extend(session.iter().map(|session| (SESSION.to_owned(), session.clone())));
        headers.extend_from_slice(more);
        headers
    }

    async fn post(&self, message: &Value, headers: &[(String, String)]) -> Result<GateResponse, Fault> {
        let mut headers = self.headers(headers);
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        headers.push(("accept".to_owned(), "application/json, text/event-stream".to_owned()));
        let body = message.to_string().into_bytes();
        let request = GateRequest { method: "POST".to_owned(), url: self.address.as_str().to_owned(), headers, body };
        Ok(self.gate.send(request).await?)
    }

    /// Returns a response that is a success.
    async fn succeeded(&self, response: GateResponse) -> Result<GateResponse, Fault> {
        let header = |name: &str| response.header(name).map(str::to_owned);
        match response.status {
            200..=299 => Ok(response),
            401 => Err(Fault::Unauthorized { challenge: header("www-authenticate") }),
            403 => Err(Fault::Forbidden { challenge: header("www-authenticate") }),
            300..=399 => Err(Fault::Redirected(header("location").unwrap_or_default())),
            404 if self.conversation.session.is_some() => Err(Fault::Forgotten),
            status => {
                let error = reply::reason(response.body).await;
                match error {
                    Some(error) if error.code == UNSUPPORTED || OF_STATELESS.contains(&error.code) => {
                        Err(of_error("server/discover", error))
                    }
                    error => Err(Fault::Status(status, error.map(|error| error.message))),
                }
            }
        }
    }
}

/// Listener for the messages before one answer.
struct OfRequest<'p, 'a> {
    peer: &'p mut Peer<'a>,
    progress: Option<Progress<'p>>,
    token: u64,
}

impl Listener for OfRequest<'_, '_> {
    fn notified(&mut self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed" => self.peer.has_changed = true,
            "notifications/progress" if params["progressToken"].as_u64() == Some(self.token) => {
                let count = |value: &Value| value.as_f64().filter(|count| *count >= 0.0).map(|count| count as u64);
                if let (Some(progress), Some(done)) = (self.progress, count(&params["progress"])) {
                    progress(done, count(&params["total"]));
                }
            }
            _ => {}
        }
    }

    async fn requested(&mut self, id: Value, method: String) -> Result<(), Fault> {
        if !has_handshake(&self.peer.conversation.revision) {
            return Err(Fault::foreign(format!("the server sent the request `{method}`, which this revision has not")));
        }
        self.peer.refused += 1;
        if self.peer.refused > MAX_REFUSED {
            return Err(Fault::TooMuch(format!("more than {MAX_REFUSED} requests to the client")));
        }
        let response = self.peer.post(&refusal(&id, &method), &[]).await?;
        match self.peer.succeeded(response).await {
            Ok(_) => Ok(()),
            // The request that the server works on has begun, so that no fault may lead to a second one.
            Err(fault) => Err(Fault::foreign(format!("it did not take the answer to its request `{method}`: {fault}"))),
        }
    }
}

/// Returns the identifier of a conversation that the server has given.
fn session(response: &GateResponse) -> Result<Option<String>, Fault> {
    let Some(id) = response.header(SESSION) else { return Ok(None) };
    let is_valid = (1..=MAX_SESSION).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    match is_valid {
        true => Ok(Some(id.to_owned())),
        false => Err(Fault::foreign("the identifier of the conversation has other characters than visible ones")),
    }
}

/// Returns a result that is complete.
fn complete(result: Value) -> Result<Value, Fault> {
    if !result.is_object() {
        return Err(Fault::foreign("a result is not an object"));
    }
    match result.get("resultType").map(|kind| kind.as_str().unwrap_or_default()) {
        None | Some("complete") => Ok(result),
        Some("input_required") => {
            let requests = result["inputRequests"].as_object();
            let methods = requests.into_iter().flat_map(Map::values).filter_map(|one| one["method"].as_str());
            let methods: Vec<&str> = methods.take(4).collect();
            let what = if methods.is_empty() { "input".to_owned() } else { format!("`{}`", methods.join("`, `")) };
            Err(Fault::WantsInput(what))
        }
        Some(other) => Err(Fault::foreign(format!("a result has the unknown type `{other}`"))),
    }
}

fn of_error(method: &'static str, RpcError { code, message, data }: RpcError) -> Fault {
    match code {
        UNSUPPORTED => Fault::Revision(texts(&data["supported"])),
        _ => Fault::Refused { method, code, message },
    }
}

/// Returns the short texts of an array.
fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    items.filter(|text| text.len() <= MAX_TITLE).take(16).map(str::to_owned).collect()
}

/// Returns the name and version that a server states.
fn title(found: &Value) -> Option<String> {
    let info = [&found["serverInfo"], &found["_meta"]["io.modelcontextprotocol/serverInfo"]];
    let info = info.into_iter().find(|info| info.is_object())?;
    let text = |field: &str| {
        let text = info[field].as_str()?;
        let plain: String = text.chars().filter(|c| !c.is_control()).take(MAX_TITLE / 2).collect();
        Some(plain).filter(|plain| !plain.trim().is_empty())
    };
    let name = text("name")?;
    Some(match text("version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    })
}
