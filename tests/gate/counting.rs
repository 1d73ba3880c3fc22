//! Limits on the requests of a call, in total and at once.

#[cfg(unix)]
use std::process::Command;
#[cfg(unix)]
use std::thread;
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use serde_json::Value;
use serde_json::json;

use super::servers::Server;
use super::{Gate, allow};

/// Default limit of requests per call.
const REQUESTS: usize = 64;
/// Default limit of concurrent requests per call.
const AT_ONCE: usize = 8;
/// Requests for which fourteen descriptors suffice.
#[cfg(unix)]
const REQUESTS_OF_DESCRIPTORS: usize = 7;

#[test]
fn a_hundred_thousand_requests_end_at_their_count() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let arguments = json!({"url": server.url(), "repeat": 100_000, "silent": true});
    let (line, _) = gate.weighed(&arguments, &[&allow(&[&server.authority()]), "--timeout=4m"]);
    assert_eq!(server.connections(), REQUESTS, "{line}");
    assert_eq!(line["receipt"]["outcome"], "request-limit", "a request too many is refused at once: {line}");
    assert!(line["receipt"].to_string().len() < 16 << 10, "the receipt is bounded: {}", line["receipt"]);
    assert!(server.is_left_alone());
    gate.ends_well();
}

#[test]
fn the_count_is_exact() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let flag = allow(&[&server.authority()]);
    let line = gate.ask(&json!({"url": server.url(), "repeat": REQUESTS}), &[&flag]);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    assert_eq!(line["result"], json!({"ended": {"200": REQUESTS}}), "{line}");
    let line = gate.ask(&json!({"url": server.url(), "repeat": REQUESTS + 1, "silent": true}), &[&flag]);
    assert_eq!(line["receipt"]["outcome"], "request-limit", "{line}");
    assert!(line["error"].as_str().is_some_and(|error| error.contains("64 requests")), "it tells the limit: {line}");
    assert_eq!(server.connections(), 2 * REQUESTS);
    // A guest may continue with the answered requests: its receipt states the number of all.
    let line = gate.ask(&json!({"url": server.url(), "repeat": REQUESTS + 5}), &[&flag]);
    assert_eq!(line["result"]["ended"]["200"], REQUESTS, "{line}");
    assert_eq!(
        (&line["receipt"]["outcome"], &line["receipt"]["network"]["count"]),
        (&json!("ok"), &json!(REQUESTS + 5))
    );
    gate.ends_well();
}

#[test]
fn a_manifest_sets_the_count_and_the_bytes_of_its_tool() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let mut tools = json!({"tools": [gate.crib.entry("http"), gate.crib.entry("echo")]});
    tools["tools"][0]["limits"] = json!({"requests": 3, "receivedKb": 1});
    gate.crib.manifest(&tools);
    let flag = allow(&[&server.authority()]);
    let line = gate.ask(&json!({"url": server.url(), "repeat": 4, "silent": true}), &[&flag]);
    assert_eq!((line["receipt"]["outcome"].as_str(), server.connections()), (Some("request-limit"), 3), "{line}");
    let kilobyte =
        Server::says([b"HTTP/1.1 200 OK\r\ncontent-length: 1024\r\n\r\n".as_slice(), &[b'x'; 1024]].concat());
    let more = Server::says([b"HTTP/1.1 200 OK\r\ncontent-length: 1025\r\n\r\n".as_slice(), &[b'x'; 1025]].concat());
    let outcome = |server: &Server| {
        let line = gate.ask(&json!({"url": server.url(), "silent": true}), &[&allow(&[&server.authority()])]);
        line["receipt"]["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!((outcome(&kilobyte), outcome(&more)), ("ok".into(), "output-limit".into()));
    gate.ends_well();
}

#[test]
fn a_flag_lowers_the_count_and_the_bytes() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let flag = allow(&[&server.authority()]);
    let outcome = |repeat: u32, more: &str| {
        let arguments = json!({"url": server.url(), "repeat": repeat, "silent": true});
        gate.ask(&arguments, &[&flag, more])["receipt"]["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (outcome(2, "--set=limits.max_requests=2"), outcome(3, "--set=limits.max_requests=2")),
        ("ok".into(), "request-limit".into())
    );
    assert_eq!(server.connections(), 4);
    assert_eq!(
        (outcome(2, "--set=limits.max_received=10"), outcome(3, "--set=limits.max_received=10")),
        ("ok".into(), "output-limit".into())
    );
    gate.ends_well();
}

#[test]
fn a_hundred_thousand_denials_are_cheap_and_counted_not_listed() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let (line, _) = gate.weighed(&json!({"url": server.url(), "repeat": 100_000}), &["--timeout=4m"]);
    assert_ne!(line["receipt"]["outcome"], "deadline", "{line}");
    assert_eq!(server.connections(), 0);
    let denied = line["receipt"]["denied"].as_array().unwrap();
    assert!((1..=64).contains(&denied.len()), "{line}");
    assert!(line["receipt"].to_string().len() < 16 << 10, "the receipt is bounded: {}", line["receipt"]);
    let record = gate.crib.records().remove(0);
    assert!(record.to_string().len() < 32 << 10, "so is the record: {record}");
    gate.ends_well();
}

#[test]
fn no_more_requests_are_under_way_than_may_be() {
    let gate = Gate::new();
    let server = Server::http(|peer| {
        peer.until_open(AT_ONCE)?;
        peer.answer("late")
    });
    let flag = allow(&[&server.authority()]);
    let line = gate.ask(&json!({"url": server.url(), "together": AT_ONCE}), &[&flag]);
    assert_eq!(line["result"], json!({"ended": {"200": AT_ONCE}}), "{line}");
    assert_eq!(server.max_open(), AT_ONCE);
    gate.ask(&json!({"url": server.url(), "together": 40}), &[&flag]);
    assert!(server.max_open() <= AT_ONCE, "{} were open at once", server.max_open());
    assert!(server.is_left_alone());
    gate.ends_well();
}

#[cfg(unix)]
#[test]
fn the_connections_of_all_calls_leave_descriptors_to_the_host() {
    let gate = Gate::new();
    let server = Server::http(|peer| {
        peer.until_open(REQUESTS_OF_DESCRIPTORS)?;
        // The request too many is refused meanwhile.
        thread::sleep(Duration::from_millis(500));
        peer.answer("late")
    });
    let arguments = json!({"url": server.url(), "together": AT_ONCE}).to_string();
    // With 28 descriptors in total, guests get at most fourteen.
    let call = "ulimit -Sn 28 && ulimit -Hn 28 && exec \"$0\" \"$@\"";
    let toolcrib = gate.crib.toolcrib(&["call", "http", &arguments, "--json", &allow(&[&server.authority()])]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(call).arg(toolcrib.get_program()).args(toolcrib.get_args());
    command.current_dir(gate.crib.path(".")).env_clear();
    command.envs(toolcrib.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = command.output().unwrap();
    let line: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(
        line["result"],
        json!({"ended": {"200": REQUESTS_OF_DESCRIPTORS, "ConnectionLimitReached": 1}}),
        "{line}"
    );
    assert_eq!((server.max_open(), gate.crib.records().len()), (REQUESTS_OF_DESCRIPTORS, 1));
}
