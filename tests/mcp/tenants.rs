//! Tenants of one server: whatever one token has made, another token and a new token of the same name do not reach, not by its exact
//! identifier either. The answer is the one for an identifier that never existed.

use std::fs;

use serde_json::{Value, json};

use super::approvals::{asking, identifier};
use super::background::crib as background_crib;
use super::http::{Answer, Server, token};
use super::text;
use crate::crib::{Crib, guest};

/// Server with the headers of a token that made something, and of those that look for it.
struct Tenants {
    crib: Crib,
    server: Server,
    ada: String,
    /// Another token, and once `replace` was called, a new one of the same name.
    others: Vec<String>,
}

impl Tenants {
    fn start(crib: Crib, flags: &[&str]) -> Self {
        let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
        let server = Server::start(&crib, &[flags, &["--timeout=600s"]].concat());
        Self { crib, server, ada, others: vec![bob] }
    }

    /// Revokes the token and makes a new one of the same name.
    fn replace(&mut self) {
        assert_eq!(self.crib.run(&["mcp", "token", "revoke", "ada"]).code, Some(0));
        self.others.push(token(&self.crib, "ada", &[]));
        assert_eq!(self.server.list(&self.ada).status, 401);
    }

    fn ask(&self, token: &str, method: &str, params: Value, abilities: &Value) -> Value {
        self.server.request_with(method, params, abilities, token).message()
    }

    fn call(&self, token: &str, name: &str, arguments: Value) -> Value {
        self.ask(token, "tools/call", json!({"name": name, "arguments": arguments}), &json!({}))
    }

    /// Sends a request of the other tokens with an identifier and with one that never existed. Both get the same failure.
    #[track_caller]
    fn same(&self, id: &str, never: &str, send: impl Fn(&str, &str) -> Value) {
        for token in &self.others {
            let [exact, unknown] = [id, never].map(|id| (id, send(token, id)));
            assert!(exact.1["error"].is_object() || exact.1["result"]["isError"] == true, "{id}: {}", exact.1);
            assert_eq!(failure(exact.1, exact.0), failure(unknown.1, unknown.0));
        }
    }
}

/// Failure that a client sees, without the identifier that it sent.
fn failure(answer: Value, id: &str) -> String {
    let told = if answer["error"].is_object() { answer["error"].clone() } else { answer["result"]["content"].clone() };
    told.to_string().replace(id, "ID")
}

/// State in the form of a sealed one that no server has sealed.
pub(super) fn forged(state: &str) -> String {
    let other = if &state[20..21] == "A" { "B" } else { "A" };
    format!("{}{other}{}", &state[..20], &state[21..])
}

pub(super) fn yes() -> Value {
    json!({"approval": {"action": "accept", "content": {"allow": true}}})
}

pub(super) fn crib() -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    let tool = |program: &str, name: &str| {
        crib.install(&guest(program), program);
        json!({"name": name, "command": [format!("./tools/bin/{program}")]})
    };
    let tools =
        [("echo", "echo"), ("echo", "asked"), ("kept_first", "kept")].map(|(program, name)| tool(program, name));
    crib.manifest(&json!({ "tools": tools }));
    crib
}

