//! A run that is killed at any place and resumed: nothing is lost, and no call is made twice.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::{Model, Pause, Turn};
use super::place::*;

/// Place at which the run may end before the kill.
const LAST: &str = "when the last answer is complete";
/// Time after an event until the kill, so that a call is under way.
const UNDER_WAY: Duration = Duration::from_millis(SLEEP_MS / 2);

/// Sign of the place at which a run is killed.
#[derive(Debug)]
enum Sign {
    /// The model has paused.
    Paused,
    /// An event with this type and this value of a member.
    Event(&'static str, &'static str, Value),
}

/// A place at which a run is killed.
struct Kill {
    name: &'static str,
    pause: Option<Pause>,
    args: &'static [&'static str],
    sign: Sign,
    wait: Duration,
}

fn turns() -> Vec<Turn> {
    vec![
        calls("I look first. Then I write.", "note", &["a", "b"]),
        calls("One more.", "note", &["c"]),
        Turn { parts: vec!["It ", "is ", "done."], calls: Vec::new() },
    ]
}

fn places() -> Vec<Kill> {
    let event = |kind, member, value: &str| Sign::Event(kind, member, json!(value));
    let at = |name, pause, sign, wait| Kill { name, pause, args: &[], sign, wait };
    let now = Duration::ZERO;
    vec![
        at("at its start", None, event("start", "model", "m"), now),
        at("before the first answer", Some(Pause::BeforeTurn(0)), Sign::Paused, now),
        at("in the text of the first answer", Some(Pause::AfterText(0)), Sign::Paused, now),
        at("between two attempts", Some(Pause::Busy(0)), Sign::Event("retry", "attempt", json!(2)), now),
        at("when an answer is complete", None, Sign::Event("message", "step", json!(1)), now),
        at("when calls begin", None, event("tool_call", "id", "b"), now),
        at("in the first call", None, event("tool_call", "id", "b"), UNDER_WAY),
        at("between the ends of two calls", None, event("tool_result", "id", "a"), UNDER_WAY),
        at("after the last call of a step", None, event("tool_result", "id", "b"), now),
        at("before the second answer", Some(Pause::BeforeTurn(1)), Sign::Paused, now),
        at("in the only call of a step", None, event("tool_call", "id", "c"), UNDER_WAY),
        at("before the last answer", Some(Pause::BeforeTurn(2)), Sign::Paused, now),
        at("in the text of the last answer", Some(Pause::AfterText(2)), Sign::Paused, now),
        at(LAST, None, Sign::Event("message", "final", json!(true)), now),
        Kill {
            name: "while a person is asked",
            pause: None,
            args: &["--answers", "--ask-tool=note"],
            sign: event("permission_asked", "callId", "a"),
            wait: now,
        },
    ]
}

