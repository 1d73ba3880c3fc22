//! Reading the file of a run that ended or continues after any line.

use serde_json::json;

use super::*;

fn header() -> Value {
    json!({ "type": "run", "version": 1, "id": "7k3md-x0q9a", "created": "2026-01-31T12:00:00Z", "door": "run",
        "model": "m", "folder": "/work" })
}

fn read(lines: &[Value]) -> anyhow::Result<KeptRun> {
    KeptRun::read(text(lines).as_bytes(), "a", false)
}

fn text(lines: &[Value]) -> String {
    [&[header()], lines].concat().iter().map(|line| format!("{line}\n")).collect()
}

fn message(message: Value) -> Value {
    json!({ "type": "message", "message": message })
}

fn two_calls() -> Value {
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "t", "arguments": "{}" } });
    message(json!({ "role": "assistant", "content": null, "tool_calls": [call("a"), call("b")] }))
}

fn result(id: &str) -> Value {
    message(json!({ "role": "tool", "content": "done", "tool_call_id": id }))
}

fn roles(run: &KeptRun) -> Vec<String> {
    run.messages.iter().map(Message::shown_text).collect()
}

#[test]
fn calls_that_have_not_begun_are_made_and_begun_ones_are_never_repeated() {
    let begun = json!({ "type": "calls", "ids": ["a", "b"] });
    let pending = |lines: &[Value]| read(lines).unwrap().pending.into_iter().map(|call| call.id).collect::<Vec<_>>();
    assert_eq!(pending(&[two_calls()]), ["a", "b"]);
    let run = read(&[two_calls(), begun.clone()]).unwrap();
    assert_eq!((run.pending.len(), run.written, run.messages.len()), (0, 1, 3), "all begin at once in earlier files");
    assert!(roles(&run)[1].contains("may or may not have happened"), "{run:?}");
    let run = read(&[two_calls(), begun.clone(), result("b")]).unwrap();
    assert_eq!((run.pending.len(), run.written, run.answered.as_slice()), (0, 1, ["b".to_owned()].as_slice()));
    assert!(roles(&run)[1].contains("may or may not") && roles(&run)[2] == "done", "in the order of the calls");
    let run = read(&[two_calls(), begun, result("b"), result("a"), message(json!({ "role": "user", "content": "c" }))]);
    assert_eq!(roles(&run.unwrap()), ["", "done", "done", "c"]);
    let mut masked = two_calls();
    masked["masked"] = json!(true);
    let run = read(&[masked]).unwrap();
    assert!(run.pending.is_empty() && roles(&run)[1].contains("not made"), "{run:?}");
}

#[test]
fn a_call_that_waits_has_not_begun_and_is_pending() {
    let of = |kind: &str, id: &str| json!({ "type": kind, "id": id });
    let under_way = |ids: &[&str]| json!({ "type": "calls", "ids": ids, "singly": true });
    let pending = |run: &KeptRun| run.pending.iter().map(|call| call.id.clone()).collect::<Vec<_>>();
    for waiting in [
        vec![under_way(&["a", "b"])],
        vec![under_way(&["a", "b"]), of("asked", "a")],
        vec![json!({ "type": "calls", "ids": ["a", "b"] }), of("asked", "a"), of("asked", "b")],
    ] {
        let run = read(&[&[two_calls()], &waiting[..]].concat()).unwrap();
        assert_eq!((pending(&run), run.messages.len()), (vec!["a".to_owned(), "b".to_owned()], 1), "{run:?}");
        assert!(run.changes.is_empty(), "{run:?}");
    }
    let lines = [two_calls(), under_way(&["a", "b"]), of("asked", "a"), of("begun", "b")];
    let run = read(&lines).unwrap();
    assert_eq!(pending(&run), ["a"]);
    assert!(roles(&run)[1].contains("may or may not have happened"), "{run:?}");
    assert_eq!(run.changes, [(1, "t (interrupted)".to_owned())]);
    let run = read(&[&lines[..], &[result("b")]].concat()).unwrap();
    assert_eq!(
        (pending(&run), roles(&run), run.answered.clone()),
        (vec!["a".to_owned()], vec![String::new(), "done".to_owned()], vec!["b".to_owned()],)
    );
    let copy: Vec<String> = run.exported().iter().map(Message::shown_text).collect();
    assert!(copy[1].contains("not made") && copy[2] == "done", "in the order of the calls: {copy:?}");
    // The next process makes the one that is left.
    let resumed = [&lines[..], &[result("b"), under_way(&["a"]), of("begun", "a")]].concat();
    let run = read(&resumed).unwrap();
    assert!(run.pending.is_empty() && roles(&run)[1].contains("may or may not"), "{run:?}");
    let mut masked = two_calls();
    masked["masked"] = json!(true);
    let run = read(&[masked, under_way(&["a", "b"]), of("begun", "a")]).unwrap();
    assert!(run.pending.is_empty() && roles(&run)[2].contains("not made"), "{run:?}");
}

