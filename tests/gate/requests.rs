//! Requests of a guest: none contains bytes that another reader would take for a second request, for another host, or
//! for a message to the host itself.

use serde_json::{Value, json};

use super::servers::Server;
use super::{Gate, allow};

#[test]
fn an_ordinary_request_arrives_as_it_was_made() {
    let gate = Gate::new();
    let server = Server::http(|peer| {
        let text = peer.rest()?;
        peer.answer(&text)
    });
    let request = json!({
        "url": format!("{}v1/things?b=%2F&a=1", server.url()), "method": "POST", "body": "{\"n\":1}",
        "headers": [["content-type", "application/json"], ["x-key", "one"], ["x-key", "two"], ["content-length", "7"]],
    });
    let line = gate.ask(&request, &[&allow(&[&server.authority()])]);
    assert_eq!((&line["result"]["status"], &line["result"]["body"]), (&json!(200), &json!("{\"n\":1}")), "{line}");
    let noted = json!({"method": "POST", "host": "127.0.0.1", "port": server.port(), "status": 200, "bytes": 7});
    let noted = json!({"requests": [noted], "count": 1, "sentBytes": 7, "receivedBytes": 7});
    assert_eq!(line["receipt"]["network"], noted);
    assert_eq!(gate.crib.records()[0]["network"], noted);
    let heads = server.heads();
    let [head] = heads.as_slice() else { panic!("{heads:?}") };
    assert!(head.starts_with("POST /v1/things?b=%2F&a=1 HTTP/1.1\r\n"), "{head}");
    let lower = head.to_lowercase();
    for line in [&format!("\r\nhost: {}\r\n", server.authority())[..], "\r\nx-key: one\r\n", "\r\nx-key: two\r\n"] {
        assert!(lower.contains(line), "{line:?} in {head}");
    }
    assert_eq!((lower.matches("\r\nhost:").count(), lower.matches("\r\ncontent-length:").count()), (1, 1), "{head}");
    for own in ["accept-encoding", "user-agent", "cookie", "authorization", "referer"] {
        assert!(!lower.contains(own), "it adds nothing of its own: {head}");
    }
    gate.ends_well();
}

