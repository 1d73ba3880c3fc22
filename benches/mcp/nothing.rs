//! Server that does nothing: it answers every call with the text that it was started with. Its time is the floor.

#![allow(clippy::print_stderr, reason = "it prints its address like other servers")]

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use serde::Deserialize;
use serde_json::json;

use crate::wire;

/// Result of `initialize`.
const INITIALIZED: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"nothing","version":"1"}}"#;
/// Result of `tools/list`.
const LISTED: &str = r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#;

#[derive(Deserialize)]
struct Request<'a> {
    id: Option<u64>,
    method: &'a str,
}

/// Serves one client over standard streams.
pub(crate) fn serve_stdio(text: &str) -> io::Result<()> {
    let called = called(text);
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut message = Vec::new();
    while !input.fill_buf()?.is_empty() {
        wire::line(&mut input, &mut message)?;
        if let Some(mut answer) = answer(&message, &called) {
            answer.push('\n');
            output.write_all(answer.as_bytes())?;
            output.flush()?;
        }
    }
    Ok(())
}

/// Serves clients over HTTP, one after another, until the process is killed.
pub(crate) fn serve_http(text: &str) -> io::Result<()> {
    let called = called(text);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    eprintln!("serving http://{}/mcp", listener.local_addr()?);
    loop {
        // The end of a connection concerns its client only.
        let _ = connection(listener.accept()?.0, &called);
    }
}

fn connection(stream: TcpStream, called: &str) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut message = Vec::new();
    loop {
        let head = wire::head(&mut stream)?;
        wire::body(&mut stream, &head, &mut message)?;
        let response = match answer(&message, called) {
            Some(answer) => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            ),
            None => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        stream.get_mut().write_all(response.as_bytes())?;
    }
}

/// Creates the result of every call.
fn called(text: &str) -> String {
    json!({"content": [{"type": "text", "text": text}], "isError": false}).to_string()
}

/// Answers a request, and no notification.
fn answer(message: &[u8], called: &str) -> Option<String> {
    let Request { id, method } = serde_json::from_slice(message).ok()?;
    let result = match method {
        "initialize" => INITIALIZED,
        "tools/list" => LISTED,
        _ => called,
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id?))
}
