//! Programs of a model through a server: the tool in the list, questions while a call waits and on the command line, progress, and
//! the end of a program.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::approvals::{asking, identifier};
use super::http::{Server, token};
use super::{Client, PATIENCE, modern, names, text};
use crate::crib::{Crib, toolbox};

/// Crib with an echo, and a tool that sleeps and can show that it has begun.
pub(super) fn crib() -> Crib {
    crib_with(&json!({}))
}

/// Crib whose tool that sleeps declares more about itself.
fn crib_with(more: &Value) -> Crib {
    let crib = Crib::new();
    let mut nap = crib.entry("nap");
    nap["capabilities"] = json!({"files": "write"});
    nap["interface"] = json!({"is_destructive": false});
    nap["interface"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    crib.manifest(&json!({ "tools": [crib.entry("echo"), nap] }));
    crib
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "it does not hold in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Outcomes of the recorded calls of a tool.
pub(super) fn outcomes(crib: &Crib, tool: &str) -> Vec<String> {
    let records = crib.records();
    let records = records.iter().filter(|record| record["tool"] == tool);
    records.map(|record| record["outcome"].as_str().unwrap().to_owned()).collect()
}

/// Answer of a program in the result of its call.
pub(super) fn answer(result: &Value) -> Value {
    serde_json::from_str(text(result)).unwrap_or_else(|error| panic!("{error}: {result}"))
}

#[test]
fn the_hints_of_the_tool_follow_from_the_tools_that_a_program_can_call() {
    let crib = Crib::with_guests(&["echo"]);
    crib.install(&toolbox().join("tools/bin/fs_rm.wasm"), "fs_rm");
    crib.install(&toolbox().join("tools/bin/fetch_page.wasm"), "fetch_page");
    let hints = |others: &[&str]| {
        let mut flags = vec!["--code", "--allow-write=work", "--allow-net=example.com", "--tools=tools/bin/echo.wasm"];
        flags.extend(others);
        let mut client = Client::initialized(&crib, &flags, &json!({}));
        let listed = client.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == "run_code").unwrap()["annotations"].clone()
    };
    assert_eq!(hints(&[]), json!({"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false}));
    let with_removal = hints(&["--tools=tools/bin/fs_rm.wasm"]);
    assert_eq!(with_removal, json!({"readOnlyHint": false, "openWorldHint": false}));
    let with_network = hints(&["--tools=tools/bin/fetch_page.wasm"]);
    assert_eq!(with_network.get("openWorldHint"), None, "{with_network}");
}

fn run(client: &mut Client, code: &str) -> Value {
    client.call("run_code", &json!({ "code": code }))
}

#[test]
fn the_tool_is_listed_on_request_alone_and_runs_programs() {
    let crib = Crib::with_guests(&["echo"]);
    let lists = |flags: &[&str]| {
        let mut client = Client::initialized(&crib, flags, &json!({}));
        let has_it = client.tools().contains(&"run_code".to_owned());
        let result = run(&mut client, "sum(tools.echo(n=n)['n'] for n in range(4))");
        assert_eq!(result.get("error").is_none(), has_it, "{flags:?}: {result}");
        assert!(!has_it || answer(&result)["value"] == 6, "{flags:?}: {result}");
        has_it
    };
    assert!(!lists(&[]));
    assert!(lists(&["--code"]));
    assert!(lists(&["--set=sources.code=true"]));
    assert!(lists(&["--code", "--max-listed=0"]), "it is no tool that only a search finds");
    let mut client = Client::initialized(&crib, &["--code", "--deny-tool=run_code"], &json!({}));
    assert!(!client.tools().contains(&"run_code".to_owned()), "a rule denies it");
    assert_eq!(run(&mut client, "1")["result"]["isError"], true);
    // A tool of a source keeps its name.
    let mut own = crib.entry("echo");
    own["name"] = json!("run_code");
    crib.manifest(&json!({ "tools": [own] }));
    let mut client = Client::initialized(&crib, &["--code"], &json!({}));
    assert_eq!(client.tools().iter().filter(|name| *name == "run_code").count(), 1);
    assert!(text(&run(&mut client, "1")).contains("\"code\":\"1\""));
}

#[test]
fn a_token_can_have_the_tool_and_an_entry_of_a_client_too() {
    let crib = Crib::with_guests(&["echo"]);
    let [ada, bob] = [("ada", &["--code"][..]), ("bob", &[])].map(|(name, options)| token(&crib, name, options));
    let server = Server::start(&crib, &[]);
    let has_it = |client: &str| names(&server.list(client).message()).contains(&"run_code".to_owned());
    assert_eq!((has_it(&ada), has_it(&bob)), (true, false));
    let call = json!({"name": "run_code", "arguments": {"code": "tools.echo(n=1)"}});
    let result = server.request("tools/call", call.clone(), &ada).message();
    assert_eq!(answer(&result)["value"], json!({"n": 1}), "{result}");
    assert!(server.request("tools/call", call, &bob).message()["error"].is_object());
    let entry = crib.run(&["mcp", "config", "claude-code", "--json", "--", "--code"]).stdout;
    let entry: Value = serde_json::from_str(&entry).unwrap();
    assert_eq!(entry["entry"]["args"], json!(["mcp", "--code"]), "{entry}");
}

#[test]
fn a_client_of_the_earlier_revision_is_asked_while_a_program_waits() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &["--code", "--ask-tool=nap"], &asking());
    let code = "import asyncio\n\
        async def tried(call):\n    try:\n        return (await call)['slept']\n    except PermissionError:\n        return 'refused'\n\
        tools.echo(n=1)\nawait asyncio.gather(tried(tools.nap(ms=1)), tried(tools.nap(ms=2)))";
    let id = client.request("tools/call", &json!({"name": "run_code", "arguments": {"code": code}}));
    for _ in 0..2 {
        let question = client.wait(|message| message["method"] == "elicitation/create");
        let shown = question["params"]["message"].as_str().unwrap();
        assert!(shown.starts_with("Allow this call, which a running call makes?\n"), "{shown}");
        let allows = shown.contains("\"ms\": 2");
        let answer = json!({"action": "accept", "content": {"allow": allows}});
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    }
    let result = client.answer(id);
    assert_eq!(answer(&result)["value"], json!(["refused", 2]), "{result}");
    assert_eq!(outcomes(&crib, "echo"), ["ok"]);
}

#[test]
fn a_client_that_cannot_ask_learns_which_calls_a_repetition_makes_again() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &["--code", "--ask-tool=nap"], &json!({}));
    let caught = "tools.echo(n=1)\ntry:\n    tools.nap(ms=1)\nexcept PermissionError:\n    pass\n'done'";
    for (code, is_error) in [(caught, false), ("tools.echo(n=1)\ntools.nap(ms=1)['slept']", true)] {
        let result = run(&mut client, code);
        assert_eq!(result["result"]["isError"], is_error, "{result}");
        let calls = &answer(&result)["calls"];
        assert_eq!(calls[0], json!({"tool": "echo", "outcome": "ok", "count": 1}), "{result}");
        let note = result["result"]["content"][1]["text"].as_str().unwrap();
        let [id] = &result["result"]["_meta"]["toolcrib/receipt"]["nestedApprovals"].as_array().unwrap()[..] else {
            panic!("{result}")
        };
        assert!(note.contains(&format!("`toolcrib approvals allow {}`", id.as_str().unwrap())), "{note}");
        assert!(note.contains("made 2 calls") && note.contains("makes them again"), "{note}");
        if is_error {
            assert_eq!(crib.run(&["approvals", "allow", id.as_str().unwrap()]).code, Some(0));
            let result = run(&mut client, code);
            assert_eq!(answer(&result)["value"], 1, "{result}");
        }
    }
    // A question about the program itself is as for every other tool.
    let mut client = Client::initialized(&crib, &["--code", "--ask-tool=run_code"], &json!({}));
    let refused = run(&mut client, "'once'");
    assert_eq!(crib.run(&["approvals", "allow", identifier(&refused)]).code, Some(0));
    assert_eq!(answer(&run(&mut client, "'once'"))["value"], "once");
}

