//! Compiler of an embedder: only its complete answers are used, each program is compiled once, and no caller waits for
//! it longer than the deadline of its call.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use toolcrib::compiler::{CompileError, Compiler, Job};
use toolcrib::tool::Limits;
use toolcrib::{Outcome, Runtime, ToolCall};

use super::{SMALL, called, compiled, crib, outcome};

/// Compiler that works after a delay, and then corrupts the answer.
pub(super) struct Spoiling<F> {
    pub(super) asked: AtomicUsize,
    wait: Duration,
    spoil: F,
}

impl<F: Fn(usize, Vec<u8>) -> Result<Vec<u8>, CompileError> + Send + Sync> Compiler for Spoiling<F> {
    fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, CompileError> {
        let asked = self.asked.fetch_add(1, SeqCst);
        std::thread::sleep(self.wait);
        let (mut sent, mut answer) = (Vec::new(), Vec::new());
        job.send(&mut sent).unwrap();
        toolcrib::compiler::serve(sent.as_slice(), &mut answer).unwrap();
        (self.spoil)(asked, answer)
    }
}

pub(super) fn spoiling<F>(wait: Duration, spoil: F) -> Arc<Spoiling<F>>
where
    F: Fn(usize, Vec<u8>) -> Result<Vec<u8>, CompileError> + Send + Sync,
{
    Arc::new(Spoiling { asked: AtomicUsize::new(0), wait, spoil })
}

pub(super) fn runtime(folder: &Path, compiler: Arc<dyn Compiler>, deadline: Duration) -> Runtime {
    let builder = Runtime::builder(toolcrib::Audit::off())
        .trusted_source(folder.join("tools.json"))
        .compile_cache(folder.join("cache"));
    builder.compiler(compiler).limits(Limits::with_deadline(deadline)).build().unwrap()
}

pub(super) const LONG: Duration = Duration::from_secs(30);

#[test]
fn an_answer_that_is_not_whole_is_not_loaded_and_not_kept_and_asked_for_again() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |asked, mut answer: Vec<u8>| {
        match asked {
            0 => answer.truncate(answer.len() - 1),
            1 => answer.push(0),
            2 => answer.clear(),
            3 => answer[0] ^= 1,
            // A complete answer with invalid code, and one of another engine.
            4 => {
                let at = answer.windows(4).position(|bytes| bytes == b"\x7fELF").expect("an object file");
                answer[at] ^= 1;
            }
            5 => {
                let target = std::env::consts::ARCH.as_bytes();
                let at = answer.windows(target.len()).rposition(|bytes| bytes == target).expect("the engine's target");
                answer[at] ^= 1;
            }
            6 => return Err(CompileError::system("no room".to_owned())),
            _ => {}
        }
        Ok(answer)
    });
    let runtime = runtime(crib.dir.path(), compiler.clone(), LONG);
    for asked in 1..=7 {
        assert_eq!(outcome(&runtime), Outcome::BadComponent);
        assert_eq!(compiler.asked.load(SeqCst), asked, "it may have been the system, so it is tried again");
        assert_eq!(compiled(&crib.path("cache")).len(), 0, "nothing of it is kept");
    }
    assert_eq!(outcome(&runtime), Outcome::Ok);
    assert_eq!(outcome(&runtime), Outcome::Ok);
    assert_eq!(compiler.asked.load(SeqCst), 8, "once it is there, it is there");
    assert_eq!(compiled(&crib.path("cache")).len(), 1);
}

#[test]
fn what_is_wrong_with_a_program_is_asked_once() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, _| Err(CompileError::Program("too much of it".to_owned())));
    let runtime = runtime(crib.dir.path(), compiler.clone(), LONG);
    assert_eq!([outcome(&runtime), outcome(&runtime)], [Outcome::BadComponent; 2]);
    assert_eq!(compiler.asked.load(SeqCst), 1);
}

/// Component of a few hundred bytes with memories that each expand to megabytes of code.
fn blown_up() -> Vec<u8> {
    let module = r#"(core module (memory 256) (data (i32.const 0) "a") (data (i32.const 15000000) "z"))"#;
    wat::parse_str(SMALL.replacen("(component", &format!("(component {}", module.repeat(3)), 1)).unwrap()
}

#[test]
fn code_out_of_all_proportion_is_the_programs_fault_and_made_once() {
    let crib = crib(&blown_up());
    let longest = Arc::new(AtomicUsize::new(0));
    let seen = longest.clone();
    let compiler = spoiling(Duration::ZERO, move |_, answer: Vec<u8>| {
        seen.fetch_max(answer.len(), SeqCst);
        Ok(answer)
    });
    let runtime = runtime(crib.dir.path(), compiler.clone(), LONG);
    assert_eq!([outcome(&runtime), outcome(&runtime)], [Outcome::BadComponent; 2]);
    assert_eq!(compiler.asked.load(SeqCst), 1, "another attempt makes no less of it");
    assert!(longest.load(SeqCst) < 4096, "the code itself is not handed over");
    let (outcome, words) = called(&crib, &[]);
    assert_eq!(outcome, "bad-component");
    assert!(words.starts_with("its compiled code has ") && words.contains(", more than the "), "{words}");
}

#[test]
fn how_the_system_fails_is_for_the_operator_alone() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, _| Err(CompileError::system("no room on /secret/disk".to_owned())));
    let runtime = runtime(crib.dir.path(), compiler, LONG);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = tokio.block_on(runtime.call(ToolCall::new("", "n", "{}")));
    let told = "the host cannot prepare the tool's program right now; the call itself is not at fault";
    assert_eq!(result.outcome.as_ref().unwrap_err().message, told);
    assert!(!result.content().contains("/secret/disk"), "{}", result.content());
    assert!(result.fault.is_some_and(|fault| fault.to_string().contains("no room on /secret/disk")));
}

#[test]
fn a_call_waits_for_its_program_no_longer_than_it_may_take_and_the_next_finds_it() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::from_secs(8), |_, answer| Ok(answer));
    let runtime = runtime(crib.dir.path(), compiler.clone(), Duration::from_millis(300));
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let started = Instant::now();
        let call = || runtime.call(ToolCall::new("", "n", "{}"));
        let (one, two) = tokio::join!(call(), call());
        for result in [one, two] {
            let error = result.outcome.unwrap_err();
            assert_eq!(error.outcome, Outcome::Deadline);
            assert_eq!(error.message, "tool timed out while its program was compiled");
        }
        assert!(started.elapsed() < Duration::from_millis(7900), "they waited {:?}", started.elapsed());
        let dropped = tokio::time::timeout(Duration::from_millis(50), call()).await;
        assert!(dropped.is_err(), "a call that is dropped waits no longer either");
        runtime.prepare("n").await.unwrap();
        assert_eq!(call().await.receipt.outcome, Outcome::Ok);
    });
    assert_eq!(compiler.asked.load(SeqCst), 1, "nobody who went away had it compiled again");
}

#[test]
fn a_compiler_that_panics_harms_nobody_else() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, _| panic!("broken"));
    let broken = runtime(crib.dir.path(), compiler, LONG);
    assert_eq!([outcome(&broken), outcome(&broken)], [Outcome::BadComponent; 2]);
    assert_eq!(outcome(&runtime(crib.dir.path(), spoiling(Duration::ZERO, |_, answer| Ok(answer)), LONG)), Outcome::Ok);
}