/// Reads events until one that satisfies `is_last`.
fn read(lines: &mut BufReader<ChildStdout>, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    while !events.last().is_some_and(&is_last) {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the run has ended: {events:#?}");
        events.push(serde_json::from_str(&line).unwrap());
    }
    events
}

/// Kills the program, and returns the rest of its events.
fn kill(mut child: Child, mut lines: BufReader<ChildStdout>) -> Vec<Value> {
    child.kill().expect("a child that runs");
    child.wait().unwrap();
    let mut rest = String::new();
    let _ = lines.read_to_string(&mut rest);
    rest.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn is(event: &Value, kind: &str) -> bool {
    event["type"] == kind
}

/// Kills a run at a place, resumes it, and checks that nothing was lost and nothing made twice.
fn check(Kill { name, pause, args, sign, wait }: Kill) {
    let place = Place::new();
    let model = Model::start(turns(), pause);
    let mut child = place.start(&model, &[&["run", "go", "--json", "--stream"], args].concat());
    // Open while the run reads answers from it.
    let input = child.stdin.take().filter(|_| !args.is_empty());
    let mut lines = BufReader::new(child.stdout.take().expect("standard output"));
    let mut seen = match &sign {
        Sign::Paused => {
            model.until_paused();
            Vec::new()
        }
        Sign::Event(kind, member, value) => read(&mut lines, |event| is(event, kind) && event[*member] == *value),
    };
    thread::sleep(wait);
    seen.extend(kill(child, lines));
    drop(input);

    let id = place.id();
    let state = place.listed()[0]["state"].clone();
    if state == "answer" {
        // The kill came after the end.
        assert_eq!(name, LAST, "{name} has ended");
        assert_eq!(place.messages(&id).last().expect("messages")["content"], "It is done.");
        return;
    }
    assert_eq!(state, "killed", "{name}");
    let made_before = place.made();
    let resumed = place.run(&model, &["run", "--resume", &id, "--json", "--stream"]);
    assert_eq!(resumed.code, Some(0), "{name}: {resumed:?}");

    let messages = place.messages(&id);
    assert_whole(&messages);
    assert_eq!(messages[0], json!({ "role": "user", "content": "go" }), "{name}");
    let last = messages.last().expect("messages");
    assert_eq!(
        (&last["role"], &last["content"]),
        (&json!("assistant"), &json!("It is done.")),
        "{name}: {messages:#?}"
    );
    let made = place.made();
    for call in ["a", "b", "c"] {
        let count = made.iter().filter(|line| line.contains(&format!("\"{call}\""))).count();
        match result_of(&messages, call) {
            result if result == "{}" => assert_eq!(count, 1, "{name}: {call} {made:?}"),
            result => {
                let is_open = result.contains("may or may not have happened");
                assert!(is_open || result.contains("has not happened") && count == 0, "{name}: {call}: {result}");
                assert!(count <= 1, "{name}: {call} was made twice: {made:?}");
            }
        }
    }
    for made in &made_before {
        assert!(place.made().iter().filter(|line| *line == made).count() == 1, "{name}: {made} again");
    }
    // What was seen before the kill is in the conversation.
    for event in seen.iter().filter(|event| is(event, "tool_result")) {
        let id = event["id"].as_str().expect("an identifier");
        assert_eq!(json!(result_of(&messages, id)), event["content"], "{name}: the result of {id} is kept");
    }
    let texts: String = messages.iter().filter_map(|message| message["content"].as_str()).collect();
    let deltas = seen.iter().filter(|event| is(event, "text")).filter_map(|event| event["delta"].as_str());
    for word in deltas.flat_map(str::split_whitespace) {
        assert!(texts.contains(word), "{name}: `{word}` was shown and is lost: {texts}");
    }
    if matches!(pause, Some(Pause::AfterText(_))) {
        assert!(texts.contains("[The answer was interrupted here.]"), "{name}: {texts}");
    }
    eprintln!(
        "{name}: calls before the kill {}, at the end {}, messages {}",
        made_before.len(),
        made.len(),
        messages.len()
    );
}

#[test]
fn a_run_that_is_killed_anywhere_goes_on_and_makes_no_call_twice() {
    let places = places();
    assert!(places.len() >= 10);
    let mut places = places.into_iter();
    while let Some(place) = places.next() {
        let more: Vec<_> = places.by_ref().take(2).collect();
        thread::scope(|scope| {
            scope.spawn(move || check(place));
            more.into_iter().for_each(|place| drop(scope.spawn(move || check(place))));
        });
    }
}

/// Waits until a call has left its line.
fn until_made(place: &Place, call: &str) {
    let started = Instant::now();
    while !place.made().iter().any(|line| line.contains(&format!("\"{call}\""))) {
        assert!(started.elapsed() < Duration::from_secs(60), "`{call}` does not begin");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_run_can_be_killed_again_and_again() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    let mut child = place.start(&model, &["run", "go", "--json"]);
    drop(child.stdin.take());
    let mut lines = BufReader::new(child.stdout.take().expect("standard output"));
    read(&mut lines, |event| is(event, "tool_result") && event["id"] == "a");
    until_made(&place, "b");
    kill(child, lines);
    let id = place.id();
    let mut child = place.start(&model, &["run", "--resume", &id, "--json"]);
    drop(child.stdin.take());
    let mut lines = BufReader::new(child.stdout.take().expect("standard output"));
    read(&mut lines, |event| is(event, "tool_call") && event["id"] == "c");
    until_made(&place, "c");
    kill(child, lines);
    let resumed = place.run(&model, &["run", "--resume", &id]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "It is done.\n"), "{resumed:?}");
    let messages = place.messages(&id);
    assert_whole(&messages);
    assert_eq!(result_of(&messages, "a"), "{}");
    for call in ["b", "c"] {
        // A slow machine lets a call end before the kill.
        let result = result_of(&messages, call);
        assert!(result == "{}" || result.contains("may or may not have happened"), "{messages:#?}");
    }
    assert_eq!(place.made().len(), 3, "{:?}", place.made());
}

#[test]
fn a_run_that_is_written_by_another_process_is_not_resumed() {
    let place = Place::new();
    let model = Model::start(turns(), Some(Pause::BeforeTurn(0)));
    let mut child = place.start(&model, &["run", "go"]);
    drop(child.stdin.take());
    model.until_paused();
    let id = place.id();
    assert_eq!(place.listed()[0]["state"], "running");
    let refused = place.run(&model, &["run", "--resume", &id]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("is open in another process") && refused.stderr.contains("--fork"), "{refused:?}");
    let refused = place.crib.run(&["runs", "remove", &id]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.run(&model, &["run", "--resume", &id]).code, Some(0));
}

#[test]
fn a_call_begins_when_it_is_approved_and_not_when_it_waits() {
    for (is_approved, wanted, made) in [(false, "{}", 1), (true, "may or may not have happened", 1)] {
        let place = Place::new();
        let model = Model::start(vec![calls("I write.", "note", &["a"]), says("It is done.")], None);
        let mut child = place.start(&model, &["run", "go", "--json", "--answers", "--ask-tool=note"]);
        let mut input = child.stdin.take().expect("standard input");
        let mut lines = BufReader::new(child.stdout.take().expect("standard output"));
        read(&mut lines, |event| is(event, "permission_asked"));
        if is_approved {
            writeln!(input, "{}", json!({ "type": "permission_answer", "id": "q1", "answer": "once" })).unwrap();
            let started = Instant::now();
            while place.made().is_empty() {
                assert!(started.elapsed() < Duration::from_secs(60), "the call does not begin");
                thread::sleep(Duration::from_millis(5));
            }
        }
        kill(child, lines);
        let resumed = place.run(&model, &["run", "--resume", &place.id()]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        let messages = place.messages(&place.id());
        assert_whole(&messages);
        let result = result_of(&messages, "a");
        assert!(result.contains(wanted), "approved: {is_approved}: {result}");
        assert_eq!(place.made().len(), made, "{result}");
    }
}
