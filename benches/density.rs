//! Density: resident memory and mappings per call that sleeps in the host, and the time of an echo beside all of them,
//! compared with its time alone. Fails if a sleeping call takes more memory than its bound. Linux only.
//!
//! ```sh
//! cargo bench --bench density                     # nine thousand sleeping calls
//! cargo bench --bench density -- --calls 200
//! ```
//!
//! A runtime runs at most a thousand calls at once, half of them of one tool: each thousand sleeps in a runtime of its own, in
//! two tools. The pools of three runtimes have room in the addresses of a process; further runtimes have no pool. A call takes
//! six to eight of the 65,530 mappings that Linux gives a process by default, which are enough for about 9,800 calls.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[allow(dead_code, reason = "other benches use the rest")]
mod built;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::tool::Limits;
use toolcrib::{Audit, Runtime, Scheduler, ToolCall};

/// Sleeping calls without a number.
const CALLS: usize = 9_000;
/// Calls that a runtime runs at once at most.
const MAX_AT_ONCE: usize = 1000;
/// Tools that sleep.
const SLEEPERS: [&str; 2] = ["sleep_a", "sleep_b"];
/// Measured echoes, and those before them.
const ECHOES: usize = 3000;
const WARM_UP: usize = 300;
/// Bound on the resident memory of a sleeping call, in bytes. Its own memory is most of it.
const MAX_RESIDENT: u64 = 96 << 10;
/// Pause before memory is read.
const REST: Duration = Duration::from_millis(500);
/// Deadline of the calls, which ends later than the measurement, and time in which one more call has to start.
const DEADLINE: Duration = Duration::from_secs(900);
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Number of started calls.
#[derive(Default)]
struct Started(AtomicUsize);

impl Observer for Started {
    fn observe(&self, event: &Event<'_>) {
        if let EventKind::Started(_) = event.kind {
            self.0.fetch_add(1, Relaxed);
        }
    }
}

fn main() -> ExitCode {
    let calls = match built::calls("density", CALLS, 1) {
        Ok(calls) => calls,
        Err(usage) => {
            println!("{usage}");
            return ExitCode::from(2);
        }
    };
    if !Path::new("/proc/self/maps").exists() {
        println!("skipped: this system does not report the memory of a process");
        return ExitCode::SUCCESS;
    }
    let threads = built::tokio();
    let resident = threads.block_on(measure(calls));
    // The sleeping calls end with the process.
    threads.shutdown_background();
    if resident <= MAX_RESIDENT {
        return ExitCode::SUCCESS;
    }
    println!("FAILED: {resident} bytes per sleeping call, at most {MAX_RESIDENT}");
    ExitCode::FAILURE
}

/// Measures and prints everything; returns the resident bytes per sleeping call.
async fn measure(calls: usize) -> u64 {
    let folder = TempDir::new().expect("a folder");
    let started = Arc::new(Started::default());
    let echo = runtime(folder.path(), 1, started.clone());
    echo.prepare("echo").await.expect("a program");
    let alone = echo_times(&echo).await;
    let (first, start) = (started.0.load(Relaxed), State::read());
    println!("sleeping    KiB per call   mappings per call   mappings   GiB of addresses   started in");
    // A runtime is kept until all calls sleep.
    let (mut runtimes, mut before, mut sleeping) = (Vec::new(), State::read(), 0);
    while sleeping < calls {
        let more = MAX_AT_ONCE.min(calls - sleeping);
        let runtime = runtime(folder.path(), more, started.clone());
        for tool in SLEEPERS {
            runtime.prepare(tool).await.expect("a program");
        }
        let begin = Instant::now();
        (0..more).for_each(|number| sleep(&runtime, sleeping + number));
        runtimes.push(runtime);
        let now = all_started(&started, first + sleeping + more).await - first;
        let time = begin.elapsed();
        // The last ones reach their sleep.
        tokio::time::sleep(REST).await;
        let after = State::read();
        let resident = per_call(before.resident, after.resident, more) / 1024.0;
        let mappings = per_call(before.mappings, after.mappings, more);
        let (all, addresses) = (after.mappings, after.addresses >> 30);
        println!("{now:8} {resident:15.1} {mappings:19.1} {all:10} {addresses:18} {time:12.0?}");
        assert!(now == sleeping + more, "{} calls did not start", sleeping + more - now);
        (sleeping, before) = (now, after);
    }
    let resident = per_call(start.resident, before.resident, sleeping);
    let shared = per_call(start.anonymous, before.anonymous, sleeping) / 1024.0;
    println!("resident: {:.1} KiB per call, of which {shared:.1} KiB are its own", resident / 1024.0);
    let beside = echo_times(&echo).await;
    for (name, times) in [("alone", &alone), ("beside", &beside)] {
        let [least, median, high] = figures(times);
        println!("echo {name:6}  min {least:6.1} µs  median {median:6.1} µs  p99 {high:6.1} µs");
    }
    let [alone, beside] = [figures(&alone), figures(&beside)];
    let ratio = |at: usize| beside[at] / alone[at];
    println!("ratio        min {:6.2}     median {:6.2}     p99 {:6.2}", ratio(0), ratio(1), ratio(2));
    resident as u64
}

