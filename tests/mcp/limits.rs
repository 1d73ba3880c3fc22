//! Limits of a server, each exceeded: requests, connections and conversations at once, heads, times, and parts of an answer.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[cfg(unix)]
use serde_json::Value;
use serde_json::json;

use super::http::{Answer, Server, token};
use super::{Client, PATIENCE, modern};
use crate::crib::Crib;

/// Time within which a limit of at most a second ends a request. Every default is longer.
const SOON: Duration = Duration::from_secs(25);

fn crib() -> Crib {
    Crib::with_guests(&["echo", "spin"])
}

/// Waits until the figures of a server have a line. They need no room among the running requests.
pub(super) fn wait_for(server: &Server, line: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let metrics = server.get("/metrics", "");
        if metrics.body.lines().any(|shown| shown == line) {
            return;
        }
        assert!(Instant::now() < until, "no `{line}`: {metrics:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a call that never ends, and waits until it runs.
fn endless(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(&server.requested("tools/call", json!({"name": "spin", "arguments": {}}), "")).unwrap();
    wait_for(server, "toolcrib_http_running 1");
    stream
}

/// Asserts that a request is refused until others have ended, with the option that allows more.
fn assert_full(answer: &Answer, option: &str) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.head.to_lowercase().contains("retry-after: 1\r\n"), "{answer:?}");
    assert!(answer.body.contains(option), "{answer:?}");
}

#[test]
fn more_requests_at_once_than_allowed_are_refused_until_one_ends() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-running=1", "--timeout=600s"]);
    let call = endless(&server);
    assert_full(&server.list(""), "--max-running");
    assert_eq!(server.get("/healthz", "").status, 200);
    drop(call);
    wait_for(&server, "toolcrib_http_running 0");
    assert_eq!(server.list("").status, 200);
}

#[test]
fn a_connection_beyond_the_limit_waits_until_another_ends() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-connections=1", "--arrival-timeout=600s"]);
    let (session, _) = server.conversation("").unwrap();
    let mut first = TcpStream::connect(server.address).unwrap();
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    let listen = format!("GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n{session}\r\n");
    first.write_all(listen.as_bytes()).unwrap();
    let mut start = [0; 12];
    first.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200", "the stream is open");
    let mut second = TcpStream::connect(server.address).unwrap();
    second.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    second.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let waiting = second.read(&mut [0; 1]).unwrap_err();
    assert!(matches!(waiting.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waiting}");
    drop(first);
    second.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(Answer::read(&mut second).status, 200);
}

#[test]
fn connections_that_send_nothing_make_room_for_others() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-connections=4", "--arrival-timeout=600s"]);
    let mut silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    for half in ["GET /hea", "POST /mcp HTTP/1.1\r\nhost: localhost\r\n"] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(half.as_bytes()).unwrap();
        silent.push(stream);
    }
    assert_eq!(server.get("/healthz", "").status, 200);
    assert_eq!(server.list("").status, 200);
    silent[0].set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(silent[0].read(&mut [0; 1]).unwrap(), 0, "the oldest was closed");
}

#[test]
fn a_body_is_refused_by_its_stated_length() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-body=10KiB", "--arrival-timeout=600s"]);
    let start = Instant::now();
    let answer = server.exchange(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10241\r\n\r\n");
    assert_eq!(answer.status, 413, "{answer:?}");
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[test]
fn the_client_with_the_most_conversations_makes_room_for_another() {
    let crib = crib();
    let [ada, bob] = ["ada", "bob"].map(|name| token(&crib, name, &[]));
    let server = Server::start(&crib, &["--max-sessions=3"]);
    let (first, _) = server.conversation(&ada).unwrap();
    for _ in 0..2 {
        server.conversation(&ada).unwrap();
    }
    assert_full(&server.conversation(&ada).unwrap_err(), "--max-sessions");
    let (own, _) = server.conversation(&bob).unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    assert_eq!(server.post(&list, &format!("{first}{ada}")).status, 404, "the idlest has ended");
    assert_eq!(server.post(&list, &format!("{own}{bob}")).status, 200);
    assert_full(&server.conversation(&bob).unwrap_err(), "--max-sessions");
}

#[test]
fn more_conversations_than_allowed_are_refused_until_one_ends() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--max-sessions=2"]);
    let (headers, _) = server.conversation("").unwrap();
    server.conversation("").unwrap();
    assert_full(&server.conversation("").unwrap_err(), "--max-sessions");
    assert_eq!(server.list("").status, 200, "the later revision has no conversations");
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    assert_eq!(server.post(&list, &headers).status, 200, "a conversation goes on");
    let end = format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    let ended = server.exchange(end.as_bytes());
    assert!((200..300).contains(&ended.status), "{ended:?}");
    let unknown = server.post(&list, &headers);
    assert_eq!(unknown.status, 404, "{unknown:?}");
    server.conversation("").expect("there is room again");
    assert_full(&server.conversation("").unwrap_err(), "--max-sessions");
}

