//! Output of a run: the answer on standard output, the trace on standard error, or events.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::place::*;
use crate::answering::Answer;

#[test]
fn every_line_is_an_event_and_the_names_are_stable() {
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": 2 });
    let first = json!({ "choices": [{ "message": { "content": "looking", "tool_calls": [
        { "id": "a", "function": { "name": "echo", "arguments": "{\"n\":1}" } } ] } }], "usage": usage });
    let last = json!({ "choices": [{ "message": { "content": "done" } }], "usage": usage });
    let reply = |body| Answer::new(200).json(body);
    let server = server([Answer::new(503), reply(first), reply(last)]);
    let end = Place::new().ask(&base(&server), &["go", "--json"]).ended(0);
    assert_eq!(end.stderr, "");
    let events = end.events();
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    assert_eq!(types, ["start", "retry", "message", "usage", "tool_call", "tool_result", "message", "usage", "end"]);
    assert_eq!(events[0]["tools"], json!(["echo", "nap", "spin", "peek"]));
    assert_eq!((&events[1]["attempt"], &events[1]["attempts"]), (&json!(2), &json!(3)));
    assert_eq!(events[2], json!({ "type": "message", "step": 1, "content": "looking", "final": false }));
    assert_eq!(
        events[4],
        json!({ "type": "tool_call", "step": 1, "id": "a", "name": "echo", "arguments": "{\"n\":1}" })
    );
    let result = &events[5];
    assert_eq!(
        (&result["id"], &result["isError"], &result["content"]),
        (&json!("a"), &json!(false), &json!("{\"n\":1}"))
    );
    assert_eq!((&result["receipt"]["outcome"], &result["receipt"]["callId"]), (&json!("ok"), &json!("a")));
    assert_eq!(
        events[7],
        json!({ "type": "usage", "step": 2, "promptTokens": 5, "completionTokens": 2, "totalTokens": 7 })
    );
    let end = &events[8];
    assert_eq!((&end["reason"], &end["answer"], &end["exitCode"]), (&json!("answer"), &json!("done"), &json!(0)));
    assert_eq!((&end["steps"], &end["calls"], &end["usage"]["totalTokens"]), (&json!(2), &json!(1), &json!(14)));
}

#[test]
fn streamed_text_is_told_as_it_arrives_and_then_whole() {
    let parts =
        [delta(json!({ "content": "hel" })), delta(json!({ "content": "lo" })), finish("stop"), json!("[DONE]")];
    let server = server([stream(&parts)]);
    let place = Place::new();
    let events = place.ask(&base(&server), &["go", "--json", "--stream"]).ended(0).events();
    let deltas: Vec<_> =
        events.iter().filter(|event| event["type"] == "text").map(|event| event["delta"].clone()).collect();
    assert_eq!(deltas, ["hel", "lo"]);
    assert_eq!(events.iter().find(|event| event["type"] == "message").expect("a message")["content"], "hello");
    assert_eq!(place.ask(&base(&server), &["go", "--stream"]).ended(0).stdout, "hello\n");
    assert_eq!(place.ask(&base(&server), &["go"]).ended(0).stdout, "hello\n");
    assert_eq!(bodies(&server)[2].get("stream"), None, "no terminal, no stream");
}

#[test]
fn a_failure_is_the_last_event() {
    let server = server([Answer::new(403).text("go away")]);
    let end = Place::new().ask(&base(&server), &["go", "--json"]).ended(1);
    let last = end.events().pop().expect("an event");
    assert_eq!((&last["type"], &last["exitCode"]), (&json!("error"), &json!(1)));
    assert!(last["message"].as_str().expect("text").contains("go away"), "{last}");
    assert!(end.stderr.contains("error:"), "{}", end.stderr);
}

#[test]
fn results_are_told_in_the_order_of_the_calls_though_the_first_ends_last() {
    let server = server([calls(&[("nap", "slow", "{}"), ("echo", "quick", "{}")]), says("done")]);
    let events = Place::new().ask(&base(&server), &["go", "--json"]).ended(0).events();
    let results: Vec<_> =
        events.iter().filter(|event| event["type"] == "tool_result").map(|event| event["id"].clone()).collect();
    assert_eq!(results, ["slow", "quick"]);
    let messages = bodies(&server).pop().expect("a request")["messages"].take();
    assert_eq!((&messages[2]["tool_call_id"], &messages[3]["tool_call_id"]), (&json!("slow"), &json!("quick")));
}

#[test]
fn calls_of_one_step_run_at_the_same_time() {
    let naps = [("nap", "", "{}"); 8];
    let server = server([calls(&naps), says("done")]);
    let place = Place::new();
    let end = place.ask(&base(&server), &["go", "--json", "--set", "limits.concurrency=8"]).ended(0);
    let end = end.events().pop().expect("an event");
    // One after another, they would sleep for at least eight seconds.
    assert!(end["ms"].as_u64().expect("milliseconds") < 7000, "{end}");
}

