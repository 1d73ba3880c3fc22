//! Unusual but real responses, whole and streamed.

use serde_json::{Value, json};

use super::place::*;
use crate::answering::Answer;

/// Messages for the model about its calls, after the response `first`.
fn told_after(first: Answer, args: &[&str]) -> Vec<Value> {
    let server = server([first, says("done")]);
    let end = Place::new().ask(&base(&server), &[&["go"], args].concat()).ended(0);
    assert_eq!(end.stdout, "done\n");
    let messages = bodies(&server).pop().expect("a second request")["messages"].take();
    messages.as_array().expect("messages")[1..].to_vec()
}

#[test]
fn odd_answers_of_real_servers_are_understood() {
    let echo = |id: &str, arguments: &str| {
        vec![
            json!({ "role": "assistant", "content": null, "tool_calls": [
                { "id": id, "type": "function", "function": { "name": "echo", "arguments": arguments } }] }),
            json!({ "role": "tool", "content": arguments, "name": "echo", "tool_call_id": id }),
        ]
    };
    // Members that only the server knows go back to it.
    let mut unknown = echo("call_1", "{}");
    unknown[0]["reasoning_content"] = json!("hm");
    unknown[0]["tool_calls"][0]["x"] = json!(1);
    let cases = [
        (
            "no identifier, no type",
            json!({ "tool_calls": [{ "function": { "name": "echo", "arguments": "{\"n\":1}" } }] }),
            echo("call_1", "{\"n\":1}"),
        ),
        (
            "arguments as an object",
            json!({ "content": null, "tool_calls": [{ "id": "a", "function": { "name": "echo", "arguments": { "n": 1 } } }] }),
            echo("a", "{\"n\":1}"),
        ),
        (
            "no arguments",
            json!({ "content": null, "tool_calls": [{ "id": "a", "function": { "name": "echo" } }] }),
            echo("a", "{}"),
        ),
        (
            "empty arguments",
            json!({ "content": [], "tool_calls": [{ "id": "a", "function": { "name": "echo", "arguments": "" } }] }),
            echo("a", "{}"),
        ),
        (
            "null arguments",
            json!({ "content": "", "tool_calls": [{ "id": "a", "function": { "name": "echo", "arguments": null } }] }),
            echo("a", "{}"),
        ),
        (
            "one call that is no list",
            json!({ "tool_calls": { "id": "a", "function": { "name": "echo", "arguments": "{}" } } }),
            echo("a", "{}"),
        ),
        (
            "name and arguments in the call itself",
            json!({ "tool_calls": [{ "id": "a", "name": "echo", "arguments": {} }] }),
            echo("a", "{}"),
        ),
        (
            "an identifier that is a number",
            json!({ "tool_calls": [{ "id": 7, "function": { "name": "echo", "arguments": "{}" } }] }),
            echo("7", "{}"),
        ),
        (
            "the old way",
            json!({ "content": null, "tool_calls": null, "function_call": { "name": "echo", "arguments": "{}" } }),
            echo("call_1", "{}"),
        ),
        (
            "index 0, unknown fields",
            json!({ "reasoning_content": "hm", "tool_calls": [{ "index": 0, "id": "", "x": 1, "function": { "name": "echo", "arguments": "{}", "y": 2 } }] }),
            unknown,
        ),
    ];
    for (case, odd, wanted) in cases {
        assert_eq!(told_after(message(odd), &[]), wanted, "{case}");
    }
}

#[test]
fn an_answer_is_found_wherever_a_server_puts_it() {
    let place = Place::new();
    let cases = [
        json!({ "choices": [{ "message": { "content": "hello" } }] }),
        json!({ "choices": [{ "message": { "content": "hello", "tool_calls": null }, "finish_reason": null }], "usage": null }),
        json!({ "choices": [{ "message": { "content": "hello", "tool_calls": [] }, "finish_reason": "" }], "error": null }),
        json!({ "choices": [{ "message": { "content": [{ "type": "text", "text": "hel" }, { "type": "text", "text": "lo" }] } }] }),
        json!({ "choices": [{ "message": { "content": ["hel", "lo"] } }], "usage": { "prompt_tokens": "many" } }),
        json!({ "choices": [{ "message": { "content": null, "refusal": "hello" } }] }),
        json!({ "choices": [{ "text": "hello" }] }),
        json!({ "message": { "content": "hello" }, "done": true }),
    ];
    for body in cases {
        let server = server([Answer::new(200).json(&body)]);
        for flag in ["--set=display.stream=false", "--stream"] {
            let end = place.ask(&base(&server), &["go", flag]).ended(0);
            assert_eq!(end.stdout, "hello\n", "{flag} {body}");
        }
    }
}

#[test]
fn a_streamed_answer_is_put_together_from_its_parts() {
    let call = |call: Value| delta(json!({ "tool_calls": [call] }));
    let parts = [
        delta(json!({ "role": "assistant", "content": "" })),
        call(json!({ "index": 0, "id": "a", "type": "function", "function": { "name": "echo", "arguments": "" } })),
        call(json!({ "index": 0, "function": { "arguments": "{\"n\"" } })),
        call(
            json!({ "index": 1, "id": "b", "type": "function", "function": { "name": "echo", "arguments": "{\"n\":2}" } }),
        ),
        call(json!({ "index": 0, "function": { "arguments": ":1}" } })),
        finish("tool_calls"),
        json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 } }),
        json!("[DONE]"),
    ];
    let output = told_after(stream(&parts), &["--stream"]);
    let contents: Vec<_> = output[1..].iter().map(|message| message["content"].as_str().expect("text")).collect();
    assert_eq!(contents, ["{\"n\":1}", "{\"n\":2}"]);
}

