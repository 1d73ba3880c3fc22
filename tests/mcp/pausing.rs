//! Programs that a server pauses for a question: a client of the later revision repeats its request with the answer, and the program
//! goes on. It never runs again by itself.

use serde_json::{Value, json};

use super::approvals::asking;
use super::http::{Server, token};
use super::programs::{answer, crib, interrupt, outcomes, until};
use super::{Client, modern};
use crate::crib::{Crib, guest};

/// Flags of a server that offers programs and asks about one tool.
const FLAGS: [&str; 4] = ["--code", "--ask-tool=nap", "--allow-write=work", "--timeout=600s"];
/// Program with a question behind a call.
const PROGRAM: &str = "tools.echo(n=1)\ntools.nap(ms=1)['slept']";

/// Parameters of a call of a program.
fn program(code: &str) -> Value {
    json!({"name": "run_code", "arguments": {"code": code}})
}

/// Parameters of the call repeated with the state of a paused one and the answer of the user.
fn repeated(code: &str, paused: &Value, answer: &Value) -> Value {
    let mut params = program(code);
    params["requestState"] = state(paused).clone();
    params["inputResponses"] = json!({"approval": answer});
    params
}

/// State in an answer that requires input.
#[track_caller]
fn state(paused: &Value) -> &Value {
    assert_eq!(paused["result"]["resultType"], "input_required", "{paused}");
    &paused["result"]["requestState"]
}

/// Text of the question in an answer that requires input.
fn question(paused: &Value) -> &str {
    let params = &paused["result"]["inputRequests"]["approval"]["params"];
    params["message"].as_str().unwrap_or_else(|| panic!("{paused}"))
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"allow": true}})
}

fn ask(client: &mut Client, params: Value) -> Value {
    client.ask("tools/call", &modern(params, &asking()))
}

#[test]
fn a_program_goes_on_with_each_answer_and_runs_once() {
    let crib = crib();
    let mut client = Client::start(&crib, &FLAGS);
    let code = "tools.echo(n=1)\n\
        first = tools.nap(ms=1)['slept']\n\
        try:\n    second = tools.nap(ms=2)['slept']\nexcept PermissionError as error:\n    second = str(error)\n\
        tools.echo(n=2)\n\
        [first, second, tools.nap(ms=3)['slept']]";
    let first = ask(&mut client, program(code));
    assert!(question(&first).contains("\"ms\": 1"), "{first}");
    let second = ask(&mut client, repeated(code, &first, &yes()));
    assert!(question(&second).contains("\"ms\": 2"), "{second}");
    let third = ask(&mut client, repeated(code, &second, &json!({"action": "decline"})));
    assert!(question(&third).contains("\"ms\": 3"), "{third}");
    // Without an answer, the question is asked again.
    let mut silent = repeated(code, &third, &yes());
    silent.as_object_mut().unwrap().remove("inputResponses");
    let again = ask(&mut client, silent);
    assert_eq!(question(&again), question(&third));
    let result = ask(&mut client, repeated(code, &again, &yes()));
    assert_eq!(answer(&result)["value"], json!([1, "the user denied this call", 3]), "{result}");
    assert_eq!(
        (outcomes(&crib, "echo"), outcomes(&crib, "nap")),
        (["ok"; 2].map(str::to_owned).to_vec(), ["ok", "denied", "ok"].map(str::to_owned).to_vec())
    );
    assert_eq!(outcomes(&crib, "run_code"), ["ok"]);
    // A question about the program itself comes before it runs.
    let mut client = Client::start(&crib, &[&FLAGS[..], &["--ask-tool=run_code"]].concat());
    let own = ask(&mut client, program(PROGRAM));
    assert!(question(&own).starts_with("Allow this call?\n") && outcomes(&crib, "echo").len() == 2, "{own}");
    let nested = ask(&mut client, repeated(PROGRAM, &own, &yes()));
    let result = ask(&mut client, repeated(PROGRAM, &nested, &yes()));
    assert_eq!((answer(&result)["value"].clone(), outcomes(&crib, "echo").len()), (json!(1), 3), "{result}");
}

