//! Calls of one step: concurrency, order of the results, and the effect of a failure, an interruption, a full queue or
//! an exhausted budget on the other calls.

mod asking;
mod shared;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::tool::SiblingFailure;
use toolcrib::{Audit, Builder, Outcome, Runtime, Scheduler, ToolCall, ToolResult};

use crate::crib::Crib;

/// Observer that records starts and ends, in order, and the calls that have waited for their turn.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>, Mutex<Vec<String>>);

impl Observer for Diary {
    fn observe(&self, event: &Event<'_>) {
        let word = match &event.kind {
            EventKind::Started(_) => "starts",
            EventKind::Ended(_) => "ends",
            EventKind::Queued => return self.1.lock().unwrap().push(event.call_id.to_owned()),
            _ => return,
        };
        self.0.lock().unwrap().push(format!("{} {word}", event.call_id));
    }
}

impl Diary {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Waits until a call waits for its turn.
    async fn queued(&self, call: &str) {
        while !self.1.lock().unwrap().iter().any(|queued| queued == call) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns `true` if a call that ran has ended. One that is refused ends without a start.
    fn has_run_ended(&self) -> bool {
        let lines = self.lines();
        let started = |end: &String| lines.contains(&end.replace(" ends", " starts"));
        lines.iter().any(|line| line.ends_with(" ends") && started(line))
    }

    fn place(&self, line: &str) -> usize {
        let lines = self.lines();
        lines.iter().position(|one| one == line).unwrap_or_else(|| panic!("no `{line}` in {lines:?}"))
    }
}

/// Creates a crib with a tool that reads, `r`, and one that writes, `w`; both nap.
fn crib() -> Crib {
    let crib = Crib::new();
    crib.install(&crate::crib::guest("nap"), "nap");
    let tool = |name: &str, interface| json!({"name": name, "command": ["./tools/bin/nap"], "timeoutSec": 20, "interface": interface});
    let manifest = json!({"tools": [
        tool("r", json!({"is_read_only": true})),
        tool("w", json!({"is_read_only": false})),
    ]});
    crib.manifest(&manifest);
    crib
}

fn runtime(crib: &Crib, diary: &Arc<Diary>, with: impl FnOnce(Builder) -> Builder) -> Runtime {
    let builder = Runtime::builder(Audit::folder(crib.path("audit"))).trusted_source(crib.path("tools.json"));
    let runtime = with(builder.observer(diary.clone())).build().unwrap();
    block_on(async {
        runtime.prepare("r").await.unwrap();
        runtime.prepare("w").await.unwrap();
    });
    runtime
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(future)
}

/// Parses calls such as `r1:50`, `w:10` or `r2:5!`: the tool with a mark, the duration of its nap, and `!` for a
/// failure.
fn calls(words: &[&str]) -> Vec<ToolCall> {
    let call = |word: &&str| {
        let (id, rest) = word.split_once(':').unwrap();
        let ms: u64 = rest.trim_end_matches('!').parse().unwrap();
        ToolCall::new(id, &id[..1], json!({"ms": ms, "fail": rest.ends_with('!')}).to_string())
    };
    words.iter().map(call).collect()
}

async fn results(step: &mut toolcrib::Step) -> Vec<ToolResult> {
    let mut results = Vec::new();
    while let Some(result) = step.next().await {
        results.push(result);
    }
    results
}

fn run(runtime: &Runtime, words: &[&str]) -> Vec<ToolResult> {
    block_on(async { results(&mut runtime.session().step(calls(words))).await })
}

fn outcomes(results: &[ToolResult]) -> Vec<(&str, Outcome)> {
    results.iter().map(|result| (result.call_id.as_str(), result.receipt.outcome)).collect()
}

#[test]
fn reads_run_together_and_a_write_alone_and_in_order() {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    let runtime = runtime(&crib, &diary, |builder| builder);
    let results = run(&runtime, &["r1:1600", "r2:800", "w:50", "r3:20", "r4:10"]);
    let ids: Vec<_> = results.iter().map(|result| result.call_id.as_str()).collect();
    assert_eq!(ids, ["r1", "r2", "w", "r3", "r4"], "results come in the order of the calls");
    let place = |line: &str| diary.place(line);
    assert!(place("r1 starts").max(place("r2 starts")) < place("r2 ends"), "reads run together: {:?}", diary.lines());
    assert!(place("r2 ends") < place("r1 ends"), "a short one ends first");
    assert!(place("r1 ends") < place("w starts"), "the write waits for the reads before it");
    assert!(place("w ends") < place("r3 starts").min(place("r4 starts")), "the reads after it wait for the write");
    let waited = results[2].receipt.waited_ms;
    assert!(waited >= 800.0, "what it waited is in its receipt: {waited}");
}

#[test]
fn two_writes_keep_their_order() {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    run(&runtime(&crib, &diary, |builder| builder), &["w1:60", "w2:1", "w3:1"]);
    let lines = diary.lines();
    assert_eq!(lines, ["w1 starts", "w1 ends", "w2 starts", "w2 ends", "w3 starts", "w3 ends"]);
}

fn with_policy(sibling_failure: SiblingFailure, words: &[&str]) -> Vec<(String, Outcome, String)> {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    let scheduler = Scheduler { sibling_failure, ..Scheduler::default() };
    let results = run(&runtime(&crib, &diary, |builder| builder.scheduler(scheduler)), words);
    assert_eq!(crib.records().len(), words.len(), "each call has one record, also one that never ran");
    let output = |result: &ToolResult| (result.call_id.clone(), result.receipt.outcome, result.content().into_owned());
    results.iter().map(output).collect()
}

#[test]
fn a_failure_is_ignored_where_the_policy_says_so() {
    let output = with_policy(SiblingFailure::Ignore, &["r1:1", "r2:30!", "r3:60", "r4:60", "w:1"]);
    let outcomes: Vec<_> = output.iter().map(|(_, outcome, _)| *outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Failed, Outcome::Ok, Outcome::Ok, Outcome::Ok]);
}