fn per_call(before: u64, after: u64, calls: usize) -> f64 {
    after.saturating_sub(before) as f64 / calls as f64
}

/// Starts a call that sleeps longer than the measurement takes. One that ends before has failed, and would count as a small one.
fn sleep(runtime: &Runtime, number: usize) {
    let call = ToolCall::new(format!("sleep-{number}"), SLEEPERS[number % 2], r#"{"ms":3600000}"#);
    let runtime = runtime.clone();
    tokio::spawn(async move {
        let ended = runtime.call(call).await;
        println!("FAILED: a sleeping call ended: {}", ended.line());
        std::process::exit(1);
    });
}

/// Builds a runtime of the sleeping tools and the echo, with a permit for each call.
fn runtime(folder: &Path, calls: usize, started: Arc<Started>) -> Runtime {
    let programs: PathBuf = folder.join("tools/bin");
    fs::create_dir_all(&programs).expect("a folder");
    let entries = SLEEPERS.map(|name| (name, "nap")).into_iter().chain([("echo", "echo")]).map(|(name, guest)| {
        fs::copy(built::guest(guest), programs.join(format!("{name}.wasm"))).expect("the guest was built");
        json!({"name": name, "command": [format!("./tools/bin/{name}")]})
    });
    let manifest = folder.join("tools.json");
    fs::write(&manifest, json!({"tools": entries.collect::<Vec<_>>()}).to_string()).expect("a manifest");
    let scheduler = Scheduler { queue: calls, ..Scheduler::default() };
    let builder = Runtime::builder(Audit::off()).source(manifest).limits(Limits::with_deadline(DEADLINE));
    // Half of them, rounded up, may be of one tool.
    let builder = builder.compile_cache(built::target().join("test-cache")).concurrency(calls);
    builder.scheduler(scheduler).observer(started).build().expect("a runtime")
}

/// Waits until this many calls have started, or no further one does; returns their number.
async fn all_started(started: &Started, wanted: usize) -> usize {
    let (mut count, mut since) = (0, Instant::now());
    while count < wanted && since.elapsed() < MAX_WAIT {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = started.0.load(Relaxed);
        if now > count {
            (count, since) = (now, Instant::now());
        }
    }
    count
}

/// Times of echoes, one after the other, sorted.
async fn echo_times(runtime: &Runtime) -> Vec<Duration> {
    let mut times = Vec::with_capacity(ECHOES);
    for number in 0..WARM_UP + ECHOES {
        let start = Instant::now();
        let result = runtime.call(ToolCall::new("echo", "echo", r#"{"text":"hello"}"#)).await;
        assert!(!result.is_error(), "{}", result.line());
        if number >= WARM_UP {
            times.push(start.elapsed());
        }
    }
    times.sort();
    times
}

/// Minimum, median and 99th percentile in microseconds.
fn figures(times: &[Duration]) -> [f64; 3] {
    [0, times.len() / 2, times.len() * 99 / 100].map(|at| times[at].as_secs_f64() * 1e6)
}

/// Memory of this process, in bytes, and its mappings.
struct State {
    resident: u64,
    anonymous: u64,
    addresses: u64,
    mappings: u64,
}

impl State {
    fn read() -> Self {
        let status = fs::read_to_string("/proc/self/status").expect("a status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
            line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).expect("a number") << 10
        };
        let mappings = fs::read_to_string("/proc/self/maps").expect("mappings").lines().count() as u64;
        let [resident, anonymous, addresses] = ["VmRSS:", "RssAnon:", "VmSize:"].map(field);
        Self { resident, anonymous, addresses, mappings }
    }
}
