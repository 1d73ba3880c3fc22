//! Background calls: answered with a task at once, polled and awaited, ended with the run, each in one record.

use serde_json::{Value, json};

use super::*;

/// Tool with background calls.
const SLOW: &str = "---
parameters:
  n: { type: number, required: true }
async: true
script: |
  def run(args):
      total = 0
      for i in range(args[\"n\"]):
          total += i
      if total == 1:
          fail(\"told to fail\")
      return {\"total\": total}
---
Adds up.
";

fn contents(ran: &Ran) -> Vec<Value> {
    let content = |result: &Value| serde_json::from_str(result["content"].as_str().expect("text")).expect("JSON");
    results(ran).iter().map(content).collect()
}

#[test]
fn a_model_polls_and_awaits_in_one_run() {
    let crib = project(&[(".harness/tools/slow.md", SLOW)]);
    let script = json!({"prompt": "go", "turns": [
        calls("slow", json!({"n": 3_000_000})),
        calls("task_poll", json!({"task_id": "task_1"})),
        calls("task.await", json!({"task_id": "task_1", "timeout_ms": 30_000})),
        calls("task_await", json!({"task_id": "task_1"})),
        {"content": "done"},
    ]});
    let ran = play(&crib, &script, &[]);
    let done =
        json!({"task_id": "task_1", "tool": "slow", "status": "done", "result": {"total": 4_499_998_500_000_u64}});
    assert_eq!(contents(&ran)[0], json!({"task_id": "task_1", "status": "running"}), "{ran:?}");
    assert_eq!(contents(&ran)[1]["task_id"], "task_1");
    assert_eq!(contents(&ran)[2..], [done.clone(), done], "the result stays: {ran:?}");
    let mut records: Vec<_> =
        crib.records().iter().map(|record| (record["tool"].clone(), record["outcome"].clone())).collect();
    records.sort_by_key(|(tool, _)| tool.to_string());
    let names = ["slow", "task_await", "task_await", "task_poll"];
    assert_eq!(records, names.map(|name| (json!(name), json!("ok"))).to_vec());
}

#[test]
fn a_refused_call_is_no_task_and_a_failure_is_told_by_its_task() {
    let crib = project(&[(".harness/tools/slow.md", SLOW)]);
    let script = json!({"prompt": "go", "turns": [
        {"tool_calls": [
            {"name": "slow", "arguments": {"n": "many"}},
            {"name": "slow", "arguments": {"n": 2}},
            {"name": "task_await", "arguments": {"task_id": "task_1"}},
            {"name": "task_poll", "arguments": {"task_id": "task_9"}},
        ]},
        {"content": "done"},
    ]});
    let ran = play(&crib, &script, &[]);
    let output = contents(&ran);
    assert!(output[0]["error"].as_str().is_some_and(|error| error.starts_with("invalid arguments")), "{ran:?}");
    assert_eq!(output[1], json!({"task_id": "task_2", "status": "running"}), "each call has its own number");
    assert_eq!(output[2]["error"].as_str().map(|error| &error[..17]), Some("no task `task_1` "), "{ran:?}");
    let again = play(
        &crib,
        &json!({"prompt": "go", "turns": [
            calls("slow", json!({"n": 2})),
            calls("task_await", json!({"task_id": "task_1"})),
            calls("task_poll", json!({"task_id": "task_9"})),
            {"content": "done"},
        ]}),
        &[],
    );
    let output = contents(&again);
    let failed = json!({"task_id": "task_1", "tool": "slow", "status": "failed", "error": "tool error: told to fail"});
    assert_eq!(output[1], failed, "{again:?}");
    assert_eq!(output[2]["error"], "no task `task_9` in this run (task_1)");
}

#[test]
fn the_end_of_the_run_ends_its_tasks_and_signs_for_them() {
    let crib = project(&[(".harness/tools/slow.md", SLOW)]);
    let script = json!({"prompt": "go", "turns": [calls("slow", json!({"n": 1_000_000_000})), {"content": "done"}]});
    let begun = std::time::Instant::now();
    let ran = play(&crib, &script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(begun.elapsed().as_secs() < 20, "the run waits for no task: {:?}", begun.elapsed());
    let records = crib.records();
    assert_eq!((records.len(), &records[0]["outcome"]), (1, &json!("cancelled")), "{records:?}");
}

#[test]
fn a_call_outside_a_run_waits_and_a_run_begins_so_many() {
    let crib = project(&[(".harness/tools/slow.md", SLOW)]);
    let line = crib.call("slow", &json!({"n": 4}), &[]);
    assert_eq!(line["result"], json!({"total": 6}), "{line}");
    let many: Vec<Value> =
        (0..66).map(|id| json!({"id": format!("c{id}"), "name": "slow", "arguments": {"n": 3}})).collect();
    let ran = play(&crib, &json!({"prompt": "go", "turns": [{"tool_calls": many}, {"content": "done"}]}), &[]);
    let output = contents(&ran);
    let refused: Vec<_> = output.iter().filter_map(|output| output["error"].as_str()).collect();
    assert_eq!(refused, ["this run has already started 64 tasks, the maximum"; 2], "{output:?}");
}
