//! Tenants of several servers over one database: approvals and values hold at each server for their owner, and whatever one token has
//! made at one server, another token does not reach at any.

use std::process::Command;

use serde_json::{Value, json};

use super::approvals::{asking, identifier};
use super::http::{Server, token};
use super::shared::{settings, shared};
use super::tenants::{crib, forged, yes};
use super::text;
use crate::crib::{Crib, Ran};
use crate::postgres::Postgres;

/// Two servers, each with directories of its own, and the headers of two tokens.
struct Servers {
    crib: Crib,
    servers: [Server; 2],
    ada: String,
    bob: String,
}

impl Servers {
    fn start(postgres: &Postgres, name: &str) -> Self {
        let crib = crib();
        let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
        let config = settings(postgres, &crib, name, "");
        let flags = [config, "--ask-tool=asked", "--set=results.max_inline=2000", "--stateless", "--timeout=600s"];
        let servers = ["--results-dir=one", "--results-dir=two"];
        let start = |folder| {
            let flags = [&["mcp", "--http=127.0.0.1:0"], &flags[..], &[folder]].concat();
            Server::of(without_file(crib.toolcrib(&flags)))
        };
        let servers = servers.map(start);
        Self { crib, servers, ada, bob }
    }

    /// Calls a tool at one of the servers.
    fn call(&self, at: usize, token: &str, name: &str, arguments: &Value) -> Value {
        self.servers[at].request("tools/call", json!({"name": name, "arguments": arguments}), token).message()
    }

    fn asked(&self, at: usize, token: &str, n: u32) -> Value {
        self.call(at, token, "asked", &json!({ "n": n }))
    }

    /// Runs `toolcrib approvals` on the database.
    fn approvals(&self, args: &[&str]) -> String {
        let command = self.crib.toolcrib(&[&["approvals"], args, &["--config=server.toml"]].concat());
        let ran = Ran::of(&mut without_file(command));
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        ran.stdout
    }

    /// Calls the tool that stores values.
    fn kept(&self, at: usize, token: &str, steps: &Value) -> Value {
        let answer = self.call(at, token, "kept", &json!({ "steps": steps }));
        serde_json::from_str(text(&answer)).unwrap_or_else(|_| panic!("{answer}"))
    }
}

/// Leaves out the file of permanent approvals that tests name, which has precedence over the database.
pub(super) fn without_file(mut command: Command) -> Command {
    command.env_remove("TOOLCRIB_APPROVALS");
    command
}

fn is_made(answer: &Value) -> bool {
    answer["result"]["isError"] == false
}

#[test]
fn an_answer_and_a_permanent_approval_hold_at_each_server_until_they_are_revoked() {
    let Some(postgres) = shared() else { return };
    let all = Servers::start(postgres, "approvals");
    let refused = all.asked(0, &all.ada, 1);
    let id = identifier(&refused).to_owned();
    assert_eq!(identifier(&all.asked(1, &all.ada, 1)), id, "one call waits");
    let pending: Value = serde_json::from_str(&all.approvals(&["pending", "--json"])).unwrap();
    assert!(pending.as_array().unwrap().len() == 1 && pending[0]["id"] == *id, "{pending}");
    assert!(all.approvals(&["pending", &id]).contains("asked"));
    all.approvals(&["allow", &id]);
    // The answer is used once, wherever the call is repeated.
    assert!(is_made(&all.asked(1, &all.ada, 1)) && !is_made(&all.asked(0, &all.ada, 1)));
    all.approvals(&["deny", identifier(&all.asked(0, &all.ada, 2)), "--reason", "not today"]);
    assert!(text(&all.asked(1, &all.ada, 2)).contains("not today"));

    all.approvals(&["allow", identifier(&all.asked(0, &all.ada, 3)), "--always"]);
    assert!((0..2).all(|at| is_made(&all.asked(at, &all.ada, 4))));
    assert!((0..2).all(|at| !is_made(&all.asked(at, &all.bob, 4))));
    let listed = all.approvals(&["list"]);
    assert!(listed.contains("asked") && listed.contains("ada"), "{listed}");
    let state = all.crib.path("home/.local/state/toolcrib");
    let files = [state.join("approvals.json"), state.join("pending.json"), all.crib.path("approvals.json")];
    assert!(files.iter().all(|file| !file.exists()), "they are in the database alone");
    all.approvals(&["remove", "asked", "--client=ada"]);
    assert!((0..2).all(|at| !is_made(&all.asked(at, &all.ada, 5))));
}

#[test]
fn a_call_that_waits_at_one_server_goes_on_with_an_answer_in_the_database() {
    let Some(postgres) = shared() else { return };
    let all = Servers::start(postgres, "waiting");
    let waiting = Server::start(&all.crib, &["--config=server.toml", "--ask-tool=asked", "--wait-approval=10m"]);
    let list = || serde_json::from_str::<Value>(&all.approvals(&["pending", "--json"])).unwrap();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let params = json!({"name": "asked", "arguments": {"n": 1}});
            waiting.request("tools/call", params, &all.ada).message()
        });
        super::programs::until(|| list().as_array().unwrap().len() == 1);
        all.approvals(&["allow", list()[0]["id"].as_str().unwrap()]);
        let answer = call.join().unwrap();
        assert!(is_made(&answer), "{answer}");
    });
}

