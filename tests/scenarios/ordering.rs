//! Progress, cancellation, and the calls of one step: scenarios 9 to 11.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::{Runtime, ToolCall, ToolResult};

use super::crib;
use crate::crib::nesting;
use crate::records::watched::{Watched, call, on_threads};

/// Results of one step, in the order in which they are reported.
fn step(runtime: &Runtime, calls: &[(&str, &str, Value)]) -> Vec<ToolResult> {
    let calls = calls.iter().map(|(id, name, arguments)| ToolCall::new(*id, *name, arguments.to_string())).collect();
    on_threads(async {
        let mut step = runtime.open_session().step(calls);
        let mut results = Vec::new();
        while let Some(result) = step.next().await {
            results.push(result);
        }
        results
    })
}

#[test]
fn scenario_09_progress_is_ordered_and_cancellation_is_told_as_it_is() {
    let crib = crib(&[("slow", "sleep", json!({})), ("quick", "echo", json!({}))]);
    let watched = Watched::new();
    let runtime = watched.builder(&crib).build().unwrap();
    call(&runtime, "quick", &json!({"a": 1}));
    on_threads(runtime.prepare("slow")).unwrap();
    let limit = Duration::from_millis(1500);
    on_threads(async {
        tokio::time::timeout(limit, nesting::call(&runtime, ToolCall::new("slow", "slow", "{}"))).await
    })
    .expect_err("it is cut");
    drop(runtime);
    let run = watched.close();
    let output = |call: &str| -> Vec<(u64, String)> {
        let id = &run.of("invocations", call)["invocation_id"];
        let of_it = run.all("progress").iter().filter(|progress| progress["invocation_id"] == *id);
        of_it.map(|one| (one["sequence"].as_u64().unwrap(), one["status"].as_str().unwrap().to_owned())).collect()
    };
    let ordered = |words: &[&str]| (1..).zip(words.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>();
    assert_eq!(output("quick"), ordered(&["queued", "started", "running", "completed"]));
    assert_eq!(output("slow"), ordered(&["queued", "started", "canceled"]));
    assert_eq!(run.of("invocations", "slow")["status"], "canceled");
    let exported = crib.run(&["export", "--format", "agent-tool"]);
    let exported: Value = serde_json::from_str(&exported.stdout).unwrap();
    assert_eq!(exported["execution_profiles"][0]["supports_cancel"], true, "and it is true, as was just seen");
}

#[test]
fn scenario_10_parallel_reads_run_together_while_exclusive_writes_keep_their_order() {
    let safe = |is_safe: bool| json!({"interface": {"is_concurrency_safe": is_safe}});
    let crib = crib(&[("reads", "busy", safe(true)), ("writes", "busy", safe(false))]);
    let watched = Watched::new();
    let runtime = watched.builder(&crib).build().unwrap();
    on_threads(async { runtime.prepare("reads").await.and(runtime.prepare("writes").await) }).unwrap();
    let busy = json!({"ms": 300});
    let calls = [("r1", "reads"), ("r2", "reads"), ("w1", "writes"), ("w2", "writes")];
    let output = step(&runtime, &calls.map(|(id, name)| (id, name, busy.clone())));
    assert_eq!(output.iter().map(|result| result.call_id.as_str()).collect::<Vec<_>>(), ["r1", "r2", "w1", "w2"]);
    drop(runtime);
    let run = watched.close();
    let time = |call: &str, field: &str| run.of("invocations", call)[field].as_str().unwrap().to_owned();
    // A call is recorded after its turn, so the time of its tool's answer counts.
    let answered = |call: &str| {
        let id = &run.of("invocations", call)["invocation_id"];
        let of_it = run.all("progress").iter().find(|one| one["invocation_id"] == *id && one["status"] == "running");
        of_it.unwrap()["timestamp"].as_str().unwrap().to_owned()
    };
    assert!(time("r2", "started_at") < answered("r1") && time("r1", "started_at") < answered("r2"), "together");
    for (before, after) in [("r1", "w1"), ("r2", "w1"), ("w1", "w2")] {
        assert!(answered(before) <= time(after, "started_at"), "{before} answers before {after} starts");
    }
}

#[test]
fn scenario_11_a_siblings_failure_cancels_its_dependants_with_synthetic_results() {
    let writes = json!({"interface": {"is_concurrency_safe": false, "sibling_failure_policy": "cancel_dependent"}});
    let crib = crib(&[("writes", "exit_code", writes)]);
    let watched = Watched::new();
    let runtime = watched.builder(&crib).build().unwrap();
    let output = step(&runtime, &[("first", "writes", json!({"code": 1})), ("second", "writes", json!({"code": 0}))]);
    assert_eq!(output.len(), 2);
    drop(runtime);
    let run = watched.close();
    assert_eq!(run.of("results", "first")["status"], "failed");
    let second = run.of("results", "second");
    assert_eq!(
        (&second["status"], &second["error"]["error_class"]),
        (&json!("synthetic_error"), &json!("sibling_canceled"))
    );
    let call = run.of("invocations", "second");
    assert_eq!((&call["status"], call.get("started_at")), (&json!("canceled"), None));
}
