//! Responses API: requests, and the handling of whole responses, streams and ends.

use serde_json::{Value, json};

use super::place::*;
use crate::answering::{Answer, Server};

fn responses(answers: impl IntoIterator<Item = Answer>) -> Server {
    server_at("/v1/responses", answers)
}

/// Runs against a server with this API.
fn ask(place: &Place, server: &Server, args: &[&str]) -> End {
    place.ask(&base(server), &[&["go", "--api", "responses"], args].concat())
}

/// Complete response with this output.
fn output(items: Value) -> Answer {
    Answer::new(200).json(response("completed", items))
}

fn response(status: &str, items: Value) -> Value {
    let usage = json!({ "input_tokens": 3, "output_tokens": 4, "total_tokens": 7 });
    json!({ "id": "resp_1", "object": "response", "status": status, "error": null, "output": items, "usage": usage })
}

fn text(text: &str) -> Value {
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
}

fn function(name: &str, id: &str, arguments: &str) -> Value {
    json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments })
}

fn custom(name: &str, id: &str, input: &str) -> Value {
    json!({ "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": id, "name": name, "input": input })
}

fn done() -> Answer {
    output(json!([text("done")]))
}

/// Stream of these events, each under its own name.
fn events(events: &[Value]) -> Answer {
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    Answer::new(200).raw(events.iter().map(line).collect::<String>(), "text/event-stream")
}

fn event(kind: &str, fields: Value) -> Value {
    let mut event = json!({ "type": format!("response.{kind}") });
    for (name, value) in fields.as_object().expect("fields") {
        event[name.as_str()] = value.clone();
    }
    event
}

#[test]
fn a_request_has_the_form_of_the_api() {
    let server = responses([output(json!([function("echo", "a", "{\"n\":1}")])), done()]);
    let place = Place::new();
    let end = ask(&place, &server, &["--system", "be kind", "--developer", "one", "--set", "model.top_p=0.5"]).ended(0);
    assert_eq!(end.stdout, "done\n");
    let sent = bodies(&server);
    let keys: Vec<_> = sent[0].as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["model", "input", "tools", "parallel_tool_calls", "top_p", "store", "include"]);
    assert_eq!((&sent[0]["store"], &sent[0]["parallel_tool_calls"]), (&json!(false), &json!(true)));
    let parameters = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    assert_eq!(
        sent[0]["tools"][0],
        json!({ "type": "function", "name": "echo", "description": "the tool echo", "parameters": parameters, "strict": false })
    );
    let message = |role: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
    let mut input = vec![message("system", "be kind"), message("developer", "one"), message("user", "go")];
    assert_eq!(sent[0]["input"], json!(input));
    input.push(json!({ "type": "function_call", "call_id": "a", "name": "echo", "arguments": "{\"n\":1}" }));
    input.push(json!({ "type": "function_call_output", "call_id": "a", "output": "{\"n\":1}" }));
    assert_eq!(sent[1]["input"], json!(input));
    let asked = place
        .ask(&base(&server), &["go", "--api", "responses", "--dry-run", "--stream", "--set", "model.temperature=1"])
        .ended(0);
    let printed: Value = serde_json::from_str(&asked.stdout).expect("JSON");
    assert_eq!(
        (&printed["stream"], &printed["temperature"], printed.get("messages")),
        (&json!(true), &json!(1.0), None)
    );
    assert_eq!(bodies(&server).len(), 2, "a dry run sends nothing");
}

