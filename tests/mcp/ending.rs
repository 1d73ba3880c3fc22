//! Ends of calls over standard streams: cancellation, tools that must end, clients that leave, and signals. Each call leaves its
//! record.

use std::io::Write;
#[cfg(target_os = "linux")]
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, PATIENCE, text};
use crate::crib::{Crib, Ran};

/// Crib with an echo and a tool that never ends.
fn crib() -> Crib {
    Crib::with_guests(&["echo", "spin"])
}

/// Crib with a tool that sleeps and declares that it must end.
fn crib_of_a_tool_that_must_end() -> Crib {
    let crib = Crib::new();
    let mut nap = crib.entry("nap");
    nap["interface"] = json!({"interrupt_behavior": "block"});
    crib.manifest(&json!({ "tools": [nap] }));
    crib
}

#[test]
fn a_cancelled_call_stops_and_others_go_on() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &["--timeout=600s"], &json!({}));
    let endless: Vec<u64> =
        (0..3).map(|_| client.request("tools/call", &json!({"name": "spin", "arguments": {}}))).collect();
    assert!(text(&client.call("echo", &json!({"x": 1}))).contains("\"x\":1"));
    for id in &endless {
        let params = json!({"requestId": id, "reason": "no longer needed"});
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }
    let until = Instant::now() + PATIENCE;
    while crib.records().iter().filter(|record| record["outcome"] == "cancelled").count() < 3 {
        assert!(Instant::now() < until, "{:?}", crib.records());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(text(&client.call("echo", &json!({"y": 1}))).contains("\"y\":1"));
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn a_call_that_is_cancelled_at_once_has_a_record_too() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &["--timeout=600s"], &json!({}));
    // Each call is read together with its cancellation.
    let piece: String = (1000..1100)
        .map(|id| {
            let params = json!({"name": "spin", "arguments": {}});
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
            format!("{call}\n{cancelled}\n")
        })
        .collect();
    client.input.as_mut().unwrap().write_all(piece.as_bytes()).unwrap();
    assert!(text(&client.call("echo", &json!({"x": 1}))).contains("\"x\":1"));
    assert_eq!(client.leave(), Some(0));
    let cancelled = crib.records().iter().filter(|record| record["outcome"] == "cancelled").count();
    assert_eq!((cancelled, crib.records().len()), (100, 101));
}

#[test]
fn a_tool_that_declares_that_it_must_end_is_not_stopped() {
    let crib = crib_of_a_tool_that_must_end();
    let mut client = Client::initialized(&crib, &[], &json!({}));
    let id = client.request("tools/call", &json!({"name": "nap", "arguments": {"ms": 2500}}));
    client.ask("tools/list", &json!({}));
    std::thread::sleep(Duration::from_millis(1200));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    let until = Instant::now() + PATIENCE;
    while crib.records().is_empty() {
        assert!(Instant::now() < until, "no record");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(crib.records()[0]["outcome"], "ok");
}

#[test]
fn a_tool_that_must_end_has_a_moment_when_the_server_ends() {
    for (ms, signals, outcome) in [(1500, 1, "ok"), (60_000, 1, "cancelled"), (60_000, 2, "cancelled")] {
        let crib = crib_of_a_tool_that_must_end();
        let mut client = Client::initialized(&crib, &["--timeout=600s"], &json!({}));
        client.request("tools/call", &json!({"name": "nap", "arguments": {"ms": ms}}));
        client.ask("tools/list", &json!({}));
        for _ in 0..signals {
            std::thread::sleep(Duration::from_millis(300));
            let id = client.child.id().to_string();
            assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        }
        if (ms, signals) == (60_000, 1) {
            std::thread::sleep(Duration::from_millis(500));
            let answer = client.call("nap", &json!({"ms": 1}));
            assert_eq!(answer["error"]["message"], "the server is ending");
        }
        client.leave();
        let records = crib.records();
        assert_eq!((records.len(), &records[0]["outcome"]), (1, &json!(outcome)), "{ms} {signals}");
    }
}

#[test]
fn a_call_is_answered_after_the_end_of_the_input() {
    let crib = Crib::with_guests(&["nap"]);
    let mut client = Client::initialized(&crib, &["--timeout=600s"], &json!({}));
    let id = client.request("tools/call", &json!({"name": "nap", "arguments": {"ms": 7000}}));
    client.ask("tools/list", &json!({}));
    client.input = None;
    assert_eq!(client.answer(id)["result"]["isError"], false);
    assert_eq!(client.leave(), Some(0));
    assert_eq!(crib.records()[0]["outcome"], "ok");
}

#[test]
fn a_call_that_outlives_its_client_is_counted_on_standard_error() {
    let crib = Crib::with_guests(&["echo", "nap"]);
    let mut child = piped(&crib, &["nap", "nap", "echo"], 600_000);
    child.stdin = None;
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("standard input is closed: waiting for 2 running calls"), "{ran:?}");
    assert!(ran.stdout.contains("\"id\":4,") && !ran.stdout.contains("\"id\":2,"), "{ran:?}");
    assert!(ran.stderr.contains("warning: 2 running calls were stopped, because standard input was closed"), "{ran:?}");
    assert_eq!(crib.records().len(), 3);
}

