//! A million calls of every kind over one runtime: the resources of the process must not grow. Some succeed; others
//! fail, are invalid, denied, trap, exceed their memory, output or time, or are dropped midway. All are recorded.
//!
//! ```sh
//! cargo bench --bench soak                        # twenty thousand
//! cargo bench --bench soak -- --calls 1000000
//! ```
//!
//! Memory, file descriptors and threads are read from `/proc`, so this measures on Linux only. After a warm-up of a
//! fifth of the calls, a line is fitted to each figure by least squares; its gain over the whole run must stay below a
//! bound. At the end every slot of the pool must be free, and the log sound and complete.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[allow(dead_code, reason = "other benches use the rest")]
mod built;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use toolcrib::call::Behavior;
use toolcrib::policy::{Policy, Rule};
use toolcrib::tool::Limits;
use toolcrib::{Audit, Outcome, Runtime, ToolCall, audit};

use built::{guest, target};

/// Calls at once. A tool gets half of the slots, so the pool has twice as many.
const AT_ONCE: usize = 32;
/// Guests that are called.
const GUESTS: [&str; 8] = ["echo", "exit_code", "panic", "grow", "flood_stdout", "sleep", "spin", "nap"];
/// Deadline of the calls that never end.
const MIN_TIME: Duration = Duration::from_millis(40);
/// Number of samples of the process.
const SAMPLES: u64 = 100;
/// Maximum gain over the whole run: kibibytes of memory, descriptors, threads. The allocator's own variation is a few
/// mebibytes.
const MAX_GROWTH: [f64; 3] = [16.0 * 1024.0, 3.0, 3.0];

/// Kind of call, with its share in a thousand.
struct Kind {
    share: u64,
    tool: &'static str,
    arguments: Value,
    outcome: Outcome,
}

