//! Grants of one host, one port and the named methods; a denial overrides them.

use serde_json::{Value, json};

use super::servers::Server;
use super::{Gate, allow};
use crate::gate::names::{Names, at};
use crate::screen::Page;

#[test]
fn without_a_grant_every_request_is_denied_with_the_flag_that_would_allow_it() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let denied = gate.denied(&json!({"url": server.url()}), &[]);
    assert_eq!(denied["capability"], format!("net:{}", server.authority()));
    let flag = denied["flag"].as_str().expect("a flag").to_owned();
    assert_eq!(server.connections(), 0);
    // With only the flag from the hint, the same request is answered.
    assert_eq!(gate.answered(&json!({"url": server.url()}), &[&flag])["body"], "hello");
    let public = gate.denied(&json!({"url": "https://api.example.com/v1?token=x"}), &[]);
    assert_eq!(public["capability"], "net:api.example.com:443");
    assert!(public["flag"].as_str().is_some_and(|flag| flag.starts_with("--allow-net=")), "{public}");
    assert!(!public["flag"].as_str().unwrap().contains("token"), "{public}");
    gate.ends_well();
}

#[test]
fn a_tool_that_fails_for_a_refusal_is_denied_and_says_why() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let line = gate.ask(&json!({"url": server.url(), "silent": true}), &[]);
    assert_eq!(line["receipt"]["outcome"], "denied", "{line}");
    assert!(line["error"].as_str().is_some_and(|output| output.starts_with("a request was denied: ")), "{line}");
    let record = gate.crib.records().pop().unwrap();
    assert_eq!((&record["outcome"], &record["denied"]), (&json!("denied"), &line["receipt"]["denied"]));
    let ran = gate.crib.run(&["call", "http", &json!({"url": server.url(), "silent": true}).to_string()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains(&format!("--allow-net=http://{}", server.authority()))
            || ran.stderr.contains(&format!("--allow-net={}", server.authority())),
        "{ran:?}"
    );
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_tool_that_says_itself_why_it_failed_is_heard() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let line = gate.ask(&json!({"url": server.url(), "strict": true}), &[]);
    assert_eq!(line["receipt"]["outcome"], "denied", "{line}");
    assert!(line["error"].as_str().is_some_and(|output| output.contains("\"error\":\"HttpRequestDenied\"")), "{line}");
    assert_eq!(line["receipt"]["denied"][0]["capability"], format!("net:{}", server.authority()), "{line}");
    assert_eq!(line["receipt"]["network"]["requests"][0]["error"], "denied", "{line}");
    gate.ends_well();
}

#[test]
fn a_grant_for_one_port_opens_no_other() {
    let (gate, granted, other) = (Gate::new(), Server::plain("granted"), Server::plain("other"));
    let flag = allow(&[&granted.authority()]);
    assert_eq!(gate.answered(&json!({"url": granted.url()}), &[&flag])["body"], "granted");
    let denied = gate.denied(&json!({"url": other.url()}), &[&flag]);
    assert_eq!(denied["capability"], format!("net:{}", other.authority()));
    // Without a port, only the standard port is granted.
    gate.denied(&json!({"url": other.url()}), &["--allow-net=127.0.0.1"]);
    gate.denied(&json!({"url": other.url()}), &["--allow-net=http://127.0.0.1"]);
    assert_eq!((granted.connections(), other.connections()), (1, 0));
    gate.ends_well();
}

#[test]
fn a_grant_of_one_scheme_is_not_one_of_the_other() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let only = format!("https://{}", server.authority());
    gate.denied(&json!({"url": server.url()}), &[&allow(&[&only])]);
    let only = format!("http://{}", server.authority());
    gate.denied(&json!({"url": only.replace("http:", "https:")}), &[&allow(&[&only])]);
    assert_eq!(server.connections(), 0);
    gate.answered(&json!({"url": only}), &[&allow(&[&only])]);
}

