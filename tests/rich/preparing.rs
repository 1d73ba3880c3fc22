//! What is done once a session: under the tool's own grant, kept by component and configuration.

use serde_json::json;
use toolcrib::{Outcome, ToolCall};

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
        for _ in 0..3 {
            assert_eq!(session.call(prepared()).await.content(), "one");
        }
        // Calls at once wait for one preparing.
        let other = runtime.session();
        let (first, second) = tokio::join!(other.call(prepared()), other.call(prepared()));
        assert_eq!((first.content().as_ref(), second.content().as_ref()), ("one", "one"));
    });
}

#[test]
fn what_cannot_be_prepared_ends_the_call_and_is_tried_again() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder);
    for _ in 0..2 {
        let result = call(&runtime, "prepared", json!({}));
        assert_eq!(result.receipt.outcome, Outcome::Failed);
        let told = "the tool could not be prepared: config: missing field `token`";
        assert!(result.content().contains(told), "{}", result.content());
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
