//! A run that another process writes, as `runs show`, `export` and `list` present it.

use std::io::{BufRead, BufReader, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::{Model, Pause, Turn};
use super::place::*;

fn shown(place: &Place, id: &str) -> (String, Value) {
    let text = place.crib.run(&["runs", "show", id]);
    let json = place.crib.run(&["runs", "show", id, "--json"]);
    (text.stdout, serde_json::from_str(&json.stdout).unwrap_or_else(|error| panic!("{error}: {json:?}")))
}

/// Asserts that nothing of a run is presented as ended.
fn assert_goes_on(texts: &[&str]) {
    for text in texts {
        for word in ["interrupted", "not made", "killed", "has not happened"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn calls_of_a_run_that_goes_on_are_in_progress() {
    let place = Place::new();
    let model = Model::start(vec![calls("I look.", "mark", &["a", "b"]), says("It is done.")], None);
    let mut child = place.start(&model, &["run", "go", "--json", "--answers", "--ask-tool=mark"]);
    let mut input = child.stdin.take().expect("standard input");
    let mut lines = BufReader::new(child.stdout.take().expect("standard output")).lines();
    // Reads events until each of these kinds was among them.
    let mut until = |kinds: &[&str]| {
        let mut left = kinds.to_vec();
        while !left.is_empty() {
            let line = lines.next().unwrap_or_else(|| panic!("no {left:?}")).unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            left.retain(|kind| event["type"] != *kind);
        }
    };
    until(&["permission_asked"]);
    let id = place.id();
    assert_eq!(place.listed()[0]["state"], "running");
    let (text, json) = shown(&place, &id);
    assert!(text.contains("(in progress: mark, waits for an approval)"), "{text}");
    assert!(text.contains("(in progress: mark, not begun yet)"), "{text}");
    assert_eq!(json["state"], "running");
    assert_eq!(
        json["inProgress"]["calls"],
        json!([{ "id": "a", "name": "mark", "state": "awaiting_approval" },
            { "id": "b", "name": "mark", "state": "not_begun" }])
    );
    assert_eq!(json["messages"].as_array().unwrap().len(), 2, "no result is made up: {json}");
    let exported = place.messages(&id);
    assert_whole(&exported);
    assert!(result_of(&exported, "a").contains("in progress when this conversation was exported"), "{exported:#?}");
    assert_goes_on(&[&text, &json.to_string(), &json!(exported).to_string()]);

    writeln!(input, "{}", json!({ "type": "permission_answer", "id": "q1", "answer": "once" })).unwrap();
    until(&["permission_asked", "tool_result"]);
    let (text, json) = shown(&place, &id);
    assert!(text.contains("← mark: {}") && text.contains("(in progress: mark, waits for an approval)"), "{text}");
    let waits = json!([{ "id": "b", "name": "mark", "state": "awaiting_approval" }]);
    assert_eq!(json["inProgress"]["calls"], waits);
    // A copy makes none of them, and the run itself goes on.
    let copied = place.run(&model, &["run", "--fork", &id]);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    writeln!(input, "{}", json!({ "type": "permission_answer", "id": "q2", "answer": "once" })).unwrap();
    until(&["end"]);
    drop(input);
    assert!(child.wait().unwrap().success());
    let (_, json) = shown(&place, &id);
    assert_eq!((&json["state"], &json["inProgress"]), (&json!("answer"), &Value::Null));
}

#[test]
fn calls_that_end_with_the_output_of_a_run_have_their_records() {
    // The output is closed after the answer to the first question, or after the second question, which nobody answers.
    for questions in [1, 2] {
        let place = Place::new();
        let model = Model::start(vec![calls("I look.", "mark", &["a", "b", "c", "d"]), says("It is done.")], None);
        let mut child = place.start(&model, &["run", "go", "--json", "--answers", "--ask-tool=mark"]);
        let mut input = child.stdin.take().expect("standard input");
        let lines = BufReader::new(child.stdout.take().expect("standard output")).lines();
        let mut asked = lines.map(Result::unwrap).filter(|line| line.contains("permission_asked"));
        asked.next().expect("a question");
        writeln!(input, "{}", json!({ "type": "permission_answer", "id": "q1", "answer": "once" })).unwrap();
        assert_eq!(asked.by_ref().take(questions - 1).count(), questions - 1);
        drop(asked);
        child.wait().unwrap();
        let records = place.crib.records();
        assert_eq!(records.len(), 4, "{records:#?}");
    }
}

#[test]
fn an_answer_that_arrives_is_in_progress_until_its_process_ends() {
    let place = Place::new();
    let turn = Turn { parts: vec!["Half of ", "an answer"], calls: Vec::new() };
    let model = Model::start(vec![turn], Some(Pause::AfterText(0)));
    let mut child = place.start(&model, &["run", "go", "--json", "--stream"]);
    drop(child.stdin.take());
    model.until_paused();
    let id = place.id();
    let started = Instant::now();
    let (text, json) = loop {
        let (text, json) = shown(&place, &id);
        if json["inProgress"]["text"].is_string() {
            break (text, json);
        }
        assert!(started.elapsed() < Duration::from_secs(60), "no text: {json}");
        thread::sleep(Duration::from_millis(10));
    };
    assert!(text.contains("model: Half of") && text.contains("(in progress: the answer)"), "{text}");
    let exported = place.messages(&id);
    let last = exported[1]["content"].as_str().unwrap();
    assert!(last.ends_with("\n[The answer was still arriving here.]"), "{exported:#?}");
    assert_goes_on(&[&text, &json.to_string(), last]);
    child.kill().unwrap();
    child.wait().unwrap();
    let (text, json) = shown(&place, &id);
    assert!(text.contains("killed") && text.contains("[The answer was interrupted here.]"), "{text}");
    assert_eq!((&json["state"], &json["inProgress"]), (&json!("killed"), &Value::Null));
}
