//! Deferred tools: of many tools a model is shown few, and finds the others by a search.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{Audit, Outcome, Runtime, Session, ToolCall};

use crate::crib::{Crib, nesting};

/// Creates a crib with fifty tools that echo; `always` is always shown, and `find_me` has a search hint.
fn crib() -> Crib {
    let crib = Crib::new();
    crib.install(&crate::crib::guest("echo"), "echo");
    let tool = |name: String, description: &str, interface: Value| json!({"name": name, "description": description, "command": ["./tools/bin/echo"], "interface": interface});
    let mut tools: Vec<Value> = (0..47).map(|n| tool(format!("filler_{n}"), "Fills a crib", json!({}))).collect();
    tools.push(tool("always".into(), "Is always there", json!({"always_load": true})));
    let interface = json!({"search_hint": "weather forecast rain", "aliases": ["wetter"]});
    tools.push(tool("find_me".into(), "Says what the sky will do", interface));
    tools.push(tool("off".into(), "Weather of yesterday", json!({"is_enabled": false})));
    crib.manifest(&json!({ "tools": tools }));
    crib
}

fn runtime(crib: &Crib) -> Runtime {
    let builder = nesting::builder(Audit::folder(crib.path("audit"))).trusted_source(crib.path("tools.json"));
    builder.build().unwrap()
}

fn names(session: &Session) -> Vec<String> {
    session.tools().iter().map(|tool| tool.name.clone()).collect()
}

fn call(session: &Session, name: &str, arguments: Value) -> (Outcome, Value) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = tokio.block_on(nesting::call(session, ToolCall::new("c", name, arguments.to_string())));
    (result.receipt.outcome, serde_json::from_str(&result.content()).unwrap())
}

#[test]
fn only_the_always_loaded_and_the_search_are_shown() {
    let session = runtime(&crib()).session();
    assert_eq!(names(&session), ["always", "tool_search"]);
}

#[test]
fn a_tool_that_was_not_loaded_answers_that_and_is_not_run() {
    let crib = crib();
    let (outcome, output) = call(&runtime(&crib).session(), "find_me", json!({}));
    assert_eq!(outcome, Outcome::SchemaNotLoaded);
    let message = "schema_not_loaded: call `tool_search` with `select:find_me` first, then `find_me`";
    assert_eq!(output, json!({ "error": message }));
    assert_eq!(crib.records()[0]["outcome"], "schema-not-loaded");
}

#[test]
fn a_search_by_name_alias_or_words_loads_what_it_finds() {
    for query in ["select:find_me", "select:wetter", "find_me", "RAIN tomorrow", "what will the sky do"] {
        let crib = crib();
        let session = runtime(&crib).session();
        let (outcome, output) = call(&session, "tool_search", json!({ "query": query, "max_results": 1 }));
        assert_eq!(outcome, Outcome::Ok);
        assert_eq!(output["tools"][0]["name"], "find_me", "{query}: {output}");
        assert_eq!(output["toolcrib"], json!({"kind": "tools", "loaded": 1, "stillHidden": 47}), "{query}");
        assert_eq!(names(&session), ["always", "find_me", "tool_search"], "{query}");
        assert_eq!(call(&session, "find_me", json!({"a": 1})), (Outcome::Ok, json!({"a": 1})));
    }
}

#[test]
fn a_search_finds_several_in_order_and_nothing_that_is_off() {
    let session = runtime(&crib()).session();
    let (_, output) = call(&session, "tool_search", json!({"query": "select:filler_3,off,filler_1,none"}));
    let found: Vec<_> = output["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(found, ["filler_1", "filler_3"]);
    let (_, output) = call(&session, "tool_search", json!({"query": "yesterday"}));
    assert_eq!(output["tools"], json!([]));
}

#[test]
fn one_conversation_does_not_load_for_another() {
    let runtime = runtime(&crib());
    let (one, other) = (runtime.session(), runtime.session());
    call(&one, "tool_search", json!({"query": "select:find_me"}));
    assert_eq!(call(&other, "find_me", json!({})).0, Outcome::SchemaNotLoaded);
}

#[test]
fn a_tool_that_is_off_is_neither_shown_nor_called() {
    let crib = crib();
    let (outcome, output) = call(&runtime(&crib).open_session(), "off", json!({}));
    assert_eq!((outcome, output), (Outcome::Denied, json!({"error": "the tool is disabled"})));
    let decision = &crib.records()[0]["decision"];
    assert_eq!(decision, &json!({"behavior": "deny", "reason": "record", "restsOn": "is_enabled"}));
}

#[test]
fn a_run_finds_loads_and_calls_a_hidden_tool() {
    let crib = crib();
    let search = json!({"name": "tool_search", "arguments": {"query": "weather"}});
    let script = json!({"prompt": "go", "turns": [
        {"tool_calls": [{"name": "find_me", "arguments": {}}]},
        {"tool_calls": [search]},
        {"tool_calls": [{"name": "find_me", "arguments": {"day": 1}}]},
        {"content": "done"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json", "--json"]);
    let of = |kind: &str| {
        let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["type"] == kind).collect::<Vec<_>>()
    };
    assert_eq!(of("start")[0]["tools"], json!(["always", "tool_search"]));
    let outcomes: Vec<_> = of("tool_result").iter().map(|event| event["receipt"]["outcome"].clone()).collect();
    assert_eq!(outcomes, ["schema-not-loaded", "ok", "ok"]);
    let direct = crib.run(&["call", "find_me", "{\"a\":2}"]);
    assert_eq!(direct.stdout, "{\"a\":2}\n", "a person who names a tool needs no search");
}
