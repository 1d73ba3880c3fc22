//! Preparation once per session: under the tool's own grant, cached by component and configuration.

use serde_json::json;
use toolcrib::{Outcome, ToolCall};

use crate::crib::nesting;
use crate::records::watched::on_threads;

use super::{call, crib, runtime};

fn prepared() -> ToolCall {
    ToolCall::new("c", "prepared", "{}")
}

#[test]
fn a_tool_prepares_once_a_session_and_finds_it_in_every_call() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder.configure("prepared", json!({"token": "one"})));
    let session = runtime.session();
    on_threads(async {
        let first = session.call(prepared()).await.content().into_owned();
        assert!(first.starts_with("one "), "{first}");
        assert_eq!(session.call(prepared()).await.content(), first, "the number would be another one");
        // Concurrent calls wait for one preparation.
        let other = runtime.session();
        let (second, third) = tokio::join!(other.call(prepared()), other.call(prepared()));
        assert_eq!(second.content(), third.content());
        assert_ne!(second.content(), first, "another session prepares anew");
        let alone = [runtime.call(prepared()).await, runtime.call(prepared()).await];
        assert_ne!(alone[0].content(), alone[1].content(), "and so does each call of no session");
    });
}

#[test]
fn what_is_prepared_with_one_grant_is_not_handed_to_another() {
    let crib = crib();
    crib.install(&crate::crib::guest("rich"), "rich");
    let entry = |name: &str| json!({"name": name, "command": ["./tools/bin/rich", "prepared"]});
    crib.manifest(&json!({"tools": [entry("one"), entry("other")]}));
    let config = json!({"token": "t"});
    let with = |builder: toolcrib::Builder| builder.configure("one", config.clone()).configure("other", config.clone());
    let session = super::runtime_of(&crib, "tools.json", with).session();
    on_threads(async {
        let one = nesting::call(&session, ToolCall::new("c", "one", "{}")).await;
        let other = nesting::call(&session, ToolCall::new("c", "other", "{}")).await;
        assert!(!one.is_error() && one.content() != other.content(), "{} {}", one.content(), other.content());
    });
}

#[test]
fn what_cannot_be_prepared_ends_the_call_and_is_tried_again() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder);
    for _ in 0..2 {
        let result = call(&runtime, "prepared", json!({}));
        assert_eq!(result.receipt.outcome, Outcome::BadArguments);
        let expected = "the tool could not be prepared: `config.token` is not set";
        assert!(result.content().contains(expected), "{}", result.content());
    }
}

#[test]
fn what_one_component_keeps_no_other_finds() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder);
    let session = runtime.session();
    let remember = |value: serde_json::Value| ToolCall::new("c", "remember", value.to_string());
    on_threads(async {
        let first = session.call(remember(json!({"key": "k", "value": "v"}))).await;
        assert_eq!(first.content(), r#"{"before":null}"#);
        assert_eq!(session.call(remember(json!({"key": "k"}))).await.content(), r#"{"before":"v"}"#);
        let other = runtime.session();
        assert_eq!(other.call(remember(json!({"key": "k"}))).await.content(), r#"{"before":null}"#);
    });
}