#[test]
fn a_failure_cancels_those_that_wait_for_it() {
    let output = with_policy(SiblingFailure::CancelDependent, &["r1:1", "r2:30!", "r3:300", "w:1", "r4:1"]);
    let outcomes: Vec<_> = output.iter().map(|(_, outcome, _)| *outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Failed, Outcome::Ok, Outcome::Cancelled, Outcome::Cancelled]);
    assert_eq!(output[3].2, r#"{"error":"cancelled: `r` (r2) failed, and this call had to wait for it"}"#);
}

#[test]
fn a_failure_cancels_all_siblings_also_those_that_run() {
    let output = with_policy(SiblingFailure::CancelSiblings, &["r1:1", "r2:100!", "r3:15000", "w:1"]);
    let outcomes: Vec<_> = output.iter().map(|(_, outcome, _)| *outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Failed, Outcome::Cancelled, Outcome::Cancelled]);
    assert_eq!(output[2].2, r#"{"error":"cancelled: `r` (r2) failed, and this call is of the same step"}"#);
}

#[test]
fn a_tools_own_policy_goes_before_the_steps() {
    let crib = crib();
    let mut manifest: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(crib.path("tools.json")).unwrap()).unwrap();
    manifest["tools"][0]["interface"]["sibling_failure_policy"] = json!("cancel_siblings");
    crib.manifest(&manifest);
    let diary = Arc::<Diary>::default();
    let results = run(&runtime(&crib, &diary, |builder| builder), &["r1:1!", "w:1"]);
    assert_eq!(outcomes(&results), [("r1", Outcome::Failed), ("w", Outcome::Cancelled)]);
    assert!(!diary.lines().contains(&"w starts".to_owned()));
}

