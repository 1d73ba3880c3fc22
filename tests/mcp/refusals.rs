//! Answers over HTTP to messages that cannot be read, to methods of another revision, and to the end of a conversation, and
//! addresses and hosts that cannot be served.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::http::{Answer, Server};
use crate::crib::Crib;
use crate::screen::Page;

fn crib() -> Crib {
    Crib::with_guests(&["echo"])
}

#[test]
fn a_message_that_cannot_be_read_is_refused_as_the_protocol_states() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token"]);
    for (body, code, id) in [
        ("{", -32700, json!(null)),
        ("", -32700, json!(null)),
        (r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}"#, -32700, json!(7)),
        (r#"{"jsonrpc": "2.0", "id": 8, "method": 1}"#, -32600, json!(8)),
        ("[]", -32600, json!(null)),
    ] {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let answer = server.exchange(format!("{head}{body}").as_bytes());
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert_eq!(
            (&answer.message()["error"]["code"], &answer.message()["id"]),
            (&json!(code), &id),
            "{body}: {answer:?}"
        );
    }
    let plain = server.exchange(
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: text/plain\r\n\
          accept: application/json, text/event-stream\r\ncontent-length: 2\r\n\r\n{}",
    );
    assert!(plain.status == 415 && plain.head.to_lowercase().contains("content-type: text/plain"), "{plain:?}");
}

#[test]
fn an_address_is_a_port_or_an_ip_address_and_a_host_has_no_wildcard() {
    let page = Page::new();
    let crib = crib();
    for address in ["0", "localhost:0"] {
        let mut command = crib.toolcrib(&["mcp", "--no-token", "--http", address]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("serving")).expect("an address");
        assert!(line.contains("http://127.0.0.1:"), "{line}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    for flag in ["--http=example.com:80", "--http=70000", "--host=*", "--host=a/b"] {
        let address = if flag.starts_with("--http") { flag } else { "--http=0" };
        page.run(&crib, &["mcp", "--no-token", address, flag][..3 + usize::from(address != flag)]);
    }
    page.matches("mcp/address");
}

#[test]
fn an_empty_event_is_sent_to_clients_that_know_it() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token"]);
    let has_empty = |answer: &Answer| answer.body.lines().any(|line| line.trim_end() == "data:");
    for (version, knows_it) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}});
        let begun = server.post(&hello, "");
        assert_eq!(begun.message()["result"]["protocolVersion"], version, "{begun:?}");
        let session = begun.head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id")).unwrap();
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
        let listed = server.post(&list, &format!("{session}\r\nmcp-protocol-version: {version}\r\n"));
        assert!(listed.message()["result"]["tools"].is_array(), "{listed:?}");
        for answer in [begun, listed] {
            assert_eq!(has_empty(&answer), knows_it, "{version}: {answer:?}");
            assert!(answer.body.contains("retry:"), "{version}: {answer:?}");
        }
    }
}

#[test]
fn the_later_revision_has_no_method_that_begins_a_conversation() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token"]);
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let answer = server.request(method, json!({}), "");
        assert_eq!((answer.status, &answer.message()["error"]["code"]), (404, &json!(-32601)), "{method}: {answer:?}");
    }
}

#[test]
fn the_end_of_a_conversation_is_answered_without_content() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token"]);
    let (session, _) = server.conversation("").unwrap();
    let end = format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{session}\r\n");
    assert_eq!(server.exchange(end.as_bytes()).status, 204);
}
