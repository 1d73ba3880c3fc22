//! `toolcrib mcp`: both revisions of the protocol over standard streams and HTTP, approvals, reload, limits, TLS, hostile clients,
//! and the check of configured servers. The clients here write and read plain JSON, so that they share nothing with the server.

mod approvals;
mod background;
mod clients;
mod conformance;
#[cfg(unix)]
mod doctor;
mod ending;
mod hostile;
mod http;
mod keys;
mod limits;
mod live;
mod operating;
mod pausing;
pub(crate) mod programs;
mod refusals;
mod reload;
mod rights;
#[cfg(unix)]
mod shared;
#[cfg(unix)]
mod shared_audit;
mod shared_tenants;
mod sign_in;
mod sizes;
mod stdio;
mod tasks;
mod tenants;
mod tls;
mod trace;
mod waiting;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::crib::Crib;

/// Time within which an answer comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Client over standard streams.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Messages that were read while another was waited for.
    kept: Vec<Value>,
    next: u64,
}

impl Client {
    /// Starts the server.
    pub(crate) fn start(crib: &Crib, flags: &[&str]) -> Self {
        let mut command = crib.toolcrib(&[&["mcp"], flags].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (sender, messages) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, messages, kept: Vec::new(), next: 0 }
    }

    /// Starts the server and a conversation of the earlier revision.
    pub(crate) fn initialized(crib: &Crib, flags: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::start(crib, flags);
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "probe", "version": "1"},
        });
        let answer = client.ask("initialize", &hello);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "toolcrib");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request, and returns its identifier.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for a message.
    pub(crate) fn wait(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is_wanted) {
            return self.kept.remove(at);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match self.messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(message) if is_wanted(&message) => return message,
                Ok(message) => self.kept.push(message),
                Err(RecvTimeoutError::Timeout) => panic!("no answer; others: {:?}", self.kept),
                Err(RecvTimeoutError::Disconnected) => panic!("the server ended; others: {:?}", self.kept),
            }
        }
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.wait(|message| message["id"] == id && message.get("method").is_none())
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": name, "arguments": arguments}))
    }

    /// Names of the listed tools.
    fn tools(&mut self) -> Vec<String> {
        names(&self.ask("tools/list", &json!({})))
    }

    /// Closes the input, and returns the exit code.
    pub(crate) fn leave(mut self) -> Option<i32> {
        self.input = None;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server did not end");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It has ended if the test has passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Names of the tools in the answer to a list.
fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Parameters of a request of the later revision.
pub(crate) fn modern(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

/// First text of the result of a call.
fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}