#[test]
fn a_wildcard_holds_every_name_below_and_no_other() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let port = server.port();
    let inside = ["a.example.com", "a.b.example.com", "A.EXAMPLE.com"];
    let outside =
        ["example.com", "example.com.evil.test", "a.example.com.evil.test", "aexample.com", "a.example.org", "com"];
    let mut table: Vec<_> = inside.iter().chain(&outside).map(|name| (name.to_lowercase(), at("127.0.0.1"))).collect();
    table.dedup_by(|a, b| a.0 == b.0);
    let names = Names::of(table);
    let flags = [&allow(&[&format!("*.example.com:{port}"), &server.authority()])[..], "--dns", &names.address()];
    for name in inside {
        gate.answered(&json!({"url": format!("http://{name}:{port}/")}), &flags);
    }
    assert_eq!(server.connections(), inside.len());
    for name in outside {
        let denied = gate.denied(&json!({"url": format!("http://{name}:{port}/")}), &flags);
        assert_eq!(denied["capability"], format!("net:{name}:{port}"));
        assert_eq!(names.asked(name), 0, "a name that is not granted is not even asked for");
    }
    assert_eq!(server.connections(), inside.len());
    gate.ends_well();
}

#[test]
fn a_grant_of_methods_is_of_those_alone() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let flag = format!("--allow-net=GET,HEAD {}", server.authority());
    gate.answered(&json!({"url": server.url()}), &[&flag]);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"] {
        gate.denied(&json!({"url": server.url(), "method": method}), &[&flag]);
    }
    // A method that people could not write in a flag is an invalid request, and no hint contains it.
    for method in ["get", "X'$A'", "X`A`", "A|B", "A&B", "A*"] {
        for flag in [&flag[..], "--allow-net=api.example.com"] {
            let line = gate.ask(&json!({"url": server.url(), "method": method}), &[flag]);
            let error = line["result"]["error"].as_str().unwrap_or_else(|| panic!("it was let through: {line}"));
            assert!(error.starts_with("InternalError: rejected: its method"), "{line}");
            assert_eq!(line["receipt"]["denied"], json!([]), "{line}");
        }
        let denied = gate.denied(&json!({"url": server.url(), "method": method}), &[]);
        assert!(denied["flag"].is_null(), "{denied}");
    }
    assert!(server.heads().iter().all(|head| head.starts_with("GET ")), "{:?}", server.heads());
    assert_eq!(server.connections(), 1);
    gate.ends_well();
}

#[test]
fn a_denial_wins_over_every_allowance() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let names = Names::new([("api.example.com", at("127.0.0.1")), ("bad.example.com", at("127.0.0.1"))]);
    let port = server.port();
    let granted = allow(&[&server.authority(), &format!("*.example.com:{port}")]);
    let dns = names.address();
    let literal = json!({"url": server.url()});
    let named = json!({"url": format!("http://api.example.com:{port}/")});
    let bad = json!({"url": format!("http://bad.example.com:{port}/")});
    for request in [&literal, &named, &bad] {
        gate.answered(request, &[&granted, "--dns", &dns]);
    }
    let before = server.connections();
    let whole = format!("--deny-net={}", server.authority());
    let name = format!("--deny-net=bad.example.com:{port}");
    let range = format!("--deny-net=127.0.0.0/8:{port}");
    for (deny, requests) in [
        ("--deny-net", vec![&literal, &named, &bad]),
        (whole.as_str(), vec![&literal, &named, &bad]),
        (range.as_str(), vec![&literal, &named]),
        (name.as_str(), vec![&bad]),
    ] {
        for request in requests {
            let denied = gate.denied(request, &[&granted, "--dns", &dns, deny]);
            assert!(denied.get("flag").is_none(), "no flag undoes a denial: {deny} {denied}");
        }
    }
    assert_eq!(server.connections(), before);
    gate.answered(&named, &[&granted, "--dns", &dns, &name]);
    gate.ends_well();
}

