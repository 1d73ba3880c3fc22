//! Calls that wait for an answer from the command line: `mcp --wait-approval`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, PATIENCE, modern, text};
use crate::crib::Crib;

/// Waits until a call with these arguments waits, and returns it.
fn pending(crib: &Crib, arguments: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let all: Value = serde_json::from_str(&crib.run(&["approvals", "pending", "--json"]).stdout).unwrap();
        let call = all.as_array().unwrap().iter().find(|call| call["arguments"] == arguments && is_wanted(call));
        if let Some(call) = call {
            return call.clone();
        }
        assert!(Instant::now() < until, "no such call: {all}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn id(call: &Value) -> &str {
    call["id"].as_str().unwrap_or_else(|| panic!("{call}"))
}

/// Begins a call of `echo` and waits until it waits.
fn begin(crib: &Crib, client: &mut Client, number: u32) -> (u64, Value) {
    let request = client.request("tools/call", &json!({"name": "echo", "arguments": {"n": number}}));
    let call = pending(crib, &format!("{{\"n\":{number}}}"), |call| call.get("until").is_some());
    (request, call)
}

#[test]
fn a_waiting_call_goes_on_with_the_answer() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &["--ask-tool=echo", "--wait-approval=10m"], &json!({}));
    let (request, call) = begin(&crib, &mut client, 1);
    let allowed = crib.run(&["approvals", "allow", id(&call)]);
    assert!(allowed.stderr.ends_with(", which waits for this answer\n"), "{allowed:?}");
    let answer = client.answer(request);
    assert!(answer["result"]["isError"] == false && text(&answer).contains("\"n\":1"), "{answer}");
    assert!(answer["result"]["_meta"]["toolcrib/receipt"].get("approval").is_none(), "{answer}");
    let (request, call) = begin(&crib, &mut client, 2);
    assert_eq!(crib.run(&["approvals", "deny", id(&call), "--reason", "use the copy"]).code, Some(0));
    let answer = client.answer(request);
    assert!(answer["result"]["isError"] == true && text(&answer).contains("use the copy"), "{answer}");
    let records = crib.records();
    let reasons: Vec<&Value> = records.iter().map(|record| &record["decision"]["reason"]).collect();
    assert_eq!(reasons, ["once", "refused"]);
}

#[test]
fn an_answer_for_the_session_covers_the_calls_of_this_client_until_the_server_ends() {
    let crib = Crib::with_guests(&["echo"]);
    let flags = ["--ask-tool=echo", "--wait-approval=10m"];
    let mut client = Client::initialized(&crib, &flags, &json!({}));
    let (first, call) = begin(&crib, &mut client, 1);
    let (second, _) = begin(&crib, &mut client, 2);
    let sheet = crib.run(&["approvals", "pending", id(&call)]).stdout;
    assert!(sheet.contains("`--session` applies to every `echo` call"), "{sheet}");
    let allowed = crib.run(&["approvals", "allow", id(&call), "--session"]);
    assert!(allowed.code == Some(0) && allowed.stderr.contains("in the session of"), "{allowed:?}");
    for request in [first, second] {
        assert_eq!(client.answer(request)["result"]["isError"], false, "calls that waited already are covered too");
    }
    assert_eq!(client.call("echo", &json!({"n": 3}))["result"]["isError"], false);
    let records = crib.records();
    let with = |reason| records.iter().filter(|record| record["decision"]["reason"] == reason).count();
    assert_eq!((with("once"), with("session")), (1, 2), "one answer was given");
    assert_eq!(crib.run(&["approvals", "pending", "--json"]).stdout.trim(), "[]", "none is left in the file");
    assert_eq!(crib.run(&["approvals", "list"]).stdout.lines().count(), 1, "nothing is allowed permanently");
    drop(client);
    let mut client = Client::initialized(&crib, &flags, &json!({}));
    begin(&crib, &mut client, 3);
}

