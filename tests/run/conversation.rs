//! Conversations in files.

use serde_json::{Value, json};

use super::place::*;
use crate::answering::Answer;

#[test]
fn a_saved_conversation_can_be_continued_and_nothing_is_lost() {
    let server = server([calls(&[("echo", "a", "{\"n\":1}")]), says("one"), says("two")]);
    let place = Place::new();
    place.ask(&base(&server), &["first", "--system", "s", "--save-messages", "talk.json"]).ended(0);
    let saved = place.json("talk.json");
    let roles: Vec<_> =
        saved.as_array().expect("messages").iter().map(|message| message["role"].as_str().expect("a role")).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant"]);

    place.ask(&base(&server), &["second", "--load-messages", "talk.json", "--save-messages", "talk.json"]).ended(0);
    let sent = bodies(&server).pop().expect("a request")["messages"].take();
    let mut wanted = saved.as_array().expect("messages").clone();
    wanted.push(json!({ "role": "user", "content": "second" }));
    assert_eq!(sent, Value::Array(wanted.clone()));
    wanted.push(json!({ "role": "assistant", "content": "two" }));
    assert_eq!(place.json("talk.json"), Value::Array(wanted));
    let left: Vec<_> = std::fs::read_dir(place.path(""))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".toolcrib-")), "{left:?}");
}

#[test]
fn what_nobody_here_knows_is_kept() {
    let odd = json!([
        { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:," } }], "name": "me", "x": { "y": [1] } },
        { "role": "assistant", "content": null, "refusal": null, "tool_calls": [
            { "id": "call_1", "type": "function", "function": { "name": "echo", "arguments": "{}" }, "extra_content": { "z": 1 } }] },
        { "role": "tool", "content": "{}", "tool_call_id": "call_1" },
    ]);
    let server = server([calls(&[("echo", "", "{}")]), says("done")]);
    let place = Place::new();
    place.write("talk.json", odd.to_string());
    // The last message is for the model: no prompt is needed.
    place.ask(&base(&server), &["--load-messages", "talk.json", "--save-messages", "kept.json"]).ended(0);
    let kept = place.json("kept.json");
    assert_eq!(kept.as_array().expect("messages")[..3], odd.as_array().expect("messages")[..]);
    assert_eq!(kept[3]["tool_calls"][0]["id"], "call_2", "an identifier of the file is not given again");
}

#[test]
fn a_file_that_is_no_conversation_is_refused_with_its_place() {
    let place = Place::new();
    for (text, wanted) in [
        ("{}", "is not an array of messages"),
        ("[", "is not JSON"),
        (r#"[{"role":"user","content":"a"},{"role":"wizard"}]"#, "messages[1]"),
        (
            r#"[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{}}]},{"role":"user","content":"b"}]"#,
            "tool call `a` has no answer",
        ),
    ] {
        place.write("talk.json", text);
        let end = place.run(&["go", "--model", "m", "--dry-run", "--load-messages", "talk.json"]).ended(1);
        assert!(end.stderr.contains(wanted), "{text}: {}", end.stderr);
    }
    let end = place.run(&["go", "--model", "m", "--load-messages", "absent.json"]).ended(1);
    assert!(end.stderr.contains("absent.json"), "{}", end.stderr);
}

#[test]
fn a_file_that_cannot_be_written_is_known_before_anything_is_asked() {
    let server = server([says("hello")]);
    let place = Place::new();
    let end = place.ask(&base(&server), &["go", "--save-messages", "no/such/folder/talk.json"]).ended(1);
    assert!(end.stderr.contains("cannot save the messages"), "{}", end.stderr);
    assert!(bodies(&server).is_empty());
}

#[cfg(unix)]
#[test]
fn a_saved_conversation_is_its_owners_alone_and_a_failure_leaves_nothing() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    let script = place.script(json!([{ "content": "done" }]));
    place.run(&["--script", &script, "--save-messages", "talk.json"]).ended(0);
    assert_eq!(place.path("talk.json").metadata().expect("a file").mode() & 0o777, 0o600);
    place.write("taken/by/a/folder", "");
    let end = place.run(&["--script", &script, "--save-messages", "taken"]).ended(1);
    assert!(end.stderr.contains("cannot save the messages in `taken`"), "{}", end.stderr);
    let names = std::fs::read_dir(place.path("")).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("toolcrib-")), "{left:?}");
}

#[test]
fn a_failed_run_keeps_what_was_said() {
    let server = server([calls(&[("echo", "a", "{}")]), Answer::new(500)]);
    let place = Place::new();
    place.ask(&base(&server), &["go", "--save-messages", "talk.json"]).ended(1);
    assert_eq!(place.json("talk.json")[2]["tool_call_id"], "a");
}

#[test]
fn messages_are_shown_before_they_are_sent() {
    let server = server([says("hello")]);
    let end = Place::new().ask(&base(&server), &["go", "--system", "s\u{1b}[2J", "--print-messages"]).ended(0);
    assert!(end.stderr.contains("\"role\": \"system\"") && !end.stderr.contains('\u{1b}'), "{}", end.stderr);
    assert_eq!(end.stdout, "hello\n");
}
