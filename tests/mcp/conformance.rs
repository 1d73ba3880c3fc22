//! Tools that the conformance suite calls: each kind of content, a failure, the log, and approvals. The suite itself reads the
//! same answers over HTTP.

use serde_json::{Value, json};

use super::{Client, modern, text};
use crate::crib::{Crib, guest};

/// Flags of the server.
const FLAGS: [&str; 3] =
    ["--tools=conformance.wasm", "--ask-tool=test_elicitation", "--ask-tool=test_input_required_*"];

fn crib() -> Crib {
    let crib = Crib::new();
    std::fs::copy(guest("conformance"), crib.path("conformance.wasm")).expect("the guest was built");
    crib
}

/// Calls a tool without arguments in each revision, and returns the results.
fn results(name: &str) -> [Value; 2] {
    let crib = crib();
    let params = json!({"name": name, "arguments": {}});
    let mut earlier = Client::initialized(&crib, &FLAGS, &json!({}));
    let mut later = Client::start(&crib, &FLAGS);
    [earlier.ask("tools/call", &params), later.ask("tools/call", &modern(params, &json!({})))]
        .map(|mut answer| answer["result"].take())
}

/// Returns the first block of a kind.
fn block<'a>(result: &'a Value, kind: &str) -> &'a Value {
    let content = result["content"].as_array().unwrap_or_else(|| panic!("{result}"));
    content.iter().find(|block| block["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {result}"))
}

#[test]
fn each_kind_of_content_arrives_in_both_revisions() {
    for result in results("test_simple_text") {
        assert_eq!(result["content"][0]["text"], "This is a simple text response for testing.");
    }
    for (name, kind, mime_type) in
        [("test_image_content", "image", "image/png"), ("test_audio_content", "audio", "audio/wav")]
    {
        for result in results(name) {
            let block = block(&result, kind);
            assert!(block["mimeType"] == mime_type && block["data"].is_string(), "{result}");
        }
    }
    for result in results("test_embedded_resource") {
        let resource = &block(&result, "resource")["resource"];
        assert!(resource["mimeType"] == "text/plain" && resource["uri"].is_string(), "{result}");
        assert!(resource["blob"].is_string() || resource["text"].is_string(), "{result}");
    }
    for result in results("test_multiple_content_types") {
        for kind in ["text", "image", "resource"] {
            block(&result, kind);
        }
    }
}

#[test]
fn a_failure_of_a_tool_is_a_result_and_its_log_is_no_message() {
    for result in results("test_error_handling") {
        assert_eq!(result["isError"], true, "{result}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains("intentionally returns an error"), "{result}");
    }
    let crib = crib();
    let mut client = Client::initialized(&crib, &FLAGS, &json!({}));
    assert_eq!(text(&client.call("test_logging_tool", &json!({}))), "The tool has written to the log.");
    assert!(!client.kept.iter().any(|message| message["method"] == "notifications/message"), "{:?}", client.kept);
}

#[test]
fn progress_arrives_from_zero_to_the_end_before_the_result() {
    let crib = crib();
    let mut earlier = Client::initialized(&crib, &FLAGS, &json!({}));
    let mut later = Client::start(&crib, &FLAGS);
    let params = json!({"name": "test_tool_with_progress", "arguments": {}});
    let (mut old, mut new) = (params.clone(), modern(params, &json!({})));
    old["_meta"] = json!({"progressToken": 7});
    new["_meta"]["progressToken"] = json!("seven");
    for (client, params) in [(&mut earlier, &old), (&mut later, &new)] {
        let answer = client.ask("tools/call", params);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let reports: Vec<&Value> = client.kept.iter().map(|message| &message["params"]).collect();
        let numbers: Vec<Option<f64>> = reports.iter().map(|report| report["progress"].as_f64()).collect();
        assert_eq!(numbers, [0.0, 50.0, 100.0].map(Some), "{reports:?}");
        assert!(
            reports.iter().all(|report| report["progressToken"] == params["_meta"]["progressToken"]),
            "{reports:?}"
        );
    }
}

#[test]
fn an_approval_is_requested_only_from_a_client_that_can_ask() {
    let crib = crib();
    let asking = json!({"elicitation": {}});
    let mut earlier = Client::initialized(&crib, &FLAGS, &asking);
    let params = json!({"name": "test_elicitation", "arguments": {"message": "m"}});
    let call = earlier.request("tools/call", &params);
    let question = earlier.wait(|message| message["method"] == "elicitation/create");
    let answer = json!({"action": "accept", "content": {"allow": true}});
    earlier.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    assert_eq!(text(&earlier.answer(call)), "approved: m");

    let mut later = Client::start(&crib, &FLAGS);
    let params = json!({"name": "test_input_required_result_elicitation", "arguments": {}});
    let first = later.ask("tools/call", &modern(params.clone(), &asking));
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    for responses in [json!({"wrong_key": answer}), json!({"approval": 1}), json!({"approval": {"action": "decline"}})]
    {
        let mut wrong = modern(params.clone(), &asking);
        wrong["inputResponses"] = responses;
        let again = later.ask("tools/call", &wrong);
        assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    }
    let refused = later.ask("tools/call", &modern(params, &json!({"sampling": {}})));
    assert!(refused["result"]["isError"] == true && refused["result"].get("inputRequests").is_none(), "{refused}");
}