#[test]
fn the_calls_of_a_program_are_its_progress() {
    let crib = crib();
    let mut client = Client::start(&crib, &["--code"]);
    let code = "for n in range(3):\n    tools.echo(n=n)\n'done'";
    let mut params = modern(json!({"name": "run_code", "arguments": {"code": code}}), &json!({}));
    params["_meta"]["progressToken"] = json!("t");
    let result = client.ask("tools/call", &params);
    assert_eq!(answer(&result)["value"], "done", "{result}");
    let reports = client.kept.iter().filter(|message| message["method"] == "notifications/progress");
    let numbers: Vec<f64> = reports.map(|report| report["params"]["progress"].as_f64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next) && numbers.last() == Some(&3.0), "{numbers:?}");
}

#[test]
fn a_cancelled_program_ends_with_its_call_and_both_have_records() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &["--code", "--allow-write=work", "--timeout=600s"], &json!({}));
    let code = "tools.nap(ms=600000, mark='begun')";
    let id = client.request("tools/call", &json!({"name": "run_code", "arguments": {"code": code}}));
    until(|| crib.path("work/begun").exists());
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    until(|| outcomes(&crib, "run_code") == ["cancelled"]);
    assert_eq!(outcomes(&crib, "nap"), ["cancelled"]);
    assert_eq!(answer(&run(&mut client, "tools.echo(n=1)['n']"))["value"], 1);
}

