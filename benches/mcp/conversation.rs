//! Conversation with one server: a client of both revisions and both transports that writes and reads JSON by hand, so
//! that no client library is part of the measured time.

use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::wire;

/// Time within which an answer over HTTP comes.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Revision of the protocol.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Revision {
    Earlier,
    Later,
}

impl Revision {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Earlier => "2025-11-25",
            Self::Later => "2026-07-28",
        }
    }
}

/// Connection to a server.
pub(crate) enum Transport {
    Lines { input: ChildStdin, output: BufReader<ChildStdout> },
    Http { stream: BufReader<TcpStream>, address: SocketAddr, token: Option<String>, session: Option<String> },
}

impl Transport {
    /// Connects over HTTP.
    pub(crate) fn http(address: SocketAddr, token: Option<String>) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(MAX_WAIT))?;
        Ok(Self::Http { stream: BufReader::new(stream), address, token, session: None })
    }

    /// Frames a message.
    fn frame(&self, message: &Value, revision: Revision) -> Vec<u8> {
        let Self::Http { address, token, session, .. } = self else { return format!("{message}\n").into_bytes() };
        let method = &message["method"];
        let fields = [
            ("host", Some(address.to_string())),
            ("authorization", token.as_ref().map(|token| format!("Bearer {token}"))),
            ("content-type", Some("application/json".to_owned())),
            ("accept", Some("application/json, text/event-stream".to_owned())),
            ("mcp-session-id", session.clone()),
            ("mcp-protocol-version", (method != "initialize").then(|| revision.name().to_owned())),
            ("mcp-method", method.as_str().filter(|_| revision == Revision::Later).map(str::to_owned)),
            ("mcp-name", message["params"]["name"].as_str().filter(|_| revision == Revision::Later).map(str::to_owned)),
        ];
        let body = message.to_string();
        let mut request = "POST /mcp HTTP/1.1\r\n".to_owned();
        for (name, value) in fields.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            request += &format!("{name}: {value}\r\n");
        }
        format!("{request}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Lines { input, .. } => input.write_all(bytes),
            Self::Http { stream, .. } => stream.get_mut().write_all(bytes),
        }
    }

    /// Replaces `received` by the next line, or by the body of the next response.
    fn receive(&mut self, received: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Lines { output, .. } => wire::line(output, received),
            Self::Http { stream, session, .. } => {
                let head = wire::head(stream)?;
                wire::body(stream, &head, received)?;
                if !head.start.contains(" 200 ") && !head.start.contains(" 202 ") {
                    let body = String::from_utf8_lossy(received);
                    return Err(io::Error::other(format!("{}: {}", head.start, body.trim_end())));
                }
                if head.session.is_some() {
                    *session = head.session;
                }
                Ok(())
            }
        }
    }
}

/// Conversation that calls one tool with the same arguments again and again.
pub(crate) struct Conversation {
    transport: Transport,
    revision: Revision,
    params: Value,
    /// Result that an echo has.
    echo: Value,
    next: u64,
    received: Vec<u8>,
}

impl Conversation {
    /// Begins a conversation.
    ///
    /// # Errors
    ///
    /// The server ended, or its answer is no answer to `initialize`.
    pub(crate) fn begin(transport: Transport, revision: Revision, tool: &str, arguments: &Value) -> io::Result<Self> {
        let mut params = json!({"name": tool, "arguments": arguments});
        let client = json!({"name": "bench", "version": "1"});
        if revision == Revision::Later {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": revision.name(),
                "io.modelcontextprotocol/clientInfo": client,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let echo = arguments.clone();
        let mut conversation = Self { transport, revision, params, echo, next: 0, received: Vec::new() };
        if revision == Revision::Earlier {
            let hello = json!({"protocolVersion": revision.name(), "capabilities": {}, "clientInfo": client});
            let (_, answer) = conversation.ask("initialize", &hello)?;
            if answer["result"]["protocolVersion"] != revision.name() {
                return Err(io::Error::other(format!("no conversation of {}: {answer}", revision.name())));
            }
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            let bytes = conversation.transport.frame(&ready, revision);
            conversation.transport.send(&bytes)?;
            if matches!(conversation.transport, Transport::Http { .. }) {
                conversation.transport.receive(&mut conversation.received)?;
            }
        }
        Ok(conversation)
    }

    /// Calls the tool, and returns the time from the first byte of the request to the last byte of the answer.
    ///
    /// # Errors
    ///
    /// The server ended, or the result is not the arguments.
    pub(crate) fn call(&mut self) -> io::Result<Duration> {
        let params = self.params.clone();
        let (took, answer) = self.ask("tools/call", &params)?;
        let text = answer["result"]["content"][0]["text"].as_str();
        let result = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        match result.is_some_and(|result| result == self.echo) {
            true => Ok(took),
            false => Err(io::Error::other(format!("the result is not the arguments: {answer}"))),
        }
    }

    /// Sends a request, and returns its answer with its time. Building the request and reading the JSON of the answer
    /// are not part of the time.
    fn ask(&mut self, method: &str, params: &Value) -> io::Result<(Duration, Value)> {
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        let bytes = self.transport.frame(&message, self.revision);
        let started = Instant::now();
        self.transport.send(&bytes)?;
        loop {
            self.transport.receive(&mut self.received)?;
            let took = started.elapsed();
            if let Some(answer) = answer(&self.received, self.next) {
                return Ok((took, answer));
            }
            // A notification can come before the answer on standard streams; a response has everything.
            if matches!(self.transport, Transport::Http { .. }) {
                return Err(io::Error::other(format!("no answer: {}", String::from_utf8_lossy(&self.received))));
            }
        }
    }
}

/// Finds the answer to a request in a line, a body of JSON or a body of events.
fn answer(received: &[u8], id: u64) -> Option<Value> {
    let mut messages = received
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line.strip_prefix(b"data:").unwrap_or(line)).ok());
    messages.find(|message| message["id"] == id && message.get("method").is_none())
}
