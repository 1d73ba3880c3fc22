//! Remote MCP servers as sources: installation, pins, calls under the gate, lies, and logins.

pub(crate) mod login;
mod lying;
mod pinning;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::answering::{Answer, Request, Server};
use crate::crib::{Crib, Ran};

/// Path of the protocol.
const PATH: &str = "/mcp";
/// Revision without a handshake.
const STATELESS: &str = "2026-07-28";
/// Revision with a handshake.
const WITH_HANDSHAKE: &str = "2025-11-25";
/// Identifier of the conversation.
const SESSION: &str = "session-1";

/// Behavior of a scripted server, which a test changes while it runs.
#[derive(Clone)]
struct Script(Arc<Mutex<State>>);

struct State {
    revision: &'static str,
    tools: Vec<Value>,
    /// Token that is required.
    token: Option<String>,
    /// Answer to `tools/call` in place of an echo of the arguments.
    answer: Option<Answer>,
    /// Identifier of the conversation; another one is not known any more.
    session: &'static str,
    /// Status of the answer to an answer of the client.
    refusal: u16,
    /// Methods of the requests so far.
    methods: Vec<String>,
}

impl Script {
    fn new(revision: &'static str) -> Self {
        let state = State {
            revision,
            tools: vec![echo()],
            token: None,
            answer: None,
            session: SESSION,
            refusal: 202,
            methods: Vec::new(),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap());
    }

    /// Methods of the requests since the last question.
    fn methods(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().methods)
    }

    /// Adds the script to a server.
    fn on(&self, server: Server) -> Server {
        let (post, delete) = (self.clone(), self.clone());
        let deleted = move |_: &Request| {
            delete.change(|state| state.methods.push("DELETE".to_owned()));
            Answer::new(204)
        };
        server.replies(PATH, move |request| post.reply(request)).on("DELETE", PATH, deleted)
    }

    fn reply(&self, request: &Request) -> Answer {
        let mut state = self.0.lock().unwrap();
        if let Some(token) = &state.token
            && request.header("authorization") != Some(&format!("Bearer {token}"))
        {
            return Answer::new(401).header("www-authenticate", r#"Bearer error="invalid_token", scope="calls""#);
        }
        let message = request.json();
        let method = message["method"].as_str().unwrap_or("answer").to_owned();
        state.methods.push(method.clone());
        let is_stateless = state.revision == STATELESS;
        let id = &message["id"];
        if message.get("method").is_none() {
            return Answer::new(state.refusal);
        }
        if id.is_null() {
            return Answer::new(202);
        }
        let info = json!({ "name": "scripted", "version": "7" });
        let result = |result: Value| Answer::new(200).json(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        if is_stateless {
            let meta = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            assert_eq!((meta, request.header("mcp-protocol-version")), (&json!(STATELESS), Some(STATELESS)));
            assert_eq!(request.header("mcp-method"), Some(&*method));
        } else if method == "tools/list" || method == "tools/call" {
            if request.header("mcp-session-id") != Some(state.session) {
                return Answer::new(404);
            }
            assert_eq!(request.header("mcp-protocol-version"), Some(WITH_HANDSHAKE), "{request:?}");
        }
        match method.as_str() {
            "server/discover" if is_stateless => {
                result(json!({ "supportedVersions": [STATELESS], "capabilities": {}, "serverInfo": info }))
            }
            "initialize" if !is_stateless => {
                let greeting = json!({ "protocolVersion": WITH_HANDSHAKE, "capabilities": {}, "serverInfo": info });
                result(greeting).header("mcp-session-id", state.session)
            }
            "tools/list" => {
                // Two pages.
                let is_second = message["params"]["cursor"] == "second";
                let (first, second) = state.tools.split_at(state.tools.len() / 2);
                match is_second {
                    true => result(json!({ "tools": second })),
                    false => result(json!({ "tools": first, "nextCursor": "second" })),
                }
            }
            "tools/call" => match &state.answer {
                Some(answer) => answer.clone(),
                None if message["params"]["name"] != "echo" => {
                    let error = json!({ "code": -32602, "message": "unknown tool" });
                    Answer::new(200).json(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
                }
                None => {
                    let text = message["params"]["arguments"].to_string();
                    let answer = json!({ "content": [{ "type": "text", "text": text }] });
                    let event = json!({ "jsonrpc": "2.0", "id": id, "result": answer });
                    let token = &message["params"]["_meta"]["progressToken"];
                    let report = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                        "params": { "progressToken": token, "progress": 1, "total": 2 } });
                    Answer::new(200).raw(format!(": hi\n\ndata: {report}\n\ndata: {event}\n\n"), "text/event-stream")
                }
            },
            _ => {
                let error = json!({ "code": -32601, "message": "unknown method" });
                Answer::new(400).json(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            }
        }
    }
}

/// Definition of the tool.
fn echo() -> Value {
    json!({
        "name": "echo",
        "description": "Returns its arguments.",
        "inputSchema": {
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": true },
        "icons": [{ "src": "https://a.example/icon.png" }],
    })
}

/// Crib that nobody trusts, without a manifest.
pub(crate) fn crib() -> Crib {
    let mut crib = Crib::new();
    crib.trusts = false;
    crib
}

/// Address of a scripted server.
fn address(server: &Server) -> String {
    format!("{}{PATH}", server.uri())
}

/// Line of JSON that a command printed for one bundle.
fn line(ran: &Ran) -> Value {
    let line = ran.stdout.lines().next().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Answer of a call, or its error, as text.
fn answer(called: &Value) -> String {
    format!("{}{}", called["result"], called["error"])
}

/// Agrees to the tools of a server as they are, with these further arguments.
pub(crate) fn install(crib: &Crib, address: &str, more: &[&str]) {
    let shown = line(&crib.run(&[&["install", address, "--json"], more].concat()));
    let digest = shown["release"]["digest"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned();
    let trust = format!("--trust={digest}");
    let ran = crib.run(&[&["install", address, &trust], more].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
