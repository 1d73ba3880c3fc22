//! Rich tools through the built program, as a person uses them.

use serde_json::{Value, json};

use super::crib;

#[test]
fn text_goes_to_a_tool_that_takes_text() {
    let crib = crib();
    std::fs::write(crib.path("text.txt"), "from a file").unwrap();
    for (args, expected) in [
        (&["call", "raw", "--text", "abc"][..], "\"received 3 bytes\"\n"),
        (&["call", "raw", "--text", "@text.txt"], "\"received 11 bytes\"\n"),
        (&["call", "raw", r#"{"input":"abc"}"#], "\"received 3 bytes\"\n"),
        (&["call", "", "--text", "abcd"], "\"received 4 bytes\"\n"),
    ] {
        let ran = crib.run(&[args, &["--tools", "rich.wasm"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), expected), "{args:?}: {ran:?}");
    }
}

#[test]
fn settings_give_tools_their_configuration_and_a_context_overrides_none() {
    let crib = crib();
    std::fs::write(crib.path("toolcrib.toml"), "[config.prepared]\ntoken = 'set'\n[routes]\nsay = 'echo'\n").unwrap();
    let context = r#"{"config":{"token":"mine"},"more":1}"#;
    let ran = crib.run(&["call", "prepared", "--tools", "rich.wasm", "--context", context]);
    assert!(ran.stdout.starts_with("\"set "), "{ran:?}");
    assert!(ran.stderr.contains("the context key `config` is reserved for the host"), "{ran:?}");
    let ran = crib.run(&["call", "say", r#"{"value":"x"}"#, "--tools", "rich.wasm"]);
    assert_eq!(ran.stdout, "\"x\"\n", "{ran:?}");
}

#[test]
fn definitions_are_made_for_their_target() {
    let crib = crib();
    let schema = |target: &str| -> Value {
        let ran = crib.run(&["schema", "raw", "--tools", "rich.wasm", "--for", target]);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()[0].clone()
    };
    let chat = schema("openai-chat");
    assert_eq!(chat["type"], "function");
    assert_eq!(chat["function"]["parameters"]["required"], json!(["input"]));
    let responses = schema("openai-responses");
    assert_eq!((&responses["type"], &responses["format"]["syntax"]), (&json!("custom"), &json!("lark")));
}

#[test]
fn the_same_text_reaches_a_tool_as_a_custom_call_and_as_a_function() {
    let crib = crib();
    let run = |call: Value| {
        let script = json!({"prompt": "go", "turns": [{"tool_calls": [call]}, {"content": "x"}]});
        std::fs::write(crib.path("script.json"), script.to_string()).unwrap();
        let ran = crib.run(&["run", "--script", "script.json", "--tools", "rich.wasm", "--json"]);
        let mut events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.find(|event| event["type"] == "tool_result").unwrap()["content"].clone()
    };
    let text = "line one\nline two";
    assert_eq!(run(json!({"name": "raw", "input": text})), "received 17 bytes");
    assert_eq!(run(json!({"name": "raw", "arguments": {"input": text}})), "received 17 bytes");
    assert_eq!(run(json!({"input": text})), "received 17 bytes", "and without a name to whoever claims it");
}