#[test]
fn what_would_be_read_in_two_ways_is_not_sent() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let flag = allow(&[&server.authority()]);
    let header = |name: &str, value: &str| json!({"headers": [[name, value]]});
    let headers = |pairs: Value| json!({ "headers": pairs });
    let smuggled = "GET / HTTP/1.1\r\nx-smuggled: 1";
    let cases = [
        header("host", "evil.test"),
        header("Host", "127.0.0.1:1"),
        headers(json!([["host", server.authority()], ["host", "evil.test"]])),
        header("connection", "keep-alive, x-key"),
        header("keep-alive", "timeout=5"),
        header("proxy-connection", "keep-alive"),
        header("proxy-authorization", "Basic eDp5"),
        header("proxy-authenticate", "Basic"),
        header("transfer-encoding", "chunked"),
        header("Transfer-Encoding", "identity"),
        header("te", "trailers"),
        header("trailer", "x-key"),
        header("upgrade", "websocket"),
        header("http2-settings", "AAMAAABkAAQAAP__"),
        header("expect", "100-continue"),
        header("x-key", "one\r\nx-smuggled: 1"),
        header("x-key", "one\nx-smuggled: 1"),
        header("x-key", "one\rx-smuggled: 1"),
        header("x-key", "one\u{0}two"),
        header("x-key\r\nx-smuggled", "1"),
        header("x-smuggled:", "1"),
        header("x smuggled", "1"),
        header("", "1"),
        header("x-schl\u{fc}ssel", "1"),
        json!({"headers": [["content-length", "3"]], "method": "POST", "body": "longer than it says"}),
        json!({"headers": [["content-length", "300"]], "method": "POST", "body": "shorter"}),
        json!({"headers": [["content-length", "3"], ["content-length", "7"]], "method": "POST", "body": "shorter"}),
        json!({"headers": [["content-length", "7, 7"]], "method": "POST", "body": "shorter"}),
        json!({"headers": [["content-length", "+7"]], "method": "POST", "body": "shorter"}),
        json!({"headers": [["content-length", "-1"]], "method": "POST", "body": "shorter"}),
        json!({"headers": [["content-length", "99999999999999999999"]], "method": "POST", "body": "shorter"}),
        json!({"headers": [["content-length", "5"]]}),
        json!({"path": "http://evil.test/"}),
        json!({"path": "//evil.test/ HTTP/1.1"}),
        json!({"path": format!("/ HTTP/1.1\r\nx-smuggled: 1\r\n\r\n{smuggled}")}),
        json!({"path": "/\u{0}"}),
        json!({"path": "/\t"}),
        json!({"path": "/a b"}),
        json!({"path": "evil.test:80"}),
        json!({"path": "*"}),
        json!({"method": "CONNECT"}),
        json!({"method": "TRACE"}),
        json!({"method": "CONNECT", "path": "evil.test:443"}),
        json!({"method": "GET / HTTP/1.1\r\nx-smuggled: 1\r\n\r\nGET"}),
        json!({"method": "GE T"}),
        json!({"method": "G\u{e9}T"}),
        json!({"scheme": "file"}),
        json!({"scheme": "ws"}),
        json!({"scheme": "http://evil.test/"}),
        json!({"scheme": ""}),
    ];
    let mut sent = Vec::new();
    for case in cases {
        let mut request = json!({"url": server.url(), "times": [2000, 2000, 2000]});
        request.as_object_mut().unwrap().extend(case.as_object().unwrap().clone());
        let line = gate.ask(&request, &[&flag]);
        assert_eq!(line["receipt"]["outcome"], "ok", "the guest reports for itself: {case} {line}");
        if line["result"]["error"].is_null() {
            sent.push(case);
        }
    }
    assert_eq!(sent, Vec::<Value>::new(), "these were let through, as {:?}", server.heads());
    let heads = server.heads().join("").to_lowercase();
    assert!(!heads.contains("smuggled") && !heads.contains("evil.test"), "{heads}");
    gate.ends_well();
}

#[test]
fn a_request_is_bounded_too() {
    let gate = Gate::new();
    let server = Server::http(|peer| {
        let text = peer.rest()?;
        peer.answer(&text.len().to_string())
    });
    let flag = allow(&[&server.authority()]);
    let post = |body_bytes: u64| json!({"url": server.url(), "method": "POST", "body_bytes": body_bytes});
    assert_eq!(gate.answered(&post(1 << 20), &[&flag])["body"], (1 << 20).to_string());
    let mut large = post(100 << 20);
    large["silent"] = json!(true);
    let line = gate.ask(&large, &[&flag]);
    assert_eq!(line["receipt"]["outcome"], "output-limit", "{line}");
    assert!(line["receipt"]["network"]["sentBytes"].as_u64().is_some_and(|sent| sent < 9 << 20), "{line}");
    let long = "x".repeat(8192);
    for (headers, value) in [(10, long.as_str()), (200, "x")] {
        let many: Vec<_> = (0..headers).map(|n| json!([format!("x-{n}"), value])).collect();
        let line = gate.ask(&json!({"url": server.url(), "headers": many}), &[&flag]);
        assert!(line["error"].is_string() || line["result"]["error"].is_string(), "{headers} headers: {line}");
    }
    let path = format!("/{}", "x".repeat(70_000));
    let line = gate.ask(&json!({"url": server.url(), "path": path}), &[&flag]);
    assert!(line["error"].is_string() || line["result"]["error"].is_string(), "{line}");
    assert!(server.heads().iter().all(|head| head.len() < 66_000 && head.lines().count() < 130));
    assert!(server.is_left_alone());
    gate.ends_well();
}