#[test]
fn a_result_and_a_value_are_not_there_for_another_token_or_a_new_one_of_the_name() {
    let mut tenants = Tenants::start(crib(), &["--set=results.max_inline=2000", "--set=records.keyvalue_dir=kept"]);
    let ada = tenants.ada.clone();
    let long = tenants.call(&ada, "echo", json!({"text": "y".repeat(5000)}));
    let content = long["result"]["content"].as_array().unwrap();
    let uri = content.iter().find_map(|block| block["uri"].as_str()).unwrap_or_else(|| panic!("{long}")).to_owned();
    let reference = uri.rsplit('/').next().unwrap().to_owned();
    let read = |tenants: &Tenants, token: &str, id: &str| {
        tenants.ask(token, "resources/read", json!({"uri": format!("toolcrib://results/{id}")}), &json!({}))
    };
    let opened =
        |tenants: &Tenants, token: &str, id: &str| tenants.call(token, "read_result", json!({ "reference": id }));
    let passed = |tenants: &Tenants, token: &str, id: &str| {
        tenants.call(token, "echo", json!({"text": {"$result": id, "path": "/text"}}))
    };
    let whole = read(&tenants, &ada, &reference).to_string();
    assert!(whole.contains("yyyy"), "{whole}");
    assert!(opened(&tenants, &ada, &reference).to_string().contains("yyyy"));
    assert_eq!(passed(&tenants, &ada, &reference)["result"]["isError"], false);
    let keep = json!({"steps": [{"set": ["plan", "secret"]}, {"get": "plan"}, "list"]});
    let kept = tenants.call(&ada, "kept", keep);
    assert!(text(&kept).contains("\"keys\":1"), "{kept}");
    let (session, _) = tenants.server.conversation(&ada).unwrap();
    tenants.replace();

    let never = format!("res_{}", "0".repeat(32));
    tenants.same(&reference, &never, |token, id| read(&tenants, token, id));
    tenants.same(&reference, &never, |token, id| opened(&tenants, token, id));
    tenants.same(&reference, &never, |token, id| passed(&tenants, token, id));
    for other in &tenants.others {
        let looked = tenants.call(other, "kept", json!({"steps": [{"get": "plan"}, "list"]}));
        assert!(text(&looked).contains("null") && text(&looked).contains("\"keys\":0"), "{looked}");
        let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
        let unknown = session.replacen(": ", ": 0", 1);
        let [exact, unknown] = [&session, &unknown].map(|id| tenants.server.post(&list, &format!("{other}{id}")));
        assert_eq!((exact.status, exact.body), (unknown.status, unknown.body));
        assert_eq!(exact.status, 404);
        // Neither figures nor records are for them.
        let [figures, records] = ["/metrics", "/audit"].map(|path| tenants.server.get(path, other).status);
        assert_eq!((figures, records), (403, 404));
    }
    // The operator reads everything.
    let shown = tenants.crib.run(&["result", "show", &reference]);
    assert!(shown.stdout.contains("yyyy"), "{shown:?}");
    // Without a token of this server, not even clients of the same machine do.
    let local = Server::start(&tenants.crib, &["--no-token"]);
    let uri = json!({ "uri": uri });
    assert!(local.request("resources/read", uri, "").message()["error"].is_object());
}

