//! Routing of calls: configuration, then claims, then the name.

use serde_json::json;
use toolcrib::{Outcome, Runtime, ToolCall};

use crate::crib::{guest, target};

use super::{call, crib, made, runtime};

fn unnamed(text: &str) -> ToolCall {
    ToolCall::text("c", "", text)
}

#[test]
fn a_call_without_a_name_reaches_the_tool_that_claims_it() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder);
    let result = made(&runtime, unnamed("four"));
    assert_eq!((result.content().as_ref(), result.receipt.tool.as_str()), ("received 4 bytes", "raw"));
    let object = made(&runtime, ToolCall::new("c", "", "{}"));
    assert_eq!(object.receipt.outcome, Outcome::BadArguments);
    assert!(object.content().contains("the call names no tool and no tool claims it"), "{}", object.content());
}

#[test]
fn where_nobody_has_an_opinion_the_name_decides() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder);
    assert_eq!(call(&runtime, "raw", json!({"input": "x"})).receipt.tool, "raw");
    let unknown = call(&runtime, "rwa", json!({"input": "x"}));
    assert!(unknown.content().contains("unknown tool: rwa"), "{}", unknown.content());
}

#[test]
fn what_the_operator_says_goes_before_every_claim() {
    let crib = crib();
    let with = |name: &str| runtime(&crib, |builder| builder.route(name, "echo"));
    let called = call(&with("say"), "say", json!({"value": "x"}));
    assert_eq!((called.content().as_ref(), called.receipt.tool.as_str()), ("x", "echo"));
    // `raw` would claim it.
    let mut without_name = unnamed("x");
    without_name.payload = toolcrib::call::Payload::Object;
    without_name.arguments = r#"{"value":"x"}"#.into();
    assert_eq!(made(&with(""), without_name).receipt.tool, "echo");
}

#[test]
fn two_claims_are_an_error_that_names_both() {
    let crib = crib();
    let runtime = Runtime::builder(toolcrib::Audit::off())
        .source(crib.path("rich.wasm"))
        .source(crib.path("claims.wasm"))
        .compile_cache(target().join("test-cache"));
    std::fs::copy(guest("claims"), crib.path("claims.wasm")).unwrap();
    let runtime = runtime.build().unwrap();
    let result = made(&runtime, unnamed("text"));
    assert_eq!(result.receipt.outcome, Outcome::BadArguments);
    assert!(result.content().contains("`raw` and `claims` both claim this call"), "{}", result.content());
    // It claims everything, and gets no call that names a tool of another component.
    assert_eq!(call(&runtime, "echo", json!({"value": "x"})).receipt.tool, "echo");
    // It also gets a call with an unknown name.
    assert_eq!(call(&runtime, "anything", json!({})).receipt.tool, "claims");
}

#[test]
fn a_tool_rejects_a_call_of_its_own_name() {
    let crib = crib();
    std::fs::copy(guest("claims"), crib.path("claims.wasm")).unwrap();
    let runtime = super::runtime_of(&crib, "claims.wasm", |builder| builder);
    let result = call(&runtime, "claims", json!({"reject": true}));
    assert_eq!(result.receipt.outcome, Outcome::BadArguments);
    assert!(result.content().contains("the tool `claims` rejects this call"), "{}", result.content());
}
