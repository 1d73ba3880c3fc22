//! HTTP: tokens, hosts and origins, limits, hostile clients, both revisions, and a graceful end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::limits::wait_for;
use super::{PATIENCE, modern};
use crate::crib::Crib;

/// A server over HTTP on a free port.
pub(super) struct Server {
    pub(super) child: Child,
    pub(super) address: SocketAddr,
}

/// Answer of a server.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Server {
    pub(super) fn start(crib: &Crib, flags: &[&str]) -> Self {
        Self::of(crib.toolcrib(&[&["mcp", "--http=127.0.0.1:0"], flags].concat()))
    }

    /// Starts a server by its command.
    pub(super) fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.find_map(|line| line.ok().filter(|line| line.contains("serving http"))).expect("an address");
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.split("://").nth(1).unwrap().trim_end_matches("/mcp").parse().unwrap();
        Self { child, address }
    }

    /// Sends bytes, and reads the answer until the server closes the connection or has sent its length.
    pub(super) fn exchange(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // The server may have answered and closed before everything is written.
        let _ = stream.write_all(bytes);
        Answer::read(&mut stream)
    }

    pub(super) fn get(&self, path: &str, headers: &str) -> Answer {
        self.exchange(
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n").as_bytes(),
        )
    }

    /// Sends a message of the protocol.
    pub(super) fn post(&self, message: &Value, headers: &str) -> Answer {
        self.exchange(&self.posted(message, headers))
    }

    fn posted(&self, message: &Value, headers: &str) -> Vec<u8> {
        let host = if headers.starts_with("host:") { String::new() } else { format!("host: {}\r\n", self.address) };
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\n{host}connection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        );
        format!("{head}{body}").into_bytes()
    }

    /// Sends a request of the later revision.
    pub(super) fn request(&self, method: &str, params: Value, headers: &str) -> Answer {
        self.exchange(&self.requested(method, params, headers))
    }

    /// Sends a request of the later revision from a client with these capabilities.
    pub(super) fn request_with(&self, method: &str, params: Value, capabilities: &Value, headers: &str) -> Answer {
        self.exchange(&self.requested_with(method, params, capabilities, headers))
    }

    /// Bytes of a request of the later revision.
    pub(super) fn requested(&self, method: &str, params: Value, headers: &str) -> Vec<u8> {
        self.requested_with(method, params, &json!({}), headers)
    }

    fn requested_with(&self, method: &str, params: Value, capabilities: &Value, headers: &str) -> Vec<u8> {
        let name = ["name", "taskId", "uri"].iter().find_map(|key| params[*key].as_str());
        let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": modern(params, capabilities)});
        let era = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}");
        self.posted(&message, &format!("{era}{headers}"))
    }

    /// Begins a conversation of the earlier revision; returns the headers of its further requests, with the answer.
    pub(super) fn conversation(&self, headers: &str) -> Result<(String, Answer), Answer> {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}});
        let answer = self.post(&hello, headers);
        let session = answer.head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id"));
        match session.map(|session| format!("{session}\r\nmcp-protocol-version: 2025-11-25\r\n")) {
            Some(session) => Ok((session, answer)),
            None => Err(answer),
        }
    }

    pub(super) fn list(&self, headers: &str) -> Answer {
        self.request("tools/list", json!({}), headers)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended if the test has passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    /// Reads until the server closes the connection.
    pub(super) fn read(stream: &mut impl Read) -> Self {
        let mut all = Vec::new();
        // What arrived before a fault is the answer.
        let _ = stream.read_to_end(&mut all);
        let all = String::from_utf8_lossy(&all).into_owned();
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// The message in the body, also in an event of a stream.
    pub(super) fn message(&self) -> Value {
        let start = self.body.find("{\"").unwrap_or_else(|| panic!("{self:?}"));
        let mut values = serde_json::Deserializer::from_str(&self.body[start..]).into_iter();
        values.next().unwrap().unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn crib() -> Crib {
    Crib::with_guests(&["echo", "spin"])
}

/// Creates a token with options of its own, and returns its header.
pub(super) fn token(crib: &Crib, name: &str, options: &[&str]) -> String {
    let ran = crib.run(&[&["mcp", "token", "new", name, "--"], options].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    format!("authorization: Bearer {}\r\n", ran.stdout.trim())
}

#[test]
fn a_client_that_accepts_everything_is_served() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token"]);
    let request = String::from_utf8(server.requested("tools/list", json!({}), "")).unwrap();
    let stated = "accept: application/json, text/event-stream\r\n";
    assert!(request.contains(stated), "{request}");
    for (accept, status) in [
        ("accept: */*\r\n", 200),
        ("accept: application/*, text/*\r\n", 200),
        ("accept: text/html, */*;q=0.1\r\n", 200),
        ("", 200),
        ("accept: text/html\r\n", 406),
        ("accept: */*, text/event-stream;q=0\r\n", 406),
    ] {
        let answer = server.exchange(request.replace(stated, accept).as_bytes());
        assert_eq!(answer.status, status, "{accept}: {answer:?}");
    }
}

#[test]
fn without_a_token_nothing_is_served_and_a_revoked_one_ends_at_once() {
    let crib = crib();
    let ran = crib.run(&["mcp", "--http=127.0.0.1:0"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("toolcrib mcp token new"), "{ran:?}");
    let ran = crib.run(&["mcp", "--http=0.0.0.0:0", "--no-token", "--host=a.example"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("loopback"), "{ran:?}");
    let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
    let server = Server::start(&crib, &[]);
    for (headers, challenge, reason) in [
        ("", "www-authenticate: bearer\r\n", "a token is required"),
        ("authorization: Basic YTpi\r\n", "www-authenticate: bearer\r\n", "a token is required"),
        ("authorization: Bearer crib_x\r\n", "www-authenticate: bearer error=\"invalid_token\"", "revoked or mistyped"),
    ] {
        let answer = server.list(headers);
        assert_eq!(answer.status, 401, "{headers}: {answer:?}");
        assert!(answer.head.to_lowercase().contains(challenge) && answer.body.contains(reason), "{answer:?}");
    }
    assert_eq!(server.get("/metrics", "").status, 401);
    assert_eq!((server.list(&ada).status, server.list(&bob).status), (200, 200));
    assert_eq!(crib.run(&["mcp", "token", "revoke", "ada"]).code, Some(0));
    assert_eq!((server.list(&ada).status, server.list(&bob).status), (401, 200));
    assert_eq!(server.get("/healthz", "").status, 200, "without a token");
    let listed = crib.run(&["mcp", "token", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((listed[0]["name"].as_str(), listed.as_array().unwrap().len()), (Some("bob"), 1));
}

#[test]
fn a_page_that_rebinds_and_a_foreign_origin_are_refused() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--origin=https://app.example:443"]);
    assert_eq!(server.list("").status, 200);
    let call = |host: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(json!({}), &json!({}))});
        let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n";
        server.post(&body, &format!("host: {host}\r\n{headers}"))
    };
    for host in
        ["attacker.example", "attacker.example:8931", "127.0.0.1.attacker.example", "localhost.attacker.example"]
    {
        let answer = call(host);
        assert!(answer.status == 403 && answer.body.contains("`--host`"), "{host}: {answer:?}");
        let metrics =
            server.exchange(format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes());
        assert_eq!(metrics.status, 403, "{host}: {metrics:?}");
    }
    assert_eq!(server.get("/metrics", "origin: https://attacker.example\r\n").status, 403);
    for origin in ["https://attacker.example", "null", "http://localhost:1", "https://app.example.attacker.example"] {
        let answer = server.list(&format!("origin: {origin}\r\n"));
        assert!(answer.status == 403 && answer.body.contains("`--origin`"), "{origin}: {answer:?}");
    }
    for origin in ["https://app.example".to_owned(), format!("http://{}", server.address)] {
        assert_eq!(server.list(&format!("origin: {origin}\r\n")).status, 200, "{origin}");
    }
}

#[test]
fn an_argument_that_is_a_header_too_has_one_value() {
    let crib = Crib::with_guests(&["echo"]);
    let mut echo = crib.entry("echo");
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    echo["schema"] = json!({"type": "object", "properties": {"region": region}});
    crib.manifest(&json!({ "tools": [echo] }));
    let server = Server::start(&crib, &["--no-token"]);
    let call = |header: &str| {
        let arguments = json!({"region": "Hello"});
        server.request("tools/call", json!({"name": "echo", "arguments": arguments}), header)
    };
    for header in ["mcp-param-region: Hello\r\n", "mcp-param-region: =?base64?SGVsbG8=?=\r\n"] {
        let answer = call(header);
        assert_eq!(answer.message()["result"]["isError"], false, "{header}: {answer:?}");
    }
    for value in ["", "Bye", "=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?="] {
        let header = if value.is_empty() { String::new() } else { format!("mcp-param-region: {value}\r\n") };
        let answer = call(&header);
        assert_eq!((answer.status, &answer.message()["error"]["code"]), (400, &json!(-32020)), "{value}: {answer:?}");
    }
}

#[test]
fn both_revisions_are_served_at_one_place() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token"]);
    let answer = server.request("tools/call", json!({"name": "echo", "arguments": {"a": 1}}), "");
    assert_eq!(answer.message()["result"]["isError"], false, "{answer:?}");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": modern(json!({"name": "echo", "arguments": {}}), &json!({}))});
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: other\r\n";
    let answer = server.post(&message, headers);
    assert_eq!((answer.status, &answer.message()["error"]["code"]), (400, &json!(-32020)), "{answer:?}");
    let (headers, answer) = server.conversation("").unwrap();
    assert_eq!(answer.message()["result"]["protocolVersion"], "2025-11-25", "{answer:?}");
    server.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), &headers);
    let call =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"b": 2}}});
    assert_eq!(server.post(&call, &headers).message()["result"]["isError"], false);
}

