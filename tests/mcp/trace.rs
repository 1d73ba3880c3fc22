//! Traces of callers: in the records of calls, and as the parents of exported spans. A malformed trace changes nothing.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::Server;
use super::{Client, PATIENCE, modern, text};
use crate::crib::{Crib, guest};
use crate::telemetry::{accepting_collector, said, spans};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Trace of a caller, as it states it.
fn traceparent() -> Value {
    json!(format!("00-{TRACE}-{PARENT}-01"))
}

/// Parameters of a call with a trace.
fn call(name: &str, arguments: &Value, traceparent: &Value) -> Value {
    json!({"name": name, "arguments": arguments, "_meta": {"traceparent": traceparent}})
}

/// Parameters of a call of `echo` in the later revision.
fn later(traceparent: &Value) -> Value {
    let mut params = modern(json!({"name": "echo", "arguments": {}}), &json!({}));
    params["_meta"]["traceparent"] = traceparent.clone();
    params
}

/// Trace and span of the caller in a record.
fn caller(record: &Value) -> (Option<&str>, Option<&str>) {
    (record["trace"].as_str(), record["parentSpan"].as_str())
}

#[test]
fn the_record_of_a_call_names_the_trace_of_its_caller_in_both_revisions() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &["--max-listed=0"], &json!({}));
    for params in [
        call("echo", &json!({}), &traceparent()),
        call("tool_call", &json!({"name": "echo", "arguments": {}}), &traceparent()),
    ] {
        let answer = client.ask("tools/call", &params);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    assert_eq!(client.call("echo", &json!({}))["result"]["isError"], false);
    assert_eq!(client.leave(), Some(0));
    let mut client = Client::start(&crib, &[]);
    client.ask("server/discover", &modern(json!({}), &json!({})));
    let answer = client.ask("tools/call", &later(&traceparent()));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(client.leave(), Some(0));
    let (records, stated) = (crib.records(), (Some(TRACE), Some(PARENT)));
    let found: Vec<_> = records.iter().map(caller).collect();
    assert_eq!(found, [stated, stated, (None, None), stated], "{records:?}");
}

#[test]
fn a_malformed_trace_is_ignored_and_the_call_goes_on() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &[], &json!({}));
    let wrong = [
        json!(null),
        json!(7),
        json!({"trace": TRACE}),
        json!([traceparent()]),
        json!(""),
        json!(format!("00-{}-{PARENT}-01", "0".repeat(32))),
        json!(format!("00-{TRACE}-{}-01", "0".repeat(16))),
        json!(format!("ff-{TRACE}-{PARENT}-01")),
        json!(format!("00-{}-{PARENT}-01", TRACE.to_uppercase())),
        json!(format!("00-{TRACE}-{PARENT}-01\u{1b}[2J\n")),
        json!(format!("01-{TRACE}-{PARENT}-01-{}", "x".repeat(1 << 20))),
    ];
    for traceparent in &wrong {
        let answer = client.ask("tools/call", &call("echo", &json!({"a": 1}), traceparent));
        assert!(text(&answer).contains("\"a\":1"), "{answer}");
    }
    assert_eq!(client.leave(), Some(0));
    let records = crib.records();
    assert_eq!(records.len(), wrong.len());
    for record in records {
        assert!(record.get("trace").is_none() && record.get("parentSpan").is_none(), "{record}");
    }
}

#[test]
fn the_span_of_a_call_is_below_that_of_its_caller() {
    let (collector, crib) = (accepting_collector(), Crib::with_guests(&["echo"]));
    let mut client = Client::initialized(&crib, &["--otlp", &collector.uri()], &json!({}));
    client.ask("tools/call", &call("echo", &json!({}), &traceparent()));
    client.call("echo", &json!({}));
    // The exporter outlives a reload.
    crib.manifest(&json!({ "tools": [crib.entry("echo"), crib.entry("exit_code")] }));
    client.wait(|message| message["method"] == "notifications/tools/list_changed");
    client.call("echo", &json!({}));
    assert_eq!(client.leave(), Some(0));
    let spans = spans(&collector);
    let [stated, first, second] = &spans[..] else { panic!("{spans:#?}") };
    for span in &spans {
        assert_eq!(span["name"], "execute_tool echo");
        assert_eq!(said(span, "toolcrib.outcome"), "ok");
    }
    assert_eq!((&stated["traceId"], &stated["parentSpanId"]), (&json!(TRACE), &json!(PARENT)));
    for fresh in [first, second] {
        assert!(fresh.get("parentSpanId").is_none() && fresh["traceId"] != TRACE, "{fresh}");
    }
    assert_ne!(first["traceId"], second["traceId"], "each call has a trace of its own");
}