/// Starts the server with calls of these tools in one piece, under the identifiers from 2 on. Naps take `ms`.
fn piped(crib: &Crib, tools: &[&str], ms: u64) -> Child {
    let mut command = crib.toolcrib(&["mcp", "--timeout=600s"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}});
    let mut messages = format!("{hello}\n");
    for (id, tool) in (2..).zip(tools) {
        let params = json!({"name": tool, "arguments": {"ms": ms}});
        messages += &format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    child.stdin.as_mut().unwrap().write_all(messages.as_bytes()).unwrap();
    child
}

#[cfg(target_os = "linux")]
#[test]
fn calls_stop_when_nobody_can_read_their_answers() {
    for (crib, ms, outcome) in
        [(Crib::with_guests(&["echo", "nap"]), 600_000, "cancelled"), (crib_of_a_tool_that_must_end(), 2000, "ok")]
    {
        let mut child = piped(&crib, &["nap", "none"], ms);
        // The last answer: the call before has begun.
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"id\":3,") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0);
        }
        drop(output);
        child.stdin = None;
        // Sooner than without anybody who could read.
        let until = Instant::now() + Duration::from_secs(30);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "the server did not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let records = crib.records();
        assert!(records.iter().any(|record| record["tool"] == "nap" && record["outcome"] == outcome), "{records:?}");
    }
}

#[test]
fn a_question_to_a_client_that_sends_nothing_more_is_open() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &["--ask-tool=echo"], &json!({"elicitation": {}}));
    let id = client.request("tools/call", &json!({"name": "echo", "arguments": {}}));
    client.wait(|message| message["method"] == "elicitation/create");
    client.input = None;
    let refused = client.answer(id);
    assert!(refused["result"]["_meta"]["toolcrib/receipt"]["approval"].is_string(), "{refused}");
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn a_request_with_the_identifier_of_a_running_one_is_refused() {
    let crib = Crib::with_guests(&["echo", "nap"]);
    let mut client = Client::initialized(&crib, &[], &json!({}));
    let id = client.request("tools/call", &json!({"name": "nap", "arguments": {"ms": 1500}}));
    let params = json!({"name": "echo", "arguments": {}});
    let again = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    client.send(&again);
    assert_eq!(client.answer(id)["error"]["message"], "a running request has the same identifier");
    assert_eq!(client.answer(id)["result"]["isError"], false, "the first call goes on");
    client.send(&again);
    assert_eq!(client.answer(id)["result"]["isError"], false, "it has ended");
    assert_eq!(crib.records().len(), 2);
}

#[test]
fn a_request_with_the_identifier_of_a_cancelled_one_that_goes_on_gets_no_answer_of_it() {
    let crib = crib_of_a_tool_that_must_end();
    let mut client = Client::initialized(&crib, &[], &json!({}));
    let id = client.request("tools/call", &json!({"name": "nap", "arguments": {"ms": 1500}}));
    client.ask("tools/list", &json!({}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    let params = json!({"name": "nap", "arguments": {"ms": 1}});
    client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    assert_eq!(client.answer(id)["error"]["message"], "a running request has the same identifier");
    assert_eq!(client.leave(), Some(0));
    assert_eq!(crib.records().len(), 1);
}

#[test]
fn a_signal_stops_running_calls_with_their_records() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        let crib = crib();
        let mut client = Client::initialized(&crib, &["--timeout=600s"], &json!({}));
        client.request("tools/call", &json!({"name": "spin", "arguments": {}}));
        assert!(text(&client.call("echo", &json!({"x": 1}))).contains("\"x\":1"));
        let id = client.child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        client.leave();
        let outcomes: Vec<Value> = crib.records().iter().map(|record| record["outcome"].clone()).collect();
        assert_eq!(outcomes, ["ok", "cancelled"], "{signal}");
    }
}