#[test]
fn values_of_a_tool_are_shared_by_servers_and_counts_lose_nothing() {
    let Some(postgres) = shared() else { return };
    let all = Servers::start(postgres, "values");
    let add = json!((0..10).map(|_| json!({"add": ["n", 1]})).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for at in [0, 1, 0, 1] {
            scope.spawn({
                let (all, add) = (&all, &add);
                move || assert!(!all.kept(at, &all.ada, add).to_string().contains("error"))
            });
        }
    });
    assert_eq!(all.kept(0, &all.ada, &json!([{"get": "n"}, "list"])), json!(["40", {"keys": 1, "pages": 1}]));
    assert_eq!(all.kept(1, &all.bob, &json!([{"get": "n"}, "list"])), json!([null, {"keys": 0, "pages": 1}]));
    let many = all.kept(1, &all.bob, &json!([{"set-many": 250}, "list", {"delete": "key7"}, {"get": "key8"}, "list"]));
    assert_eq!((&many[1], &many[4]), (&json!({"keys": 250, "pages": 3}), &json!({"keys": 249, "pages": 3})), "{many}");
    assert_eq!(all.kept(1, &all.ada, &json!(["list"])), json!([{"keys": 1, "pages": 1}]));
}

#[test]
fn what_one_token_has_made_another_reaches_at_no_server() {
    let Some(postgres) = shared() else { return };
    let all = Servers::start(postgres, "tenants");
    let (ada, bob) = (&all.ada, &all.bob);
    // Made at the first server: a result, a key, a value, approvals, a question that is open, and a sealed state.
    let long = all.call(0, ada, "echo", &json!({"text": "y".repeat(5000)}));
    let content = long["result"]["content"].as_array().unwrap();
    let uri = content.iter().find_map(|block| block["uri"].as_str()).unwrap_or_else(|| panic!("{long}"));
    let with_key = |at: usize, token: &str| {
        let params = json!({"name": "echo", "arguments": {"n": 1}});
        let answer = all.servers[at].request("tools/call", params, &format!("{token}idempotency-key: order-1\r\n"));
        answer.message()["result"]["_meta"]["toolcrib/repeated"] == true
    };
    assert!(!with_key(0, ada) && with_key(1, ada));
    all.kept(0, ada, &json!([{"set": ["plan", "secret"]}]));
    all.approvals(&["allow", identifier(&all.asked(0, ada, 1))]);
    let open = identifier(&all.asked(0, ada, 2)).to_owned();
    let sealed = json!({"name": "asked", "arguments": {"n": 3}});
    let sealed = all.servers[0].request_with("tools/call", sealed, &asking(), ada).message();
    let state = sealed["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{sealed}")).to_owned();
    let with_state = |at: usize, token: &str, state: &str| {
        let params = json!({"name": "asked", "arguments": {"n": 3}, "requestState": state, "inputResponses": yes()});
        all.servers[at].request_with("tools/call", params, &asking(), token).message()
    };
    let is_refused = |answer: &Value| answer["error"].is_object() || answer["result"]["isError"] == true;

    for at in 0..2 {
        let read = all.servers[at].request("resources/read", json!({ "uri": uri }), bob).message();
        let part = all.call(at, bob, "read_result", &json!({"reference": uri.rsplit('/').next()}));
        assert!(is_refused(&read) && is_refused(&part) && !format!("{read}{part}").contains("yyyy"), "{read}{part}");
        assert_eq!(all.kept(at, bob, &json!([{"get": "plan"}, "list"])), json!([null, {"keys": 0, "pages": 1}]));
        assert!(!is_made(&all.asked(at, bob, 1)), "the answer is not theirs");
        assert_ne!(identifier(&all.asked(at, bob, 2)), open, "nor is the question");
        let [exact, never] = [state.clone(), forged(&state)].map(|state| with_state(at, bob, &state));
        assert!(is_refused(&exact) && exact["error"] == never["error"], "{exact}{never}");
    }
    assert!(!with_key(1, bob), "the key is of another call");
    // They are still there for their owner, at the other server.
    assert!(
        all.servers[1].request("resources/read", json!({ "uri": uri }), ada).message().to_string().contains("yyyy")
    );
    assert_eq!(all.kept(1, ada, &json!([{"get": "plan"}])), json!(["secret"]));
    assert!(is_made(&all.asked(1, ada, 1)));
    let answered = with_state(1, ada, &state);
    assert!(is_made(&answered) && !is_made(&with_state(0, ada, &state)), "a state is used once: {answered}");
}