#[test]
fn questions_of_gathered_calls_are_asked_one_by_one_and_other_calls_go_on() {
    let crib = Crib::new();
    let safe = |name: &str| {
        let mut entry = crib.entry(name);
        entry["interface"] = json!({"is_concurrency_safe": true});
        entry
    };
    crib.manifest(&json!({ "tools": [safe("echo"), safe("nap")] }));
    let mut client = Client::start(&crib, &FLAGS);
    let code = "import asyncio\n\
        got = await asyncio.gather(tools.nap(ms=1), tools.nap(ms=2), tools.echo(n=7))\n\
        [got[0]['slept'], got[1]['slept'], got[2]['n']]";
    let first = ask(&mut client, program(code));
    until(|| outcomes(&crib, "echo") == ["ok"]);
    assert!(outcomes(&crib, "nap").is_empty());
    let second = ask(&mut client, repeated(code, &first, &yes()));
    assert_ne!(question(&first), question(&second));
    let result = ask(&mut client, repeated(code, &second, &yes()));
    assert_eq!(answer(&result)["value"], json!([1, 2, 7]), "{result}");
}

#[test]
fn a_question_that_the_user_dismisses_waits_on_the_command_line() {
    let crib = crib();
    let mut client = Client::start(&crib, &FLAGS);
    let paused = ask(&mut client, program(PROGRAM));
    let refused = ask(&mut client, repeated(PROGRAM, &paused, &json!({"action": "cancel"})));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let id = &refused["result"]["_meta"]["toolcrib/receipt"]["nestedApprovals"][0];
    assert_eq!(crib.run(&["approvals", "allow", id.as_str().unwrap_or_else(|| panic!("{refused}"))]).code, Some(0));
    let result = ask(&mut client, program(PROGRAM));
    assert_eq!(answer(&result)["value"], 1, "the answer holds for the next run: {result}");
}

#[test]
fn a_paused_program_is_its_clients_alone_and_each_state_is_used_once() {
    let crib = crib();
    let [ada, bob] = ["ada", "bob"].map(|name| token(&crib, name, &[]));
    let server = Server::start(&crib, &FLAGS);
    let call =
        |params: &Value, client: &str| server.request_with("tools/call", params.clone(), &asking(), client).message();
    let paused = call(&program(PROGRAM), &ada);
    let right = repeated(PROGRAM, &paused, &yes());
    assert_eq!(call(&right, &bob)["error"]["code"], -32602, "another client");
    let other = "tools.echo(n=1)\ntools.nap(ms=2)['slept']";
    assert_eq!(call(&repeated(other, &paused, &yes()), &ada)["error"]["code"], -32602, "another program");
    let sealed = state(&paused).as_str().unwrap();
    for at in [0, 20, sealed.len() / 2, sealed.len() - 1] {
        let mut forged = sealed.to_owned();
        forged.replace_range(at..=at, if &forged[at..=at] == "A" { "B" } else { "A" });
        let mut params = right.clone();
        params["requestState"] = json!(forged);
        assert_eq!(call(&params, &ada)["error"]["code"], -32602, "forged at {at}");
    }
    assert_eq!(answer(&call(&right, &ada))["value"], 1);
    let replayed = call(&right, &ada);
    assert_eq!(replayed["error"]["code"], -32602, "{replayed}");
    assert_eq!((outcomes(&crib, "echo").len(), outcomes(&crib, "nap").len()), (1, 1), "nothing ran again");
}

#[test]
fn a_program_that_is_gone_is_an_error_and_not_a_second_run() {
    let crib = crib();
    let flags = [&FLAGS[..], &["--no-token", "--state-dir=states"]].concat();
    let [first, second] = [(); 2].map(|()| Server::start(&crib, &flags));
    let call = |server: &Server, params: Value| server.request_with("tools/call", params, &asking(), "").message();
    let paused = call(&first, program(PROGRAM));
    let error = call(&second, repeated(PROGRAM, &paused, &yes()));
    let message = error["error"]["message"].as_str().unwrap_or_else(|| panic!("{error}"));
    assert!(message.contains("has ended after 2 calls") && message.contains("from the beginning"), "{message}");
    // A server that has forgotten its key says so too.
    let alone = Server::start(&crib, &[&FLAGS[..], &["--no-token"]].concat());
    let error = call(&alone, repeated(PROGRAM, &paused, &yes()));
    assert!(error["error"]["message"].as_str().unwrap().contains("a server that has ended"), "{error}");
    assert_eq!(outcomes(&crib, "echo").len(), 1);
}