#[test]
fn a_manifest_of_ones_own_grants_the_destinations_it_names_and_a_word_asks_for_those_of_flags() {
    let (gate, server, other) = (Gate::new(), Server::plain("hello"), Server::plain("other"));
    let entry = |capabilities: Value| {
        let mut tools = json!({"tools": [gate.crib.entry("http"), gate.crib.entry("echo")]});
        tools["tools"][0]["capabilities"] = capabilities;
        gate.crib.manifest(&tools);
    };
    let (request, elsewhere) = (json!({"url": server.url()}), json!({"url": other.url()}));
    let both = allow(&[&server.authority(), &other.authority()]);
    let refused = |request: &Value, flags: &[&str]| {
        let line = gate.ask(request, flags);
        assert_eq!(line["result"]["error"], "HttpRequestDenied", "{line}");
        let denied = line["receipt"]["denied"].as_array().unwrap().clone();
        assert!(!denied.is_empty(), "{line}");
        denied
    };
    entry(json!({"network": [server.authority()]}));
    gate.answered(&request, &[]);
    let inspected = gate.crib.run(&["inspect", "http"]).stdout;
    assert!(inspected.contains(&format!("net:{}", server.authority())), "{inspected}");
    refused(&request, &["--deny-net"]);
    refused(&request, &[&format!("--deny-net={}", server.authority())]);
    let denied = refused(&elsewhere, &[&both]);
    assert!(
        denied.iter().all(|denial| denial.get("flag").is_none()),
        "no flag gives more than it asks for: {denied:?}"
    );
    entry(json!({"network": "allow"}));
    assert!(!refused(&request, &[]).is_empty());
    gate.answered(&request, &[&both]);
    for nothing in [json!({}), json!({"network": []}), json!({"network": null}), json!({"files": "read"})] {
        entry(nothing);
        refused(&request, &[&both]);
    }
    assert_eq!((server.connections(), other.connections()), (2, 0));
    gate.ends_well();
    for slip in [json!("*"), json!(true), json!([1]), json!(["api.example.com/path"]), json!({"hosts": []})] {
        entry(json!({ "network": slip }));
        let ran = gate.crib.run(&["call", "http", "{}"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("capabilities.network"), "{slip}: {ran:?}");
    }
}

#[test]
fn a_record_asks_and_a_flag_grants() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let record = json!({
        "schema_version": "0.2.0", "tool_id": "t.http", "component": "http.wasm",
        "capabilities": {"network": [server.authority()]},
    });
    std::fs::write(gate.crib.path("tools/bin/http.tool.json"), record.to_string()).unwrap();
    let request = json!({"url": server.url()});
    let refused = gate.ask(&request, &["--tools=tools/bin/http.tool.json"]);
    assert_eq!((&refused["result"]["error"], server.connections()), (&json!("HttpRequestDenied"), 0), "{refused}");
    let flag = refused["receipt"]["denied"][0]["flag"].as_str().expect("a flag").to_owned();
    gate.answered(&request, &["--tools=tools/bin/http.tool.json", &flag]);
}

#[test]
fn a_tool_that_calls_itself_read_only_sends_nothing_that_changes() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let mut tools = json!({"tools": [gate.crib.entry("http"), gate.crib.entry("echo")]});
    tools["tools"][0]["interface"] = json!({"is_read_only": true});
    gate.crib.manifest(&tools);
    let flag = allow(&[&server.authority()]);
    for method in ["GET", "HEAD", "OPTIONS"] {
        gate.answered(&json!({"url": server.url(), "method": method}), &[&flag]);
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "PROPPATCH"] {
        let denied = gate.denied(&json!({"url": server.url(), "method": method}), &[&flag]);
        assert!(denied.get("flag").is_none(), "no flag makes it write: {denied}");
    }
    assert_eq!(server.connections(), 3);
    gate.ends_well();
}

#[test]
fn what_is_not_a_destination_is_wrong_use() {
    let page = Page::new();
    let gate = Gate::new();
    for written in [
        "",
        "*.*.example.com",
        "a.*.com",
        "ex*mple.com",
        "api.example.com:0",
        "api.example.com:65536",
        "api.example.com:x",
        "http://api.example.com/path",
        "ftp://api.example.com",
        "user@api.example.com",
        "api..example.com",
        "api.example.com.",
        "127.1",
        "0x7f000001",
        "2130706433",
        "10.0.0.0/33",
        "[::1",
        "::1:80",
        "a b",
        "\u{1b}[2J",
    ] {
        let ran = page.run(&gate.crib, &["call", "http", "{}", &format!("--allow-net={written}")]);
        assert!(matches!(ran.code, Some(1 | 2)) && ran.stdout.is_empty(), "{written:?}: {ran:?}");
        assert!(ran.stderr.contains("--allow-net"), "{written:?}: {ran:?}");
        assert!(!ran.stderr.contains('\u{1b}'), "{written:?}: {ran:?}");
    }
    assert!(gate.crib.logs().is_empty(), "nothing was called");
    page.matches("network/wrong-destination");
}
