//! Fault injection: each system call that accesses a file, allocates memory or starts a thread fails in turn, at each
//! place; and once at each place the whole program is killed. Afterwards no store holds partial data, nothing has
//! panicked, and the next run works.
//!
//! ```sh
//! cargo bench --bench faults                    # every place where a store is written, some of the others
//! cargo bench --bench faults -- --every 1       # all of them
//! ```
//!
//! Needs `strace` on Linux; skips if it is missing or may not trace.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

mod stores;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use tempfile::TempDir;

use stores::{Action, Stores};

/// System calls, their errors, and the scope of each fault: the files of the stores, any file, or any call.
const FAULTS: [(&str, &str, Scope); 29] = [
    ("write", "error=ENOSPC", Scope::Stores),
    ("write", "signal=KILL", Scope::Stores),
    ("write", "error=ENOSPC", Scope::Files),
    ("write", "signal=KILL", Scope::Files),
    ("pwrite64", "error=ENOSPC", Scope::Stores),
    ("pwrite64", "signal=KILL", Scope::Stores),
    ("fallocate", "error=ENOSPC", Scope::Files),
    ("ftruncate", "error=EIO", Scope::Files),
    ("fsync", "error=EIO", Scope::Files),
    ("rename", "error=ENOSPC", Scope::Files),
    ("rename", "signal=KILL", Scope::Files),
    ("renameat2", "error=ENOSPC", Scope::Files),
    ("renameat", "error=ENOSPC", Scope::Files),
    ("unlinkat", "error=EIO", Scope::Files),
    ("linkat", "error=ENOSPC", Scope::Files),
    ("unlink", "error=EIO", Scope::Files),
    ("unlink", "signal=KILL", Scope::Files),
    ("mkdir", "error=ENOSPC", Scope::Files),
    ("flock", "error=ENOLCK", Scope::Files),
    ("utimensat", "error=EIO", Scope::Files),
    ("openat", "error=ENOSPC", Scope::Stores),
    ("read", "error=EIO", Scope::Stores),
    ("openat", "error=EMFILE", Scope::Anywhere),
    ("read", "error=EIO", Scope::Anywhere),
    ("mmap", "error=ENOMEM", Scope::Anywhere),
    ("mprotect", "error=ENOMEM", Scope::Anywhere),
    ("madvise", "error=ENOMEM", Scope::Anywhere),
    ("brk", "error=ENOMEM", Scope::Anywhere),
    ("clone3", "error=EAGAIN", Scope::Anywhere),
];

/// Scope of the calls that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Calls on the files of the stores, which exist before and are known by name.
    Stores,
    /// Calls on any file. A call of the same name that goes to another thread and not to a file cannot fail this way,
    /// and does not count.
    Files,
    /// All calls: there are many, and only a sample of them is tried.
    Anywhere,
}

/// Default sample of the many calls that write nothing: one in this many.
const SOME: usize = 7;

/// One fault: the action, the kind, and the place.
struct Point {
    action: Action,
    fault: usize,
    at: usize,
}