#[test]
fn a_call_that_a_tool_makes_is_of_the_same_trace_and_below_the_call_of_the_tool() {
    let (collector, crib) = (accepting_collector(), Crib::new());
    fs::copy(guest("rich"), crib.path("rich.wasm")).expect("the guest was built");
    let flags = ["--tools=rich.wasm", "--allow-call=echo", "--otlp", &collector.uri()];
    let mut client = Client::initialized(&crib, &flags, &json!({}));
    let inner = json!({"name": "echo", "arguments": {"value": "x"}});
    for trace in [traceparent(), json!(null)] {
        let answer = client.ask("tools/call", &call("calls", &inner, &trace));
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    assert_eq!(client.leave(), Some(0));
    let spans = spans(&collector);
    let [inner, outer, fresh_inner, fresh_outer] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((&outer["traceId"], &outer["parentSpanId"]), (&json!(TRACE), &json!(PARENT)));
    assert!(fresh_outer.get("parentSpanId").is_none() && fresh_outer["traceId"] != TRACE, "{fresh_outer}");
    for (inner, outer) in [(inner, outer), (fresh_inner, fresh_outer)] {
        assert_eq!((&inner["name"], &outer["name"]), (&json!("execute_tool echo"), &json!("execute_tool calls")));
        assert_eq!((&inner["traceId"], &inner["parentSpanId"]), (&outer["traceId"], &outer["spanId"]));
    }
    let (records, stated) = (crib.records(), (Some(TRACE), Some(PARENT)));
    let found: Vec<_> = records.iter().map(caller).collect();
    assert_eq!(found, [stated, stated, (None, None), (None, None)], "{records:?}");
}

#[test]
fn over_http_the_header_states_the_trace() {
    let (collector, crib) = (accepting_collector(), Crib::with_guests(&["echo"]));
    let server = Server::start(&crib, &["--no-token", "--otlp", &collector.uri()]);
    let call = json!({"name": "echo", "arguments": {}});
    let header = format!("traceparent: 00-{TRACE}-{PARENT}-00\r\n");
    let wrong = format!("traceparent: 00-{TRACE}-{PARENT}\r\n");
    let twice = format!("{header}{header}");
    for headers in [&header, &wrong, &twice] {
        let answer = server.request("tools/call", call.clone(), headers);
        assert_eq!(answer.message()["result"]["isError"], false, "{answer:?}");
    }
    let (records, stated) = (crib.records(), (Some(TRACE), Some(PARENT)));
    let found: Vec<_> = records.iter().map(caller).collect();
    assert_eq!(found, [stated, (None, None), (None, None)], "{records:?}");
    // Spans are sent while the server runs.
    let until = Instant::now() + PATIENCE;
    let spans = loop {
        let spans = spans(&collector);
        if spans.len() == 3 {
            break spans;
        }
        assert!(Instant::now() < until, "{spans:#?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let parents: Vec<_> = spans.iter().map(|span| span["parentSpanId"].as_str()).collect();
    assert_eq!(parents, [Some(PARENT), None, None]);
}

#[test]
fn a_collector_that_is_not_there_affects_no_call() {
    let crib = Crib::with_guests(&["echo"]);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut client = Client::initialized(&crib, &["--otlp", &format!("http://{gone}")], &json!({}));
    for number in 0..20 {
        let answer = client.call("echo", &json!({ "number": number }));
        assert!(text(&answer).contains(&format!("\"number\":{number}")), "{answer}");
    }
    assert_eq!(client.leave(), Some(0));
    assert_eq!(crib.records().len(), 20);
}
