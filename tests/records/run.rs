//! Agent Tool records of calls: their content, excluded content, and complete writes.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use toolcrib::call::Behavior;
use toolcrib::hook::{FinishedCall, Hook, Modification, ProposedCall, Review, Verdict};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Policy, Rule};
use toolcrib::{HandlerError, Results, ToolCall};
#[cfg(unix)]
use toolcrib_agent_tool::{AgentToolRecorder, Error};

use super::standard::Standard;
use super::watched::{Run, Watched, call, on_threads};
use crate::crib::Crib;
#[cfg(unix)]
use crate::crib::until_started;

/// Hook with a constant verdict and review.
struct Says(Verdict, Review);

impl Hook for Says {
    fn name(&self) -> &str {
        "says"
    }

    fn before<'a>(&'a self, _: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        ready(Ok(self.0.clone())).boxed()
    }

    fn after<'a>(&'a self, _: FinishedCall<'a>) -> BoxFuture<'a, Result<Review, HandlerError>> {
        ready(Ok(self.1.clone())).boxed()
    }
}

/// Approver with a constant answer.
struct Answers(ApprovalAnswer);

impl Approver for Answers {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        ready(self.0.clone()).boxed()
    }
}

fn rule(behavior: Behavior, pattern: &str) -> Rule {
    Rule::new(behavior, pattern.parse().unwrap(), "test")
}

fn modify(arguments: Value) -> Verdict {
    Verdict::Modify(Modification::new(arguments).source("test").reason("to try it"))
}

/// Creates a crib with a tool `echo` that takes a sensitive `token`, and tools with other outcomes.
fn crib() -> Crib {
    let crib = Crib::with_guests(&["echo", "exit_code", "big_result", "sleep", "empty"]);
    let properties = json!({"a": {}, "path": {"type": "string"}, "token": {"type": "string", "format": "password"}});
    let mut tools: Vec<_> = ["exit_code", "big_result", "sleep", "empty"].map(|name| crib.entry(name)).into();
    tools.push(json!({
        "name": "echo", "command": ["./tools/bin/echo"],
        "schema": {"type": "object", "properties": properties, "additionalProperties": false},
        "interface": {"ui_summary": "echo {a}", "error_render_hint": "no echo of {a}"},
    }));
    tools.push(json!({
        "name": "open", "command": ["./tools/bin/echo"], "interface": {"native_ids": {"mcp": "server/open"}},
    }));
    crib.manifest(&json!({ "tools": tools }));
    crib
}

/// Agent Tool records of calls with every outcome.
fn every_end() -> Run {
    let (watched, crib) = (Watched::new(), crib());
    let policy = [(Behavior::Deny, "open(a=secret)"), (Behavior::Ask, "open(a=risky)")];
    let policy = policy.into_iter().fold(Policy::default(), |policy, (what, which)| policy.rule(rule(what, which)));
    let builder = |hook: Option<Says>, answer| {
        let builder = watched.builder(&crib).policy(policy.clone()).approver(Arc::new(Answers(answer)));
        let builder = builder.results(Results::folder(crib.path("results"))).max_inline(1000);
        hook.into_iter().fold(builder, |builder, hook| builder.hook(Arc::new(hook))).build().unwrap()
    };
    let plain = builder(None, ApprovalAnswer::Once);
    call(&plain, "open", &json!({"a": 1}));
    call(&plain, "open", &json!({"a": "risky"}));
    call(&plain, "open", &json!({"a": "secret"}));
    call(&plain, "exit_code", &json!({"code": 1, "stderr": "it broke"}));
    call(&plain, "exit_code", &json!({"code": 0, "stdout": "not json"}));
    call(&plain, "echo", &json!({"unknown": 1}));
    call(&plain, "echo", &json!({"a": 1, "token": "hunter22"}));
    call(&plain, "no_such_tool", &json!({}));
    call(&plain, "big_result", &json!({"bytes": 5000}));
    call(&plain, "empty", &json!({}));
    call(&plain, "read_result", &json!({"reference": "res_no"}));
    on_threads(async {
        tokio::time::timeout(Duration::from_millis(1500), plain.call(ToolCall::new("cut", "sleep", "{}"))).await
    })
    .unwrap_err();
    call(&builder(None, ApprovalAnswer::No), "open", &json!({"a": "risky"}));
    call(&builder(Some(Says(modify(json!({"a": 2})), Review::Pass)), ApprovalAnswer::No), "open", &json!({"a": 1}));
    call(&builder(Some(Says(Verdict::Block("no".into()), Review::Pass)), ApprovalAnswer::No), "open", &json!({}));
    call(&builder(Some(Says(Verdict::Allow, Review::Block("no".into()))), ApprovalAnswer::No), "open", &json!({}));
    let failed = builder(Some(Says(Verdict::Pass, Review::Pass)), ApprovalAnswer::No);
    call(&failed, "exit_code", &json!({"code": 1}));
    drop((plain, failed));
    watched.close()
}