#[test]
fn limits_of_size_rate_and_time_hold() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-body=10KiB", "--max-rate=1"]);
    let large = json!({"name": "echo", "arguments": {"text": "x".repeat(20_000)}});
    assert_eq!(server.request("tools/call", large, "").status, 413);
    let statuses: Vec<u16> = (0..100).map(|_| server.list("").status).collect();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert!(refused > 30 && statuses[0] == 200, "{statuses:?}");
    assert_eq!(server.get("/healthz", "").status, 200);
    std::thread::sleep(Duration::from_secs(3));
    let metrics = server.get("/metrics", "");
    assert!(metrics.body.contains("toolcrib_http_refused_total{status=\"429\"} "), "{metrics:?}");
    assert_eq!(server.get("/elsewhere", "").status, 404);
}

#[test]
fn half_a_request_and_a_client_that_never_reads_stop_nobody_else() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-connections=40"]);
    let mut held = Vec::new();
    for number in 0..30 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let part = match number % 3 {
            0 => "POST /mcp HTTP/1.1\r\nhost: local".to_owned(),
            1 => format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-length: 100\r\n\r\n{{", server.address),
            _ => String::new(),
        };
        stream.write_all(part.as_bytes()).unwrap();
        held.push(stream);
    }
    assert_eq!(server.list("").status, 200);
    let mut silent = TcpStream::connect(server.address).unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern(json!({}), &json!({}))});
    let one = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.to_string().len()
    );
    silent.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    for _ in 0..2000 {
        if silent.write_all(one.as_bytes()).is_err() {
            break;
        }
    }
    assert_eq!(server.list("").status, 200);
    drop(held);
    for bytes in [&b"\x16\x03\x01\x02\0"[..], b"\0\0\0\0\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"] {
        let answer = server.exchange(bytes);
        assert!(answer.status == 400 || answer.status == 0, "{answer:?}");
    }
    assert_eq!(server.list("").status, 200);
}