/// Result of the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// Success, as without the fault.
    Done,
    /// Failure with a message.
    Reported,
    /// The system could not start it, or it had no memory to report its end.
    Lost,
    Killed,
    /// The fault hit something that is not a file, such as an event between threads, which cannot fail this way.
    NoFile,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let every = match (arguments.next().as_deref(), arguments.next().map(|number| number.parse())) {
        (None, _) => SOME,
        (Some("--every"), Some(Ok(every @ 1..))) => every,
        _ => {
            println!("usage: cargo bench --bench faults -- [--every N]");
            return ExitCode::from(2);
        }
    };
    if let Err(why) = can_trace() {
        println!("skipped: {why}");
        return ExitCode::SUCCESS;
    }
    let whole = Stores::new();
    let points = points(&whole, every);
    println!("{} points", points.len());
    let next = AtomicUsize::new(0);
    let ends = Mutex::new(BTreeMap::<usize, BTreeMap<End, usize>>::new());
    let problems = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(point) = points.get(next.fetch_add(1, Relaxed)) {
                    let (end, found) = inject_fault(&whole, point);
                    *ends.lock().expect("no panic").entry(point.fault).or_default().entry(end).or_default() += 1;
                    for found in found {
                        let (call, how, place) = FAULTS[point.fault];
                        println!("PROBLEM: {:?}, {call} {how} {place:?} at {}: {found}", point.action, point.at);
                        problems.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    let (ends, problems) = (ends.into_inner().expect("no panic"), problems.into_inner());
    println!(
        "{:10} {:13} {:9} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}",
        "call", "fault", "where", "points", "done", "told", "lost", "killed", "no file"
    );
    for (fault, ends) in &ends {
        let (call, how, place) = FAULTS[*fault];
        let place = format!("{place:?}");
        let of = |end| ends.get(&end).copied().unwrap_or_default();
        let [done, told, lost, killed, none] = [End::Done, End::Reported, End::Lost, End::Killed, End::NoFile].map(of);
        let all = ends.values().sum::<usize>();
        println!("{call:10} {how:13} {place:9} {all:6} {done:6} {told:6} {lost:6} {killed:6} {none:7}");
    }
    println!("{} points, {problems} problems", points.len());
    if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn can_trace() -> Result<(), &'static str> {
    let tried = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    match tried {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("`strace` may not trace here"),
        Err(_) => Err("`strace` is not there; on Debian: apt-get install strace"),
    }
}

/// Lists the places at which each call of each action can fail: a thread counts its own calls, so these are the places
/// of the busiest thread.
fn points(whole: &Stores, every: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for action in Action::ALL {
        for (fault, (call, _, place)) in FAULTS.iter().enumerate() {
            let stores = copy(whole);
            let mut program = stores.under("strace", tracing(&stores, call, *place, None), action, "traced");
            program.stdout(file(&stores, "stdout")).stderr(file(&stores, "stderr"));
            assert!(program.status().expect("it starts").success(), "{action:?} under trace");
            let mut counted = HashMap::<String, usize>::new();
            let trace = fs::read_to_string(stores.path("trace")).expect("a trace");
            for line in trace.lines().filter(|line| !line.contains("resumed>")) {
                *counted.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
            }
            let step = if *place == Scope::Anywhere { every } else { 1 };
            let most = counted.into_values().max().unwrap_or_default();
            points.extend((1..=most).step_by(step).map(|at| Point { action, fault, at }));
        }
    }
    points
}

/// Arguments of `strace` for the watched and failing calls.
fn tracing(stores: &Stores, call: &str, place: Scope, inject: Option<&str>) -> Vec<String> {
    let mut words = ["-f", "-y", "-qq", "-e", "signal=none", "-e"].map(str::to_owned).to_vec();
    words.push(format!("trace={call}"));
    words.extend(inject.into_iter().flat_map(|inject| ["-e".to_owned(), inject.to_owned()]));
    if place == Scope::Stores {
        let files = ["audit", "records", "results", "cache", "work", ""].map(|folder| stores.in_folder(folder));
        let ours = |path: &PathBuf| path.is_file() && !path.ends_with("trace");
        let files = files.into_iter().flatten().filter(ours);
        words.extend(files.flat_map(|path| ["-P".to_owned(), path.display().to_string()]));
    }
    words.extend(["-o".to_owned(), stores.path("trace").display().to_string()]);
    words
}

/// Executes the action with a fault, checks the stores, and then executes it without a fault.
fn inject_fault(whole: &Stores, point: &Point) -> (End, Vec<String>) {
    let Point { action, fault, at } = *point;
    let (call, how, place) = FAULTS[fault];
    let stores = copy(whole);
    let before = stores.recorded();
    let (stdout, stderr) = (file(&stores, "stdout"), file(&stores, "stderr"));
    let inject = format!("inject={call}:{how}:when={at}");
    let bounded = ["-s", "KILL", "20", "strace"].map(str::to_owned).into_iter();
    let with = bounded.chain(tracing(&stores, call, place, Some(&inject)));
    let mut program = stores.under("timeout", with, action, "faulty");
    let status = program.stdout(stdout).stderr(stderr).status().expect("it starts");
    let said = String::from_utf8_lossy(&fs::read(stores.path("stderr")).expect("what it said")).into_owned();
    let end = end(status, how, &stores.path("trace"));
    let mut problems = Vec::new();
    if end == End::NoFile {
        return (end, problems);
    }
    if ["panicked at", "internal error"].iter().any(|words| said.contains(words)) {
        problems.push(format!("it panicked: {}", said.trim()));
    }
    if status.code() == Some(124) || status.code() == Some(137) && end != End::Killed {
        problems.push("it hung".to_owned());
    } else if end == End::Lost && !is_memory(call) && !said.contains("loading shared libraries") {
        problems.push(format!("it ended with {status}: {}", said.trim()));
    }
    problems.extend(stores.problems().into_iter().map(|found| format!("afterwards ({end:?}): {found}")));
    if end != End::Killed && stores.torn() > 0 {
        problems.push("a record was written half".to_owned());
    }
    // A run continues if a call cannot be recorded, and reports it.
    let recorded = stores.recorded() - before;
    let told = said.matches("unlogged").count() as u64;
    if end == End::Done && recorded + told < calls(action) {
        problems.push(format!("it reports success, and {recorded} calls were recorded"));
    }
    if action == Action::Approvals {
        stores.approve(stores::REVOKED);
    }
    let again = stores.program(action, "again").output().expect("it starts");
    if !again.status.success() {
        problems.push(format!("the next run fails: {}", String::from_utf8_lossy(&again.stderr).trim()));
    }
    problems.extend(stores.problems().into_iter().map(|found| format!("after the next run: {found}")));
    (end, problems)
}

fn end(status: ExitStatus, how: &str, trace: &Path) -> End {
    // For a call on something that is not a file, the trace names its object; if another thread interrupted the call,
    // in the line before.
    let others = ["<anon_inode:", "<pipe:", "<socket:", "<UNIX", "</proc/", "</sys/", "</dev/"];
    let mut begun = HashMap::new();
    for line in fs::read_to_string(trace).unwrap_or_default().lines() {
        let (thread, rest) = line.split_once(' ').unwrap_or_default();
        let before = begun.insert(thread.to_owned(), rest.to_owned()).filter(|_| rest.contains("resumed>"));
        let whole = before.unwrap_or_default() + rest;
        if line.contains("(INJECTED)") && others.iter().any(|other| whole.contains(other)) {
            return End::NoFile;
        }
    }
    match status.code() {
        Some(0) => End::Done,
        Some(1 | 2) => End::Reported,
        _ if how == "signal=KILL" => End::Killed,
        _ => End::Lost,
    }
}

/// Number of calls of an action.
fn calls(action: Action) -> u64 {
    match action {
        Action::Call | Action::Compile => 1,
        Action::Run => 4,
        Action::Approvals => 0,
    }
}

/// Copies the crib to another folder. Programs and compiled code are shared, because nothing writes to them.
fn copy(whole: &Stores) -> Stores {
    let copy = Stores::at(TempDir::new().expect("a folder"));
    copy_all(&whole.path(""), &copy.path(""));
    copy
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            fs::create_dir(&to).expect("a folder");
            copy_all(&path, &to);
        } else if path.extension().is_some_and(|it| it == "wasm" || it == "cwasm") {
            fs::hard_link(&path, &to).expect("a link");
        } else {
            fs::copy(&path, &to).expect("a copy");
        }
    }
    fs::set_permissions(to, from.metadata().expect("a folder").permissions()).expect("its rights");
}

/// File for the output of a program, which a full disk can cut like any other.
fn file(stores: &Stores, name: &str) -> Stdio {
    File::create(stores.path(name)).expect("a file").into()
}

/// `true` if its failure leaves no memory for a message.
fn is_memory(call: &str) -> bool {
    matches!(call, "mmap" | "mprotect" | "madvise" | "brk" | "clone3")
}
