//! Calls that become tasks for clients that know them: tools in the background, long calls, questions of a program, and the end of a
//! task by its client.

use std::fs;

use serde_json::{Value, json};

use super::background::{SLOW, crib as background_crib};
use super::http::{Server, token};
use super::programs::{answer, crib, outcomes, until};
use super::{Client, PATIENCE, modern};

/// Setting that makes a task of each call that does not end at once.
const AT_ONCE: &str = "--set=server.task_after=0s";

/// Capabilities of a client that knows tasks, and can ask its user.
fn knows_tasks() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn ask(client: &mut Client, method: &str, params: Value) -> Value {
    client.ask(method, &modern(params, &knows_tasks()))
}

/// Calls a tool, and returns the identifier of the task that the call became.
fn begin(client: &mut Client, name: &str, arguments: &Value) -> String {
    let created = ask(client, "tools/call", json!({"name": name, "arguments": arguments}));
    let task = &created["result"];
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{created}");
    task["taskId"].as_str().unwrap().to_owned()
}

/// Asks for the state of a task until it is no longer at work.
fn settled(client: &mut Client, task: &str) -> Value {
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let mut state = ask(client, "tasks/get", json!({ "taskId": task }));
        if state["result"]["status"] != "working" {
            assert_eq!(state["result"]["resultType"], "complete", "{state}");
            return state["result"].take();
        }
        assert!(std::time::Instant::now() < until, "{state}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_call_in_the_background_is_a_task_and_has_one_record() {
    let crib = background_crib();
    fs::write(crib.path(".harness/tools/other.md"), SLOW).unwrap();
    let mut client = Client::start(&crib, &["--ask-tool=other"]);
    let task = begin(&mut client, "slow", &json!({"n": 1_000_000}));
    let done = settled(&mut client, &task);
    assert_eq!((&done["status"], &done["result"]["isError"]), (&json!("completed"), &json!(false)), "{done}");
    assert!(done["result"]["content"][0]["text"].as_str().unwrap().contains("499999500000"), "{done}");
    assert!(done["result"]["_meta"]["toolcrib/receipt"]["outcome"] == "ok", "{done}");
    // A second look gets the same, and another client of this revision the acknowledgement of before.
    assert_eq!(settled(&mut client, &task), done);
    let plain = json!({"name": "slow", "arguments": {"n": 3}});
    let plain = client.ask("tools/call", &modern(plain, &json!({})));
    assert!(plain["result"]["content"][0]["text"].as_str().unwrap().contains("task_1"), "{plain}");
    let missing = client.ask("tasks/get", &modern(json!({ "taskId": task }), &json!({})));
    assert_eq!(missing["error"]["code"], -32021, "{missing}");
    let unknown = ask(&mut client, "tasks/get", json!({"taskId": "task_1"}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    // A question comes before the task.
    let asked = ask(&mut client, "tools/call", json!({"name": "other", "arguments": {"n": 3}}));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(client.leave(), Some(0));
    assert_eq!(outcomes(&crib, "slow"), ["ok", "ok"]);
}

#[test]
fn a_long_call_becomes_a_task_that_its_client_can_stop() {
    let crib = crib();
    let mut client = Client::start(&crib, &[AT_ONCE, "--allow-write=work", "--timeout=600s"]);
    let task = begin(&mut client, "nap", &json!({"ms": 300_000}));
    let stopped = ask(&mut client, "tasks/cancel", json!({ "taskId": task }));
    assert_eq!(stopped["result"], json!({"resultType": "complete"}));
    let state = settled(&mut client, &task);
    assert!(state["status"] == "cancelled" && state["ttlMs"].as_u64() >= Some(600_000), "{state}");
    until(|| outcomes(&crib, "nap") == ["cancelled"]);
    // At most eight go on at once; a ninth is a call that its request waits for.
    let tasks: Vec<String> = (0..8).map(|_| begin(&mut client, "nap", &json!({"ms": 300_000}))).collect();
    let ninth = ask(&mut client, "tools/call", json!({"name": "nap", "arguments": {"ms": 10}}));
    assert_eq!(ninth["result"]["isError"], false, "{ninth}");
    for task in tasks {
        ask(&mut client, "tasks/cancel", json!({ "taskId": task }));
    }
    until(|| outcomes(&crib, "nap").iter().filter(|outcome| *outcome == "cancelled").count() == 9);
    // A task that runs does not delay the end of its server, and leaves its record.
    begin(&mut client, "nap", &json!({"ms": 300_000}));
    assert_eq!(client.leave(), Some(0));
    assert_eq!(outcomes(&crib, "nap").iter().filter(|outcome| *outcome == "cancelled").count(), 10);
}

#[test]
fn a_program_asks_in_its_task_and_goes_on_with_the_answer() {
    let crib = crib();
    let flags = [AT_ONCE, "--code", "--ask-tool=nap", "--allow-write=work", "--timeout=600s"];
    let mut client = Client::start(&crib, &flags);
    let code = "first = tools.nap(ms=1)['slept']\n\
        try:\n    second = tools.nap(ms=2)['slept']\nexcept PermissionError as error:\n    second = str(error)\n\
        [first, second]";
    let task = begin(&mut client, "run_code", &json!({ "code": code }));
    for (key, action) in [("approval_1", "accept"), ("approval_2", "decline")] {
        let asked = settled(&mut client, &task);
        assert_eq!(asked["status"], "input_required", "{asked}");
        let message = asked["inputRequests"][key]["params"]["message"].as_str().unwrap_or_else(|| panic!("{asked}"));
        assert!(message.contains("\"ms\":"), "{message}");
        let answers =
            json!({ key: {"action": action, "content": {"allow": true}}, "approval_7": {"action": "decline"} });
        let taken = ask(&mut client, "tasks/update", json!({ "taskId": task, "inputResponses": answers }));
        assert_eq!(taken["result"], json!({"resultType": "complete"}));
    }
    let done = settled(&mut client, &task);
    assert_eq!(answer(&done)["value"], json!([1, "the user denied this call"]), "{done}");
    assert_eq!(outcomes(&crib, "nap"), ["ok", "denied"]);
}

#[test]
fn a_task_belongs_to_the_token_of_its_client() {
    let crib = crib();
    let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
    let server = Server::start(&crib, &[AT_ONCE, "--allow-write=work", "--timeout=600s"]);
    let send =
        |token: &str, method: &str, params: Value| server.request_with(method, params, &knows_tasks(), token).message();
    let created = send(&ada, "tools/call", json!({"name": "nap", "arguments": {"ms": 300_000}}));
    let task = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    for method in ["tasks/get", "tasks/cancel"] {
        let other = send(&bob, method, json!({ "taskId": task }));
        assert_eq!(other["error"]["code"], -32602, "{other}");
    }
    let own = send(&ada, "tasks/get", json!({ "taskId": task }));
    assert_eq!(own["result"]["status"], "working", "{own}");
    let stopped = send(&ada, "tasks/cancel", json!({ "taskId": task }));
    assert_eq!(stopped["result"], json!({"resultType": "complete"}), "{stopped}");
    until(|| outcomes(&crib, "nap") == ["cancelled"]);
}
