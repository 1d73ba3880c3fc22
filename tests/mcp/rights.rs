//! Rights and sources through the protocol: no request grants a folder, a network grant covers one port or the names below one,
//! and sources with a wrong digest or a name twice are refused.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::iter::once;
use std::net::{TcpListener, UdpSocket};

use serde_json::{Value, json};

use super::{Client, PATIENCE, text};
use crate::crib::{Crib, guest};
use crate::screen::Page;

/// Asserts that a call of the echo is answered.
#[track_caller]
fn answers(client: &mut Client) {
    assert_eq!(text(&client.call("echo", &json!({"next": 1}))), r#"{"next":1}"#);
}

#[test]
fn no_request_of_a_client_grants_a_folder() {
    let crib = Crib::with_guests(&["echo", "file_io"]);
    fs::write(crib.path("work/secret.txt"), "canary").unwrap();
    let folder = crib.path("work").to_string_lossy().into_owned();
    let read = json!({"op": "read", "path": "secret.txt"});
    let roots = json!({"roots": {"listChanged": true}});
    let mut client = Client::initialized(&crib, &[], &roots);
    assert_eq!(client.tools(), ["echo", "file_io", "read_result"], "no tool that grants");
    let with = |key: &str, value: Value| {
        let mut params = json!({"name": "file_io", "arguments": read});
        params[key] = value;
        params
    };
    for (method, params) in [
        ("tools/call", with("capabilities", json!({"read": [folder]}))),
        ("tools/call", with("_meta", json!({"toolcrib/grant": [folder], "--allow-read": folder}))),
        ("tools/call", with("arguments", json!({"op": "read", "path": "../work/secret.txt"}))),
        ("tools/call", with("arguments", json!({"op": "read", "path": format!("{folder}/secret.txt")}))),
        ("tools/call", with("name", json!("approvals"))),
        ("tools/call", json!({"name": "read_result", "arguments": {"reference": "../work/secret.txt"}})),
        ("resources/read", json!({"uri": format!("file://{folder}/secret.txt")})),
        ("resources/read", json!({"uri": "toolcrib://results/../work/secret.txt"})),
        ("roots/list", json!({})),
        ("approvals/allow", json!({"id": "x"})),
        ("logging/setLevel", json!({"level": "debug"})),
    ] {
        let answer = client.ask(method, &params);
        assert!(answer["result"]["isError"] == true || answer["error"].is_object(), "{method} {params}: {answer}");
        assert!(!answer.to_string().contains("canary"), "{method} {params}: {answer}");
    }
    let named = json!({"uri": format!("file://{folder}"), "name": "work"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    client.send(&json!({"jsonrpc": "2.0", "id": 0, "result": {"roots": [named]}}));
    let answer = client.call("file_io", &read);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let denied = &answer["result"]["_meta"]["toolcrib/receipt"]["denied"];
    assert_eq!(*denied, json!([{"capability": "read", "flag": "--allow-read=DIR"}]), "{answer}");
    assert!(client.kept.is_empty(), "the server asks for nothing: {:?}", client.kept);
    let is_granted = |record: &Value| record["granted"].as_array().is_some_and(|granted| !granted.is_empty());
    assert!(!crib.records().iter().any(is_granted), "{:?}", crib.records());
    let mut granted = Client::initialized(&crib, &["--allow-read=work"], &json!({}));
    assert_eq!(text(&granted.call("file_io", &read)), r#"{"ok":"canary"}"#, "the user can grant it");
}

/// Calls the guest that sends requests; returns its error, or the empty text, and the number of denials.
fn sent(client: &mut Client, url: &str) -> (String, usize) {
    let answer = client.call("http", &json!({"url": url}));
    let told: Value = serde_json::from_str(text(&answer)).unwrap_or_else(|error| panic!("{error}: {answer}"));
    let denied = answer["result"]["_meta"]["toolcrib/receipt"]["denied"].as_array().map_or(0, Vec::len);
    (told["error"].as_str().unwrap_or_default().to_owned(), denied)
}

#[test]
fn a_grant_for_one_port_opens_no_other() {
    let crib = Crib::with_guests(&["http"]);
    let [granted, other] = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let [open, closed] = [&granted, &other].map(|listener| listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut peer, _) = granted.accept().unwrap();
        // An answer that precedes its request is an error of the protocol.
        let mut head = BufReader::new(peer.try_clone().unwrap()).lines();
        while head.next().is_some_and(|line| !line.unwrap().is_empty()) {}
        peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi").unwrap();
    });
    let mut client = Client::initialized(&crib, &[&format!("--allow-net={open}")], &json!({}));
    let answer = client.call("http", &json!({"url": format!("http://{open}/")}));
    assert!(text(&answer).contains(r#""status":200"#), "{answer}");
    for url in [format!("http://{closed}/"), "http://127.0.0.1/".to_owned()] {
        assert_eq!(sent(&mut client, &url), ("HttpRequestDenied".to_owned(), 1), "{url}");
    }
    other.set_nonblocking(true).unwrap();
    assert_eq!(other.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nothing connected");
    serving.join().unwrap();
}

#[test]
fn a_wildcard_covers_the_names_below_it_and_no_other() {
    let crib = Crib::with_guests(&["http"]);
    // The name server hears the questions and answers none.
    let names = UdpSocket::bind("127.0.0.1:0").unwrap();
    names.set_read_timeout(Some(PATIENCE)).unwrap();
    let flags = [
        format!("--set=network.nameservers={}", names.local_addr().unwrap()),
        "--allow-net=*.example.com:80".to_owned(),
    ];
    let mut client = Client::initialized(&crib, &[&flags[0], &flags[1]], &json!({}));
    for outside in ["example.com", "example.com.evil", "a.example.com.evil", "aexample.com", "a.example.org"] {
        let answer = sent(&mut client, &format!("http://{outside}/"));
        assert_eq!(answer, ("HttpRequestDenied".to_owned(), 1), "{outside}");
    }
    let question = |name: &str| -> Vec<u8> {
        name.split('.').flat_map(|label| once(label.len() as u8).chain(label.bytes())).chain([0]).collect()
    };
    let inside = ["a.example.com", "a.b.example.com"];
    for name in inside {
        let arguments = json!({"url": format!("http://{name}/")});
        let id = client.request("tools/call", &json!({"name": "http", "arguments": arguments}));
        let mut asked = Vec::new();
        while !asked.starts_with(&question(name)) {
            let mut packet = [0; 512];
            let (length, _) = names.recv_from(&mut packet).unwrap();
            asked = packet[12..length].to_vec();
            let is_inside = inside.iter().any(|name| asked.starts_with(&question(name)));
            assert!(is_inside, "{name}: {}", asked.escape_ascii());
        }
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
}

#[test]
fn a_program_with_another_digest_than_its_manifest_states_is_refused() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    page.run(&crib, &["bundle", "pack", "tools.json", "-o", "x.tar"]);
    let mut bytes = fs::read(crib.path("x.tar")).unwrap();
    let program = bytes.windows(4).position(|window| window == b"\0asm").expect("the program is in the bundle");
    let mut client = Client::initialized(&crib, &["--tools=x.tar"], &json!({}));
    answers(&mut client);
    bytes[program + 4096] ^= 1;
    fs::write(crib.path("bad.tar"), &bytes).unwrap();
    page.run(&crib, &["mcp", "--tools=bad.tar"]);
    // The server that runs goes on with the program that it has checked.
    fs::rename(crib.path("bad.tar"), crib.path("x.tar")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    answers(&mut client);
    page.matches("mcp/digest");
}

#[test]
fn two_tools_of_one_name_are_refused_when_they_are_loaded() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    fs::create_dir_all(crib.path("two/tools/bin")).unwrap();
    fs::copy(guest("echo"), crib.path("two/tools/bin/echo.wasm")).unwrap();
    let other = |name: &str| {
        let manifest = json!({"tools": [{"name": name, "command": ["./tools/bin/echo"]}]});
        fs::write(crib.path("two/tools.json"), manifest.to_string()).unwrap();
        page.note("both places are named");
        page.run(&crib, &["mcp", "--tools=tools.json", "--tools=two/tools.json"])
    };
    for name in ["echo", "Echo", "read_result"] {
        other(name);
    }
    crib.manifest(&json!({"tools": [crib.entry("echo"), crib.entry("echo")]}));
    page.run(&crib, &["mcp"]);
    page.matches("mcp/names");
}
