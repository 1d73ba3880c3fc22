//! Calls with a key of their client: one effect, the first result for each repetition, and the end of a server amid a call.

use serde_json::{Value, json};

use super::approvals::asking;
use super::background::crib as background_crib;
use super::http::{Server, token};
use super::programs::{crib, outcomes, until};
use super::{Client, modern, text};
use crate::crib::Crib;

/// Permissions of the guest, which shows that it has begun.
const FLAGS: [&str; 2] = ["--allow-write=work", "--timeout=600s"];

fn call(client: &mut Client, key: &str, name: &str, arguments: &Value) -> Value {
    let mut params = modern(json!({"name": name, "arguments": arguments}), &json!({}));
    params["_meta"]["toolcrib/idempotencyKey"] = json!(key);
    client.ask("tools/call", &params)
}

fn is_repeated(answer: &Value) -> bool {
    answer["result"]["_meta"]["toolcrib/repeated"] == true
}

#[test]
fn a_repeated_request_gets_the_first_result_and_calls_nothing_also_from_another_server() {
    let crib = crib();
    let mut client = Client::start(&crib, &FLAGS);
    let first = call(&mut client, "order-1", "nap", &json!({"ms": 3}));
    assert!(first["result"]["isError"] == false && !is_repeated(&first), "{first}");
    let second = call(&mut client, "order-1", "nap", &json!({"ms": 3}));
    assert!(is_repeated(&second) && text(&second) == text(&first), "{second}");
    let other = call(&mut client, "order-1", "nap", &json!({"ms": 4}));
    assert!(other["result"]["isError"] == true && text(&other).contains("used for another call"), "{other}");
    drop(client);
    let mut client = Client::start(&crib, &FLAGS);
    let third = call(&mut client, "order-1", "nap", &json!({"ms": 3}));
    assert!(is_repeated(&third) && text(&third) == text(&first), "{third}");
    for key in ["", "a\nb"] {
        let refused = call(&mut client, key, "nap", &json!({"ms": 3}));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert_eq!(outcomes(&crib, "nap"), ["ok"]);
    // Members in another order are the same arguments.
    let made = call(&mut client, "order-2", "nap", &json!({"ms": 1, "fail": false}));
    let again = call(&mut client, "order-2", "nap", &json!({"fail": false, "ms": 1}));
    assert!(!is_repeated(&made) && is_repeated(&again), "{again}");
}

#[test]
fn a_call_in_the_background_is_made_once() {
    let crib = background_crib();
    let mut client = Client::start(&crib, &[]);
    let [first, second] = [1, 2].map(|_| call(&mut client, "order-1", "slow", &json!({"n": 3})));
    assert!(text(&first).contains("task_1") && text(&second) == text(&first), "{second}");
    assert!(!is_repeated(&first) && is_repeated(&second), "{second}");
    assert_eq!(client.leave(), Some(0));
    assert_eq!(outcomes(&crib, "slow").len(), 1);
}

#[test]
fn a_question_is_answered_with_the_same_key() {
    let crib = crib();
    let flags = ["--code", "--ask-tool=nap", "--allow-write=work", "--timeout=600s"];
    let mut client = Client::start(&crib, &flags);
    for (number, name, arguments) in [
        (1, "nap", json!({"ms": 1})),
        // A program waits for the answer, and does not run again.
        (2, "run_code", json!({"code": "tools.echo(n=1)\ntools.nap(ms=1)['slept']"})),
    ] {
        let key = format!("order-{number}");
        let mut params = modern(json!({"name": name, "arguments": arguments}), &asking());
        params["_meta"]["toolcrib/idempotencyKey"] = json!(key);
        let asked = client.ask("tools/call", &params);
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        params["requestState"] = asked["result"]["requestState"].clone();
        params["inputResponses"] = json!({"approval": {"action": "accept", "content": {"allow": true}}});
        let made = client.ask("tools/call", &params);
        assert!(made["result"]["isError"] == false && !is_repeated(&made), "{made}");
        let again = call(&mut client, &key, name, &arguments);
        assert!(is_repeated(&again) && text(&again) == text(&made), "{again}");
    }
    assert_eq!((outcomes(&crib, "echo"), outcomes(&crib, "run_code")), (vec!["ok".to_owned()], vec!["ok".to_owned()]));
}

#[test]
fn a_key_belongs_to_a_token_and_not_to_its_name() {
    let crib = crib();
    let send = |server: &Server, token: &str, ms: u64, key: &str| {
        let params = json!({"name": "nap", "arguments": {"ms": ms}});
        server
            .exchange(&server.requested("tools/call", params, &format!("{token}idempotency-key: {key}\r\n")))
            .message()
    };
    let first = token(&crib, "ada", &[]);
    let server = Server::start(&crib, &FLAGS);
    assert!(!is_repeated(&send(&server, &first, 1, "k")) && is_repeated(&send(&server, &first, 1, "k")));
    assert_eq!(crib.run(&["mcp", "token", "revoke", "ada"]).code, Some(0));
    let second = token(&crib, "ada", &[]);
    assert!(!is_repeated(&send(&server, &second, 1, "k")));
    let twice = send(&server, &second, 1, "k\r\nidempotency-key: other");
    assert!(twice["error"]["message"].as_str().is_some_and(|message| message.contains("twice")), "{twice}");
}

#[test]
fn a_call_that_did_not_run_can_be_made_with_its_key() {
    let crib = crib();
    let mut refusing = Client::start(&crib, &[&FLAGS[..], &["--deny-tool=nap"]].concat());
    let denied = call(&mut refusing, "order-1", "nap", &json!({"ms": 3}));
    assert!(denied["result"]["isError"] == true, "{denied}");
    let invalid = call(&mut refusing, "order-2", "nap", &json!({"ms": "x"}));
    assert!(invalid["result"]["isError"] == true, "{invalid}");
    let unknown = call(&mut refusing, "order-3", "nip", &json!({}));
    assert!(unknown.get("error").is_some(), "{unknown}");
    drop(refusing);
    let mut client = Client::start(&crib, &FLAGS);
    for key in ["order-1", "order-2", "order-3"] {
        let made = call(&mut client, key, "nap", &json!({"ms": 3}));
        assert!(made["result"]["isError"] == false && !is_repeated(&made), "{key}: {made}");
    }
}

#[test]
fn a_call_whose_server_was_killed_is_made_again_only_if_that_changes_nothing() {
    let crib = Crib::new();
    let mut nap = crib.entry("nap");
    nap["capabilities"] = json!({"files": "write"});
    let mut reading = crib.entry("nap");
    reading["name"] = json!("look");
    reading["interface"] = json!({"is_read_only": true});
    crib.manifest(&json!({ "tools": [nap, reading] }));
    let ada = token(&crib, "ada", &[]);
    let send = |server: &Server, name: &str, arguments: &Value| {
        let params = json!({"name": name, "arguments": arguments});
        server.requested("tools/call", params, &format!("{ada}idempotency-key: \"k-{name}\"\r\n"))
    };
    let long = json!({"ms": 300_000});
    let mut server = Server::start(&crib, &FLAGS);
    let files = crib.path("home/.local/state/toolcrib/keyed-calls");
    std::thread::scope(|scope| {
        for (name, number) in [("nap", 1), ("look", 2)] {
            let bytes = send(&server, name, &long);
            let address = server.address;
            scope.spawn(move || {
                use std::io::{Read, Write};
                let mut stream = std::net::TcpStream::connect(address).unwrap();
                stream.write_all(&bytes).unwrap();
                // It ends with its server.
                let _ = stream.read_to_end(&mut Vec::new());
            });
            let folders = || std::fs::read_dir(&files).into_iter().flatten().flatten();
            let keys = || folders().flat_map(|folder| std::fs::read_dir(folder.path())).flatten().flatten();
            until(|| keys().filter(|key| key.path().extension().is_some_and(|it| it == "json")).count() == number);
        }
        server.child.kill().unwrap();
        server.child.wait().unwrap();
    });
    let server = Server::start(&crib, &["--allow-write=work", "--timeout=1s"]);
    let lost = server.exchange(&send(&server, "nap", &long)).message();
    assert!(lost["result"]["isError"] == true && text(&lost).contains("effect is unknown"), "{lost}");
    let again = server.exchange(&send(&server, "look", &long)).message();
    assert!(text(&again).contains("timed out"), "it runs: {again}");
    assert_eq!(outcomes(&crib, "look"), ["deadline"]);
}
