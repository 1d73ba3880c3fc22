//! Scripts that replace a model, and the demonstration.

use std::path::Path;

use serde_json::json;

use super::place::*;
use crate::screen::Page;

#[test]
fn a_script_needs_no_key_no_server_and_no_prompt() {
    let place = Place::new();
    let script = place.script(json!([
        { "content": "let me see", "tool_calls": [{ "name": "echo", "arguments": { "n": 1 } }, { "name": "echo", "arguments": "{\"n\":2}" }] },
        { "content": "done" },
    ]));
    let end = place.run(&["--script", &script, "--save-messages", "talk.json"]).ended(0);
    assert_eq!(end.stdout, "done\n");
    assert!(end.stderr.contains("let me see"), "{}", end.stderr);
    let talk = place.json("talk.json");
    assert_eq!(
        (&talk[0]["content"], &talk[2]["content"], &talk[3]["content"]),
        (&json!("go"), &json!("{\"n\":1}"), &json!("{\"n\":2}"))
    );
    assert_eq!(place.audited(), ["ok", "ok"]);
    let events = place.run(&["another prompt", "--script", &script, "--json", "--stream"]).ended(0).events();
    assert_eq!(events[0]["model"], "script");
    assert!(events.iter().any(|event| event["type"] == "text"));
}

#[test]
fn a_wrong_script_is_told_with_file_turn_and_field() {
    let page = Page::new();
    let place = Place::new();
    place.write("bad.json", r#"{"turns":[{"content":"a"},{"tool_calls":[{"tool":"echo"}]}]}"#);
    page.run(&place, &["--script", "bad.json"]).ended(1);
    page.run(&place, &["--script", "absent.json"]).ended(1);
    page.matches("run/wrong-script");
}

#[test]
fn a_script_that_ends_with_a_call_says_so() {
    let page = Page::new();
    let place = Place::new();
    let script = place.script(json!([{ "tool_calls": [{ "name": "echo" }] }]));
    page.run(&place, &["--script", &script]).ended(1);
    page.matches("run/ends-with-call");
}

#[test]
fn the_demonstration_is_refused_what_was_not_granted_and_answers() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    let crib = Path::new(env!("CARGO_BIN_EXE_toolcrib")).ancestors().nth(2).expect("the target folder").join("crib");
    let (crib, script) = (crib.to_str().expect("UTF-8"), demo.join("script.json"));
    let place = Place::new();
    for file in ["desk/jobs.md", "desk/board.csv", "desk/letter.md", "safe/combination.txt"] {
        place.write(file, std::fs::read(demo.join(file)).expect("a file of the demonstration"));
    }
    let script = script.to_str().expect("UTF-8");
    let events = place.run(&["--tools", crib, "--script", script, "--allow-write=desk", "--json"]).ended(0).events();
    assert!(place.read("desk/plan.md").contains("2.25 hours"));
    let results: Vec<_> = events.iter().filter(|event| event["type"] == "tool_result").collect();
    assert!(results.len() >= 3, "{results:#?}");
    assert!(results.windows(2).any(|pair| pair[0]["step"] == pair[1]["step"]), "some calls run together");
    let refused: Vec<_> = results.iter().filter(|event| event["isError"] == true).collect();
    assert_eq!(refused.len(), 1, "{results:#?}");
    assert!(!refused[0]["receipt"]["denied"].as_array().expect("denials").is_empty(), "{refused:#?}");
    assert!(events.iter().all(|event| !event.to_string().contains("31-07-19")), "what is in the safe stays there");
    assert_eq!(events.last().expect("an event")["reason"], "answer");
}