fn main() -> ExitCode {
    let calls = match built::calls("soak", 20_000, 1000) {
        Ok(calls) => calls as u64,
        Err(usage) => {
            println!("{usage}");
            return ExitCode::from(2);
        }
    };
    if !Path::new("/proc/self/statm").exists() {
        println!("skipped: this system does not report the resources of a process");
        return ExitCode::SUCCESS;
    }
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    match threads.block_on(soak(calls)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn soak(calls: u64) -> Result<(), String> {
    let folder = TempDir::new().expect("a folder");
    let log = folder.path().join("audit");
    let runtime = runtime(folder.path(), &log);
    let kinds = Arc::new(kinds());
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let wrong = Arc::new(AtomicU64::new(0));
    let every = calls.div_ceil(SAMPLES);
    let mut samples = Vec::new();
    let (started, mut random) = (Instant::now(), 1);
    for made in 1..=calls {
        let slot = slots.clone().acquire_owned().await.expect("never closed");
        let (runtime, kinds, wrong, dice) = (runtime.clone(), kinds.clone(), wrong.clone(), roll(&mut random));
        tokio::spawn(async move {
            if !one(&runtime, &kinds, made, dice).await {
                wrong.fetch_add(1, Relaxed);
            }
            drop(slot);
        });
        if made % every == 0 || made == calls {
            // Measured at rest: resources of a running call are not a leak.
            let rest = slots.acquire_many(AT_ONCE as u32).await.expect("never closed");
            let held = resources();
            if samples.len() % 10 == 9 {
                let rate = made as f64 / started.elapsed().as_secs_f64();
                let [memory, files, threads] = held;
                println!("{made:9} calls  {memory:8} KiB  {files:3} files  {threads:3} threads  {rate:7.0} calls/s");
            }
            samples.push((made as f64, held));
            drop(rest);
        }
    }
    every_slot_is_free(&runtime).await?;
    drop(runtime);
    if wrong.load(Relaxed) > 0 {
        return Err(format!("{} calls did not end as expected", wrong.load(Relaxed)));
    }
    let slopes = slopes(&samples[samples.len() / 5..]);
    let mut grown = None;
    for ((what, slope), most) in ["KiB of memory", "file descriptors", "threads"].iter().zip(slopes).zip(MAX_GROWTH) {
        let gained = slope * calls as f64;
        println!("{:+.4} {what} for each 1,000 calls, {gained:+.1} over the run (at most {most})", slope * 1000.0);
        grown = grown.or((gained > most).then(|| format!("{what} grow with the calls")));
    }
    let signed = record_count(&log)?;
    println!("{signed} records, the log is sound; {:.0} s", started.elapsed().as_secs_f64());
    // The calls that fill every slot at the end are recorded as well.
    let wanted = calls + 2 * AT_ONCE as u64;
    if signed != wanted {
        return Err(format!("{wanted} calls and {signed} records"));
    }
    grown.map_or(Ok(()), Err)
}

fn kinds() -> Vec<Kind> {
    let kind = |share, tool, arguments, outcome| Kind { share, tool, arguments, outcome };
    vec![
        kind(500, "echo", json!({"text": "The quick brown fox jumps over the lazy dog. ".repeat(8)}), Outcome::Ok),
        kind(120, "exit_code", json!({"code": 3, "stderr": "no"}), Outcome::Failed),
        kind(80, "echo", json!(["no object"]), Outcome::BadArguments),
        kind(80, "echo", json!({"text": "forbidden"}), Outcome::Denied),
        kind(80, "panic", json!({}), Outcome::Trap),
        kind(40, "grow", json!({}), Outcome::Memory),
        kind(40, "flood_stdout", json!({}), Outcome::OutputLimit),
        kind(9, "sleep", json!({}), Outcome::Deadline),
        kind(1, "spin", json!({}), Outcome::Deadline),
        // Dropped while it sleeps.
        kind(50, "nap", json!({"ms": 10_000}), Outcome::Cancelled),
    ]
}

fn runtime(folder: &Path, log: &Path) -> Runtime {
    fs::create_dir_all(folder.join("tools/bin")).expect("a folder");
    let entry = |name: &&str| {
        fs::copy(guest(name), folder.join(format!("tools/bin/{name}.wasm"))).expect("the guest was built");
        let mut entry = json!({"name": name, "command": [format!("./tools/bin/{name}")]});
        entry["limits"] = json!({"memoryMb": 4, "outputKb": 64});
        if !["sleep", "spin"].contains(name) {
            entry["timeoutSec"] = 20.into();
        }
        entry
    };
    let manifest = json!({ "tools": GUESTS.iter().map(entry).collect::<Vec<_>>() });
    fs::write(folder.join("tools.json"), manifest.to_string()).expect("a manifest");
    let deny = Rule::new(Behavior::Deny, "echo(text=forbidden)".parse().expect("a pattern"), "here");
    let limits = Limits::with_deadline(MIN_TIME);
    // Only a trusted source raises its time above the default.
    let builder =
        Runtime::builder(Audit::off()).trusted_source(folder).policy(Policy::default().rule(deny)).limits(limits);
    let cache = target().join("test-cache");
    builder.compile_cache(cache).concurrency(2 * AT_ONCE).audit(Audit::folder(log)).build().expect("a runtime")
}

/// Makes one random call; returns `true` if it ended as expected.
async fn one(runtime: &Runtime, kinds: &[Kind], number: u64, dice: u64) -> bool {
    let mut left = dice % 1000;
    let kind = kinds.iter().find(|kind| left.checked_sub(kind.share).map(|less| left = less).is_none());
    let kind = kind.expect("the shares are a thousand");
    let call = runtime.call(ToolCall::new(format!("c{number}"), kind.tool, kind.arguments.to_string()));
    match kind.outcome {
        Outcome::Cancelled => tokio::time::timeout(Duration::from_millis(dice % 7), call).await.is_err(),
        wanted => {
            let ended = call.await.receipt.outcome;
            if ended != wanted {
                println!("call {number} of `{}` ended in {ended}, not in {wanted}", kind.tool);
            }
            ended == wanted
        }
    }
}

/// Makes as many calls at once as the pool has slots: a slot that was not returned would be missing.
async fn every_slot_is_free(runtime: &Runtime) -> Result<(), String> {
    let call = |number| {
        let (tool, arguments) = if number % 2 == 0 { ("nap", r#"{"ms":200}"#) } else { ("sleep", "{}") };
        runtime.call(ToolCall::new(format!("last{number}"), tool, arguments))
    };
    let ended = futures::future::join_all((0..2 * AT_ONCE).map(call)).await;
    match ended.iter().find(|result| ![Outcome::Ok, Outcome::Deadline].contains(&result.receipt.outcome)) {
        None => Ok(()),
        Some(result) => Err(format!("a slot is not free: {}", result.content())),
    }
}

/// Kibibytes of memory, file descriptors and threads of this process.
fn resources() -> [u64; 3] {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
        line.split_whitespace().next().expect("a number").parse().expect("a number")
    };
    let files = fs::read_dir("/proc/self/fd").expect("descriptors").count() as u64;
    [field("VmRSS:"), files, field("Threads:")]
}

/// Gain of each figure per call, by least squares.
fn slopes(samples: &[(f64, [u64; 3])]) -> [f64; 3] {
    let count = samples.len() as f64;
    let middle = samples.iter().map(|(at, _)| at).sum::<f64>() / count;
    let spread: f64 = samples.iter().map(|(at, _)| (at - middle).powi(2)).sum();
    [0, 1, 2].map(|which| samples.iter().map(|(at, held)| (at - middle) * held[which] as f64).sum::<f64>() / spread)
}

/// Number of records in a log, if it is sound.
fn record_count(log: &Path) -> Result<u64, String> {
    let mut walk = audit::verify(log).map_err(|error| error.to_string())?;
    match walk.next() {
        None => Ok(walk.summary().records),
        Some(Ok(problem)) => Err(format!("the log: {}", problem.kind)),
        Some(Err(error)) => Err(error.to_string()),
    }
}

/// Pseudo-random numbers, the same in each run.
fn roll(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 11
}
