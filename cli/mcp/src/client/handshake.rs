//! The handshake with a server: `initialize`, its confirmation, and every page of `tools/list`. Time and pages are bounded, since
//! a server can send anything.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::fault::{Fault, MAX_PAGES, MAX_TIME, ProgramMessages, shown};
use super::local_http::LocalServer;
use super::message::REVISION;
use super::server_process::ServerProcess;

/// Request that begins a conversation.
const HELLO: &str = "initialize";
/// Request for the tools.
const LIST: &str = "tools/list";

/// Server of a handshake.
pub enum Server {
    /// Program that is started.
    Process(Box<ServerProcess>),
    /// Server that listens on this machine.
    Local(Box<LocalServer>),
}

/// Result of a handshake.
#[derive(Debug, Clone, Copy)]
pub struct Greeting {
    /// Number of listed tools.
    pub tools: usize,
    /// Time from the server's start to the list's end.
    pub time: Duration,
}

/// Makes the handshake with a server that was created at `begin`, and ends a program in any case.
///
/// # Errors
///
/// The reason why the server cannot be used.
pub async fn handshake(mut server: Server, begin: Instant) -> Result<Greeting, Fault> {
    let mut method = HELLO;
    let end = timeout_at(begin + MAX_TIME, list(&mut server, &mut method)).await;
    let end = match end {
        Ok(Ok(tools)) => Ok(Greeting { tools, time: begin.elapsed() }),
        Ok(Err(fault)) => Err(fault),
        Err(_) => Err(Fault::Late { method, messages: ProgramMessages::default() }),
    };
    let messages = match server {
        Server::Process(process) => process.end(end.is_ok()).await,
        Server::Local(server) => {
            server.end().await;
            ProgramMessages::default()
        }
    };
    end.map_err(|fault| match fault {
        Fault::Ended(_) => Fault::Ended(messages),
        Fault::Late { method, .. } => Fault::Late { method, messages },
        fault => fault,
    })
}

/// Counts the tools of a server; `method` is the last request.
async fn list(server: &mut Server, method: &mut &'static str) -> Result<usize, Fault> {
    let client = json!({ "name": "toolcrib doctor", "version": env!("CARGO_PKG_VERSION") });
    let hello = json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": client });
    server.ask(0, HELLO, hello).await?;
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
    *method = LIST;
    let (mut tools, mut params) = (0, json!({}));
    for page in 1..=MAX_PAGES {
        let result = server.ask(page, LIST, params).await?;
        let Some(listed) = result["tools"].as_array() else {
            return Err(Fault::Foreign(shown(&result.to_string())));
        };
        tools += listed.len();
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return Ok(tools),
        }
    }
    Err(Fault::TooMuch)
}

impl Server {
    /// Sends a request, and returns its result.
    async fn ask(&mut self, id: u64, method: &'static str, params: Value) -> Result<Value, Fault> {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut answer = match self {
            Self::Process(process) => process.ask(&request, id).await?,
            Self::Local(server) => server.ask(&request, id).await?,
        };
        if let Some(error) = answer.get("error") {
            let message = error["message"].as_str().unwrap_or("an error without a message");
            return Err(Fault::Refused { method, message: shown(message) });
        }
        Ok(answer["result"].take())
    }

    async fn send(&mut self, notification: &Value) -> Result<(), Fault> {
        match self {
            Self::Process(process) => {
                process.send(notification).await;
                Ok(())
            }
            Self::Local(server) => server.send(notification).await,
        }
    }
}
