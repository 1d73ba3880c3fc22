//! Runs a case in a separate process and measures its traces: outcomes and lateness of its calls, growth of the host's
//! memory beyond the guest's, descriptors, threads, records, and the next call of another tool. Knows no case.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolcrib::staging::{Limits, Stages};
use toolcrib::{Audit, Runtime, ToolCall, ToolResult};

use super::cases::{Case, Program};
use crate::crib::{Crib, guest, target};

/// Variable with the orders of the separate process, and the path of its results.
const ORDERS: &str = "TOOLCRIB_HOSTILE_ORDERS";
/// Concurrent calls, half of them of one tool: the default, and the value for cases with more calls.
const CONCURRENCY: [usize; 2] = [32, 1000];
const FLOOD: usize = 250;
/// Calls of another tool that are made while many calls hang.
const BESIDE: usize = 20;
/// Maximum time until resources of a call are released.
const SETTLES: Duration = Duration::from_secs(60);
/// Idle time after which blocking threads end.
const IDLE: Duration = Duration::from_millis(20);

/// Settings of a run of a case.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) runs: usize,
    /// Guests that compute without end beside it, in the same runtime.
    pub(crate) spinning: usize,
    /// `true` for all rounds of the case, `false` for a few.
    pub(crate) at_length: bool,
    /// `true` if the writes of its calls are held back in a stage.
    pub(crate) is_staged: bool,
}

#[derive(Serialize, Deserialize)]
struct Orders {
    case: String,
    plan: Plan,
    report: std::path::PathBuf,
}

/// Results of one run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Number of calls by outcome: counted and not kept, because data that this process keeps for each call is not the
    /// host's.
    pub(crate) outcomes: BTreeMap<String, i64>,
    /// Answer or error of the last call.
    pub(crate) said: String,
    /// Flags of the last call.
    pub(crate) flags: Vec<String>,
    /// Duration of each call, in milliseconds.
    pub(crate) took: Vec<f64>,
    /// `true` if each result had the identifier of its call, in the order of the calls.
    pub(crate) in_order: bool,
    /// Peak bytes of a guest's memories and tables.
    pub(crate) guest_bytes: u64,
    /// Growth of the process in bytes, per running call, beyond its guest's memories.
    pub(crate) host_bytes: u64,
    /// Descriptors and threads that exist afterwards and did not before.
    pub(crate) descriptors: i64,
    pub(crate) threads: i64,
    /// Number of records of these calls, minus the number of calls.
    pub(crate) records: i64,
    /// Durations of another tool's calls while these ran, in milliseconds, if there are many.
    pub(crate) beside: Vec<f64>,
    /// Outcome of the next call of another tool, and its duration in milliseconds.
    pub(crate) next: String,
    pub(crate) next_took: f64,
}

/// Runs a case in a separate process, which `program` becomes when it reaches [`obey`].
pub(crate) fn tried(case: &Case, plan: Plan, mut program: Command) -> Vec<Run> {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    let orders = Orders { case: case.name.to_owned(), plan, report: report.clone() };
    let orders = serde_json::to_string(&orders).expect("JSON");
    let ended = program.env(ORDERS, orders).output().expect("the process starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{}: the host ended with {}: {said}", case.name, ended.status);
    let report = fs::read(&report).unwrap_or_else(|error| panic!("{}: no report: {error}: {said}", case.name));
    serde_json::from_slice(&report).expect("a report")
}

/// Executes the orders of this process, if it has any.
pub(crate) fn obey() -> bool {
    let Ok(orders) = std::env::var(ORDERS) else { return false };
    let orders: Orders = serde_json::from_str(&orders).expect("orders");
    let runs = measured(Case::named(&orders.case), orders.plan);
    fs::write(orders.report, serde_json::to_vec(&runs).expect("JSON")).expect("a report");
    true
}

fn measured(case: &'static Case, plan: Plan) -> Vec<Run> {
    let crib = Crib::new();
    match case.program {
        Program::Guest(name) => crib.install(&guest(name), "victim"),
        Program::Text(text) => crib.install_wat("victim", &text()),
    }
    if let Some(fill) = case.folder {
        fill(&crib.path("work"));
    }
    let mut spin = crib.entry("spin");
    spin["interface"] = json!({"timeout_ms": 86_400_000});
    crib.manifest(&json!({"tools": [case.entry(), crib.entry("echo"), spin]}));
    let mut builder = Runtime::builder(Audit::folder(crib.path("audit")))
        .trusted_source(crib.path("tools.json"))
        .compile_cache(target().join("test-cache"));
    if case.at_once > FLOOD {
        builder =
            builder.concurrency(CONCURRENCY[1]).scheduler(toolcrib::Scheduler { queue: 600, ..Default::default() });
    }
    if plan.is_staged {
        let stages = Stages::new(crib.path("stages"));
        builder = builder.stage(stages.open("one", Limits::default()).expect("a stage"));
    }
    let before = names(&crib.path("work"));
    let runtime = builder.build().expect("a runtime");
    let threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_keep_alive(IDLE)
        .enable_all()
        .build()
        .expect("threads");
    let runs = threads.block_on(async {
        for name in ["victim", "echo", "spin"] {
            // The calls report the reason for a refused program.
            let _ = runtime.prepare(name).await;
        }
        let spinning: Vec<_> = (0..plan.spinning).map(|_| tokio::spawn(called(&runtime, "spin", "{}", 0))).collect();
        // The first calls create the shared resources of all later ones, such as the memory image of a program.
        for name in ["echo", "victim"] {
            let arguments = if name == "victim" { case.arguments } else { "{}" };
            tokio::spawn(called(&runtime, name, arguments, 0)).await.expect("a call");
        }
        let mut runs = Vec::new();
        for _ in 0..plan.runs {
            runs.push(run(case, plan, &runtime, &crib).await);
        }
        spinning.into_iter().for_each(|call| call.abort());
        runs
    });
    threads.shutdown_timeout(SETTLES);
    if plan.is_staged {
        assert_eq!(names(&crib.path("work")), before, "{}: what is held back changes nothing", case.name);
    }
    runs
}

