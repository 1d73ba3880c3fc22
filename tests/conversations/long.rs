//! A long conversation that another process goes on with.

use std::io::Write;

use serde_json::json;

use super::model::Model;
use super::place::*;

/// Messages of the user.
const TURNS: usize = 200;

#[test]
fn a_conversation_of_200_turns_is_continued_by_another_process() {
    let place = Place::new();
    let model = Model::start(vec![says("yes")], None);
    let mut child = place.start(&model, &["chat", "--quiet"]);
    let mut input = child.stdin.take().expect("standard input");
    for turn in 1..=TURNS {
        writeln!(input, "message {turn}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "yes\n".repeat(TURNS));

    let ran = place.run(&model, &["run", "one more", "--continue"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "yes\n"), "{ran:?}");
    let sent = model.last_messages();
    assert_eq!(sent.len(), 2 * TURNS + 1);
    for turn in 0..TURNS {
        assert_eq!(sent[2 * turn], json!({ "role": "user", "content": format!("message {}", turn + 1) }));
        assert_eq!(sent[2 * turn + 1]["content"], "yes");
    }
    assert_eq!(sent[2 * TURNS]["content"], "one more");
    let listed = place.listed();
    assert_eq!((listed.len(), &listed[0]["steps"]), (1, &json!(TURNS + 1)), "one run, by two processes");
    assert_eq!(listed[0]["usage"]["totalTokens"], 15 * (TURNS + 1));
}
