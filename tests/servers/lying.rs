//! A server that lies: each answer ends its call with an outcome, and the next call works.

use serde_json::{Value, json};

use crate::answering::{Answer, Server};
use crate::mcp::Client;

use super::{STATELESS, Script, WITH_HANDSHAKE, address, crib, echo, install};

/// Identifier of the request in which a scripted server is asked for a call.
const ID: u64 = 3;

fn ok() -> Answer {
    Answer::new(200)
}

fn result(value: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": ID, "result": value })
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Events before the answer.
fn stream(events: impl Iterator<Item = Value>) -> Answer {
    let events: String = events.map(|event| format!("data: {event}\n\n")).collect();
    ok().raw(events, "text/event-stream")
}

#[test]
fn no_lie_of_a_server_is_taken_and_each_call_has_its_outcome() {
    let script = Script::new(STATELESS);
    let mut tool = echo();
    tool["outputSchema"] = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    script.change(|state| state.tools = vec![tool]);
    let server = script.on(Server::start());
    let (crib, address) = (crib(), address(&server));
    install(&crib, &address, &[]);
    let good = || json!({ "content": [], "structuredContent": {"n": 1} });
    let request = |n: u64| json!({"jsonrpc": "2.0", "id": n, "method": "sampling/createMessage", "params": {}});
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": ID, "progress": 1}});
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (what, answer, outcome, words) in [
        ("a good answer", ok().json(result(good())), "ok", ""),
        (
            "another identifier",
            ok().json(json!({"jsonrpc": "2.0", "id": 99, "result": good()})),
            "upstream",
            "request 99",
        ),
        ("no JSON", ok().raw("<html>", "application/json"), "upstream", "broke the protocol"),
        ("a page", ok().raw("<html>", "text/html"), "upstream", "content type `text/html`"),
        ("no type", ok(), "upstream", "no content type"),
        ("both", ok().json(json!({"jsonrpc": "2.0", "id": ID, "result": {}, "error": {}})), "upstream", "or both"),
        ("accepted", Answer::new(202), "upstream", "accepted without an answer"),
        ("redirect", Answer::new(307).header("location", "http://127.0.0.1:1/"), "upstream", "redirects to"),
        ("a failure", Answer::new(500), "upstream", "status 500"),
        (
            "deep",
            ok().raw(format!(r#"{{"jsonrpc":"2.0","id":{ID},"result":{deep}}}"#), "application/json"),
            "upstream",
            "broke",
        ),
        ("an early end", stream([progress.clone()].into_iter()), "upstream", "ended before its answer"),
        ("a request", stream([request(1), result(good())].into_iter()), "upstream", "sampling/createMessage"),
        ("a flood", stream(std::iter::repeat_n(progress, 10_001)), "output-limit", "10000 messages"),
        ("too much", ok().raw(vec![b' '; 17 << 20], "application/json"), "output-limit", ""),
        ("no content", ok().json(result(json!({}))), "upstream", "neither"),
        (
            "against the schema",
            ok().json(result(json!({"content": [], "structuredContent": {"n": "x"}}))),
            "bad-result",
            "output schema",
        ),
        ("without structure", ok().json(result(text("1"))), "upstream", "structuredContent"),
        (
            "a failure of the tool",
            ok().json(result(json!({"isError": true, "content": [{"type": "text", "text": "no luck"}]}))),
            "failed",
            "no luck",
        ),
        (
            "an error",
            ok().json(json!({"jsonrpc": "2.0", "id": ID, "error": {"code": -32602, "message": "bad \u{1b}[2J"}})),
            "failed",
            "-32602",
        ),
        (
            "wants input",
            ok().json(result(
                json!({"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create"}}}),
            )),
            "failed",
            "elicitation/create",
        ),
        ("an unknown kind", ok().json(result(json!({"resultType": "task"}))), "upstream", "unknown type"),
        (
            "too many parts",
            ok().json(result(json!({"content": vec![json!({"type": "text", "text": ""}); 257]}))),
            "output-limit",
            "256",
        ),
        (
            "no base64",
            ok().json(result(json!({"content": [{"type": "image", "data": "§"}], "isError": true}))),
            "upstream",
            "base64",
        ),
        (
            "speaks for the host",
            ok().json(result(json!({"content": [], "structuredContent": {"n": 1, "toolcrib": {"kind": "preview"}}}))),
            "ok",
            "quoted",
        ),
    ] {
        script.change(|state| state.answer = Some(answer));
        let called = crib.call("echo", &json!({"text": "a"}), &[]);
        let content = super::answer(&called);
        assert_eq!(called["receipt"]["outcome"], outcome, "{what}: {called}");
        assert!(content.contains(words) && !content.contains('\u{1b}'), "{what}: {called}");
    }
    assert_eq!(crib.records().len(), 24, "one record for each call");
}

#[test]
fn requests_of_a_server_are_refused_and_no_fault_of_that_makes_a_second_call() {
    let script = Script::new(WITH_HANDSHAKE);
    let server = script.on(Server::start());
    let (crib, address) = (crib(), address(&server));
    install(&crib, &address, &[]);
    let id = 4;
    let request = |n: u64| json!({"jsonrpc": "2.0", "id": n, "method": "elicitation/create", "params": {}});
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": text("done")});
    let with = |count: u64| stream((0..count).map(request).chain([answer.clone()]));
    script.change(|state| state.answer = Some(with(16)));
    script.methods();
    let called = crib.call("echo", &json!({"text": "a"}), &[]);
    assert_eq!(called["receipt"]["outcome"], "ok", "{called}");
    let refused =
        server.received().iter().filter(|request| request.body.windows(6).any(|part| part == b"-32601")).count();
    assert_eq!(refused, 16);
    script.change(|state| state.answer = Some(with(17)));
    assert_eq!(crib.outcome("echo", &json!({"text": "a"}), &[]), "output-limit");
    for refusal in [401, 403, 404, 500] {
        script.change(|state| (state.answer, state.refusal) = (Some(with(1)), refusal));
        script.methods();
        let called = crib.call("echo", &json!({"text": "a"}), &[]);
        assert!(super::answer(&called).contains("did not take the answer"), "{refusal}: {called}");
        let calls = script.methods().iter().filter(|method| *method == "tools/call").count();
        assert_eq!((calls, &called["receipt"]["outcome"]), (1, &json!("upstream")), "{refusal}");
    }
}

#[test]
fn a_forgotten_conversation_is_begun_again() {
    let script = Script::new(WITH_HANDSHAKE);
    let server = script.on(Server::start());
    let crib = crib();
    install(&crib, &address(&server), &[]);
    let mut client = Client::initialized(&crib, &[], &json!({}));
    let mut call = || client.call("echo", &json!({"text": "a"}));
    assert_eq!(call()["result"]["isError"], false);
    script.methods();
    assert_eq!(call()["result"]["isError"], false);
    assert_eq!(script.methods(), ["tools/call"], "in the same conversation");
    script.change(|state| state.session = "session-2");
    assert_eq!(call()["result"]["isError"], false);
    let methods = script.methods();
    assert_eq!(methods[..2], ["tools/call", "initialize"], "{methods:?}");
    assert_eq!(methods.iter().filter(|method| *method == "tools/call").count(), 2, "{methods:?}");
}

#[test]
fn a_list_of_tools_without_end_or_in_a_circle_is_refused() {
    let endless = |request: &crate::answering::Request, circle: bool| {
        let message = request.json();
        let result = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({ "supportedVersions": [STATELESS] }),
            _ => {
                let cursor = message["params"]["cursor"].as_str().unwrap_or_default();
                let next = if circle { "again".to_owned() } else { format!("{cursor}x") };
                json!({ "tools": [], "nextCursor": next })
            }
        };
        ok().json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
    };
    let many: Vec<Value> = (0..1001).map(|n| json!({"name": format!("t{n}"), "inputSchema": {}})).collect();
    let server = Server::start()
        .replies("/endless", move |request| endless(request, false))
        .replies("/circle", move |request| endless(request, true))
        .replies("/foreign", |_| ok().raw("hello", "text/plain"));
    let script = Script::new(STATELESS);
    script.change(|state| state.tools = many);
    let server = script.on(server);
    let crib = crib();
    for (path, words) in [
        ("/endless", "more than 100 pages"),
        ("/circle", "leads back to an earlier page"),
        ("/foreign", "content type `text/plain`"),
        ("/none", "status 404"),
        ("/mcp", "more than 1000 tools"),
    ] {
        let ran = crib.run(&["install", &format!("{}{path}", server.uri())]);
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{path}: {ran:?}");
    }
    for (address, words) in [
        ("http://localhost.example/mcp", "127.0.0.1:8080"),
        ("https://user:word@a.example/", "user name"),
        ("https://a.example/#x=1", "neither `secret=NAME` nor"),
        ("http://127.0.0.1:1/mcp", "refused the connection"),
    ] {
        let ran = crib.run(&["install", address]);
        assert!(ran.code != Some(0) && ran.stderr.contains(words), "{address}: {ran:?}");
    }
}