#[test]
fn a_call_without_an_answer_in_time_is_refused_and_can_be_repeated() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &["--ask-tool=echo", "--wait-approval=1s"], &json!({}));
    let refused = client.call("echo", &json!({"n": 1}));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let name = refused["result"]["_meta"]["toolcrib/receipt"]["approval"].as_str().unwrap().to_owned();
    assert!(pending(&crib, "{\"n\":1}", |_| true).get("until").is_none());
    let session = crib.run(&["approvals", "allow", &name, "--session"]);
    assert!(session.code == Some(1) && session.stderr.contains("no process waits for this answer"), "{session:?}");
    let allowed = crib.run(&["approvals", "allow", &name]);
    assert!(allowed.stderr.contains("passes once if it is repeated"), "{allowed:?}");
    assert_eq!(client.call("echo", &json!({"n": 1}))["result"]["isError"], false);
}

#[test]
fn a_client_that_gives_up_leaves_the_call_to_be_repeated_and_a_server_that_ends_takes_it_back() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &["--ask-tool=echo", "--wait-approval=10m"], &json!({}));
    let (request, call) = begin(&crib, &mut client, 1);
    let cancelled = json!({"requestId": request, "reason": "too slow"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    let left = pending(&crib, "{\"n\":1}", |call| call.get("until").is_none());
    assert_eq!(id(&left), id(&call), "under the same identifier");
    assert_eq!(crib.run(&["approvals", "allow", id(&left)]).code, Some(0));
    assert_eq!(client.call("echo", &json!({"n": 1}))["result"]["isError"], false);
    let (_, call) = begin(&crib, &mut client, 2);
    drop(client);
    let late = crib.run(&["approvals", "allow", id(&call)]);
    assert!(late.code == Some(1) && late.stderr.contains("no call waits under"), "{late:?}");
}

#[test]
fn one_call_too_many_ends_the_wait_of_one_call() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &["--ask-tool=echo", "--wait-approval=10m"], &json!({}));
    let call = |n: u32| json!({"name": "echo", "arguments": {"n": n}});
    let all: Vec<u64> = (0..33).map(|n| client.request("tools/call", &call(n))).collect();
    let refused = client.wait(|message| message["id"].as_u64().is_some_and(|id| all.contains(&id)));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    // The others wait on: an answer to each lets it go on.
    for n in 0..33 {
        if refused["id"] == all[n as usize] {
            continue;
        }
        let waiting = pending(&crib, &format!("{{\"n\":{n}}}"), |call| call.get("until").is_some());
        if n % 8 == 0 {
            assert_eq!(crib.run(&["approvals", "allow", id(&waiting)]).code, Some(0));
            assert_eq!(client.answer(all[n as usize])["result"]["isError"], false);
        }
    }
}

#[test]
fn a_permanent_approval_lets_waiting_calls_go_on_and_leaves_none_in_the_file() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &["--ask-tool=echo", "--wait-approval=10m"], &json!({}));
    let (first, call) = begin(&crib, &mut client, 1);
    let (second, _) = begin(&crib, &mut client, 2);
    assert_eq!(crib.run(&["approvals", "allow", id(&call), "--always"]).code, Some(0));
    for request in [first, second] {
        assert_eq!(client.answer(request)["result"]["isError"], false);
    }
    assert_eq!(crib.run(&["approvals", "pending", "--json"]).stdout.trim(), "[]");
}

#[test]
fn an_answer_for_the_session_of_a_client_covers_no_other_one() {
    let crib = Crib::with_guests(&["echo"]);
    let flags = ["--ask-tool=echo", "--wait-approval=10m"];
    let mut client = Client::start(&crib, &flags);
    // Clients of one server without a token share one session of the runtime.
    let call_as = |name: &str, number: u32| {
        let mut params = modern(json!({"name": "echo", "arguments": {"n": number}}), &json!({}));
        params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!(name);
        params
    };
    let waits = |n: u32| pending(&crib, &format!("{{\"n\":{n}}}"), |call| call.get("until").is_some());
    let request = client.request("tools/call", &call_as("one", 1));
    assert_eq!(crib.run(&["approvals", "allow", id(&waits(1)), "--session"]).code, Some(0));
    assert_eq!(client.answer(request)["result"]["isError"], false);
    assert_eq!(client.ask("tools/call", &call_as("one", 2))["result"]["isError"], false);
    client.request("tools/call", &call_as("another", 3));
    waits(3);
}
