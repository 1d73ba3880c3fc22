//! Runtimes that share an engine: programs are compiled once for both, and conversations of both share the places for calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use toolcrib::compiler::{CompileError, Compiler, Job};
use toolcrib::policy::Permission;
use toolcrib::{Outcome, Policy, Scheduler, ToolCall};

use super::{Diary, block_on, calls, crib, results, runtime};

/// Compiler that counts its programs.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Compiler for Counting {
    fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, CompileError> {
        self.0.fetch_add(1, SeqCst);
        let (mut sent, mut answer) = (Vec::new(), Vec::new());
        job.send(&mut sent).unwrap();
        toolcrib::compiler::serve(sent.as_slice(), &mut answer).unwrap();
        Ok(answer)
    }
}

#[test]
fn a_program_is_compiled_once_for_runtimes_that_share_and_permissions_are_not_shared() {
    let (crib, diary, compiler) = (crib(), Arc::<Diary>::default(), Arc::<Counting>::default());
    let policy = Policy::default().allow(Permission::Read(crib.path("work")));
    let first = runtime(&crib, &diary, |builder| builder.compiler(compiler.clone()).policy(policy));
    let second = runtime(&crib, &diary, |builder| builder.share_with(&first));
    assert_eq!(compiler.0.load(SeqCst), 1, "both tools of both runtimes have one program");
    assert!(!first.grant("r").unwrap().folders().is_empty() && second.grant("r").unwrap().folders().is_empty());
    let elsewhere = runtime(&crib, &diary, |builder| {
        builder.share_with(&first).name_servers(["127.0.0.1:53".parse().unwrap()]).compiler(compiler.clone())
    });
    assert_eq!(compiler.0.load(SeqCst), 2, "with other name servers the engine is another one");
    drop((elsewhere, first));
    let result = block_on(second.call(ToolCall::new("x", "r", r#"{"ms":1}"#)));
    assert_eq!(result.receipt.outcome, Outcome::Ok, "the shared engine lives as long as its last runtime");
    drop(second);
    let again = runtime(&crib, &diary, |builder| builder.compiler(compiler.clone()));
    assert_eq!(compiler.0.load(SeqCst), 3, "nobody had the program any more");
    drop(again);
}

#[test]
fn a_short_call_of_one_conversation_does_not_wait_for_all_calls_of_another() {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    let first = runtime(&crib, &diary, |builder| builder.concurrency(1));
    let second = runtime(&crib, &diary, |builder| builder.share_with(&first));
    block_on(async {
        let mut blocking = first.session().step(calls(&["r0:15000"]));
        while diary.lines().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let words: Vec<_> = (1..=30).map(|number| format!("r{number}:1")).collect();
        let mut many = first.session().step(calls(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        diary.queued("r30").await;
        let mut one = second.session().step(calls(&["rx:1"]));
        diary.queued("rx").await;
        blocking.cancel();
        results(&mut blocking).await;
        let (many, one) = futures::join!(results(&mut many), results(&mut one));
        assert!(many.iter().chain(&one).all(|result| result.receipt.outcome == Outcome::Ok));
    });
    let starts: Vec<_> = diary.lines().into_iter().filter(|line| line.ends_with(" starts")).collect();
    let place = starts.iter().position(|line| line == "rx starts").expect("a start");
    assert!(place < 10, "{starts:?}");
}

#[test]
fn a_full_queue_has_room_for_a_conversation_with_fewer_calls() {
    let (crib, diary) = (crib(), Arc::<Diary>::default());
    let scheduler = Scheduler { queue: 4, ..Scheduler::default() };
    let first = runtime(&crib, &diary, |builder| builder.concurrency(1).scheduler(scheduler));
    let second = runtime(&crib, &diary, |builder| builder.share_with(&first));
    block_on(async {
        let mut many = first.session().step(calls(&["r1:15000", "r2:15000", "r3:15000", "r4:15000", "r5:15000"]));
        diary.queued("r5").await;
        let mut one = second.session().step(calls(&["rx:1"]));
        while !crib.records().iter().any(|record| record["outcome"] == "busy") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        many.interrupt();
        let (many, one) = futures::join!(results(&mut many), results(&mut one));
        assert_eq!(one[0].receipt.outcome, Outcome::Ok);
        assert_eq!(many.iter().filter(|result| result.receipt.outcome == Outcome::Busy).count(), 1);
    });
}