#[test]
fn a_key_and_an_approval_are_not_there_for_another_token_or_a_new_one_of_the_name() {
    let mut tenants = Tenants::start(crib(), &["--ask-tool=asked"]);
    let ada = tenants.ada.clone();
    let with_key = |tenants: &Tenants, token: &str| {
        let params = json!({"name": "echo", "arguments": {"n": 1}});
        tenants.server.request("tools/call", params, &format!("{token}idempotency-key: order-1\r\n")).message()
    };
    let is_repeated = |answer: &Value| answer["result"]["_meta"]["toolcrib/repeated"] == true;
    assert!(!is_repeated(&with_key(&tenants, &ada)) && is_repeated(&with_key(&tenants, &ada)));
    let asked = |tenants: &Tenants, token: &str, n: u32| tenants.call(token, "asked", json!({ "n": n }));
    let approve = |tenants: &Tenants, n: u32, how: &[&str]| {
        let refused = asked(tenants, &ada, n);
        let ran = tenants.crib.run(&[&["approvals", "allow", identifier(&refused)], how].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    // One answer that is not used yet, and one question that is open.
    approve(&tenants, 1, &[]);
    let open = identifier(&asked(&tenants, &ada, 2)).to_owned();
    let sealed = tenants.ask(&ada, "tools/call", json!({"name": "asked", "arguments": {"n": 3}}), &asking());
    let state = sealed["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{sealed}")).to_owned();
    tenants.replace();

    for other in &tenants.others {
        let own = with_key(&tenants, other);
        assert!(own["result"]["isError"] == false && !is_repeated(&own), "{own}");
        assert_eq!(asked(&tenants, other, 1)["result"]["isError"], true, "the answer is not theirs");
        assert_ne!(identifier(&asked(&tenants, other, 2)), open, "nor is the question");
    }
    let with_state = |token: &str, state: &str| {
        let params = json!({
            "name": "asked", "arguments": {"n": 3}, "requestState": state, "inputResponses": yes(),
        });
        tenants.ask(token, "tools/call", params, &asking())
    };
    tenants.same(&state, &forged(&state), with_state);

    // A permanent approval is for the token that asked.
    tenants.ada = tenants.others.pop().unwrap();
    let ada = tenants.ada.clone();
    let refused = asked(&tenants, &ada, 7);
    let shown = tenants.crib.run(&["approvals", "pending", identifier(&refused)]);
    assert!(shown.stdout.contains("by the holder of the present token"), "{shown:?}");
    assert_eq!(tenants.crib.run(&["approvals", "allow", identifier(&refused), "--always"]).code, Some(0));
    for n in [7, 8] {
        assert_eq!(asked(&tenants, &ada, n)["result"]["isError"], false);
    }
    let listed = tenants.crib.run(&["approvals", "list"]);
    assert!(listed.stdout.contains("ada: probe 2"), "{listed:?}");
    tenants.replace();
    for other in &tenants.others {
        assert_eq!(asked(&tenants, other, 8)["result"]["isError"], true);
    }
    // An approval of an earlier version names no owner, and covers clients without a token alone.
    let file = tenants.crib.path("approvals.json");
    let mut stored: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for name in ["owner", "client"] {
        stored["approvals"][0].as_object_mut().unwrap().remove(name).unwrap();
    }
    fs::write(&file, stored.to_string()).unwrap();
    for other in &tenants.others {
        assert_eq!(asked(&tenants, other, 9)["result"]["isError"], true);
    }
    let local = Server::start(&tenants.crib, &["--no-token", "--ask-tool=asked"]);
    let params = json!({"name": "asked", "arguments": {"n": 9}});
    let covered: Answer = local.request("tools/call", params, "");
    assert_eq!(covered.message()["result"]["isError"], false);
}

#[test]
fn a_paused_program_and_a_session_are_not_there_for_another_token_or_a_new_one_of_the_name() {
    let mut tenants = Tenants::start(crib(), &["--code", "--ask-tool=asked"]);
    let ada = tenants.ada.clone();
    let run = |tenants: &Tenants, token: &str, more: Value| {
        let mut params = json!({"name": "run_code", "arguments": {"code": "tools.asked(n=1)['n']"}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tenants.ask(token, "tools/call", params, &asking())
    };
    let paused = run(&tenants, &ada, json!({}));
    let state = paused["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{paused}")).to_owned();
    let within = |tenants: &Tenants, token: &str, code: &str| {
        tenants.call(token, "run_code", json!({"code": code, "session": "work"}))
    };
    assert!(text(&within(&tenants, &ada, "secret = 41")).contains("\"new\":true"));
    assert!(text(&within(&tenants, &ada, "secret + 1")).contains("\"value\":42"));
    tenants.replace();
    tenants.same(&state, &forged(&state), |token, state| {
        run(&tenants, token, json!({"requestState": state, "inputResponses": yes()}))
    });
    for other in &tenants.others {
        let theirs = within(&tenants, other, "7");
        assert!(text(&theirs).contains("\"new\":true"), "{theirs}");
        let theirs = within(&tenants, other, "secret + 1");
        assert_eq!(theirs["result"]["isError"], true, "{theirs}");
    }
}

#[test]
fn a_task_is_not_there_for_another_token_or_a_new_one_of_the_name() {
    let mut tenants = Tenants::start(background_crib(), &[]);
    let ada = tenants.ada.clone();
    let slow = tenants.call(&ada, "slow", json!({"n": 3}));
    assert!(text(&slow).contains("task_1"), "{slow}");
    let knows = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let task = tenants.ask(&ada, "tools/call", json!({"name": "slow", "arguments": {"n": 1_000_000}}), &knows);
    let task = task["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
    tenants.replace();
    tenants.same("task_1", "task_9", |token, id| tenants.call(token, "task_poll", json!({ "task_id": id })));
    for method in ["tasks/get", "tasks/cancel"] {
        let never = "0".repeat(32);
        tenants.same(&task, &never, |token, id| tenants.ask(token, method, json!({ "taskId": id }), &knows));
    }
    let answers = |id: &str| json!({ "taskId": id, "inputResponses": {"approval_1": yes()["approval"]} });
    tenants.same(&task, &"0".repeat(32), |token, id| tenants.ask(token, "tasks/update", answers(id), &knows));
}
