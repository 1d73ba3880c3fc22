//! With `--code` a model is shown the tools for programs alone, however many tools there are.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;

/// Names of the tools in the request of a run.
fn shown(crib: &Crib, flags: &[&str]) -> Vec<String> {
    definitions(crib, flags).iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn definitions(crib: &Crib, flags: &[&str]) -> Vec<Value> {
    let ran = crib.run(&[&["run", "--dry-run", "--model=m", "go"], flags].concat());
    let request: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
    request["tools"].as_array().unwrap().clone()
}

/// Results of the calls of a scripted run, by their order.
fn results(crib: &Crib, calls: &[Value], flags: &[&str]) -> Vec<Value> {
    let turns: Vec<Value> =
        calls.iter().map(|call| json!({"tool_calls": [call]})).chain([json!({"content": "done"})]).collect();
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let ran = crib.run(&[&["run", "--json", "--script=script.json", "--max-steps=100"], flags].concat());
    let events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let results: Vec<Value> = events.filter(|event| event["type"] == "tool_result").collect();
    assert_eq!(results.len(), calls.len(), "{}{}", ran.stdout, ran.stderr);
    results
}

#[test]
fn a_model_is_shown_the_tools_for_programs_alone() {
    let crib = Crib::new();
    assert_eq!(shown(&crib, &["--code", "--tools=builtin"]), ["run_code", "search_tools", "describe_tool"]);
    let direct = "--set=sources.direct=[\"fs_st*\"]";
    assert_eq!(
        shown(&crib, &["--code", "--tools=builtin", "--allow-read=work", direct]),
        ["fs_stat", "run_code", "search_tools", "describe_tool"]
    );
}

#[test]
fn a_tool_states_who_may_call_it() {
    let crib = Crib::with_guests(&["echo"]);
    let entry = |name: &str, callers: &str| {
        let mut entry = crib.entry("echo");
        entry["name"] = json!(name);
        entry["interface"] = json!({"callers": callers});
        entry
    };
    crib.manifest(&json!({"tools": [entry("one", "direct"), entry("two", "code"), entry("three", "both")]}));
    assert_eq!(shown(&crib, &["--code"]), ["one", "three", "run_code", "search_tools", "describe_tool"]);
    assert_eq!(shown(&crib, &[]), ["one", "two", "three"], "without programs it makes no difference");
    let code = |code: &str| json!({"name": "run_code", "arguments": {"code": code}});
    let calls = [
        code("tools.one()"),
        code("[tools.two(), tools.three()]"),
        json!({"name": "two", "arguments": {}}),
        json!({"name": "one", "arguments": {}}),
    ];
    let results = results(&crib, &calls, &["--code"]);
    let text = |at: usize| results[at].to_string();
    assert!(text(0).contains("there is no tool `one`"), "{}", text(0));
    assert!(text(1).contains("value"), "{}", text(1));
    assert!(text(2).contains("called by programs alone"), "{}", text(2));
    assert!(!text(3).contains("error"), "{}", text(3));
}

#[test]
fn many_tools_cost_a_model_no_more_than_few() {
    let crib = Crib::with_guests(&["echo"]);
    let tool = |n: usize| {
        let mut entry = crib.entry("echo");
        entry["name"] = json!(format!("tool_{n}"));
        entry["description"] = json!(format!("Does task number {n} for the weather of town {n}"));
        entry
    };
    crib.manifest(&json!({"tools": (0..2000).map(tool).collect::<Vec<_>>()}));
    let definitions = definitions(&crib, &["--code"]);
    assert_eq!(definitions.len(), 3);
    let bytes = json!(definitions).to_string().len();
    assert!(bytes < 6 << 10, "{bytes} bytes");
    let calls = [
        json!({"name": "search_tools", "arguments": {"query": "weather town 1234", "max_results": 3}}),
        json!({"name": "describe_tool", "arguments": {"names": ["tool_1234", "tool_99999"]}}),
        json!({"name": "run_code", "arguments": {"code": "tools.tool_1234()"}}),
        json!({"name": "describe_tool", "arguments": {"names": ["nothing_like_it"]}}),
    ];
    let results = results(&crib, &calls, &["--code"]);
    let found = results[0].to_string();
    assert!(found.contains("tool_1234") && found.contains("town 1234"), "{found}");
    let described = results[1].to_string();
    assert!(described.contains("tool_1234") && described.contains("`tool_99999`"), "{described}");
    assert!(results[2].to_string().contains("value"), "{}", results[2]);
    assert!(results[3].to_string().contains("no program can call"), "{}", results[3]);
}

#[test]
fn few_tools_are_described_beside_the_tool_that_runs_programs() {
    let crib = Crib::with_guests(&["echo"]);
    crib.manifest(&json!({"tools": [crib.entry("echo")]}));
    let run_code = definitions(&crib, &["--code"])[0].to_string();
    assert!(run_code.contains("echo(") && !run_code.contains("find them with"), "{run_code}");
}

#[test]
fn a_tool_of_a_source_with_the_name_of_a_tool_for_programs_keeps_it() {
    let crib = Crib::with_guests(&["echo"]);
    let mut entry = crib.entry("echo");
    entry["name"] = json!("search_tools");
    crib.manifest(&json!({ "tools": [entry] }));
    let ran = crib.run(&["run", "--dry-run", "--model=m", "--code", "go"]);
    assert!(ran.stderr.contains("`search_tools`"), "{}", ran.stderr);
    let called = crib.call("search_tools", &json!({"query": "x"}), &[]);
    assert_eq!(called["result"], json!({"query": "x"}), "{called}");
}

#[test]
fn what_is_not_offered_is_said() {
    let crib = Crib::with_guests(&["echo"]);
    let mut entry = crib.entry("echo");
    entry["name"] = json!("run_code");
    crib.manifest(&json!({ "tools": [crib.entry("echo"), entry] }));
    let ran = crib.run(&["run", "--dry-run", "--model=m", "--code", "go"]);
    assert!(ran.stderr.contains("no programs are offered, and all tools are shown"), "{}", ran.stderr);
    assert_eq!(shown(&crib, &["--code"]), ["echo", "run_code"]);
    crib.manifest(&json!({ "tools": [crib.entry("echo")] }));
    let ran = crib.run(&["run", "--dry-run", "--model=m", "--code", "--set=sources.direct=[\"ehco\"]", "go"]);
    assert!(ran.stderr.contains("`sources.direct`: `ehco` matches no loaded tool"), "{}", ran.stderr);
    let line = crib.call("describe_tool", &json!({"names": ["fs_stat"]}), &["--tools=builtin"]);
    assert!(line["error"].as_str().unwrap().contains("granted nothing that it needs"), "{line}");
}
