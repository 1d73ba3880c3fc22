//! Tools without a host: calls as the host makes them.

use toolcrib_guest::{Answer, FailureKind, Opinion, Part, Tool, Value, json, testing};

use crate::{answers, host, steps};

fn content(answer: toolcrib_guest::Result<Answer>) -> Vec<Part> {
    answer.expect("an answer").content
}

#[test]
fn a_tool_stays_a_function() {
    assert_eq!(answers::echo("a".into()), "a");
    assert_eq!(content(testing::call::<answers::echo>(json!({ "value": "a" }))), [Part::text("a")]);
    let call = testing::invocation::<answers::echo>(&json!({ "value": "hello" }));
    assert_eq!(answers::echo::preview(&call).as_deref(), Some("echo value='hello'"));
}

#[test]
fn answers_come_in_parts() {
    let sum = content(testing::call::<answers::add>(json!({ "a": 1, "b": 0.5 })));
    assert_eq!(sum, [Part::Json(r#"{"sum":1.5}"#.into())]);
    let picture = testing::call::<answers::picture>(json!({})).expect("an answer");
    assert!(matches!(&picture.display[..], [Part::Media(dot)] if dot.data.starts_with(b"\x89PNG")));
    assert_eq!(content(testing::call::<answers::blocks>(json!({}))).len(), 4);
    assert!(matches!(&content(testing::call::<answers::native>(json!({})))[..], [Part::Native(_)]));
}

#[test]
fn a_failure_has_its_kind() {
    let failed = testing::call::<answers::fails>(json!({ "kind": "not_found" })).expect_err("failed");
    assert_eq!((failed.kind(), failed.more()), (FailureKind::NotFound, Some(r#"{"told":true}"#)));
}

#[test]
fn what_is_asked_of_the_host_is_answered_by_the_test() {
    let (answer, seen) = testing::record(|| testing::call::<host::stream>(json!({})));
    assert_eq!(content(answer), [Part::text("done")]);
    assert_eq!(seen.parts, ["one", "two", "three"].map(Part::text));
    assert_eq!(seen.notes.len(), 1);
    testing::model(|question| Ok(format!("{}!", question.prompt)));
    assert_eq!(content(testing::call::<host::asks>(json!({ "prompt": "why" }))), [Part::text("why!")]);
    testing::tools(|name, arguments| Ok(json!([name, arguments]).to_string()));
    let called = content(testing::call::<host::calls>(json!({ "name": "a", "arguments": { "b": 1 } })));
    assert_eq!(called, [Part::Json(r#"["a",{"b":1}]"#.into())]);
    let remembered = |value: Value| content(testing::call::<host::remember>(json!({ "key": "k", "value": value })));
    assert_eq!(remembered(json!("v")), [Part::Json(r#"{"before":null}"#.into())]);
    assert_eq!(remembered(Value::Null), [Part::Json(r#"{"before":"v"}"#.into())]);
}

#[test]
fn steps_say_their_own() {
    let mut call = testing::invocation::<steps::raw>(&json!("é"));
    assert_eq!(steps::raw::route(&call), Opinion::NoOpinion);
    call.name = None;
    assert_eq!(steps::raw::route(&call), Opinion::Claims);
    assert_eq!(content(steps::raw::run(&call)), [Part::text("received 2 bytes")]);

    let check = |span: Value| {
        let call = testing::invocation::<steps::checked>(&json!({ "span": span, "most": 5 }));
        steps::checked::validate(&call).map_err(|error| error.to_string())
    };
    assert_eq!(check(json!([1, 6])), Ok(()));
    assert_eq!(check(json!([1, 7])), Err("the span from 1 to 7 is longer than 5".to_owned()));
    assert_eq!(check(json!([2, 1])), Err("the span ends at 1, before it begins at 2".to_owned()));

    let context = json!({ "config": { "token": "t" } }).to_string();
    let preparation = toolcrib_guest::Preparation { tool: "prepared".into(), context };
    let mut call = testing::invocation::<steps::prepared>(&json!({}));
    call.prepared = Some(steps::prepared::prepare(&preparation).expect("prepared"));
    let told = content(steps::prepared::run(&call));
    assert!(matches!(&told[..], [Part::Text(text)] if text.starts_with("t ")), "{told:?}");

    let call = testing::invocation::<steps::worded>(&json!({}));
    let presented = steps::worded::present(&call, steps::worded::run(&call));
    assert_eq!(presented.content, Some(vec![Part::text("for the model")]));
    assert_eq!(presented.summary.as_deref(), Some("in one line"));
}
