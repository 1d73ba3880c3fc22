//! Enablement of tools: a tool for other models is neither shown nor called, and the message states the reason.

use serde_json::{Value, json};
use toolcrib::{Availability, Outcome};

use crate::crib::{Crib, guest};
use crate::screen::Page;

use super::{call, described, runtime_of};

fn crib(more: Value) -> Crib {
    let crib = Crib::new();
    let mut tool = json!({"name": "echo", "schema": {"type": "object"}});
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    described(&crib, "tool.wasm", &guest("rich"), &[tool, json!({"name": "add"})]);
    crib
}

fn why(crib: &Crib, with: impl FnOnce(toolcrib::Builder) -> toolcrib::Builder) -> Option<String> {
    let runtime = runtime_of(crib, "tool.wasm", with);
    let why = match runtime.availability("echo") {
        Some(Availability::Disabled { reason, .. }) => Some(reason.to_owned()),
        _ => None,
    };
    let shown = runtime.session().tools().iter().any(|tool| tool.name == "echo");
    assert_eq!(shown, why.is_none(), "what cannot be called is not shown");
    let outcome = call(&runtime, "echo", json!({"value": "x"})).receipt.outcome;
    assert_eq!(outcome == Outcome::Denied, why.is_some());
    why
}

#[test]
fn a_tool_needs_its_tags_and_is_not_for_others() {
    let needs = crib(json!({"requiredTags": ["ci"]}));
    assert_eq!(why(&needs, |b| b).as_deref(), Some("the tool needs the tag `ci`, which this run does not have"));
    assert_eq!(why(&needs, |b| b.tag("ci")), None);
    let forbids = crib(json!({"forbiddenTags": ["ci"]}));
    assert_eq!(why(&forbids, |b| b.tag("ci")).as_deref(), Some("the tool is not for runs with the tag `ci`"));
    assert_eq!(why(&forbids, |b| b), None);
}

#[test]
fn a_tool_is_for_models_and_servers_that_it_names() {
    let models = crib(json!({"models": ["gpt-5*", "o4"]}));
    assert_eq!(why(&models, |b| b.for_model("gpt-5-mini")), None);
    let other = why(&models, |b| b.for_model("qwen3"));
    assert_eq!(other.as_deref(), Some("the tool is for the models `gpt-5*`, `o4`, not for `qwen3`"));
    assert_eq!(why(&models, |b| b), None, "where there is no model, none is excluded");
    let server = crib(json!({"provider": ["custom_tools"]}));
    assert_eq!(why(&server, |b| b.provider([])).as_deref(), Some("the tool needs a server with `custom_tools`"));
    assert_eq!(why(&server, |b| b.provider(["custom_tools".to_owned()])), None);
}

#[test]
fn the_list_says_why_a_tool_is_disabled() {
    let page = Page::new();
    let crib = crib(json!({"requiredTags": ["ci"]}));
    page.run(&crib, &["list", "--tools", "tool.wasm"]);
    page.run(&crib, &["list", "--all", "--tools", "tool.wasm"]);
    page.run(&crib, &["list", "--tools", "tool.wasm", "--set", "run.tags=ci"]);
    let ran = crib.run(&["list", "--all", "--json", "--tools", "tool.wasm"]);
    let tools: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(tools[0]["disabled"], "the tool needs the tag `ci`, which this run does not have");
    assert_eq!(tools[1]["disabled"], Value::Null);
    let script =
        json!({"prompt": "go", "turns": [{"tool_calls": [{"name": "echo", "arguments": {}}]}, {"content": "x"}]});
    std::fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json", "--tools", "tool.wasm", "--json"]);
    let start: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(start["tools"], json!(["add"]), "what is disabled is not sent");
    assert!(ran.stdout.contains("the tool needs the tag `ci`"), "nor called: {ran:?}");
    page.matches("rich/disabled");
}
