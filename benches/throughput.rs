//! Calls per second through the library, without and with an audit log, for several numbers of concurrent callers; beside the
//! bare engine in the same run.
//!
//! ```sh
//! cargo bench --bench throughput                   # all
//! cargo bench --bench throughput -- logged 32      # one row
//! ```
//!
//! A call takes and returns about 1 KB of JSON. The rows take turns, and every answer is checked. As many threads run the callers
//! as there are processors. The processor time of a call includes the kernel and all threads; on a machine that others
//! use too, it says more than the calls per second (Unix). On Linux the allocator is mimalloc: the GNU library's
//! allocator locks memory when a thread frees another thread's memory, as calls do that move between threads.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[allow(dead_code, reason = "another bench measures instances alone")]
mod floor;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use toolcrib::{Audit, Runtime, Scheduler, ToolCall};

use floor::Floor;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Numbers of concurrent callers.
const CALLERS: [usize; 4] = [1, 2, 32, 1000];
/// Calls of one turn.
const CALLS: usize = 20_000;
/// Turns of each row.
const TURNS: usize = 7;
/// Instances of the bare engine at once, as many as a tool has by default: the engine has no queue of its own.
const INSTANCES: usize = 16;

/// Subject of a row.
#[derive(Clone)]
enum Row {
    Engine(Arc<(Floor, Semaphore)>),
    Library(Arc<Runtime>),
}

/// Measured turn.
struct Turn {
    calls_per_second: f64,
    /// Microseconds of processor time of one call.
    processor: f64,
}

impl Row {
    /// Makes one call.
    async fn call(&self, arguments: &str) {
        match self {
            Self::Engine(engine) => {
                let (floor, instances) = &**engine;
                let _permit = instances.acquire().await.expect("it is never closed");
                assert!(floor.call(arguments).await > arguments.len());
            }
            Self::Library(runtime) => {
                let result = runtime.call(ToolCall::new("call", "echo", arguments)).await;
                assert_eq!(result.outcome.as_deref(), Ok(arguments));
            }
        }
    }

    /// Makes the calls of one turn.
    async fn turn(&self, callers: usize, arguments: &Arc<str>) -> Turn {
        let (began, before, next) = (Instant::now(), processor_time(), Arc::new(AtomicUsize::new(0)));
        let callers = (0..callers).map(|_| {
            let (row, arguments, next) = (self.clone(), arguments.clone(), next.clone());
            tokio::spawn(async move {
                while next.fetch_add(1, Relaxed) < CALLS {
                    row.call(&arguments).await;
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.expect("its calls succeed");
        }
        let calls = CALLS as f64;
        let processor = (processor_time() - before).as_secs_f64() * 1e6 / calls;
        Turn { calls_per_second: calls / began.elapsed().as_secs_f64(), processor }
    }
}

/// Returns the processor time of this process.
#[cfg(unix)]
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// Returns no time: it is measured on Unix alone.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    Duration::ZERO
}

/// About 1 KB of arguments. Their names are in the order in which the program writes them.
fn arguments() -> Arc<str> {
    let line = "The quick brown fox jumps over the lazy dog. ".repeat(4);
    let lines = [&line; 5];
    json!({"exact": true, "limit": 40, "lines": lines, "path": "notes/today.md"}).to_string().into()
}

/// Returns the program that is called, which lies beside the folder of this one.
fn echo() -> PathBuf {
    let bench = std::env::current_exe().expect("a path");
    let target = bench.ancestors().nth(3).expect("it lies three folders down");
    let echo = target.join("guests/wasm32-wasip2/guest/echo.wasm");
    let hint = "`cargo build --release -p toolcrib-test-programs` compiles it";
    assert!(echo.is_file(), "no program `{}`: {hint}", echo.display());
    echo
}

/// Creates a runtime in which this many calls may wait.
async fn library(cache: &Path, queue: usize, audit: Audit) -> Row {
    let scheduler = Scheduler { queue, ..Scheduler::default() };
    let builder = Runtime::builder(audit).source(echo()).compile_cache(cache).scheduler(scheduler);
    let runtime = builder.build().expect("a runtime");
    runtime.prepare("echo").await.expect("a program");
    Row::Library(Arc::new(runtime))
}

/// Measures the rows of one number of callers.
async fn measure(names: &[String], callers: usize, cache: &Path, engine: &Row) {
    let (arguments, folder) = (arguments(), TempDir::new().expect("a folder"));
    let unlogged = library(cache, callers, Audit::off()).await;
    let logged = library(cache, callers, Audit::folder(folder.path())).await;
    let mut rows = vec![("engine", engine.clone()), ("unlogged", unlogged), ("logged", logged)];
    rows.retain(|(name, _)| names.is_empty() || names.iter().any(|wanted| wanted == name));
    let mut turns: Vec<Vec<Turn>> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..TURNS {
        for ((_, row), turns) in rows.iter().zip(&mut turns) {
            turns.push(row.turn(callers, &arguments).await);
        }
    }
    let mut floor = None;
    for ((name, _), turns) in rows.iter().zip(&turns) {
        let [median, best] = sorted(turns, |turn| -turn.calls_per_second).map(|rate| -rate);
        let [time, least] = sorted(turns, |turn| turn.processor);
        let ratio = time / *floor.get_or_insert(time);
        println!("| {callers} | {name} | {median:.0} | {best:.0} | {time:.1} µs | {least:.1} µs | {ratio:.2} × |");
    }
}

/// Returns the median and the least of a figure of turns.
fn sorted(turns: &[Turn], figure: impl Fn(&Turn) -> f64) -> [f64; 2] {
    let mut figures: Vec<f64> = turns.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    [figures[figures.len() / 2], figures[0]]
}

fn main() {
    // Cargo adds an option of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let (numbers, names): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.parse::<usize>().is_ok());
    let numbers: Vec<usize> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let engine = Row::Engine(Arc::new((Floor::new(&echo()), Semaphore::new(INSTANCES))));
    let cache = TempDir::new().expect("a folder");
    println!(
        "| callers | row | calls/s, median | best | processor time of a call, median | least | compared with the first |"
    );
    println!("|---|---|---|---|---|---|---|");
    for &callers in if numbers.is_empty() { CALLERS.as_slice() } else { &numbers } {
        tokio.block_on(measure(&names, callers, cache.path(), &engine));
    }
}