#[test]
fn a_request_that_does_not_arrive_in_time_is_dropped() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token", "--arrival-timeout=1s"]);
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n";
    let half = format!("{head}\r\n{{");
    for (part, status) in [("", 0), (head, 0), (half.as_str(), 408)] {
        let start = Instant::now();
        let answer = server.exchange(part.as_bytes());
        assert_eq!(answer.status, status, "{part}: {answer:?}");
        assert!(status == 0 || answer.body.contains("--arrival-timeout"), "{answer:?}");
        let time = start.elapsed();
        assert!(time > Duration::from_millis(900) && time < SOON, "{part}: {time:?}");
    }
    // The time covers the whole request, so a client that sends a byte now and then gains none.
    for part in [format!("{head}x: "), format!("{head}\r\n")] {
        let (start, mut stream) = (Instant::now(), TcpStream::connect(server.address).unwrap());
        stream.write_all(part.as_bytes()).unwrap();
        while stream.write_all(b"x").is_ok() {
            assert!(start.elapsed() < SOON, "{part}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    assert_eq!(server.list("").status, 200);
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token"]);
    for (size, statuses) in [(60_000, &[200][..]), (70_000, &[431]), (1 << 20, &[431, 0])] {
        let answer = server.get("/healthz", &format!("x: {}\r\n", "y".repeat(size)));
        assert!(statuses.contains(&answer.status), "{size}: {answer:?}");
    }
    let answer = server.get("/healthz", &"x: y\r\n".repeat(1000));
    assert_eq!(answer.status, 431, "{answer:?}");
    assert_eq!(server.list("").status, 200);
}

#[cfg(unix)]
#[test]
fn a_second_signal_stops_running_calls_and_each_has_its_record() {
    let crib = crib();
    let mut server = Server::start(&crib, &["--no-token", "--drain-timeout=600s", "--timeout=600s"]);
    let _call = endless(&server);
    let (start, id) = (Instant::now(), server.child.id().to_string());
    let mut signals = 0;
    while server.child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < PATIENCE, "the server goes on");
        if signals < 2 {
            assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
            signals += 1;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    let outcomes: Vec<Value> = crib.records().iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes, ["cancelled"]);
}

#[cfg(unix)]
#[test]
fn a_client_that_reads_nothing_does_not_delay_the_end() {
    let crib = crib();
    let mut client = crib.toolcrib(&["mcp"]);
    let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = client.stdin.take().unwrap();
    // The answers exceed the buffer of a pipe.
    for id in 0..500 {
        let params = modern(json!({}), &json!({}));
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params})).unwrap();
    }
    std::thread::sleep(Duration::from_secs(1));
    assert!(client.try_wait().unwrap().is_none(), "it waits for the client");
    assert!(std::process::Command::new("kill").args(["-TERM", &client.id().to_string()]).status().unwrap().success());
    let start = Instant::now();
    while client.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < SOON, "the server goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(unix)]
