//! Search for tools, and checks before one runs: scenarios 1 to 5.

use std::fs;

use serde_json::{Value, json};
use toolcrib::policy::{Permission, Policy};
use toolcrib::{Audit, Session, ToolCall, ToolResult};

use super::crib;
use crate::crib::{Crib, nesting, toolbox};
use crate::records::watched::{Watched, call, on_threads};

fn shown(session: &Session) -> Vec<String> {
    session.tools().iter().map(|tool| tool.name.clone()).collect()
}

fn within(session: &Session, name: &str, arguments: &Value) -> ToolResult {
    on_threads(nesting::call(session, ToolCall::new(name, name, arguments.to_string())))
}

#[test]
fn scenario_01_discover_tools_without_loading_each_into_the_models_context() {
    let runtime = nesting::builder(Audit::off()).source(toolbox()).defer_above(3).build().unwrap();
    let session = runtime.session();
    assert_eq!(shown(&session), ["tool_search"]);
    let found = within(&session, "tool_search", &json!({"query": "read file", "max_results": 2}));
    let found: Value = serde_json::from_str(&found.content()).unwrap();
    assert_eq!(found["tools"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(shown(&session).len(), 3, "what was found, and the search for the rest");
}

#[test]
fn scenario_02_find_a_deferred_tool_by_exact_name_and_keyword_and_load_it() {
    let hidden = |hint: &str| json!({"interface": {"should_defer": true, "search_hint": hint}});
    let crib = crib(&[("first", "echo", hidden("parrot")), ("second", "echo", hidden("mirror of words"))]);
    let watched = Watched::new();
    let runtime = watched.builder(&crib).build().unwrap();
    let session = runtime.session();
    let early = within(&session, "first", &json!({}));
    assert!(early.content().contains("schema_not_loaded"), "{}", early.content());
    assert!(!within(&session, "tool_search", &json!({"query": "select:first"})).is_error());
    assert_eq!(within(&session, "first", &json!({"a": 1})).content(), "{\"a\":1}");
    assert!(!shown(&session).contains(&"second".to_owned()));
    within(&session, "tool_search", &json!({"query": "words"}));
    assert!(shown(&session).contains(&"second".to_owned()));
    assert!(within(&runtime.session(), "first", &json!({})).is_error(), "another conversation has loaded nothing");
    drop((session, runtime));
    let run = watched.close();
    let classes: Vec<_> = run.all("results").iter().map(|result| result["error"]["error_class"].clone()).collect();
    assert_eq!(
        classes,
        [json!("schema_not_loaded"), json!(null), json!(null), json!(null), json!("schema_not_loaded")]
    );
}

#[test]
fn scenario_03_arguments_are_validated_by_their_schema_before_anything_runs() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let crib = crib(&[("count", "echo", json!({ "schema": schema }))]);
    let watched = Watched::new();
    let runtime = watched.builder(&crib).build().unwrap();
    let wrong = call(&runtime, "count", &json!({"n": "three"}));
    assert!(wrong.content().contains("invalid arguments") && wrong.receipt.exit.is_none(), "{}", wrong.content());
    drop(runtime);
    assert_eq!(watched.close().states(), ["planned", "selected", "validation_failed"]);
}

#[test]
fn scenario_04_values_are_refused_by_the_tools_own_rules_before_any_io() {
    let interface = json!({
        "value_validation": [{"field": "/start", "is": "<=", "than": {"field": "/end"}, "message": "start after end"}],
        "io_preflight_validation": [{"field": "/path", "use": "read"}],
    });
    let crib = crib(&[("part", "echo", json!({ "interface": interface, "capabilities": {"files": "read"} }))]);
    let policy = || Policy::default().allow(Permission::Read(crib.path("work")));
    let runtime =
        nesting::builder(Audit::off()).trusted_source(crib.path("tools.json")).policy(policy()).build().unwrap();
    let backwards = call(&runtime, "part", &json!({"start": 2, "end": 1}));
    assert_eq!(backwards.receipt.outcome.as_str(), "bad-arguments");
    assert!(backwards.content().contains("start after end"), "{}", backwards.content());
    let outside = call(&runtime, "part", &json!({"path": "../home/key"}));
    assert_eq!((outside.receipt.outcome.as_str(), outside.receipt.exit), ("denied", None));
    assert!(!call(&runtime, "part", &json!({"start": 1, "end": 2, "path": "notes.md"})).is_error());
}

#[test]
fn scenario_05_sensitive_arguments_are_redacted_from_telemetry() {
    let schema = json!({"type": "object", "properties": {"key": {"type": "string", "writeOnly": true}, "to": {}}});
    let crib = crib(&[("send", "echo", json!({ "schema": schema }))]);
    let watched = Watched::new();
    let runtime = watched.builder(&crib).audit(Audit::folder(crib.path("audit"))).build().unwrap();
    let output = call(&runtime, "send", &json!({"key": "canary-7", "to": "ada"}));
    assert!(output.content().contains("canary-7"), "what the tool says, its caller is told");
    drop(runtime);
    let (audited, run) = (audit(&crib), watched.close());
    assert!(audited.contains("\"send\"") && !audited.contains("canary-7"), "{audited}");
    assert!(run.text().contains("ada") && !run.text().contains("canary-7"), "{}", run.text());
}

fn audit(crib: &Crib) -> String {
    let files = fs::read_dir(crib.path("audit")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap()).collect()
}
