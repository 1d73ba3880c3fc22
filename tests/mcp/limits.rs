//! Limits of a server over HTTP, each of which is exceeded: connections, requests and conversations at once, and the time of
//! running requests when the server ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::http::Server;
use super::{PATIENCE, modern};
use crate::crib::Crib;

/// Maximum number of conversations of the earlier revision.
const MAX_CONVERSATIONS: usize = 1024;

fn crib() -> Crib {
    Crib::with_guests(&["echo", "spin"])
}

/// Sends a call that never ends as the first request, and waits until it has arrived.
fn endless(server: &Server) -> TcpStream {
    let params = modern(json!({"name": "spin", "arguments": {}}), &json!({}));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: spin\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    )
    .unwrap();
    let end = Instant::now() + PATIENCE;
    let is_beside = |asked: u32| {
        let counted = format!("toolcrib_http_requests_total {}\n", asked + 1);
        server.get("/metrics", "").body.contains(&counted)
    };
    let mut asked = 1;
    while !is_beside(asked) {
        assert!(Instant::now() < end, "the call does not arrive");
        asked += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    stream
}

/// Polls until the server answers a list with a status.
fn until(server: &Server, status: u16) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = server.list("");
        if answer.status == status {
            return answer.head;
        }
        assert!(Instant::now() < end, "{answer:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_request_beyond_the_maximum_is_refused_until_another_ends() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-running=1", "--timeout=600s"]);
    let running = endless(&server);
    let head = until(&server, 503).to_lowercase();
    assert!(head.contains("retry-after: 1"), "{head}");
    drop(running);
    until(&server, 200);
}

#[test]
fn a_connection_beyond_the_maximum_waits_until_another_ends() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-connections=2"]);
    let held = [0, 1].map(|_| TcpStream::connect(server.address).unwrap());
    let mut third = TcpStream::connect(server.address).unwrap();
    third.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    third.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    assert!(third.read(&mut [0; 1]).is_err(), "it is served beside two others");
    drop(held);
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    third.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn a_conversation_beyond_the_maximum_is_refused_and_requests_that_need_none_go_on() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-rate=1000000"]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}});
    for number in 0..MAX_CONVERSATIONS {
        assert_eq!(server.post(&hello, "").status, 200, "{number}");
    }
    assert_eq!(server.post(&hello, "").status, 503);
    assert_eq!(server.list("").status, 200, "the later revision");
}

#[cfg(unix)]
#[test]
fn a_call_that_does_not_finish_is_stopped_when_the_server_ends() {
    let crib = crib();
    let mut server = Server::start(&crib, &["--no-token", "--timeout=600s", "--max-running=1"]);
    let _running = endless(&server);
    until(&server, 503);
    let id = server.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let began = Instant::now();
    assert!(server.child.wait().unwrap().code().is_some());
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert_eq!(crib.records().pop().unwrap()["outcome"], "cancelled");
}
