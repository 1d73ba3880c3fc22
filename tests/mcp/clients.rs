//! Clients of one server with permissions and rules of their own, and several servers for the same clients.

use serde_json::{Value, json};

use super::http::{Server, token};
use crate::crib::Crib;
use crate::screen::Page;

fn crib() -> Crib {
    Crib::with_guests(&["echo", "env_dump", "file_io"])
}

/// Calls a tool, and returns the result.
fn call(server: &Server, name: &str, arguments: &Value, token: &str) -> Value {
    let answer = server.request("tools/call", json!({"name": name, "arguments": arguments}), token).message();
    answer.get("result").unwrap_or_else(|| panic!("{answer}")).clone()
}

/// Names of the folders that a call of a client sees.
fn folders(server: &Server, token: &str) -> usize {
    let result = call(server, "env_dump", &json!({}), token);
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"));
    serde_json::from_str::<Value>(text).unwrap()["preopens"].as_array().unwrap().len()
}

fn is_refused(result: &Value) -> bool {
    result["isError"] == true
}

#[test]
fn a_token_has_permissions_and_rules_of_its_own() {
    let crib = crib();
    let plain = token(&crib, "plain", &[]);
    let reader = token(&crib, "reader", &["--allow-read=work"]);
    let guarded = token(&crib, "guarded", &["--allow-read=work", "--deny-read", "--deny-tool=echo"]);
    let server = Server::start(&crib, &[]);
    assert_eq!((folders(&server, &plain), folders(&server, &reader), folders(&server, &guarded)), (0, 1, 0));
    let echoes = |token: &str| !is_refused(&call(&server, "echo", &json!({"a": 1}), token));
    assert_eq!((echoes(&plain), echoes(&reader), echoes(&guarded)), (true, true, false));
    // A rule of the server holds for a client with rules of its own.
    let strict = Server::start(&crib, &["--deny-tool=env_dump"]);
    for token in [&plain, &reader, &guarded] {
        assert!(is_refused(&call(&strict, "env_dump", &json!({}), token)));
    }
    let names: Vec<_> =
        crib.records().iter().filter_map(|record| Some(record["caller"].as_str()?.to_owned())).collect();
    assert!(names.contains(&"reader: probe 2".to_owned()), "{names:?}");
}

#[test]
fn a_token_that_is_created_while_the_server_runs_has_its_options_and_keeps_them_after_a_reload() {
    let crib = crib();
    token(&crib, "first", &[]);
    let server = Server::start(&crib, &[]);
    let reader = token(&crib, "reader", &["--allow-read=work"]);
    assert_eq!(folders(&server, &reader), 1);
    crib.manifest(&json!({"tools": [crib.entry("env_dump"), crib.entry("busy")]}));
    let until = std::time::Instant::now() + super::PATIENCE;
    while !super::names(&server.list(&reader).message()).contains(&"busy".to_owned()) {
        assert!(std::time::Instant::now() < until, "the new tool is not listed");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(folders(&server, &reader), 1);
}

#[test]
fn options_that_are_no_permission_or_rule_make_no_token() {
    let page = Page::new();
    let crib = crib();
    for option in ["--tools=x", "--alow-read=x", "--no-token", "x"] {
        page.run(&crib, &["mcp", "token", "new", "ada", "--", option]);
    }
    assert_eq!(crib.run(&["mcp", "token", "list", "--json"]).stdout, "[]\n");
    // A file that was changed by hand fails closed.
    let ada = token(&crib, "ada", &["--deny-net"]);
    let file = crib.path("home/.local/state/toolcrib/tokens.json");
    let text = std::fs::read_to_string(&file).unwrap().replace("--deny-net", "--deny-everything");
    std::fs::write(&file, text).unwrap();
    let server = Server::start(&crib, &[]);
    let answer = server.list(&ada).message();
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    page.matches("mcp/token");
}

#[test]
fn servers_with_one_state_folder_take_the_states_of_each_other_once() {
    let crib = crib();
    let asking = json!({"elicitation": {"form": {}}});
    let flags = ["--no-token", "--stateless", "--ask-tool=echo", "--state-dir=states"];
    let servers = [Server::start(&crib, &flags), Server::start(&crib, &flags)];
    let alone = Server::start(&crib, &flags[..3]);
    let send = |server: &Server, extra: &Value| {
        let mut params = json!({"name": "echo", "arguments": {"a": 1}});
        for (key, value) in extra.as_object().unwrap() {
            params[key] = value.clone();
        }
        server.request_with("tools/call", params, &asking, "").message()
    };
    let first = send(&servers[0], &json!({}));
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let yes = json!({"approval": {"action": "accept", "content": {"allow": true}}});
    let again = json!({"inputResponses": yes, "requestState": first["result"]["requestState"]});
    assert_eq!(send(&alone, &again)["error"]["code"], -32602, "another key");
    let answer = send(&servers[1], &again);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    for server in &servers {
        assert_eq!(send(server, &again)["error"]["code"], -32602, "used");
    }
}