#[test]
fn a_trace_tells_each_call_and_what_would_have_allowed_it() {
    let server = server([
        calls(&[("echo", "a", "{\"n\":1}")]),
        calls(&[("peek", "b", "{}"), ("echo", "c", "{}")]),
        says("done"),
    ]);
    let place = Place::new();
    place.write("desk/note.txt", "a note");
    place.write("secret.txt", "a secret");
    let end = place.ask(&base(&server), &["go", "--allow-read", "desk"]).ended(0);
    assert_eq!(end.stdout, "done\n");
    for wanted in [
        "→ echo {\"n\":1}\n",
        "← ok ",
        "  {\"n\":1}\n",
        "→ peek {}\n",
        "  peek · not let in\n",
        "hint: ",
        "leads out of the granted folder; the tool sees `desk` as `/`",
        "3 steps · 3 calls (1 failed)",
    ] {
        assert!(end.stderr.contains(wanted), "{wanted}: {}", end.stderr);
    }
    let quiet = place.ask(&base(&server), &["go", "--quiet"]).ended(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("done\n", ""));
}

#[test]
fn what_comes_from_outside_has_no_power_over_a_terminal() {
    let unseen = "\u{202e}\u{200b}\u{2028}\u{feff}\u{61c}\u{e0041}";
    let evil = &format!("\u{1b}]0;title\u{7}\u{9b}2J{unseen}");
    let leads = |c: char| (c.is_control() && c != '\n' && c != '\t') || unseen.contains(c);
    let first = message(json!({
        "content": format!("{evil}\nerror: no\n← ok"),
        "tool_calls": [
            { "id": evil, "function": { "name": format!("no{evil}"), "arguments": format!("{{\"{evil}") } },
            { "id": "b", "function": { "name": "echo", "arguments": { "text": evil } } },
        ],
    }));
    let server = server([first, says(&format!("done{evil}\n\tand tabbed"))]);
    let end = Place::new().ask(&base(&server), &["go", "--verbose"]).ended(0);
    for (name, text) in [("stdout", &end.stdout), ("stderr", &end.stderr)] {
        assert!(!text.contains(leads), "{name}: {text:?}");
    }
    assert!(end.stderr.contains("\n· error: no\n· ← ok\n"), "no text passes for a line of ours: {}", end.stderr);
    assert!(
        end.stdout.starts_with("done\\u{1b}]0;title") && end.stdout.ends_with("\n\tand tabbed\n"),
        "{}",
        end.stdout
    );
}

#[test]
fn a_long_result_is_cut_in_the_trace_and_whole_for_the_model() {
    let long = json!({ "text": "žluť".repeat(2000) }).to_string();
    let server = server([calls(&[("echo", "a", &long)]), says("done")]);
    let end = Place::new().ask(&base(&server), &["go"]).ended(0);
    assert!(end.stderr.lines().all(|line| line.chars().count() <= 160), "{}", end.stderr);
    assert!(end.stderr.contains('…'));
    assert_eq!(bodies(&server)[1]["messages"][2]["content"], long);
}

#[test]
fn an_answer_that_was_cut_at_the_servers_limit_is_told_with_a_warning() {
    let body = json!({ "choices": [{ "message": { "content": "half an ans" }, "finish_reason": "length" }] });
    let server = server([Answer::new(200).json(body)]);
    let end = Place::new().ask(&base(&server), &["go", "--quiet"]).ended(0);
    assert!(end.stdout == "half an ans\n" && end.stderr.contains("warning: the answer was cut"), "{end:?}");
    let events = Place::new().ask(&base(&server), &["go", "--json"]).ended(0).events();
    assert!(events.iter().any(|event: &Value| event["type"] == "warning"));
}

#[test]
fn a_run_that_cannot_begin_is_told_as_an_event() {
    let place = Place::new();
    place.write("odd", b"caf\xe9");
    place.write("odd.toml", b"# \xff\n");
    let odd = || Stdio::from(fs::File::open(place.path("odd")).expect("a file"));
    for (flags, code) in [
        (&["-"] as &[_], 2),
        (&["--prompt-file", "odd"], 2),
        (&["go", "--system-file", "odd"], 2),
        (&["go", "--load-messages", "odd"], 1),
        (&["--script", "odd"], 1),
        (&["go", "--config", "odd.toml"], 1),
        (&["go", "--tools", "odd"], 1),
    ] {
        let ended = end(place
            .command(&[flags, &["--json", "--model", "m", "--base-url", "http://127.0.0.1:9"]].concat())
            .stdin(if flags == ["-"] { odd() } else { Stdio::null() }));
        let events = ended.events();
        let last = events.last().unwrap_or_else(|| panic!("{flags:?}: {ended:?}"));
        assert_eq!((&last["type"], &last["exitCode"]), (&json!("error"), &json!(code)), "{flags:?}: {ended:?}");
        assert_eq!(ended.code, Some(code), "{flags:?}: {ended:?}");
        let message = last["message"].as_str().expect("a message");
        assert!(!message.is_empty() && !message.starts_with("error") && !message.ends_with('\n'), "{message:?}");
        assert!(ended.stderr.contains("error: "), "{ended:?}");
    }
}