#[test]
fn a_request_that_is_dropped_stops_its_call() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--timeout=600s"]);
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
    wait_for(&server, "toolcrib_http_running 1");
    drop(stream);
    let until = Instant::now() + PATIENCE;
    while crib.records().is_empty() {
        assert!(Instant::now() < until, "the call goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(crib.records()[0]["outcome"], "cancelled");
}

#[cfg(unix)]
#[test]
fn a_signal_lets_running_requests_finish() {
    for signal in ["-INT", "-TERM"] {
        finishes(signal);
    }
}

/// Asserts that a running request is answered after a signal.
#[cfg(unix)]
fn finishes(signal: &str) {
    let crib = Crib::with_guests(&["nap"]);
    let mut server = Server::start(&crib, &["--no-token"]);
    let address = server.address;
    let call = json!({"name": "nap", "arguments": {"ms": 1500}});
    let other = Server { child: std::process::Command::new("true").spawn().unwrap(), address };
    let running = std::thread::spawn(move || other.request("tools/call", call, ""));
    wait_for(&server, "toolcrib_http_running 1");
    let id = server.child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
    let answer = running.join().unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.message()["result"].is_object(), "{answer:?}");
    assert!(server.child.wait().unwrap().code().is_some());
}

#[test]
fn a_conversation_belongs_to_the_token_that_began_it() {
    let crib = crib();
    let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
    let server = Server::start(&crib, &[]);
    let (headers, _) = server.conversation(&ada).unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    assert_eq!(server.post(&list, &format!("{headers}{bob}")).status, 404);
    assert_eq!(server.post(&list, &format!("{headers}{ada}")).status, 200);
}

#[test]
fn a_browser_lets_an_allowed_page_send_requests_and_no_other() {
    let crib = crib();
    let ada = token(&crib, "ada", &[]);
    let server = Server::start(&crib, &["--origin=https://app.example"]);
    let asks = |origin: &str| {
        let head = format!(
            "OPTIONS /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\norigin: {origin}\r\n\
             access-control-request-method: POST\r\naccess-control-request-headers: authorization, mcp-method\r\n\r\n"
        );
        server.exchange(head.as_bytes())
    };
    let allowed = asks("https://app.example");
    assert_eq!(allowed.status, 204, "{allowed:?}");
    for header in [
        "access-control-allow-origin: https://app.example",
        "access-control-allow-headers: authorization, mcp-method",
        "access-control-allow-methods: GET, POST, DELETE",
    ] {
        assert!(allowed.head.contains(header), "{header}: {allowed:?}");
    }
    for other in ["https://app.example:8443", "https://app.example.evil", "null"] {
        let refused = asks(other);
        assert!(refused.status >= 400 && !refused.head.contains("access-control"), "{other}: {refused:?}");
    }
    let answer = server.list(&format!("origin: https://app.example\r\n{ada}"));
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("access-control-allow-origin: https://app.example"), "{answer:?}");
    let answer = server.list("origin: https://app.example\r\n");
    assert!(answer.status == 401 && answer.head.contains("access-control-allow-origin"), "a page reads its refusal");
    for wrong in ["https://app.example/", "https://*.example", "app.example"] {
        let ran = crib.run(&["mcp", "--http=127.0.0.1:0", "--origin", wrong]);
        assert!(ran.code == Some(2) && ran.stderr.contains("an origin without a path"), "{ran:?}");
    }
}
