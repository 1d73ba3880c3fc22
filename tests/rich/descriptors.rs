//! Descriptors of a component are read from its bytes: nothing of it runs, and nothing in it is trusted.

use serde_json::{Value, json};
use toolcrib::tool::Basis;
use toolcrib::{Outcome, Runtime};

use crate::crib::{Crib, guest};
use crate::screen::Page;

use super::{call, crib, described, runtime_of};

#[test]
fn a_component_that_traps_at_once_is_described_without_running() {
    let page = Page::new();
    let crib = Crib::new();
    let text = r#"(component
        (core module $m
            (func $start unreachable) (start $start)
            (memory (export "m") 1)
            (func (export "run") unreachable))
        (core instance $i (instantiate $m))
        (func (export "boom") (canon lift (core func $i "run"))))"#;
    let program = crib.path("trap.wat.wasm");
    std::fs::write(&program, wat::parse_str(text).unwrap()).unwrap();
    let tool = json!({"name": "boom", "description": "Never runs.", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}});
    described(&crib, "boom.wasm", &program, &[tool]);
    std::fs::remove_file(&program).unwrap();
    page.run(&crib, &["list", "--strict", "--tools", "boom.wasm"]);
    let schema = page.run(&crib, &["schema", "--tools", "boom.wasm"]);
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    assert_eq!(schema[0]["function"]["parameters"]["properties"]["a"]["type"], "integer");
    assert!(crib.logs().is_empty(), "nothing ran");
    // The real component: its code runs first when it is called.
    let trapping = super::crib();
    let result = call(&super::runtime(&trapping, |builder| builder), "trap", json!({}));
    assert_eq!(result.receipt.outcome, Outcome::Trap);
    page.matches("rich/traps");
}

#[test]
fn a_slip_in_a_descriptor_is_an_error_with_its_file_and_field() {
    let page = Page::new();
    for tool in [
        json!({"description": "x"}),
        json!({"name": "t", "schema": 1}),
        json!({"name": "t", "schema": {}, "text": {}}),
        json!({"name": "t", "text": {"grammar": {"syntax": "ebnf", "definition": "x"}}}),
        json!({"name": "t", "capabilities": {"files": {"read": ["data"]}}}),
        json!({"name": "t", "capabilities": {"file": "read"}}),
        json!({"name": "t", "limits": {"memoryMb": 0}}),
        json!({"name": "t", "models": [""]}),
        json!({"name": "t", "interface": {"is_read_only": 3}}),
    ] {
        let crib = crib();
        described(&crib, "t.wasm", &guest("rich"), std::slice::from_ref(&tool));
        page.run(&crib, &["list", "--strict", "--tools", "t.wasm"]);
    }
    let crib = crib();
    described(&crib, "t.wasm", &guest("rich"), &[json!({"name": "echo", "requredTags": []})]);
    page.run(&crib, &["validate", "t.wasm"]);
    page.matches("rich/slip");
}

#[test]
fn two_tools_of_one_name_in_a_component_are_refused() {
    let page = Page::new();
    let crib = crib();
    described(&crib, "t.wasm", &guest("rich"), &[json!({"name": "echo"}), json!({"name": "echo"})]);
    page.run(&crib, &["list", "--strict", "--tools", "t.wasm"]);
    page.matches("rich/same-name");
}

#[test]
fn a_descriptor_only_asks_and_vouches_for_nothing() {
    let crib = crib();
    let asks = json!({
        "name": "echo",
        "capabilities": {"env": ["HOME_OF_OTHERS"], "network": ["example.com"], "model": true, "tools": ["add"]},
        "interface": {"is_concurrency_safe": true, "is_read_only": false},
        "limits": {"memoryMb": 1 << 20},
    });
    crib.install(&guest("rich"), "rich");
    described(&crib, "tools/bin/rich.wasm", &guest("rich"), &[asks]);
    // The same with an operator's own manifest that names the component.
    crib.manifest(&json!({"tools": [{"name": "echo", "command": ["./tools/bin/rich"]}]}));
    let runtime: Runtime = runtime_of(&crib, "tools.json", |builder| builder);
    assert_eq!(runtime.grant("echo").unwrap().granted(), [""; 0]);
    let denied: Vec<_> = runtime.grant("echo").unwrap().denied().iter().map(|denial| &denial.capability).collect();
    assert_eq!(denied.len(), 4, "{denied:?}");
    let tool = runtime.tool("echo").unwrap();
    assert!(!tool.interface.safety.is_concurrency_safe.value);
    assert_eq!(runtime.limits("echo").unwrap().memory, toolcrib::tool::Limits::default().memory);
    // The same with a descriptor that requests nothing.
    let claims = json!({"name": "echo", "interface": {"is_concurrency_safe": true}});
    described(&crib, "bare.wasm", &guest("rich"), &[claims]);
    let write = toolcrib::Policy::default().allow(toolcrib::policy::Permission::Write(crib.path("work")));
    let bare = runtime_of(&crib, "bare.wasm", |builder| builder.policy(write));
    assert!(!bare.tool("echo").unwrap().interface.safety.is_concurrency_safe.value);
    // A statement that a person reviewed is granted.
    let entry =
        json!({"name": "echo", "command": ["./tools/bin/rich"], "capabilities": {"model": true, "tools": ["add"]}});
    crib.manifest(&json!({ "tools": [entry] }));
    let digest = toolcrib::policy::review(&crib.path("tools.json")).unwrap().digest;
    let runtime: Runtime = runtime_of(&crib, "tools.json", |builder| builder.trust(digest));
    assert_eq!(runtime.grant("echo").unwrap().granted(), ["call:add", "model"]);
}

#[test]
fn an_entry_has_the_first_word_and_names_which_tool_it_means() {
    let page = Page::new().hide(r"(holds )(`\w+`, )+", "$1[tools], ");
    let crib = crib();
    crib.install(&guest("rich"), "rich");
    let entries = json!({"tools": [
        {"name": "say", "command": ["./tools/bin/rich", "echo"], "description": "Say it."},
        {"name": "add", "command": ["./tools/bin/rich"]},
    ]});
    crib.manifest(&entries);
    let runtime = runtime_of(&crib, "tools.json", |builder| builder);
    assert_eq!(call(&runtime, "say", json!({"value": "x"})).content(), "x");
    assert_eq!(call(&runtime, "add", json!({"a": 1, "b": 2})).content(), r#"{"sum":3.0}"#);
    let say = runtime.tool("say").unwrap();
    assert_eq!(say.description.as_deref(), Some("Say it."));
    assert_eq!(say.parameters.as_ref().unwrap()["required"], json!(["value"]));
    assert_eq!(say.interface.safety.is_read_only.basis, Basis::Declared);
    crib.manifest(&json!({"tools": [{"name": "other", "command": ["./tools/bin/rich"]}]}));
    page.run(&crib, &["list", "--strict"]);
    page.matches("rich/entry");
}
