//! Slow servers: the deadline of the call holds, an interrupt ends it, and no connection stays open.

use std::fs;
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::process::Command;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::{Outcome, Runtime, ToolCall};

use super::names::{Names, Says};
use super::servers::Server;
use super::{Gate, allow};
use crate::crib::{Crib, guest};

/// Start of a TLS record of 16 KiB.
const RECORD: &[u8] = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc";

/// One server for each way of being slow: its name, the server, and the scheme.
fn slow() -> Vec<(&'static str, Server, &'static str)> {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let trickles = |head: &'static str, bytes: &'static [u8]| {
        Server::http(move |peer| {
            peer.say(head)?;
            peer.trickle(bytes)
        })
    };
    vec![
        ("never answers", Server::http(|peer| peer.wait()), "http"),
        ("says nothing at all", Server::raw(|peer| peer.wait()), "http"),
        ("trickles its head", trickles("HTTP/1.1 200 OK\r\n", b"x-one: two\r\n"), "http"),
        ("trickles one header", trickles("HTTP/1.1 200 OK\r\nx-one: ", b"x"), "http"),
        ("trickles interim answers", trickles("", b"HTTP/1.1 103 Early Hints\r\n\r\n"), "http"),
        ("trickles its body", trickles(head, b"x"), "http"),
        ("trickles chunks", trickles(chunked, b"1\r\nx\r\n"), "http"),
        ("trickles the size of a chunk", trickles(chunked, b"0"), "http"),
        (
            "trickles trailers",
            trickles("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n"),
            "http",
        ),
        ("stops in its body", trickles(head, b""), "http"),
        ("never shakes hands", Server::raw(|peer| peer.wait()), "https"),
        ("trickles its handshake", Server::raw(|peer| peer.trickle(RECORD)), "https"),
    ]
}

#[test]
fn the_deadline_holds_however_slow_the_server_is() {
    let gate = Gate::new();
    for (name, server, scheme) in slow() {
        let url = format!("{scheme}://{}/", server.authority());
        let request = json!({"url": url, "times": [3_600_000, 3_600_000, 3_600_000]});
        let line = gate.ask(&request, &[&allow(&[&server.authority()]), "--set=limits.tool_timeout=1s"]);
        assert_eq!(line["receipt"]["outcome"], "deadline", "{name}: {line}");
        assert_eq!(line["error"], "tool timed out", "{name}: {line}");
        assert!(server.is_asked(1) && server.is_left_alone(), "{name}");
    }
    let names = Names::new([("silent.example.com", Says::Silence)]);
    let flags = ["--allow-net=silent.example.com", "--dns", &names.address(), "--set=limits.tool_timeout=1s"];
    let line = gate.ask(&json!({"url": "https://silent.example.com/"}), &flags);
    assert_eq!(line["receipt"]["outcome"], "deadline", "{line}");
    gate.ends_well();
}

#[test]
fn a_guest_may_be_less_patient_than_its_deadline() {
    let gate = Gate::new();
    for (name, server, scheme) in slow() {
        // A trickling server is never silent for long enough: only the deadline ends it.
        if name.starts_with("trickles") && scheme == "http" {
            continue;
        }
        let url = format!("{scheme}://{}/", server.authority());
        let request = json!({"url": url, "times": [300, 300, 300]});
        let line = gate.ask(&request, &[&allow(&[&server.authority()]), "--set=limits.tool_timeout=15s"]);
        assert_eq!(line["receipt"]["outcome"], "ok", "{name}: {line}");
        let error = line["result"]["error"].as_str().unwrap_or_else(|| panic!("{name}: {line}"));
        let waited_for = match name {
            "never shakes hands" | "trickles its handshake" => "ConnectionTimeout",
            // The engine has no error code for the end of a body: a guest gets a text.
            "stops in its body" => "connection read timeout",
            _ => "HttpResponseTimeout",
        };
        assert_eq!(error, waited_for, "{name}: {line}");
    }
    gate.ends_well();
}