#[test]
fn every_record_of_every_end_follows_the_standard() {
    let Some(mut standard) = Standard::find() else { return };
    for (kind, records) in every_end().kinds() {
        assert!(!records.is_empty(), "no {kind}");
        standard.check(kind, records);
    }
    standard.settle("run");
}

#[test]
fn every_end_has_its_own_words() {
    let run = every_end();
    let ends: Vec<_> = run
        .all("results")
        .iter()
        .map(|result| {
            let invocation =
                run.all("invocations").iter().find(|call| call["invocation_id"] == result["invocation_id"]);
            let class = result["error"]["error_class"].as_str().unwrap_or("-");
            (invocation.unwrap()["status"].as_str().unwrap(), result["status"].as_str().unwrap(), class)
        })
        .collect();
    let expected = [
        ("succeeded", "succeeded", "-"),
        ("succeeded", "succeeded", "-"),
        ("denied", "denied", "policy_blocked"),
        ("failed", "failed", "execution_failed"),
        ("failed", "failed", "execution_failed"),
        ("validation_failed", "failed", "invalid_arguments"),
        ("succeeded", "succeeded", "-"),
        ("failed", "failed", "unknown_tool"),
        ("succeeded", "succeeded", "-"),
        ("succeeded", "succeeded", "-"),
        ("validation_failed", "failed", "invalid_arguments"),
        ("canceled", "canceled", "canceled"),
        ("denied", "rejected", "approval_rejected"),
        ("succeeded", "succeeded", "-"),
        ("blocked", "denied", "hook_blocked"),
        ("blocked", "redacted", "result_redacted"),
        ("failed", "failed", "execution_failed"),
    ];
    assert_eq!(ends, expected);
    for result in run.all("results") {
        assert_eq!(result["is_error"], json!(result.get("error").is_some()), "{result}");
    }
    assert!(run.values("hooks", "hook_event").contains(&"post_tool_use_failure".to_owned()));
}