/// Names and sizes of the entries of a folder.
fn names(folder: &Path) -> BTreeMap<std::ffi::OsString, u64> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries.map(|entry| (entry.file_name(), entry.metadata().map_or(0, |found| found.len()))).collect()
}

async fn run(case: &'static Case, plan: Plan, runtime: &Runtime, crib: &Crib) -> Run {
    let before = Surroundings::settled(None).await;
    let records = records(crib);
    let [most, few] = case.rounds;
    let rounds = if plan.at_length { most } else { few };
    let mut run = Run { in_order: true, took: Vec::with_capacity(rounds * case.at_once), ..Run::default() };
    reset_peak();
    let resident = status("VmRSS:");
    for _ in 0..rounds {
        round(case, runtime, &mut run).await;
    }
    let grown = status("VmHWM:").saturating_sub(resident);
    let running = case.at_once.min(CONCURRENCY[usize::from(case.at_once > FLOOD)] / 2) as u64;
    run.host_bytes = grown.saturating_sub(run.guest_bytes * running) / running;
    let began = Instant::now();
    let next = tokio::spawn(called(runtime, "echo", r#"{"next":1}"#, 0)).await.expect("a call");
    (run.next, run.next_took) = (next.receipt.outcome.to_string(), millis(began.elapsed()));
    let after = Surroundings::settled(Some(before)).await;
    run.descriptors = after.descriptors - before.descriptors;
    run.threads = after.threads - before.threads;
    run.records = self::records(crib) - records - run.took.len() as i64;
    run
}

/// Makes the calls of a case once.
async fn round(case: &'static Case, runtime: &Runtime, run: &mut Run) {
    let calls = (0..case.at_once).map(|number| {
        let call = called(runtime, "victim", case.arguments, number);
        tokio::spawn(async move {
            let began = Instant::now();
            let result = call.await;
            (result, millis(began.elapsed()))
        })
    });
    let calls: Vec<_> = calls.collect();
    if case.at_once > 50 && case.deadline > 100 {
        for _ in 0..BESIDE {
            let began = Instant::now();
            let other = tokio::spawn(called(runtime, "echo", "{}", 0)).await.expect("a call");
            assert!(!other.is_error(), "{other:?}");
            run.beside.push(millis(began.elapsed()));
        }
    }
    for (number, call) in calls.into_iter().enumerate() {
        let (result, took) = call.await.expect("the host survives");
        run.in_order &= result.call_id == format!("call-{number}");
        *run.outcomes.entry(result.receipt.outcome.to_string()).or_default() += 1;
        run.took.push(took);
        run.guest_bytes = run.guest_bytes.max(result.receipt.peak_memory_bytes);
        run.said = result.content().chars().take(1000).collect();
        run.flags = result.receipt.flags.iter().map(|flag| flag.as_str().to_owned()).collect();
    }
}

fn called(
    runtime: &Runtime,
    name: &'static str,
    arguments: &'static str,
    number: usize,
) -> impl Future<Output = ToolResult> + Send + use<> {
    let (runtime, call) = (runtime.clone(), ToolCall::new(format!("call-{number}"), name, arguments));
    async move { runtime.call(call).await }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Number of records of the tested calls.
fn records(crib: &Crib) -> i64 {
    let records = crib.records();
    records.iter().filter(|record| record["tool"] == "victim").count() as i64
}

/// System resources of a process.
#[derive(Debug, Clone, Copy)]
struct Surroundings {
    descriptors: i64,
    threads: i64,
}

impl Surroundings {
    fn now() -> Self {
        let entries = |folder: &Path| fs::read_dir(folder).map_or(0, |entries| entries.count() as i64);
        let threads = entries(Path::new("/proc/self/task")) - i64::from(Self::has_log_thread());
        Self { descriptors: entries(Path::new("/proc/self/fd")), threads }
    }

    /// `true` if the log has started its one thread, which it does once records wait for one another.
    fn has_log_thread() -> bool {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        tasks.map(name).any(|name| name.trim() == "toolcrib-audit")
    }

    /// Resources once they no longer shrink, or are no more than `before`.
    async fn settled(before: Option<Self>) -> Self {
        let began = Instant::now();
        loop {
            let now = Self::now();
            tokio::time::sleep(IDLE * 3).await;
            let later = Self::now();
            let gone = |was: Self| later.descriptors <= was.descriptors && later.threads <= was.threads;
            let still = later.descriptors == now.descriptors && later.threads == now.threads;
            if before.map_or(still, gone) || began.elapsed() > SETTLES {
                return later;
            }
        }
    }
}

/// Resets the system's count of peak memory.
fn reset_peak() {
    // On a system without it, the peak covers the whole process, which is not less.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Reads a line of the process's status, in bytes.
fn status(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}