#[test]
fn a_request_body_that_nobody_takes_ends_at_the_deadline() {
    let gate = Gate::new();
    let server = Server::raw(|peer| peer.idle());
    let request = json!({"url": server.url(), "method": "POST", "body_bytes": 7 << 20});
    let line = gate.ask(&request, &[&allow(&[&server.authority()]), "--set=limits.tool_timeout=1s"]);
    assert_eq!(line["receipt"]["outcome"], "deadline", "{line}");
    gate.ends_well();
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_request_and_its_call() {
    for (name, server, scheme) in slow() {
        let gate = Gate::new();
        let mut tools = json!({"tools": [gate.crib.entry("http")]});
        // A call that may change something on the server may finish, unless the user insists.
        let insists = name.contains("body");
        tools["tools"][0]["interface"] = if insists { json!({}) } else { json!({"interrupt_behavior": "cancel"}) };
        gate.crib.manifest(&tools);
        let arguments = json!({"url": format!("{scheme}://{}/", server.authority())}).to_string();
        let mut command = gate.crib.toolcrib(&["call", "http", &arguments, &allow(&[&server.authority()])]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut said = BufReader::new(child.stderr.take().expect("standard error")).lines().map_while(Result::ok);
        assert!(server.is_asked(1), "{name}");
        let begun = Instant::now();
        let interrupt = || Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
        assert!(interrupt().success());
        if insists {
            // A second signal counts once the first one was taken.
            assert!(said.any(|line| line.contains("interrupt again to stop it")), "{name}");
            assert!(interrupt().success());
        }
        assert_eq!(child.wait().expect("an end").code(), Some(130), "{name}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{name}: {:?}", begun.elapsed());
        let outcomes: Vec<Value> = gate.crib.records().iter().map(|record| record["outcome"].clone()).collect();
        assert_eq!(outcomes, ["cancelled"], "{name}");
    }
}

#[test]
fn a_dropped_call_leaves_no_connection_and_no_task_while_the_host_lives_on() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let servers = slow();
    let policy = servers.iter().fold(toolcrib::Policy::default(), |policy, (_, server, _)| {
        policy.allow(Permission::Net(server.authority().parse().expect("a destination")))
    });
    let builder = Runtime::builder(toolcrib::Audit::off()).source(guest("http")).source(guest("echo")).policy(policy);
    let runtime = builder.build().unwrap();
    tokio.block_on(runtime.prepare("http")).unwrap();
    tokio.block_on(runtime.prepare("echo")).unwrap();
    for (name, server, scheme) in servers {
        let arguments = json!({"url": format!("{scheme}://{}/", server.authority()), "together": 4}).to_string();
        let call = {
            let runtime = runtime.clone();
            tokio.spawn(async move { runtime.call(ToolCall::new("", "http", arguments)).await })
        };
        assert!(server.is_asked(4), "{name}");
        call.abort();
        let ended = tokio.block_on(call);
        assert!(ended.is_err_and(|error| error.is_cancelled()), "{name} ended by itself");
        assert!(server.is_left_alone(), "{name} still has an open connection");
        let begun = Instant::now();
        while tokio.metrics().num_alive_tasks() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(10), "{name}: a task outlives its call");
            std::thread::sleep(Duration::from_millis(5));
        }
        let next = tokio.block_on(runtime.call(ToolCall::new("", "echo", "{}")));
        assert_eq!(next.receipt.outcome, Outcome::Ok, "{name}");
    }
}

/// A process with calls that hang on servers holds no more descriptors and threads after the last of them than after
/// the first. It is a separate process, because other tests open files in this one.
#[test]
fn hung_calls_leave_no_descriptor_and_no_thread_behind() {
    let crib = Crib::new();
    let mut tools = json!({"tools": [crib.entry("http"), crib.entry("nap")]});
    // So that its calls run together.
    tools["tools"][0]["interface"] = json!({"is_read_only": true, "is_concurrency_safe": true});
    crib.manifest(&tools);
    let servers = slow();
    let hung: Vec<Value> = servers
        .iter()
        .map(|(_, server, scheme)| {
            let url = format!("{scheme}://{}/", server.authority());
            json!({"name": "http", "arguments": {"url": url, "together": 3}})
        })
        .collect();
    let nap = json!({"tool_calls": [{"name": "nap", "arguments": {"ms": 1500}}]});
    let all = json!({ "tool_calls": hung });
    let turns = json!({"prompt": "go", "turns": [all, nap, all, all, nap, {"content": "done"}]});
    fs::write(crib.path("script.json"), turns.to_string()).unwrap();
    let authorities: Vec<_> = servers.iter().map(|(_, server, _)| server.authority()).collect();
    let grant = allow(&authorities.iter().map(String::as_str).collect::<Vec<_>>());
    let args = ["run", "--script", "script.json", "--json", "--set=limits.tool_timeout=2s", "--max-steps=10", &grant];
    let mut child = crib.toolcrib(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let process = child.id();
    let mut counts = Vec::new();
    let mut answered = 0;
    for line in BufReader::new(child.stdout.take().expect("standard output")).lines() {
        let event: Value = serde_json::from_str(&line.expect("a line")).expect("an event");
        answered += usize::from(event["type"] == "tool_result");
        // Before each nap ends, every hung call has ended, and nothing else is running.
        if event["type"] == "tool_result" && [hung.len(), 3 * hung.len() + 1].contains(&answered) {
            std::thread::sleep(Duration::from_millis(700));
            counts.push((entries(process, "fd"), entries(process, "task")));
        }
    }
    let ran = child.wait_with_output().expect("an end");
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    let [(files, threads), (files_after, threads_after)] = counts[..] else { panic!("{counts:?}") };
    assert!(files_after <= files, "descriptors grew from {files} to {files_after}");
    assert!(threads_after <= threads + 2, "threads grew from {threads} to {threads_after}");
    let outcomes: Vec<_> = crib.records().iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "deadline").count(), 3 * hung.len(), "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "ok").count(), 2, "{outcomes:?}");
    assert!(servers.iter().all(|(_, server, _)| server.connections() == 9 && server.is_left_alone()));
}

fn entries(process: u32, folder: &str) -> usize {
    fs::read_dir(format!("/proc/{process}/{folder}")).map_or(0, Iterator::count)
}