#[test]
fn a_request_that_outlasts_the_end_of_the_server_is_stopped_and_recorded() {
    let crib = crib();
    let mut server = Server::start(&crib, &["--no-token", "--drain-timeout=2s", "--timeout=600s"]);
    let mut call = endless(&server);
    let (start, id) = (Instant::now(), server.child.id().to_string());
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    while server.child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < PATIENCE, "the server goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    let time = start.elapsed();
    assert!(time >= Duration::from_secs(2) && time < Duration::from_secs(10), "{time:?}");
    call.set_read_timeout(Some(PATIENCE)).unwrap();
    let answer = Answer::read(&mut call);
    assert!(!answer.body.contains("\"result\""), "{answer:?}");
    let outcomes: Vec<Value> = crib.records().iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes, ["cancelled"]);
}

#[test]
fn the_denials_of_a_receipt_are_bounded_for_clients_and_whole_in_the_record() {
    let mut crib = Crib::new();
    crib.trusts = false;
    let mut echo = crib.entry("echo");
    echo["capabilities"] = json!({"env": (0..60).map(|number| format!("NAME_{number}")).collect::<Vec<_>>()});
    crib.manifest(&json!({ "tools": [echo] }));
    let mut client = Client::initialized(&crib, &[], &json!({}));
    let answer = client.call("echo", &json!({"a": 1}));
    let denied =
        answer["result"]["_meta"]["toolcrib/receipt"]["denied"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!((denied.len(), &denied[0]["flag"]), (50, &json!("--allow-env=NAME_0")));
    assert_eq!(client.leave(), Some(0));
    assert_eq!(crib.records()[0]["denied"].as_array().unwrap().len(), 60);
}

#[test]
fn a_stored_result_that_is_too_large_is_read_in_parts() {
    let crib = Crib::new();
    let mut large = crib.entry("big_result");
    large["limits"] = json!({"outputKb": 8192, "memoryMb": 256});
    crib.manifest(&json!({ "tools": [large] }));
    let mut client = Client::initialized(&crib, &[], &json!({}));
    // Two quotation marks are part of the result.
    for (size, is_whole) in [(4 << 20, true), ((4 << 20) + 1, false)] {
        let result = client.call("big_result", &json!({"bytes": size - 2}));
        let content = result["result"]["content"].as_array().unwrap_or_else(|| panic!("{result}"));
        let link = content.iter().find(|block| block["type"] == "resource_link").unwrap_or_else(|| panic!("{result}"));
        let mut answer = client.ask("resources/read", &json!({"uri": link["uri"]}));
        if is_whole {
            let text = answer["result"]["contents"][0]["text"].take();
            assert_eq!(text.as_str().map(str::len), Some(size), "{answer}");
            continue;
        }
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("{size} bytes")) && message.contains("`read_result`"), "{message}");
        let arguments = json!({"reference": link["name"], "offset": size - 10, "limit": 100});
        let part = client.call("read_result", &arguments);
        assert!(part.to_string().contains("xxxxxxxxx"), "{part}");
    }
}

#[test]
fn the_name_of_a_client_is_bounded_in_the_record() {
    let crib = crib();
    let mut client = Client::start(&crib, &[]);
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": format!("ä{}", "\n".repeat(10_000)), "version": "v".repeat(10_000)},
    });
    assert!(client.ask("initialize", &hello)["result"].is_object());
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(client.call("echo", &json!({"a": 1}))["result"]["isError"], false);
    assert_eq!(client.leave(), Some(0));
    let records = crib.records();
    let name = records[0]["caller"].as_str().unwrap_or_else(|| panic!("{records:?}"));
    assert_eq!(name.chars().count(), 128, "{name}");
    assert!(name.starts_with('ä') && !name.contains('\n'), "{name}");
}

#[test]
fn a_client_without_a_token_cannot_pass_for_one_with_a_token() {
    let crib = crib();
    let mut client = Client::start(&crib, &[]);
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "ada: x", "version": "1"}});
    assert!(client.ask("initialize", &hello)["result"].is_object());
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(client.call("echo", &json!({"a": 1}))["result"]["isError"], false);
    assert_eq!(client.leave(), Some(0));
    assert_eq!(crib.records()[0]["caller"], "ada; x 1");
}