#[test]
fn in_a_run_that_goes_on_nothing_is_interrupted() {
    let of = |kind: &str, id: &str| json!({ "type": kind, "id": id });
    let begun = json!({ "type": "calls", "ids": ["a", "b"] });
    let open = |lines: &[Value]| KeptRun::read(text(lines).as_bytes(), "a", true).unwrap();
    let states = |run: &KeptRun| run.open.iter().map(|(_, state)| *state).collect::<Vec<_>>();
    let run = open(&[two_calls()]);
    assert_eq!((states(&run), run.pending.len()), (vec![CallState::NotBegun; 2], 0));
    let mut lines = vec![two_calls(), begun, of("asked", "a")];
    let run = open(&lines);
    assert_eq!((states(&run), run.messages.len()), (vec![CallState::AwaitsApproval, CallState::Begun], 1));
    let exported: Vec<String> = run.exported().iter().map(Message::shown_text).collect();
    assert!(exported[1].contains("in progress") && exported[1].contains("waits for an approval"), "{exported:?}");
    assert!(exported[2].contains("in progress") && exported[2].contains("begun"), "{exported:?}");
    assert!(roles(&run.copied())[1..].iter().all(|text| text.contains("is a copy")));
    lines.extend([of("begun", "a"), result("b")]);
    let run = open(&lines);
    assert_eq!((states(&run), roles(&run)), (vec![CallState::Begun], vec![String::new(), "done".to_owned()]));
    lines.extend([result("a"), json!({ "type": "text", "text": "It is" })]);
    let run = open(&lines);
    assert_eq!((run.open.len(), run.messages.len(), run.arriving.as_str()), (0, 3, "It is"));
    assert_eq!(run.state, RunState::Running);
    assert_eq!(run.exported()[3].shown_text(), "It is\n[The answer was still arriving here.]");
    assert_eq!(run.copied().messages[3].shown_text(), format!("It is{BROKEN_OFF}"));
}

#[test]
fn a_text_that_broke_off_stays_and_a_void_one_does_not() {
    let user = message(json!({ "role": "user", "content": "go" }));
    let text = |text: &str| json!({ "type": "text", "text": text });
    let run = read(&[user.clone(), text("one "), text("two")]).unwrap();
    assert_eq!(roles(&run), ["go".to_owned(), format!("one two{BROKEN_OFF}")]);
    assert_eq!((run.written, run.answer()), (1, None));
    let run = read(&[user.clone(), text("one"), json!({ "type": "void" }), text("two")]).unwrap();
    assert_eq!(roles(&run)[1], format!("two{BROKEN_OFF}"));
    let run = read(&[user, text("one"), message(json!({ "role": "assistant", "content": "one two" }))]).unwrap();
    assert_eq!((roles(&run), run.answer().as_deref()), (vec!["go".to_owned(), "one two".to_owned()], Some("one two")));
}

#[test]
fn a_cut_conversation_and_its_end_are_read_back() {
    let turn = |text: &str| {
        [message(json!({ "role": "user", "content": text })), message(json!({ "role": "assistant", "content": text }))]
    };
    let mut lines = [turn("one"), turn("two")].concat();
    lines.push(json!({ "type": "undo", "messages": 2 }));
    lines.push(json!({ "type": "end", "at": "2026-01-31T12:00:00Z", "reason": "answer", "steps": 2, "calls": 0 }));
    let run = read(&lines).unwrap();
    assert_eq!(
        (roles(&run), &run.state),
        (vec!["one".to_owned(), "one".to_owned()], &RunState::Ended("answer".into()))
    );
    assert_eq!((run.figures.undone, run.figures.title.as_deref()), (Some(true), Some("one")));
    assert_eq!(read(&turn("one")).unwrap().figures.undone, Some(false));
}

#[test]
fn a_damaged_line_is_named() {
    for (line, wanted) in [
        (json!({ "type": "later" }), "`a`: line 3"),
        (result("x"), "the result of an unknown call"),
        (json!({ "type": "calls", "ids": ["x"] }), "calls without their message"),
        (json!({ "type": "asked", "id": "x" }), "the start of an unknown call"),
        (header(), "the beginning of another run"),
    ] {
        let user = message(json!({ "role": "user", "content": "go" }));
        let error = format!("{:#}", read(&[user, line]).unwrap_err());
        assert!(error.contains(wanted) && error.contains("line 3"), "{error}");
    }
    let later = header().to_string().replace("\"version\":1", "\"version\":2");
    assert!(KeptRun::read(later.as_bytes(), "a", false).unwrap_err().to_string().contains("later version"));
}
