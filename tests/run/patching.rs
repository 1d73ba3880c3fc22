//! Free-text tool through both APIs: as a custom tool with its grammar, and as a function with one field.

use std::fs;

use serde_json::{Value, json};

use super::place::*;
use crate::answering::{Answer, Server};
use crate::crib::toolbox;

const PATCH: &str = "*** Begin Patch\n*** Update File: notes.md\n one\n-two\n+TWO\n*** End Patch\n";

/// Content of the file after a run with these responses at this path, with the requests and the output.
fn edited(path: &str, answers: [Answer; 2], args: &[&str]) -> (String, Vec<Value>, End) {
    let server: Server = server_at(path, answers);
    let place = Place::new();
    fs::create_dir(place.path("data")).unwrap();
    fs::write(place.path("data/notes.md"), "one\ntwo\n").unwrap();
    let tools = toolbox().display().to_string();
    let all = [&["go", "--json", "--tools", &tools, "--allow-write=data"], args].concat();
    let end = place.ask(&base(&server), &all).ended(0);
    (fs::read_to_string(place.path("data/notes.md")).unwrap(), bodies(&server), end)
}

fn offered(sent: &[Value]) -> Value {
    let tools = sent[0]["tools"].as_array().expect("tools");
    let name = |tool: &&Value| tool["name"] == "apply_patch" || tool["function"]["name"] == "apply_patch";
    tools.iter().find(name).expect("it is offered").clone()
}

#[test]
fn the_same_patch_as_text_and_as_a_function_makes_the_same_edit() {
    let response = |items: Value| {
        let body = json!({ "id": "r", "object": "response", "status": "completed", "error": null, "output": items });
        Answer::new(200).json(body)
    };
    let call = json!({ "type": "custom_tool_call", "id": "c1", "call_id": "a", "name": "apply_patch", "input": PATCH });
    let said = json!({ "type": "message", "id": "m", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": "done", "annotations": [] }] });
    let answers = [response(json!([call])), response(json!([said]))];
    let (custom, sent, end) = edited("/v1/responses", answers, &["--api", "responses"]);
    assert_eq!(custom, "one\nTWO\n");
    let tool = offered(&sent);
    assert_eq!((&tool["type"], &tool["format"]["syntax"]), (&json!("custom"), &json!("lark")));
    let result = sent[1]["input"].as_array().expect("items").last().expect("a result").clone();
    assert_eq!(
        result,
        json!({ "type": "custom_tool_call_output", "call_id": "a", "output": "edited notes.md (+1 -1)" })
    );
    let preview = end.events().into_iter().find(|event| event["type"] == "tool_preview").expect("a preview");
    assert_eq!(preview["text"], "edit notes.md (+1 -1)");

    let chat = |message: Value| {
        let body = json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": message }] });
        Answer::new(200).json(body)
    };
    let arguments = json!({ "patch": PATCH }).to_string();
    let call = json!({ "id": "a", "type": "function", "function": { "name": "apply_patch", "arguments": arguments } });
    let answers = [
        chat(json!({ "role": "assistant", "content": null, "tool_calls": [call] })),
        chat(json!({ "role": "assistant", "content": "done" })),
    ];
    let (function, sent, _) = edited("/v1/chat/completions", answers, &[]);
    assert_eq!(function, custom);
    let tool = offered(&sent);
    assert_eq!(tool["function"]["parameters"]["required"], json!(["patch"]));
    let result = sent[1]["messages"].as_array().expect("messages").last().expect("a result").clone();
    assert_eq!(result["content"], "edited notes.md (+1 -1)");
}
