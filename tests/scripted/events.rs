//! Hooks on events of a run other than calls: their input, their changes, and their power to end the run.

use serde_json::{Value, json};

use super::*;

/// Run of two steps under a hook.
fn run(event: &str, lines: &str, flags: &[&str]) -> Ran {
    let crib = project(&[
        (".harness/tools/echo.md", &tool("return args[\"task\"]")),
        (".harness/hooks/h.md", &hook(event, lines)),
    ]);
    let first =
        json!({ "content": "let me see", "tool_calls": [{ "id": "a", "name": "echo", "arguments": { "task": "x" } }] });
    play(&crib, &json!({ "prompt": "go", "turns": [first, { "content": "the end" }] }), flags)
}

fn of(ran: &Ran, kind: &str) -> Vec<Value> {
    events(ran).into_iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn every_event_of_a_run_can_end_it() {
    for (event, calls) in [("run.start", 0), ("model.pre", 0), ("model.post", 0), ("run.end", 1)] {
        let ran = run(event, "return block(\"not today\")", &[]);
        assert_eq!(ran.code, Some(1), "{event}: {ran:?}");
        let last = events(&ran).pop().expect("an event");
        let wanted = "run blocked: blocked by hook \"h\": not today";
        assert_eq!((&last["type"], &last["message"]), (&json!("error"), &json!(wanted)), "{event}");
        assert!(ran.stderr.contains(&format!("error: {wanted}")), "{event}: {}", ran.stderr);
        assert_eq!(of(&ran, "tool_result").len(), calls, "{event}");
        assert!(!ran.stdout.contains("the end"), "the answer is withheld: {}", ran.stdout);
    }
}

#[test]
fn a_hook_that_fails_or_answers_nonsense_ends_it_too() {
    for (lines, why) in [
        ("fail(\"broken\")", "which failed: broken"),
        ("return 7", "which failed: "),
        ("return modify({\"content\": 7})", "a hook replaced `content` with something other than text"),
    ] {
        let ran = run("model.post", lines, &[]);
        let last = events(&ran).pop().expect("an event");
        let said = last["message"].as_str().expect("text");
        assert!(ran.code == Some(1) && said.starts_with("run blocked: ") && said.contains(why), "{lines}: {ran:?}");
    }
}

#[test]
fn each_event_tells_what_it_is_about() {
    let tell = "return block(json.encode(payload))";
    let output = |event: &str, lines: &str| -> Value {
        let last = events(&run(event, lines, &[])).pop().expect("an event");
        let said = last["message"].as_str().expect("text");
        let payload = said.strip_prefix("run blocked: blocked by hook \"h\": ").unwrap_or_else(|| panic!("{said}"));
        serde_json::from_str(payload).unwrap_or_else(|error| panic!("{error}: {payload}"))
    };
    let messages = json!([{ "role": "user", "content": "go" }]);
    assert_eq!(
        output("run.start", tell),
        json!({ "model": "script", "tools": ["echo"], "max_steps": 100, "messages": messages, "depth": 0 })
    );
    assert_eq!(output("model.pre", tell), json!({ "step": 1, "model": "script", "messages": messages, "depth": 0 }));
    let call = json!({ "id": "a", "name": "echo", "arguments": "{\"task\":\"x\"}" });
    assert_eq!(
        output("model.post", tell),
        json!({ "step": 1, "content": "let me see", "tool_calls": [call], "depth": 0 })
    );
    assert_eq!(output("run.end", tell), json!({ "reason": "answer", "answer": "the end", "depth": 0 }));
    let later = format!("if payload[\"step\"] == 2:\n    {tell}\nreturn None");
    let second = output("model.pre", &later);
    assert_eq!(
        (second["messages"].as_array().map(Vec::len), &second["messages"][2]["content"]),
        (Some(3), &json!("\"x\""))
    );
}

#[test]
fn a_text_is_changed_before_anybody_sees_it_and_nothing_else_is_taken() {
    let lines = "return modify({\"content\": payload[\"content\"].upper(), \"tool_calls\": [], \"step\": 9})";
    let ran = run("model.post", lines, &["--stream"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said: Vec<_> = of(&ran, "message").iter().map(|event| event["content"].clone()).collect();
    assert_eq!(said, ["LET ME SEE", "THE END"]);
    assert_eq!(of(&ran, "tool_result").len(), 1, "the call is made all the same");
    assert!(of(&ran, "text").is_empty(), "nothing is shown before the hook has seen it");
    assert_eq!(of(&ran, "end")[0]["answer"], "THE END");

    let ran = run("run.end", "return modify({\"answer\": payload[\"answer\"] + \", checked\"})", &["--stream"]);
    assert_eq!(of(&ran, "end")[0]["answer"], "the end, checked");
    assert_eq!(of(&ran, "message").pop().expect("a message")["content"], "the end, checked");
    assert!(of(&ran, "text").is_empty());

    for event in ["run.start", "model.pre"] {
        let ran = run(event, "return modify({\"messages\": [], \"model\": \"other\"})", &["--stream"]);
        assert_eq!((ran.code, &of(&ran, "end")[0]["answer"]), (Some(0), &json!("the end")), "{event}");
        assert!(!of(&ran, "text").is_empty(), "no hook waits for the text");
    }
}

#[test]
fn a_run_that_reaches_its_last_step_is_told_without_an_answer() {
    let ran = run("run.end", "return block(json.encode(payload))", &["--max-steps", "1"]);
    let last = events(&ran).pop().expect("an event");
    let wanted = "run blocked: blocked by hook \"h\": {\"reason\":\"max_steps\",\"answer\":null,\"depth\":0}";
    assert_eq!(last["message"], wanted, "{ran:?}");
}