#[test]
fn a_stream_is_known_by_its_bytes_and_its_odd_ends_are_ends() {
    let place = Place::new();
    let hello = [delta(json!({ "content": "hel" })), delta(json!({ "content": "lo" }))];
    let text = |end: &str| format!(": keep-alive\n\ndata: {}\r\n\r\ndata: {}\n\n{end}", hello[0], hello[1]);
    for body in [
        text("data: [DONE]\n\n"),
        text("data: [DONE]"),
        text(&format!("data: {}\n", finish("stop"))),
        text(&format!("data: {}\n\nevent: ping\ndata: {{}}\n\n", finish("stop"))),
        // A byte order mark, and no empty lines between the events.
        format!("\u{feff}data: {}\ndata: {}\ndata: [DONE]\n", hello[0], hello[1]),
    ] {
        for mime in ["text/event-stream", "application/json", "text/plain; charset=utf-8"] {
            let server = server([Answer::new(200).raw(body.clone(), mime)]);
            // Also for a request without streaming.
            for flag in ["--stream", "--set=display.stream=false"] {
                let end = place.ask(&base(&server), &["go", flag]).ended(0);
                assert_eq!(end.stdout, "hello\n", "{flag} {mime} {body}");
            }
        }
    }
}

#[test]
fn identifiers_are_unique_and_every_call_is_answered_in_order() {
    let first = calls(&[
        ("echo", "", "{\"n\":1}"),
        ("echo", "x", "{\"n\":2}"),
        ("echo", "x", "{\"n\":3}"),
        ("echo", "", "{\"n\":4}"),
    ]);
    let output = told_after(first, &[]);
    let pairs: Vec<_> =
        output[1..].iter().map(|message| (message["tool_call_id"].clone(), message["content"].clone())).collect();
    let wanted = [("call_1", 1), ("x", 2), ("call_3", 3), ("call_4", 4)];
    assert_eq!(pairs, wanted.map(|(id, n)| (json!(id), json!(format!("{{\"n\":{n}}}")))));
    let said: Vec<_> =
        output[0]["tool_calls"].as_array().expect("calls").iter().map(|call| call["id"].clone()).collect();
    assert_eq!(said, wanted.map(|(id, _)| json!(id)));
}

#[test]
fn wrong_calls_are_answered_and_no_guest_is_started() {
    let first =
        calls(&[("no such", "a", "{}"), ("spin", "b", "{\"n\":"), ("spin", "c", "{\"n\":\"x\"}"), ("", "d", "[1]")]);
    let output = told_after(first, &[]);
    for message in &output[1..] {
        let content: Value = serde_json::from_str(message["content"].as_str().expect("text")).expect("JSON");
        assert!(content["error"].is_string(), "{message}");
    }
    let names: Vec<_> = output[0]["tool_calls"]
        .as_array()
        .expect("calls")
        .iter()
        .map(|call| call["function"]["name"].clone())
        .collect();
    assert_eq!(names, ["no_such", "spin", "spin", "unnamed"], "servers refuse other names");
}

#[test]
fn a_flood_of_calls_is_bounded_and_every_call_is_answered() {
    let many: Vec<(&str, &str, &str)> = vec![("echo", "", "{\"n\":1}"); 513];
    let output = told_after(calls(&many[1..]), &["--quiet"]);
    assert_eq!(output.len(), 513);
    let executed = output[1..].iter().filter(|message| message["content"] == "{\"n\":1}").count();
    assert_eq!(executed, 128);
    assert!(output[512]["content"].as_str().expect("text").contains("too many calls in one step"));
    assert_eq!(output[512]["tool_call_id"], "call_512");
    let server = server([calls(&many)]);
    let end = Place::new().ask(&base(&server), &["go"]).ended(1);
    assert!(end.stderr.contains("the answer contains more than 512 calls"), "{}", end.stderr);
    assert_eq!(bodies(&server).len(), 1);
}

#[test]
fn a_flood_of_fragments_and_lines_takes_no_longer_than_it_is_long() {
    let began = std::time::Instant::now();
    let fragment = |arguments: &str| {
        let call = json!({ "index": 0, "id": "a", "function": { "name": "echo", "arguments": arguments } });
        format!("data: {}\n\n", delta(json!({ "tool_calls": [call] })))
    };
    let fragments = fragment("{\"x\":\"") + &fragment(&"}".repeat(100)).repeat(40_000);
    let identifier = format!("id: {}\n", "x".repeat(4 << 20));
    for flood in [fragments, "x\n".repeat(6 << 20), identifier + &"data: {}\n\n".repeat(1 << 20), " ".repeat(15 << 20)]
    {
        let server = server([Answer::new(200).raw(flood, "text/event-stream")]);
        Place::new().ask(&base(&server), &["go", "--stream", "--set", "model.http_retries=0"]).ended(1);
    }
    assert!(began.elapsed() < std::time::Duration::from_mins(4), "{:?}", began.elapsed());
}

#[test]
fn an_answer_without_any_content_is_a_failure() {
    let place = Place::new();
    for (body, wanted) in [
        (json!({ "choices": [] }), "contains no message"),
        (json!({ "choices": [{ "message": { "content": "" } }] }), "neither text nor calls"),
        (json!({ "error": { "message": "no such model" } }), "no such model"),
    ] {
        let server = server([Answer::new(200).json(&body)]);
        let end = place.ask(&base(&server), &["go"]).ended(1);
        assert!(end.stderr.contains(wanted) && end.stdout.is_empty(), "{body}: {end:?}");
    }
}