#[test]
fn a_session_belongs_to_one_token() {
    let crib = Crib::with_guests(&["echo"]);
    let [ada, bob] = ["ada", "bob"].map(|name| token(&crib, name, &["--code"]));
    let server = Server::start(&crib, &[]);
    let value = |headers: &str, code: &str| {
        let arguments = json!({"code": code, "session": "sales"});
        let params = json!({"name": "run_code", "arguments": arguments});
        answer(&server.request("tools/call", params, headers).message())["value"].clone()
    };
    let seen = "try:\n    found = secret\nexcept NameError:\n    found = None\nfound";
    assert_eq!(value(&ada, "secret = 41\nsecret + 1"), 42);
    assert_eq!(value(&bob, seen), Value::Null);
    assert_eq!(value(&bob, "secret = 'of bob'\nsecret"), "of bob");
    assert_eq!(value(&ada, seen), 41);
}

#[test]
fn a_call_of_a_cancelled_program_that_must_end_ends_and_no_other_begins() {
    let crib = crib_with(&json!({"interrupt_behavior": "block"}));
    let mut client = Client::initialized(&crib, &["--code", "--allow-write=work", "--timeout=600s"], &json!({}));
    let code = "while True:\n    tools.nap(ms=1500, mark='begun')\n    tools.echo(n=1)";
    let id = client.request("tools/call", &json!({"name": "run_code", "arguments": {"code": code}}));
    until(|| crib.path("work/begun").exists());
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    until(|| outcomes(&crib, "run_code") == ["cancelled"]);
    assert_eq!((outcomes(&crib, "nap"), outcomes(&crib, "echo").len()), (vec!["ok".to_owned()], 0));
    // The end of the server gives it a moment too.
    std::fs::remove_file(crib.path("work/begun")).unwrap();
    client.request("tools/call", &json!({"name": "run_code", "arguments": {"code": code}}));
    until(|| crib.path("work/begun").exists());
    interrupt(&client);
    client.leave();
    assert_eq!((outcomes(&crib, "nap"), outcomes(&crib, "run_code").len()), (vec!["ok".to_owned(); 2], 2));
}

/// Interrupts a server.
pub(super) fn interrupt(client: &Client) {
    let id = client.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}
