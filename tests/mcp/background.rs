//! Calls that go on in the background: across a reload, over a long conversation, and with a question for the command line.

use std::fs;

use serde_json::{Value, json};

use super::{Client, text};
use crate::crib::Crib;

/// Script with calls in the background.
pub(super) const SLOW: &str = "---
parameters:
  n: { type: number, required: true }
async: true
script: |
  def run(args):
      total = 0
      for i in range(args[\"n\"]):
          total += i
      return {\"total\": total}
---
Adds up.
";

pub(super) fn crib() -> Crib {
    let crib = Crib::new();
    fs::create_dir_all(crib.path(".harness/tools")).unwrap();
    fs::write(crib.path(".harness/tools/slow.md"), SLOW).unwrap();
    crib
}

/// Result of a call, as JSON.
fn result(answer: &Value) -> Value {
    serde_json::from_str(text(answer)).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn a_task_outlives_a_reload_and_its_result_is_read_after_it() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &[], &json!({}));
    assert!(client.tools().contains(&"task_await".to_owned()));
    let started = result(&client.call("slow", &json!({"n": 1_000_000})));
    assert_eq!(started, json!({"task_id": "task_1", "status": "running"}));
    fs::write(crib.path(".harness/tools/other.md"), SLOW.replace("Adds up", "Adds up too")).unwrap();
    client.wait(|message| message["method"] == "notifications/tools/list_changed");
    let done = result(&client.call("task_await", &json!({"task_id": "task_1", "timeout_ms": 30_000})));
    assert_eq!((&done["status"], &done["result"]["total"]), (&json!("done"), &json!(499_999_500_000_u64)), "{done}");
    assert_eq!(result(&client.call("other", &json!({"n": 1})))["task_id"], "task_2");
    assert_eq!(client.leave(), Some(0));
    let mut outcomes: Vec<_> = crib.records().iter().map(|record| record["tool"].to_string()).collect();
    outcomes.sort();
    assert_eq!(outcomes, ["\"other\"", "\"slow\"", "\"task_await\""], "each call has one record");
}

#[test]
fn a_long_conversation_starts_any_number_of_tasks_if_it_reads_their_results() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &[], &json!({}));
    for number in 1..=70 {
        let id = format!("task_{number}");
        assert_eq!(result(&client.call("slow", &json!({"n": 3})))["task_id"], id);
        let done = result(&client.call("task_await", &json!({ "task_id": id })));
        assert_eq!(done["result"], json!({"total": 3}), "{done}");
    }
    for number in 71..=200 {
        let answer = client.call("slow", &json!({"n": 3}));
        if answer["result"]["isError"] == true {
            assert!(number > 71 + 60 && text(&answer).contains("64 tasks"), "{number}: {answer}");
            return;
        }
    }
    panic!("nothing bounds the tasks with results that nobody reads");
}

#[test]
fn a_question_about_a_call_in_the_background_waits_for_the_command_line() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &["--ask-tool=slow"], &json!({"elicitation": {}}));
    let refused = client.call("slow", &json!({"n": 3}));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let pending: Value = serde_json::from_str(&crib.run(&["approvals", "pending", "--json"]).stdout).unwrap();
    assert_eq!(
        (&pending[0]["tool"], &pending[0]["client"]),
        (&json!("slow"), &json!("probe 1, in the background: it no longer waits"))
    );
    let id = pending[0]["id"].as_str().unwrap();
    assert_eq!(crib.run(&["approvals", "allow", id]).code, Some(0));
    assert_eq!(result(&client.call("slow", &json!({"n": 3})))["status"], "running");
}