#[test]
fn every_reference_leads_somewhere_and_no_identifier_is_given_twice() {
    let run = every_end();
    let own = [
        ("invocations", "invocation_id"),
        ("events", "event_id"),
        ("progress", "progress_id"),
        ("results", "result_id"),
        ("permission-decisions", "decision_id"),
        ("input-mutations", "mutation_id"),
        ("hooks", "hook_id"),
        ("result-persistence", "decision_id"),
    ];
    let mut ids = HashSet::new();
    for (kind, field) in own {
        for id in run.values(kind, field) {
            assert!(!id.is_empty() && ids.insert(id.clone()), "{kind}: {id}");
        }
    }
    for (kind, records) in run.kinds() {
        for record in records {
            assert!(ids.contains(record["invocation_id"].as_str().unwrap()), "{kind}");
            let several = ["permission_decision_refs", "hook_refs", "persistence_refs"].into_iter();
            let several = several.flat_map(|field| record[field].as_array().cloned().unwrap_or_default());
            for reference in several.chain(
                ["result_ref", "result_id", "source_ref"].into_iter().filter_map(|field| record.get(field).cloned()),
            ) {
                assert!(ids.contains(reference.as_str().unwrap()), "{kind}: {reference}");
            }
            let time = ["created_at", "time", "timestamp", "decided_at", "ended_at"]
                .into_iter()
                .find_map(|field| record.get(field));
            let time = time.and_then(Value::as_str).expect("a time");
            assert!(time.len() == 24 && time.ends_with('Z') && time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        }
    }
}

#[test]
fn what_a_tool_marks_as_sensitive_stands_in_no_record() {
    let (watched, crib) = (Watched::new(), crib());
    let runtime = watched.builder(&crib).build().unwrap();
    let output = call(&runtime, "echo", &json!({"a": "say hunter22", "token": "hunter22"}));
    assert!(output.content().contains("hunter22"), "the model is told what the tool answers");
    call(&runtime, "echo", &json!({"token": "hunter22", "wrong": "hunter22"}));
    call(&runtime, "no_such_tool", &json!({"token": "hunter22"}));
    drop(runtime);
    let run = watched.close();
    assert!(!run.text().contains("hunter22"), "{}", run.text());
    let output = run.of("invocations", "echo");
    assert_eq!(output["call_input"], json!({"a": "say ***", "token": "***"}));
    assert!(output.get("model_input").is_none() && output["model_input_bytes"].as_u64() > Some(30));
    assert_eq!(run.of("results", "echo")["redaction_state"], "redacted");
    assert_eq!(run.of("results", "echo")["ui_facing_summary"], "echo say ***");
}

#[test]
fn the_operators_masks_lie_over_records() {
    let watched = Watched::with(|records| records.redact(["k-[0-9]+".to_owned()]).redact_literal(["a.b".to_owned()]));
    let crib = crib();
    let runtime = watched.builder(&crib).build().unwrap();
    call(&runtime, "open", &json!({"key": "k-42", "text": "a.b acb"}));
    call(&runtime, "exit_code", &json!({"code": 1, "stderr": "k-43 was wrong"}));
    drop(runtime);
    let run = watched.close();
    let text = run.text();
    assert!(!text.contains("k-4") && !text.contains("a.b") && text.contains("acb"), "{text}");
    assert_eq!(run.of("results", "open")["redaction_state"], "redacted");
}

#[test]
fn long_inputs_and_answers_are_cut_with_size_and_digest() {
    let (watched, crib) = (Watched::new(), crib());
    let runtime = watched.builder(&crib).build().unwrap();
    call(&runtime, "open", &json!({"a": "x".repeat(200_000)}));
    drop(runtime);
    let run = watched.close();
    let (invocation, result) = (run.only("invocations"), run.only("results"));
    assert_eq!(invocation["call_input"]["cut"], true);
    assert_eq!(invocation["call_input"]["digest"], invocation["model_input_digest"]);
    assert_eq!(invocation["model_input_bytes"], 200_008);
    assert_eq!(result["model_facing_content"][0]["bytes"], 200_008);
    assert!(run.text().len() < 30_000, "{}", run.text().len());
}

#[test]
fn calls_from_many_threads_are_all_written_whole() {
    let (watched, crib) = (Watched::new(), crib());
    let runtime = watched.builder(&crib).build().unwrap();
    on_threads(async {
        let calls = (0..300).map(|n| runtime.call(ToolCall::new(format!("c{n}"), "open", json!({"n": n}).to_string())));
        futures::future::join_all(calls).await
    });
    drop(runtime);
    let run = watched.close();
    assert_eq!((run.all("invocations").len(), run.all("results").len()), (300, 300));
    for call in run.all("invocations") {
        let of_it = run.all("progress").iter().filter(|progress| progress["invocation_id"] == call["invocation_id"]);
        let sequence: Vec<_> = of_it.map(|progress| progress["sequence"].as_u64().unwrap()).collect();
        assert_eq!(sequence, (1..=sequence.len() as u64).collect::<Vec<_>>());
    }
}

#[cfg(unix)]
#[test]
fn records_are_their_owners_alone_and_mend_a_torn_tail() {
    use std::os::unix::fs::PermissionsExt;
    let (watched, crib) = (Watched::new(), crib());
    let folder = watched.folder();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("events.ndjson"))), (0o700, 0o600));
    fs::write(folder.join("results.ndjson"), "{\"torn\":").unwrap();
    let runtime = watched.builder(&crib).build().unwrap();
    call(&runtime, "open", &json!({}));
    watched.finish();
    let text = fs::read_to_string(folder.join("results.ndjson")).unwrap();
    let [torn, whole] = text.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(torn == "{\"torn\":" && serde_json::from_str::<Value>(whole).is_ok(), "{text}");
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_could_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let shared = AgentToolRecorder::folder(place.path()).err().expect("others could write there");
    assert!(matches!(&shared, Error::Open { .. }) && shared.to_string().contains("someone else"), "{shared}");
}