#[test]
fn calls_of_both_kinds_are_answered_in_their_order() {
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" });
    let calls =
        [function("echo", "a", "{\"n\":1}"), custom("no_such", "b", "*** Begin\n"), function("echo", "c", "{\"n\":3}")];
    let [a, b, c] = calls.clone();
    let server = responses([output(json!([reasoning, text("let me see"), a, b, c])), done()]);
    let place = Place::new();
    let end = ask(&place, &server, &["--save-messages", "talk.json", "--json"]).ended(0);
    let events = end.events();
    let told = |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    let called = told("tool_call");
    assert_eq!(
        called[1],
        json!({ "type": "tool_call", "step": 1, "id": "b", "name": "no_such", "arguments": "*** Begin\n", "custom": true })
    );
    assert_eq!((called.len(), called[0].get("custom")), (3, None));
    assert_eq!(told("usage")[0]["totalTokens"], 7);
    let input = bodies(&server)[1]["input"].take();
    let input = input.as_array().expect("items");
    assert_eq!(input[1], reasoning);
    assert_eq!(input[2]["content"], json!("let me see"));
    let kinds: Vec<_> = input[3..]
        .iter()
        .map(|item| (item["type"].as_str().expect("a type"), item["call_id"].as_str().expect("a call")))
        .collect();
    let wanted = [
        ("function_call", "a"),
        ("custom_tool_call", "b"),
        ("function_call", "c"),
        ("function_call_output", "a"),
        ("custom_tool_call_output", "b"),
        ("function_call_output", "c"),
    ];
    assert_eq!(kinds, wanted);
    assert_eq!((&input[4]["input"], &input[8]["output"]), (&json!("*** Begin\n"), &json!("{\"n\":3}")));
    assert!(input[7]["output"].as_str().expect("text").contains("no_such"), "{input:?}");

    let saved = place.json("talk.json");
    assert_eq!(
        saved[1]["tool_calls"][1],
        json!({ "id": "b", "type": "custom", "custom": { "name": "no_such", "input": "*** Begin\n" } })
    );
    assert_eq!(saved[1]["output_items"], json!([reasoning, "text", "call", "call", "call"]));
    // The same conversation continues with the other API, which cannot express reasoning.
    let chat = self::server([says("well")]);
    place.ask(&base(&chat), &["and now?", "--load-messages", "talk.json"]).ended(0);
    let messages = bodies(&chat)[0]["messages"].take();
    assert_eq!((messages[1].get("output_items"), &messages[1]["tool_calls"]), (None, &saved[1]["tool_calls"]));
    let again = responses([done()]);
    place.ask(&base(&again), &["and now?", "--load-messages", "talk.json", "--api", "responses"]).ended(0);
    assert_eq!(bodies(&again)[0]["input"].as_array().expect("items")[..9], input[..]);
}

#[test]
fn a_stream_of_text_and_calls_is_put_together() {
    let call = |id: &str| json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "echo", "arguments": "" });
    let added = |at: u64, item: Value| event("output_item.added", json!({ "output_index": at, "item": item }));
    let arguments = |at: u64, id: &str, delta: &str| {
        event("function_call_arguments.delta", json!({ "output_index": at, "item_id": id, "delta": delta }))
    };
    let saying =
        |delta: &str| event("output_text.delta", json!({ "output_index": 0, "item_id": "msg_1", "delta": delta }));
    let first = [
        event("created", json!({ "response": response("in_progress", json!([])) })),
        added(0, json!({ "type": "message", "id": "msg_1", "content": [] })),
        saying("let me "),
        saying("see"),
        added(1, call("a")),
        added(2, call("b")),
        arguments(2, "fc_b", "{\"n\""),
        arguments(1, "fc_a", "{\"n\":1}"),
        arguments(2, "fc_b", ":2}"),
        event("completed", json!({ "response": response("completed", json!([])) })),
    ];
    let server = responses([
        events(&first),
        events(&[event("completed", json!({ "response": response("completed", json!([text("done")])) }))]),
    ]);
    let place = Place::new();
    let end = ask(&place, &server, &["--stream"]).ended(0);
    assert_eq!(end.stdout, "let me see\ndone\n");
    let input = bodies(&server)[1]["input"].take();
    let outputs: Vec<_> = input.as_array().expect("items").iter().filter_map(|item| item["output"].as_str()).collect();
    assert_eq!(outputs, ["{\"n\":1}", "{\"n\":2}"]);

    // Events that do not repeat their type in their data.
    let nameless = format!(
        "event: response.output_text.delta\ndata: {}\n\nevent: response.completed\ndata: {}\n\n",
        json!({ "delta": "hello" }),
        json!({ "response": {} })
    );
    let server = responses([Answer::new(200).raw(nameless, "text/event-stream")]);
    assert_eq!(ask(&place, &server, &["--stream"]).ended(0).stdout, "hello\n");
}