#[test]
fn an_interruption_cuts_reads_and_lets_a_write_end() {
    for (words, held, ends) in [
        (["r1:15000", "r2:15000"], false, [Outcome::Cancelled, Outcome::Cancelled]),
        (["w1:400", "w2:1"], true, [Outcome::Ok, Outcome::Cancelled]),
    ] {
        let (crib, diary) = (crib(), Arc::<Diary>::default());
        let runtime = runtime(&crib, &diary, |builder| builder);
        let results = block_on(async {
            let mut step = runtime.session().step(calls(&words));
            while diary.lines().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            step.interrupt();
            assert_eq!(!step.held().is_empty(), held, "{words:?}");
            results(&mut step).await
        });
        let outcomes: Vec<_> = results.iter().map(|result| result.receipt.outcome).collect();
        assert_eq!(outcomes, ends, "{words:?}");
    }
}

#[test]
fn who_insists_cuts_a_write_too() {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    let runtime = runtime(&crib, &diary, |builder| builder);
    let results = block_on(async {
        let mut step = runtime.session().step(calls(&["w:15000"]));
        while diary.lines().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        step.cancel();
        results(&mut step).await
    });
    assert_eq!(results[0].content(), r#"{"error":"interrupted before the call ended"}"#);
}

#[test]
fn calls_beyond_the_most_of_a_step_are_refused_and_signed_for() {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    let scheduler = Scheduler { calls: 2, ..Scheduler::default() };
    let runtime = runtime(&crib, &diary, |builder| builder.scheduler(scheduler));
    let results = run(&runtime, &["r1:1", "r2:1", "r3:1"]);
    assert_eq!(outcomes(&results), [("r1", Outcome::Ok), ("r2", Outcome::Ok), ("r3", Outcome::Busy)]);
    assert_eq!(crib.records().len(), 3);
}

#[test]
fn a_full_queue_refuses_instead_of_waiting() {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    let scheduler = Scheduler { queue: 1, ..Scheduler::default() };
    let runtime = runtime(&crib, &diary, |builder| builder.scheduler(scheduler).concurrency(1));
    let results = block_on(async {
        let mut step = runtime.session().step(calls(&["r1:15000", "r2:15000", "r3:15000", "r4:15000"]));
        let is_busy = |record: &serde_json::Value| record["outcome"] == "busy";
        while crib.records().iter().filter(|record| is_busy(record)).count() < 2 {
            assert!(!diary.has_run_ended(), "{:?}", diary.lines());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        step.interrupt();
        results(&mut step).await
    });
    let with = |outcome| results.iter().filter(|result| result.receipt.outcome == outcome).count();
    assert_eq!(
        (with(Outcome::Busy), with(Outcome::Cancelled)),
        (2, 2),
        "one ran and one waited: {:?}",
        outcomes(&results)
    );
}

#[test]
fn the_calls_of_a_step_share_its_time_and_its_output() {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    let scheduler = Scheduler { time: Some(Duration::from_secs(1)), ..Scheduler::default() };
    let shared = runtime(&crib, &diary, |builder| builder.scheduler(scheduler));
    let results = run(&shared, &["w1:15000", "w2:1"]);
    assert_eq!(outcomes(&results), [("w1", Outcome::Deadline), ("w2", Outcome::Deadline)]);
    assert_eq!(results[0].receipt.warnings, ["the call was stopped at the end of the time of its step"]);
    assert_eq!(results[1].content(), r#"{"error":"the time of this step is used up"}"#);
    assert!(results[1].receipt.warnings.is_empty(), "it did not start: {:?}", results[1].receipt.warnings);

    // Each answers `{"slept":1}` and a line break.
    let scheduler = Scheduler { output: Some(25), ..Scheduler::default() };
    let shared = runtime(&crib, &diary, |builder| builder.scheduler(scheduler));
    let results = run(&shared, &["w1:1", "w2:1", "w3:1"]);
    assert_eq!(outcomes(&results), [("w1", Outcome::Ok), ("w2", Outcome::Ok), ("w3", Outcome::OutputLimit)]);
}

#[test]
fn a_step_that_is_dropped_leaves_a_record_of_each_call() {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    let runtime = runtime(&crib, &diary, |builder| builder);
    block_on(async {
        let step = runtime.session().step(calls(&["r1:15000", "w:1"]));
        while diary.lines().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(step);
        while crib.records().len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    assert!(crib.records().iter().all(|record| record["outcome"] == "cancelled"));
}