#[test]
fn a_record_that_cannot_be_written_is_told_of_once() {
    let (watched, crib) = (Watched::new(), crib());
    // Another process holds the lock of one file and does not release it.
    let held = fs::File::open(watched.folder().join("results.ndjson")).unwrap();
    held.lock().unwrap();
    let runtime = watched.builder(&crib).build().unwrap();
    assert!(!call(&runtime, "open", &json!({})).is_error(), "the call itself goes on");
    let fault = watched.try_finish().expect_err("a lost record");
    assert!(fault.to_string().contains("another process holds its lock; records lost: 1"), "{fault}");
    assert!(watched.try_finish().is_ok(), "it is told once");
    held.unlock().unwrap();
    call(&runtime, "open", &json!({}));
    drop(runtime);
    let run = watched.close();
    assert_eq!((run.all("invocations").len(), run.all("results").len()), (2, 1));
}

#[cfg(unix)]
#[test]
fn a_program_that_is_told_to_end_leaves_whole_records() {
    let crib = crib();
    let mut child = crib.toolcrib(&["call", "sleep", "--records", "kept"]).spawn().unwrap();
    until_started(&crib.path("kept"), 1);
    let sent = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success() && child.wait().unwrap().code() == Some(143));
    let run = Run::read(&crib.path("kept"));
    assert_eq!(
        (&run.only("invocations")["status"], &run.only("results")["status"]),
        (&json!("canceled"), &json!("canceled"))
    );
}

#[test]
fn the_program_writes_records_and_keeps_them_from_tools() {
    let crib = crib();
    let ran = crib.run(&["call", "open", "{\"a\":1}", "--records", "kept"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "{\"a\":1}\n"), "{}", ran.stderr);
    let script = json!({"prompt": "go", "turns": [
        {"tool_calls": [{"name": "open", "arguments": {"a": 2}}, {"name": "exit_code", "arguments": {"code": 3}}]},
        {"content": "done"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json", "--records", "kept"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    let run = Run::read(&crib.path("kept"));
    let mut ends = run.values("invocations", "status");
    ends.sort();
    assert_eq!(ends, ["failed", "succeeded", "succeeded"]);
    let evidence: Vec<_> = run.all("invocations").iter().map(|call| call["evidence_refs"][0].clone()).collect();
    for audited in crib.records() {
        assert!(evidence.contains(&json!(format!("audit:{}", audited["invocation"].as_str().unwrap()))), "{audited}");
    }
    let ran = crib.run(&["call", "open", "--records", "work/kept", "--allow-write=work"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("would let a tool reach the records in"), "{ran:?}");
    let ran = crib.run(&["run", "--script", "script.json", "--dry-run", "--records", "none"]);
    assert!(ran.code == Some(0) && !crib.path("none").exists(), "{ran:?}");
}