#[test]
fn a_cut_stream_executes_nothing() {
    let place = Place::new();
    let item = event("output_item.done", json!({ "output_index": 0, "item": function("echo", "a", "{\"n\":1}") }));
    let text = event("output_item.done", json!({ "output_index": 0, "item": custom("echo", "a", "{\"n\":1}") }));
    for body in [vec![item.clone()], vec![text], vec![item, json!("[DONE]")]] {
        let lines: String = body
            .iter()
            .map(|event| match event {
                Value::String(text) => format!("data: {text}\n\n"),
                event => format!("data: {event}\n\n"),
            })
            .collect();
        let server = responses([Answer::new(200).raw(lines, "text/event-stream")]);
        let end = ask(&place, &server, &["--set", "model.http_retries=1"]).ended(1);
        assert!(end.stderr.contains("the stream was cut before the answer was complete"), "{}", end.stderr);
        assert_eq!((bodies(&server).len(), place.audited()), (2, Vec::<String>::new()));
    }
}

#[test]
fn an_end_that_is_none_is_told() {
    let place = Place::new();
    let incomplete = |reason: &str, items: Value| {
        let mut body = response("incomplete", items);
        body["incomplete_details"] = json!({ "reason": reason });
        Answer::new(200).json(body)
    };
    for (reason, wanted) in [
        ("max_output_tokens", "the answer was cut at the server's token limit"),
        ("content_filter", "the server's content filter withheld part of the answer"),
    ] {
        let server = responses([incomplete(reason, json!([text("half")]))]);
        let end = ask(&place, &server, &[]).ended(0);
        assert!(end.stdout == "half\n" && end.stderr.contains(wanted), "{end:?}");
    }
    for (details, wanted) in [
        (Value::Null, "the server marked the answer as incomplete\n"),
        (json!({}), "the server marked the answer as incomplete\n"),
        (json!({ "reason": "weather\u{1b}[2J" }), "the server marked the answer as incomplete: weather"),
    ] {
        let mut body = response("incomplete", json!([text("half")]));
        body["incomplete_details"] = details;
        let streamed = events(&[event("incomplete", json!({ "response": body.clone() }))]);
        for answer in [Answer::new(200).json(body), streamed] {
            let server = responses([answer]);
            let end = ask(&place, &server, &[]).ended(0);
            assert!(end.stdout == "half\n" && end.stderr.contains(wanted), "{end:?}");
            assert!(!end.stderr.contains('\u{1b}'), "{end:?}");
        }
    }
    let server = responses([incomplete("max_output_tokens", json!([custom("echo", "a", "{\"n\":1}")]))]);
    let end = ask(&place, &server, &[]).ended(1);
    assert!(end.stderr.contains("cut a call short") && place.audited().is_empty(), "{end:?}");

    let failed = |code: &str| {
        let mut response = response("failed", json!([]));
        response["error"] = json!({ "code": code, "message": "so \u{1b}[31msorry" });
        response
    };
    for (code, attempts) in [("server_error", 2), ("rate_limit_exceeded", 2), ("invalid_prompt", 1)] {
        let whole = Answer::new(200).json(failed(code));
        let streamed = events(&[event("failed", json!({ "response": failed(code) }))]);
        let bare = events(&[json!({ "type": "error", "code": code, "message": "so sorry" })]);
        for answer in [whole, streamed, bare] {
            let server = responses([answer]);
            let end = ask(&place, &server, &["--set", "model.http_retries=1"]).ended(1);
            assert!(end.stderr.contains("the server reports: so") && !end.stderr.contains('\u{1b}'), "{}", end.stderr);
            assert_eq!(bodies(&server).len(), attempts, "{code}");
        }
    }
    let server = responses([Answer::new(200).json(json!({ "choices": [] }))]);
    assert!(ask(&place, &server, &[]).ended(1).stderr.contains("contains no message"));
}

