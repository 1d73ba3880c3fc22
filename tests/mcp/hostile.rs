//! Hostile and unlucky calls through the protocol: endless loops, floods, traps, cancellation, and requests that are long, many
//! or unreadable.

use std::fs;
use std::io::Write;
#[cfg(target_os = "linux")]
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Client, text};
#[cfg(target_os = "linux")]
use crate::crib::peak_memory;
use crate::crib::{Crib, guest};

/// Client of the earlier revision without further abilities.
fn client(crib: &Crib, flags: &[&str]) -> Client {
    Client::initialized(crib, flags, &json!({}))
}

/// Crib with the component of typed functions.
fn typed() -> Crib {
    let crib = Crib::new();
    fs::copy(guest("typed"), crib.path("typed.wasm")).expect("the guest was built");
    crib
}

fn outcome(answer: &Value) -> &str {
    let outcome = &answer["result"]["_meta"]["toolcrib/receipt"]["outcome"];
    outcome.as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// Asserts that a call failed with this outcome and a message that has these words.
#[track_caller]
fn failed(answer: &Value, with: &str, words: &str) {
    assert_eq!((outcome(answer), &answer["result"]["isError"]), (with, &json!(true)), "{answer}");
    let output: Value = serde_json::from_str(text(answer)).unwrap_or_else(|error| panic!("{error}: {answer}"));
    assert!(output["error"].to_string().contains(words), "{answer}");
    assert!(answer["result"].get("structuredContent").is_none(), "{answer}");
}

/// Asserts that the next call works.
#[track_caller]
fn goes_on(client: &mut Client) {
    let answer = client.call("echo", &json!({"next": 1}));
    assert_eq!((outcome(&answer), text(&answer)), ("ok", "{\"next\":1}"));
}

#[test]
fn endless_loops_on_every_core_end_at_their_deadline_and_delay_no_other_call() {
    let crib = Crib::with_guests(&["echo", "spin"]);
    let mut client = client(&crib, &["--timeout=5s"]);
    goes_on(&mut client);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    for loops in [cores.max(2), cores + 3] {
        let endless: Vec<u64> =
            (0..loops).map(|_| client.request("tools/call", &json!({"name": "spin", "arguments": {}}))).collect();
        goes_on(&mut client);
        assert!(client.kept.is_empty(), "the loops still run: {:?}", client.kept);
        for _ in 0..20 {
            goes_on(&mut client);
        }
        for id in endless {
            let answer = client.answer(id);
            failed(&answer, "deadline", "timed out");
            assert!(answer["result"]["_meta"]["toolcrib/receipt"]["cpuMs"].as_f64().unwrap() > 0.0, "{answer}");
        }
    }
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn processor_time_is_bounded_by_fuel_too() {
    let crib = Crib::with_guests(&["echo", "spin"]);
    let mut client = client(&crib, &["--set=limits.fuel=50000000"]);
    failed(&client.call("spin", &json!({})), "fuel", "used up its fuel");
    goes_on(&mut client);
}

/// Polls until a condition holds.
#[cfg(target_os = "linux")]
#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + super::PATIENCE;
    while !holds() {
        assert!(std::time::Instant::now() < end, "it never happens");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Processor time that a process has used, in ticks.
#[cfg(target_os = "linux")]
fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name of the program is in parentheses; user and system time are the 12th and 13th words behind it.
    let words = stat.rsplit_once(')').unwrap().1.split_whitespace();
    words.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[cfg(target_os = "linux")]
#[test]
fn the_guest_of_a_cancelled_call_ends_and_uses_no_more_processor_time() {
    let crib = Crib::with_guests(&["echo", "spin", "sleep", "poll_ready"]);
    let mut client = client(&crib, &["--timeout=600s"]);
    goes_on(&mut client);
    for (number, name) in ["spin", "sleep", "poll_ready"].into_iter().enumerate() {
        let before = ticks(client.child.id());
        let id = client.request("tools/call", &json!({"name": name, "arguments": {}}));
        if name != "sleep" {
            until(|| ticks(client.child.id()) > before + 5);
        }
        goes_on(&mut client);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
        until(|| crib.records().iter().filter(|record| record["outcome"] == "cancelled").count() == number + 1);
        let record = crib.records().pop().unwrap();
        assert_eq!((&record["tool"], &record["caller"]), (&json!(name), &json!("probe 1")), "{record}");
        // A guest that goes on would use about a hundred ticks in a second.
        until(|| {
            let before = ticks(client.child.id());
            std::thread::sleep(std::time::Duration::from_millis(500));
            ticks(client.child.id()) <= before + 5
        });
    }
    let answered = client.kept.iter().filter(|message| message.get("result").is_some()).count();
    assert_eq!((answered, client.leave()), (0, Some(0)), "a cancelled call has no answer");
}

#[test]
fn memory_and_output_are_bounded_with_typed_errors() {
    let crib = Crib::with_guests(&["echo", "grow", "big_result", "flood_byte"]);
    let mut client = client(&crib, &[]);
    let answer = client.call("grow", &json!({}));
    failed(&answer, "memory", "ran out of memory (limit 128 MiB)");
    let peak = answer["result"]["_meta"]["toolcrib/receipt"]["peakMemoryBytes"].as_u64().unwrap();
    assert!(peak <= 128 << 20, "{answer}");
    failed(&client.call("big_result", &json!({"bytes": 3 << 20})), "output-limit", "more than 1 MiB");
    failed(&client.call("flood_byte", &json!({})), "output-limit", "more than 1 MiB");
    goes_on(&mut client);
    let answer = client.call("big_result", &json!({"bytes": 900_000}));
    assert_eq!(outcome(&answer), "ok");
    assert!(answer.to_string().len() < 20_000, "a preview, not the result: {} bytes", answer.to_string().len());
    let mut content = answer["result"]["content"].as_array().unwrap().iter();
    assert!(content.any(|block| block["type"] == "resource_link"), "{answer}");
    assert_eq!(client.leave(), Some(0));
    let records = crib.records();
    let outcomes: Vec<&str> = records.iter().map(|record| record["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["memory", "output-limit", "output-limit", "ok", "ok"]);
}

#[test]
fn a_call_sees_no_state_of_another_and_follows_a_trap_unharmed() {
    let crib = typed();
    let mut client = client(&crib, &["--tools=typed.wasm"]);
    for round in 0..3 {
        assert_eq!(text(&client.call("state", &json!({}))), "0", "{round}");
        failed(&client.call("crash", &json!({})), "trap", "unreachable");
    }
    let at_once: Vec<u64> =
        (0..20).map(|_| client.request("tools/call", &json!({"name": "state", "arguments": {}}))).collect();
    for id in at_once {
        assert_eq!(text(&client.answer(id)), "0");
    }
}

#[test]
fn an_error_of_a_function_is_an_error_of_the_call() {
    let crib = typed();
    let mut client = client(&crib, &["--tools=typed.wasm"]);
    for (name, words) in [
        ("with_text", "no such thing"),
        ("with_variant", r#"{"not-found":"it"}"#),
        ("with_enum", "tired"),
        ("with_nothing", "failed without a reason"),
    ] {
        failed(&client.call(name, &json!({"fail": true})), "failed", words);
        assert_eq!(client.call(name, &json!({"fail": false}))["result"]["isError"], false, "{name}");
    }
}

#[test]
fn integer_types_keep_their_ranges() {
    let crib = typed();
    let mut client = client(&crib, &["--tools=typed.wasm"]);
    let list = client.ask("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap().clone();
    for (name, minimum, maximum) in [
        ("a_u8", json!(0), json!(u8::MAX)),
        ("a_u32", json!(0), json!(u32::MAX)),
        ("a_u64", json!(0), json!(u64::MAX)),
        ("a_s8", json!(i8::MIN), json!(i8::MAX)),
        ("a_s64", json!(i64::MIN), json!(i64::MAX)),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{list}"));
        let range = json!({"type": "integer", "minimum": minimum, "maximum": maximum});
        assert_eq!(tool["inputSchema"]["properties"]["value"], range, "{tool}");
        assert_eq!(tool["outputSchema"]["anyOf"][0]["properties"]["result"], range, "{tool}");
        for value in [minimum, maximum] {
            let answer = client.call(name, &json!({ "value": value }));
            assert_eq!(answer["result"]["structuredContent"], json!({ "result": value }), "{answer}");
        }
    }
    for (name, value) in [("a_u8", json!(256)), ("a_u8", json!(1.5)), ("a_s8", json!(-129)), ("a_u32", json!(-1))] {
        failed(&client.call(name, &json!({ "value": value })), "bad-arguments", "$.value");
    }
}

#[test]
fn a_long_argument_is_answered_and_cut_for_the_log_between_characters() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = client(&crib, &[]);
    let mut calls = 0;
    for character in ["é", "€", "🦀", "e\u{301}"] {
        for padding in [0, 1, 2, 3, 1018, 1019, 1020, 1021] {
            let arguments = json!({ "t": "x".repeat(padding) + &character.repeat(2100) });
            let answer = client.call("echo", &arguments);
            assert_eq!(serde_json::from_str::<Value>(text(&answer)).unwrap(), arguments, "{character} {padding}");
            calls += 1;
        }
    }
    assert_eq!(client.leave(), Some(0));
    let records = crib.records();
    assert_eq!(records.len(), calls);
    for record in &records {
        let cut = record["arguments"]["cut"].as_str().unwrap_or_else(|| panic!("{record}"));
        assert!(cut.len() <= 1024 && cut.len() > 1000 && !cut.contains('\u{fffd}'), "{record}");
    }
    assert_eq!(crib.run(&["audit", "verify"]).code, Some(0));
}

#[test]
fn requests_that_arrive_in_one_piece_are_all_answered() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = client(&crib, &[]);
    for size in [3000, 5000, 20_000] {
        let numbers = client.next + 1..=client.next + 20;
        client.next += 20;
        let all: String = numbers
            .clone()
            .map(|id| {
                let params = json!({"name": "echo", "arguments": {"id": id, "t": "y".repeat(size)}});
                format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            })
            .collect();
        let mut input = client.input.take().unwrap();
        // The server may answer before it has read everything.
        let writing = std::thread::spawn(move || input.write_all(all.as_bytes()).map(|()| input));
        for id in numbers {
            let answer = client.answer(id);
            let echoed: Value = serde_json::from_str(text(&answer)).unwrap();
            assert_eq!((&echoed["id"], echoed["t"].as_str().unwrap().len()), (&json!(id), size));
        }
        client.input = Some(writing.join().unwrap().unwrap());
    }
    assert_eq!(client.leave(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_reads_no_answers_does_not_fill_the_memory() {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::mpsc::channel;

    const MAX_MEMORY: u64 = 512 << 20;
    let crib = Crib::with_guests(&["echo"]);
    let mut command = crib.toolcrib(&["mcp"]);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})).unwrap();
    let written = std::sync::Arc::new(AtomicU64::new(0));
    let (count, (ended, end)) = (written.clone(), channel());
    std::thread::spawn(move || {
        // The last write fails when the server has ended.
        for id in 1_u64.. {
            let list = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{}}}}"#);
            if writeln!(input, "{list}").is_err() {
                break;
            }
            count.store(id, Relaxed);
        }
        let _ = ended.send(());
    });
    until(|| {
        let before = written.load(Relaxed);
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert!(peak_memory(server.id()).is_none_or(|bytes| bytes < MAX_MEMORY), "{before} requests");
        before > 0 && written.load(Relaxed) == before
    });
    server.kill().unwrap();
    server.wait().unwrap();
    end.recv_timeout(super::PATIENCE).expect("the writer ends");
}

#[test]
fn a_request_that_cannot_be_read_has_an_answer() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::start(&crib, &[]);
    let deep = "[".repeat(1000) + &"]".repeat(1000);
    let broken = |id: u32, arguments: &str| {
        let params = format!(r#"{{"name":"echo","arguments":{arguments}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#).into_bytes()
    };
    let ask = |client: &mut Client, line: &[u8], id: u64| {
        client.input.as_mut().unwrap().write_all(&[line, b"\n"].concat()).unwrap();
        client.answer(id)["error"]["code"].clone()
    };
    // None of these is a request, and none ends the server before the conversation begins.
    for line in
        ["", "{", r#"{"jsonrpc":"2.0","method":"notifications/\u001b[2J"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]
    {
        writeln!(client.input.as_mut().unwrap(), "{line}").unwrap();
    }
    assert_eq!(ask(&mut client, &broken(900, r#"{"t":"\ud83d"}"#), 900), -32700, "before the conversation");
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    assert_eq!(client.ask("initialize", &hello)["result"]["protocolVersion"], "2025-11-25");
    for (id, line) in [
        (901, broken(901, r#"{"t":"\ud83d"}"#)),
        (902, broken(902, &deep)),
        (903, broken(903, "{\"t\":1e999}")),
        (904, broken(904, "{\"t\":\"a\0b\"}")),
        (905, [&br#"{"jsonrpc":"2.0","id":905,"method":"ping","params":{"t":""#[..], b"\xff\"}}"].concat()),
    ] {
        assert_eq!(ask(&mut client, &line, id), -32700, "{id}");
    }
    for params in [json!({"name": 7}), json!({"name": "echo", "arguments": [1]})] {
        assert_eq!(client.ask("tools/call", &params)["error"]["code"], -32602, "{params}");
    }
    assert_eq!(client.ask("\u{1b}[2J", &json!({}))["error"]["code"], -32601);
    let answer = client.call("\u{1b}[2J\u{202e}echo", &json!({}));
    assert!(!answer["error"]["message"].as_str().unwrap().contains(['\u{1b}', '\u{202e}']), "{answer}");
    goes_on(&mut client);
    assert_eq!(client.leave(), Some(0));
}