#[test]
fn a_client_and_a_server_pause_a_bounded_number_of_programs() {
    let crib = crib();
    let [ada, bob] = ["ada", "bob"].map(|name| token(&crib, name, &[]));
    let server = Server::start(&crib, &FLAGS);
    let call = |params: Value, client: &str| server.request_with("tools/call", params, &asking(), client).message();
    let is_paused = |client: &str| {
        let answer = call(program("tools.nap(ms=1)['slept']"), client);
        match answer["result"]["resultType"] == "input_required" {
            true => Some(answer),
            false => {
                let pending = &answer["result"]["_meta"]["toolcrib/receipt"]["nestedApprovals"];
                assert_eq!(pending.as_array().map(Vec::len), Some(1), "as a client that cannot ask: {answer}");
                None
            }
        }
    };
    let paused: Vec<Value> = (0..8).map(|n| is_paused(&ada).unwrap_or_else(|| panic!("{n}"))).collect();
    assert!(is_paused(&ada).is_none(), "the most of one client");
    for n in 0..4 {
        assert!(is_paused(&bob).is_some(), "{n}");
    }
    assert!(is_paused(&bob).is_none(), "the most of the server");
    let result = call(repeated("tools.nap(ms=1)['slept']", &paused[0], &yes()), &ada);
    assert_eq!(answer(&result)["value"], 1, "none was displaced: {result}");
    assert!(is_paused(&bob).is_some(), "one that has ended makes room");
}

#[test]
fn a_cancelled_repetition_stops_the_program() {
    let crib = crib();
    let mut client = Client::start(&crib, &FLAGS);
    let code = "tools.nap(ms=600000, mark='begun')";
    let paused = ask(&mut client, program(code));
    let id = client.request("tools/call", &modern(repeated(code, &paused, &yes()), &asking()));
    until(|| crib.path("work/begun").exists());
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    until(|| outcomes(&crib, "run_code") == ["cancelled"]);
    assert_eq!(outcomes(&crib, "nap"), ["cancelled"]);
    let result = ask(&mut client, program("tools.echo(n=1)['n']"));
    assert_eq!(answer(&result)["value"], 1, "{result}");
}

#[test]
fn progress_goes_to_the_request_that_waits() {
    let crib = crib();
    let mut client = Client::start(&crib, &FLAGS);
    let code = "tools.echo(n=1)\ntools.nap(ms=1)\ntools.echo(n=2)\n'done'";
    let with_token = |params: Value, token: &str| {
        let mut params = modern(params, &asking());
        params["_meta"]["progressToken"] = json!(token);
        params
    };
    let paused = client.ask("tools/call", &with_token(program(code), "first"));
    let result = client.ask("tools/call", &with_token(repeated(code, &paused, &yes()), "second"));
    assert_eq!(answer(&result)["value"], "done", "{result}");
    let last = client.kept.iter().rfind(|message| message["method"] == "notifications/progress").unwrap();
    assert_eq!((&last["params"]["progressToken"], &last["params"]["progress"]), (&json!("second"), &json!(3.0)));
}

#[test]
fn the_end_of_the_server_stops_a_paused_program_and_leaves_its_records() {
    for interrupts in [true, false] {
        let crib = crib();
        let mut client = Client::start(&crib, &FLAGS);
        state(&ask(&mut client, program(PROGRAM)));
        if interrupts {
            interrupt(&client);
        }
        client.leave();
        for tool in ["nap", "run_code"] {
            assert_eq!(outcomes(&crib, tool), ["cancelled"], "{tool}, {interrupts}");
        }
    }
}

#[test]
fn a_question_below_a_tool_of_a_program_pauses_the_program_and_a_tool_alone_runs_again() {
    let crib = Crib::new();
    std::fs::copy(guest("rich"), crib.path("rich.wasm")).expect("the guest was built");
    let flags = ["--tools=rich.wasm", "--allow-call", "--code", "--ask-tool=add", "--timeout=600s"];
    let mut client = Client::start(&crib, &flags);
    let code = "tools.echo(value='once')\ntools.calls(name='add', arguments={'a': 1, 'b': 2})";
    let paused = ask(&mut client, program(code));
    let result = ask(&mut client, repeated(code, &paused, &yes()));
    assert_eq!(answer(&result)["value"], json!({"sum": 3.0}), "{result}");
    assert_eq!((outcomes(&crib, "echo").len(), outcomes(&crib, "calls").len()), (1, 1));
    // Its own deadline ends a tool that waits, so that it is not paused.
    let call = json!({"name": "calls", "arguments": {"name": "add", "arguments": {"a": 1, "b": 2}}});
    let asked = ask(&mut client, call.clone());
    let mut again = repeated("", &asked, &yes());
    again["name"] = call["name"].clone();
    again["arguments"] = call["arguments"].clone();
    let result = ask(&mut client, again);
    assert_eq!(result["result"]["isError"], false, "{result}");
    assert_eq!(outcomes(&crib, "calls").len(), 3);
}