#[test]
fn what_a_model_refuses_is_left_out_of_every_later_request() {
    let refuses = |status: u16, text: &str| Answer::new(status).json(json!({ "error": { "message": text } }));
    let answers = [
        refuses(400, "Encrypted content is not supported with this model."),
        refuses(400, "Unsupported parameter: 'temperature'"),
        output(json!([function("echo", "a", "{}")])),
        done(),
    ];
    let server = responses(answers);
    let end = ask(&Place::new(), &server, &["--set", "model.temperature=1", "--set", "model.http_retries=0"]).ended(0);
    assert!(end.stderr.contains("does not support a temperature"), "{}", end.stderr);
    let has = |body: &Value| (body.get("include").is_some(), body.get("temperature").is_some());
    let sent: Vec<_> = bodies(&server).iter().map(has).collect();
    assert_eq!(sent, [(true, true), (false, true), (false, false), (false, false)]);
}

#[test]
fn a_server_without_this_api_is_told_apart() {
    let server = server([says("hello")]);
    let end = ask(&Place::new(), &server, &[]).ended(1);
    assert!(end.stderr.contains("many servers have only `--api chat`"), "{}", end.stderr);
}

#[test]
fn the_api_is_chosen_by_flag_else_by_variable() {
    let place = Place::new();
    let config = |args: &[&str], variables: &[(&str, &str)], code| {
        let mut command = place.command(&[&["--print-config"], args].concat());
        end(command.envs(variables.iter().copied())).ended(code)
    };
    let chosen = |args: &[&str], variables: &[(&str, &str)]| {
        let config: Value = serde_json::from_str(&config(args, variables, 0).stdout).expect("JSON");
        (config["api"].clone(), config["from"]["api"].clone(), config["customTools"].clone())
    };
    assert_eq!(chosen(&[], &[]), (json!("chat"), json!("default"), json!(true)));
    let variable = [("OAI_API", "Responses"), ("OAI_NO_CUSTOM_TOOLS", "1")];
    assert_eq!(chosen(&[], &variable), (json!("responses"), json!("OAI_API"), json!(false)));
    assert_eq!(chosen(&["--api", "chat"], &variable), (json!("chat"), json!("--api"), json!(false)));
    assert_eq!(chosen(&["--set=model.custom_tools=false"], &[("OAI_NO_CUSTOM_TOOLS", "0")]).2, json!(false));
    for (name, value) in [("OAI_API", "soap"), ("OAI_NO_CUSTOM_TOOLS", "maybe")] {
        let end = config(&[], &[(name, value)], 2);
        assert!(end.stderr.contains(&format!("`{name}` is `{value}`")), "{}", end.stderr);
    }
}

#[test]
fn a_script_plays_calls_that_carry_text_or_have_no_name() {
    let place = Place::new();
    let script = place.script(json!([
        { "tool_calls": [{ "name": "no_such", "input": "*** Begin" }, { "arguments": { "n": 1 } }, { "name": "echo", "arguments": { "n": 2 } }] },
        { "content": "done" },
    ]));
    for api in ["chat", "responses"] {
        let end = place.run(&["--script", &script, "--api", api, "--save-messages", "talk.json"]).ended(0);
        assert_eq!(end.stdout, "done\n");
        let talk = place.json("talk.json");
        assert_eq!(talk[1]["tool_calls"][0]["custom"], json!({ "name": "no_such", "input": "*** Begin" }));
        assert_eq!(talk[1]["tool_calls"][1]["function"]["name"], "unnamed");
        assert_eq!((&talk[2]["tool_call_id"], &talk[4]["content"]), (&json!("call_1"), &json!("{\"n\":2}")));
        assert!(talk[3]["content"].as_str().expect("text").contains("error"), "{talk}");
    }
}
